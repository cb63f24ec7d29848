//! What a contract cannot mean: values that contradict each other.

use super::{AfterExpiry, Anchor, Atomic, Bound, Hole, KeyFormat, Retention, RetentionKind, Staleness};
use super::{Complete, Consistency, Contract, Converge, DedupKey, Grade, Lookup, Permanence};
use std::time::Duration;

/// A contradiction and where it is.
pub(super) struct Contradiction {
    pub(super) table: &'static str,
    pub(super) item: usize,
    pub(super) key: String,
    pub(super) message: String,
    pub(super) help: &'static str,
}

impl Contradiction {
    pub(super) fn path(&self) -> String {
        if self.table.is_empty() { self.key.clone() } else { format!("{}.{}", self.table, self.key) }
    }
}

/// A rule: whether it is broken, the key to blame, what is wrong, what to do.
type Rule = (bool, &'static str, String, &'static str);

/// The first contradiction of a contract.
pub(super) fn contradiction(contract: &Contract) -> Option<Contradiction> {
    let top = broken("", 0, about_the_whole(contract));
    top.or_else(|| broken("dedup_key", 0, contract.dedup_key.as_ref().map(about_a_key)?))
        .or_else(|| each("converge", &contract.converge, about_an_identity))
        .or_else(|| each("lookup", &contract.lookup, about_a_lookup))
        .or_else(|| broken("errors", 0, about_errors(contract)))
        .or_else(|| stray_evidence(contract))
        .or_else(|| broken("revision", 0, about_sources(contract)))
}

fn each<T>(table: &'static str, items: &[T], rules: fn(&[T], usize) -> Vec<Rule>) -> Option<Contradiction> {
    (0..items.len()).find_map(|item| broken(table, item, rules(items, item)))
}

fn broken(table: &'static str, item: usize, rules: Vec<Rule>) -> Option<Contradiction> {
    let (_, key, message, help) = rules.into_iter().find(|rule| rule.0)?;
    Some(Contradiction { table, item, key: key.to_owned(), message, help })
}

fn about_the_whole(contract: &Contract) -> Vec<Rule> {
    let nameless = |name: &str| name.trim().is_empty();
    let plain = contract.id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    let words = "write the system and the operation in words";
    vec![
        (
            nameless(&contract.id) || !plain,
            "id",
            format!("\"{}\" is not an id", contract.id),
            "use a-z, 0-9 and _",
        ),
        (nameless(&contract.system), "system", "the system has no name".to_owned(), words),
        (nameless(&contract.operation), "operation", "the operation has no name".to_owned(), words),
    ]
}

fn about_a_key(key: &DedupKey) -> Vec<Rule> {
    let lasts = key.retention != Retention::Unknown;
    let forever = key.retention == Retention::Forever;
    let best_effort = key.retention_kind == RetentionKind::BestEffort;
    let budget = key.holes.contains(&Hole::Budget);
    let firm = matches!(key.retention_kind, RetentionKind::Minimum | RetentionKind::Fixed);
    let give = "give `retention`, or leave this out";
    let without = |what: &str| format!("{what} says nothing without a retention");
    vec![
        (
            key.name.trim().is_empty(),
            "name",
            "a key needs a name".to_owned(),
            "name the header, field or parameter",
        ),
        (
            key.max_len.is_some_and(|len| len > 65_536),
            "max_len",
            "no key has more than 65,536 characters".to_owned(),
            "leave it out where unknown",
        ),
        (
            key.max_len == Some(0),
            "max_len",
            "no key has 0 characters".to_owned(),
            "leave it out where unknown",
        ),
        (
            key.format == KeyFormat::Uuid4 && key.max_len.is_some_and(|len| len < 32),
            "max_len",
            "a UUID does not fit".to_owned(),
            "a UUID has 32 digits, 36 characters with its hyphens",
        ),
        (!lasts && key.retention_kind != RetentionKind::Unknown, "retention_kind", without("a kind"), give),
        (!lasts && key.retention_anchor != Anchor::Unknown, "retention_anchor", without("an anchor"), give),
        (
            !lasts && key.after_expiry != AfterExpiry::Unknown,
            "after_expiry",
            without("what follows it"),
            give,
        ),
        (
            forever && key.after_expiry != AfterExpiry::Unknown,
            "after_expiry",
            "a key that is kept forever does not expire".to_owned(),
            "leave out `after_expiry`, or give the retention",
        ),
        (
            forever && best_effort,
            "retention_kind",
            "a best effort does not last forever".to_owned(),
            "leave out `retention`, or call it \"minimum\"",
        ),
        (
            budget && firm,
            "retention_kind",
            "a key that a memory budget can drop has no firm retention".to_owned(),
            "call it \"best_effort\", or take \"budget\" out of `holes`",
        ),
    ]
}

