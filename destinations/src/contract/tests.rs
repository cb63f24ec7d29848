//! Tests of reading, checking, weakening and recognising.

use super::*;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::time::Duration;

const MINIMAL: &str = "id = \"x\"\nsystem = \"X\"\noperation = \"POST /x\"\n";

/// A contract that uses nearly every field of the schema.
pub(crate) const RICH: &str = r#"
id = "rich"
system = "Rich (fictional)"
operation = "POST /x"
ack = "async_accepted"
harm_of_duplicate = "money"
undo = { compensable = "POST /x/refund" }
enumerate = { incremental = { lag = "1min" } }
proxies_may_retry = true
void_by_key = { operation = "POST /x/cancel", fences_late_commit = false }
state_transition = { status = 422, code = "already_captured" }
retry_directives = [{ header = "Stripe-Should-Retry", permits = "true" }]

[revision]
as_of = "2026-11-30"
sources = ["this test"]

[revision.evidence]
ack = "documented"
dedup_key = "documented"
"dedup_key.store_down" = "reported"
converge = "documented"
lookup = "quoted"
time = "documented"

[dedup_key]
carrier = "body"
name = "request_id"
format = "uuid4"
max_len = 36
scope = ["account", "endpoint"]
scope_depends_on = ["zone"]
required_when = "the amount is above 100"
retention = "1day"
retention_kind = "minimum"
retention_anchor = "first_request"
after_expiry = "rejected"
replay = "current_state"
replay_status = { listed = [201, 200] }
replay_marker = "Idempotent-Replayed"
saved = ["2xx", "4xx_after_execution", "5xx_after_execution"]
not_saved = ["pre_validation_4xx", "401", "409_in_flight", "429"]
burnt_by_failure = true
mismatch = { error = { status = 422 } }
in_flight = { error = { status = 409, code = "busy", retry_after = "2s" } }
in_flight_ambiguous = true
store_down = { fail_closed = { status = 503 } }
holes = ["other_region", { response_over_bytes = 9000000 }]

[[converge]]
kind = "upsert"
field = "external_id"
atomic = "sequential"
on_conflict = "updates_existing"
conflict_names_existing = true
on_multi_match = { error = { status = 300 } }
permanence = "30days"
overwrites_later_edits = true
ownership_field = "marker"

[[converge]]
kind = "unique_ref"
field = "external_id"
atomic = "yes"
on_conflict = { error = { status = 409 } }
permanence = "60days"

[[lookup]]
by = "external_ref"
consistency = "eventual"
typical_staleness = "1s"
max_staleness = "1min"
complete = "yes"
sees_archived = true
page_size = 50

[[lookup]]
by = "key"
consistency = "read_your_writes"
complete = "yes"
sees_archived = true

[time]
late_commit_bound = "90s"
clock_skew_margin = "10min"

[errors]
not_executed = [{ status = 422 }, { contains = "conflict on insert" }]
unknown = [{ status = 422, code = "busy" }]

[webhooks]
delivery = "at_least_once"
event_id = "id"
delivery_id = "x-delivery"
auto_redelivery = true
window = "3days"
ack_timeout = "10s"
ordering = "per_key"
"#;

#[test]
fn every_contract_of_the_crate_is_read_and_named_by_its_file() {
    for (id, text) in builtin_text() {
        let contract = Contract::from_toml(&format!("{id}.toml"), text).unwrap();
        assert_eq!(contract.id, *id);
        assert_eq!(named(id).as_ref(), Some(&contract));
        let written = toml::to_string(&contract).unwrap();
        assert_eq!(Contract::from_toml("written", &written).unwrap(), contract);
    }
    assert!(named("no_such_contract").is_none());
}

#[test]
fn a_rich_contract_survives_being_written_and_read() {
    let rich = Contract::from_toml("rich.toml", RICH).unwrap();
    let written = toml::to_string(&rich).unwrap();
    assert_eq!(Contract::from_toml("written", &written).unwrap(), rich);
    assert_eq!(rich.dedup_key.as_ref().unwrap().retention, Retention::For(Duration::from_secs(86_400)));
    assert_eq!(rich.converge[0].permanence, Permanence::For(Duration::from_secs(30 * 86_400)));
}

#[test]
fn an_omitted_field_is_unknown() {
    let minimal = Contract::from_toml("x.toml", MINIMAL).unwrap();
    assert_eq!(minimal.ack, Ack::Unknown);
    assert_eq!(minimal.time.late_commit_bound, Bound::Unknown);
    assert_eq!(minimal.grade("dedup_key.retention"), Grade::Unknown);
    let said = format!("{MINIMAL}ack = \"unknown\"\n[time]\nlate_commit_bound = \"unknown\"\n");
    let said = Contract::from_toml("x.toml", &said).unwrap();
    assert_eq!(said, minimal);
    assert_eq!(said.digest(), minimal.digest());
}

#[test]
fn the_digest_tells_contracts_apart_and_ignores_the_order_of_the_text() {
    let mut digests: Vec<String> = builtin().iter().map(Contract::digest).collect();
    digests.push(Contract::from_toml("rich.toml", RICH).unwrap().digest());
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), 6);
    let other_order = "operation = \"POST /x\"\n# a remark\nsystem = \"X\"\nid = \"x\"\n";
    let (one, other) =
        (Contract::from_toml("", MINIMAL).unwrap(), Contract::from_toml("", other_order).unwrap());
    assert_eq!(one.digest(), other.digest());
    assert_eq!(one.digest().len(), 64);
}

#[test]
fn the_longest_path_of_evidence_counts() {
    let rich = Contract::from_toml("rich.toml", RICH).unwrap();
    assert_eq!(rich.grade("dedup_key.store_down"), Grade::Reported);
    assert_eq!(rich.grade("dedup_key.retention"), Grade::Documented);
    assert_eq!(rich.grade("lookup.key.complete"), Grade::Quoted);
    assert_eq!(rich.grade("webhooks.delivery"), Grade::Unknown);
}

fn broken(change: &str) -> String {
    let text = match change.split_once(" => ") {
        Some((from, to)) => {
            assert!(RICH.contains(from), "{from}");
            RICH.replacen(from, to, 1)
        }
        None => format!("{RICH}{change}\n"),
    };
    Contract::from_toml("rich.toml", &text).unwrap_err().to_string()
}

#[test]
fn each_mistake_is_explained_at_its_place() {
    let mistakes = [
        "retention = \"1day\" => retenton = \"1day\"",
        "ordering = \"per_key\" => order_of_events = \"per_key\"",
        "retention = \"1day\" => retention = \"2 fortnights\"",
        "late_commit_bound = \"90s\" => late_commit_bound = \"-90s\"",
        "max_staleness = \"1min\" => max_staleness = \"0s\"",
        "atomic = \"sequential\" => atomic = \"sequentail\"",
        "name = \"request_id\"\n => ",
        "max_len = 36 => max_len = -1",
        "max_len = 36 => max_len = 0",
        "name = \"request_id\" => name = \"\"",
        "retention = \"1day\"\n => ",
        "retention = \"1day\" => retention = \"forever\"",
        "holes = [ => holes = [\"budget\", ",
        "field = \"external_id\" => field = \"\"",
        "atomic = \"sequential\"\n => ",
        "permanence = \"30days\" => permanence = \"while_record_exists\"",
        "kind = \"unique_ref\" => kind = \"upsert\"",
        "consistency = \"eventual\" => consistency = \"read_your_writes\"",
        "typical_staleness = \"1s\" => typical_staleness = \"1h\"",
        "by = \"key\" => by = \"external_ref\"",
        "not_executed = [ => not_executed = [{}, ",
        "not_executed = [ => not_executed = [{ status = 200 }, ",
        "\"dedup_key.store_down\" = \"reported\" => \"dedup_key.store\" = \"reported\"",
        "sources = [\"this test\"] => sources = []",
        "id = \"rich\" => id = \"Rich!\"",
        "id = \"rich\" => id = rich",
    ];
    let explained: Vec<String> = mistakes.map(|change| format!("## {change}\n{}\n", broken(change))).into();
    insta::assert_snapshot!(explained.join("\n"));
}

#[test]
fn an_error_names_file_and_key_first_and_ends_with_help() {
    for change in ["retention = \"1day\" => retenton = \"1day\"", "max_len = 36 => max_len = 0"] {
        let error = broken(change);
        assert!(error.starts_with("rich.toml: dedup_key."), "{error}");
        assert_eq!(error.lines().filter(|line| line.starts_with("help: ")).count(), 1, "{error}");
        assert!(error.lines().last().unwrap().starts_with("help: "), "{error}");
    }
}

#[test]
fn refusals_are_matched_by_status_code_and_text() {
    let zendesk = named("zendesk_ticket").unwrap();
    let code = |code: &str| format!("{{\"error\":{{\"code\":\"{code}\",\"message\":\"m\"}}}}").into_bytes();
    assert!(zendesk.not_executed(422, b""));
    assert!(zendesk.not_executed(400, &code("validation")));
    assert!(!zendesk.not_executed(400, &code("IdempotentRequestError")));
    assert!(!zendesk.not_executed(400, b"{\"error\":\"IdempotentRequestError\"}"));
    assert!(!zendesk.not_executed(422, &code("IdempotentRequestError")), "`unknown` outranks the status");
    assert!(!zendesk.not_executed(400, b"{\"error\":{\"code\":\"other\",\"message\":\"validation\"}}"));
    assert!(!zendesk.not_executed(400, b"not json: validation"));
    for status in [200, 201, 408, 409, 500, 502, 503, 504] {
        assert!(!zendesk.not_executed(status, &code("validation")), "{status}");
    }
    let rich = Contract::from_toml("rich.toml", RICH).unwrap();
    assert!(rich.not_executed(200, b"{\"errors\":[{\"message\":\"conflict on insert of Issue\"}]}"));
    assert!(rich.not_executed(422, b"") && !rich.not_executed(422, &code("busy")));
    assert!(!ErrorMatch::default().matches(422, b""));
}