fn about_an_identity(all: &[Converge], item: usize) -> Vec<Rule> {
    let this = &all[item];
    let twice = all[..item].iter().any(|other| other.kind == this.kind);
    // Of several identities the best one counts, so one must be the best.
    let outlives = this.atomic == Atomic::Sequential
        && all.iter().any(|other| other.atomic == Atomic::Yes && lasts(other) < lasts(this));
    vec![
        (twice, "kind", format!("`{}` is declared twice", this.kind.word()), "declare each kind once"),
        (
            this.field.trim().is_empty() && this.atomic != Atomic::Unknown,
            "atomic",
            "nothing is atomic without a field".to_owned(),
            "name in `field` what carries the identity",
        ),
        (
            this.field.trim().is_empty(),
            "field",
            "an identity needs a field".to_owned(),
            "name the field, or \"id\"",
        ),
        (
            this.atomic == Atomic::Unknown && this.permanence != Permanence::Unknown,
            "permanence",
            "an identity that nothing enforces has no permanence".to_owned(),
            "say in `atomic` how it is enforced, or leave this out",
        ),
        (
            outlives,
            "permanence",
            "a sequential identity outlives an atomic one: neither is the better".to_owned(),
            "declare the one that you rely on",
        ),
    ]
}

/// How long an identity stays taken; unknown is not at all.
fn lasts(identity: &Converge) -> Duration {
    match identity.permanence {
        Permanence::WhileRecordExists => Duration::MAX,
        Permanence::For(period) => period,
        Permanence::Unknown => Duration::ZERO,
    }
}

fn about_a_lookup(all: &[Lookup], item: usize) -> Vec<Rule> {
    let this = &all[item];
    let twice = all[..item].iter().any(|other| other.by == this.by);
    let lags = this.consistency == Consistency::Eventual;
    let only_eventual = "only an \"eventual\" look-up is stale; set `consistency`, or leave this out";
    let stale = || "a look-up that is not eventual has no staleness".to_owned();
    let above = match (this.typical_staleness, this.max_staleness) {
        (Bound::Known(typical), Staleness::Known(max)) => typical > max,
        _ => false,
    };
    vec![
        (
            twice,
            "by",
            format!("a look-up by `{}` is declared twice", this.by.word()),
            "declare each look-up once",
        ),
        (!lags && this.max_staleness != Staleness::Unknown, "max_staleness", stale(), only_eventual),
        (!lags && this.typical_staleness != Bound::Unknown, "typical_staleness", stale(), only_eventual),
        (above, "typical_staleness", "more than `max_staleness`".to_owned(), "the usual is at most the most"),
        (
            this.page_size == Some(0),
            "page_size",
            "no page has 0 records".to_owned(),
            "leave it out where unknown",
        ),
        (
            this.complete == Complete::Truncated(0),
            "complete",
            "a look-up that shows nothing is none".to_owned(),
            "leave the look-up out",
        ),
    ]
}

fn about_errors(contract: &Contract) -> Vec<Rule> {
    let empty = |list: &[super::ErrorMatch]| list.contains(&super::ErrorMatch::default());
    let success = contract.errors.not_executed.iter().any(|error| {
        error.status.is_some_and(|status| (200..300).contains(&status))
            && error.code.is_none()
            && error.contains.is_none()
    });
    let give = "give `status`, `code` or `contains`";
    vec![
        (empty(&contract.errors.not_executed), "not_executed", "an error without any part".to_owned(), give),
        (empty(&contract.errors.unknown), "unknown", "an error without any part".to_owned(), give),
        (
            success,
            "not_executed",
            "a success is no proof that nothing was executed".to_owned(),
            "add the `code` that tells the refusal from a success",
        ),
    ]
}

/// Evidence for a field that the schema does not have.
fn stray_evidence(contract: &Contract) -> Option<Contradiction> {
    let known = |path: &str| {
        let mut parts = path.splitn(3, '.');
        let (table, item, field) = (parts.next().unwrap_or(""), parts.next(), parts.next());
        let in_list = |words: &[&str], fields: &[&str]| {
            item.is_none_or(|item| words.contains(&item)) && field.is_none_or(|field| fields.contains(&field))
        };
        let plain = |fields: &[&str]| item.is_none_or(|item| fields.contains(&item)) && field.is_none();
        match table {
            "dedup_key" => plain(&KEY),
            "converge" => in_list(&CONVERGE_KINDS, &CONVERGE),
            "lookup" => in_list(&LOOKUP_BY, &LOOKUP),
            "time" => plain(&TIME),
            "errors" => plain(&ERRORS),
            "webhooks" => plain(&WEBHOOKS),
            other => WHOLE.contains(&other) && item.is_none(),
        }
    };
    let stray = contract.revision.evidence.keys().find(|path| !known(path))?;
    Some(Contradiction {
        table: "revision.evidence",
        item: 0,
        key: stray.clone(),
        message: format!("evidence for `{stray}`, which is no field"),
        help: "name a field by its path, such as `dedup_key.retention` or `lookup.external_ref`",
    })
}

fn about_sources(contract: &Contract) -> Vec<Rule> {
    let graded = contract.revision.evidence.values().any(|grade| *grade > Grade::Assumed);
    vec![(
        graded && contract.revision.sources.is_empty(),
        "sources",
        "evidence without a source".to_owned(),
        "name in `sources` where it was found, or grade it \"assumed\"",
    )]
}

// The fields that evidence can be given for; a test compares them with the schema.
pub(super) const WHOLE: [&str; 9] = [
    "ack",
    "harm_of_duplicate",
    "undo",
    "enumerate",
    "proxies_may_retry",
    "void_by_key",
    "state_transition",
    "retry_directives",
    "operation",
];
pub(super) const KEY: [&str; 22] = [
    "carrier",
    "name",
    "format",
    "max_len",
    "scope",
    "scope_depends_on",
    "required_when",
    "retention",
    "retention_kind",
    "retention_anchor",
    "after_expiry",
    "replay",
    "replay_status",
    "replay_marker",
    "saved",
    "not_saved",
    "burnt_by_failure",
    "mismatch",
    "in_flight",
    "in_flight_ambiguous",
    "store_down",
    "holes",
];
pub(super) const CONVERGE: [&str; 10] = [
    "kind",
    "field",
    "atomic",
    "only_on",
    "on_conflict",
    "conflict_names_existing",
    "on_multi_match",
    "permanence",
    "overwrites_later_edits",
    "ownership_field",
];
pub(super) const LOOKUP: [&str; 7] =
    ["by", "consistency", "typical_staleness", "max_staleness", "complete", "sees_archived", "page_size"];
pub(super) const TIME: [&str; 2] = ["late_commit_bound", "clock_skew_margin"];
pub(super) const ERRORS: [&str; 2] = ["not_executed", "unknown"];
pub(super) const WEBHOOKS: [&str; 7] =
    ["delivery", "event_id", "delivery_id", "auto_redelivery", "window", "ack_timeout", "ordering"];
const CONVERGE_KINDS: [&str; 4] = ["client_id", "conditional_create", "unique_ref", "upsert"];
const LOOKUP_BY: [&str; 5] = ["external_ref", "client_id", "key", "marker_text", "scan"];