#[test]
fn codes_are_found_in_each_of_several_errors() {
    let wanted = ErrorMatch { code: Some("INPUT_ERROR".to_owned()), ..ErrorMatch::default() };
    assert!(
        wanted
            .matches(200, b"{\"errors\":[{\"message\":\"x\"},{\"extensions\":{\"code\":\"INPUT_ERROR\"}}]}")
    );
    assert!(wanted.matches(200, b"{\"code\":\"INPUT_ERROR\"}"));
    assert!(!wanted.matches(200, b"{\"title\":\"INPUT_ERROR\"}"));
}

#[test]
fn weakening_reaches_every_field_and_knows_less_each_time() {
    let rich = Contract::from_toml("rich.toml", RICH).unwrap();
    let weaker = rich.weakened();
    let paths: Vec<&str> = weaker.iter().map(|(path, _)| path.as_str()).collect();
    for path in [
        "dedup_key",
        "dedup_key.retention",
        "dedup_key.retention_kind",
        "dedup_key.retention_anchor",
        "dedup_key.in_flight",
        "dedup_key.mismatch",
        "dedup_key.store_down",
        "converge.0",
        "converge.0.atomic",
        "converge.1.permanence",
        "lookup.0",
        "lookup.0.consistency",
        "lookup.0.max_staleness",
        "lookup.0.typical_staleness",
        "lookup.0.complete",
        "lookup.1.sees_archived",
        "time.late_commit_bound",
        "errors.not_executed.0",
        "revision.evidence",
        "revision.evidence.lookup",
        "void_by_key",
        "webhooks.window",
    ] {
        assert!(paths.contains(&path), "{path} is not among {paths:?}");
    }
    for path in ["dedup_key.holes", "dedup_key.holes.0", "errors.unknown", "time", "time.clock_skew_margin"] {
        assert!(!paths.contains(&path), "{path} only forbids");
    }
    assert!(weaker.iter().all(|(path, less)| *less != rich || panic!("{path} changes nothing")));
}

/// The fields that the parser expects in a table.
fn fields<T: DeserializeOwned + Debug>() -> Vec<String> {
    let mut start = String::new();
    let error = loop {
        let error = toml::from_str::<T>(&format!("{start}\"no such field\" = 1")).unwrap_err();
        match error.message().split('`').nth(1) {
            Some(missing) if error.message().starts_with("missing") => start += &format!("{missing} = 1\n"),
            _ => break error,
        }
    };
    error.message().split('`').skip(3).step_by(2).map(str::to_owned).collect()
}

#[test]
fn evidence_can_be_given_for_every_field_of_the_schema() {
    assert_eq!(fields::<DedupKey>(), check::KEY);
    assert_eq!(fields::<Converge>(), check::CONVERGE);
    assert_eq!(fields::<Lookup>(), check::LOOKUP);
    assert_eq!(fields::<TimeBounds>(), check::TIME);
    assert_eq!(fields::<Errors>(), check::ERRORS);
    assert_eq!(fields::<Webhooks>(), check::WEBHOOKS);
    let tables =
        ["dedup_key", "converge", "lookup", "time", "errors", "webhooks", "revision", "id", "system"];
    let mut whole: Vec<String> = fields::<Contract>();
    whole.retain(|field| !tables.contains(&field.as_str()));
    whole.sort();
    let mut listed = check::WHOLE.to_vec();
    listed.sort_unstable();
    assert_eq!(whole, listed);
}

#[test]
fn the_words_of_evidence_paths_are_those_of_the_contract() {
    for by in [LookupBy::ExternalRef, LookupBy::ClientId, LookupBy::Key, LookupBy::MarkerText, LookupBy::Scan]
    {
        assert_eq!(toml::Value::try_from(by).unwrap().as_str(), Some(by.word()));
    }
    for kind in [
        ConvergeKind::ClientId,
        ConvergeKind::ConditionalCreate,
        ConvergeKind::UniqueRef,
        ConvergeKind::Upsert,
    ] {
        assert_eq!(toml::Value::try_from(kind).unwrap().as_str(), Some(kind.word()));
    }
}
