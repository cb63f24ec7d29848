//! What a send or a look-up showed, and what that proves under the destination's contract.

use crate::hidden::Hidden;
use bytes::Bytes;
use destinations::Contract;
use serde_json::Value;

/// The raw observation of one exchange. Not a `Result`: no `?` can turn a time-out into a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "an observation is evidence; dropping it loses what is known of the effect"]
pub enum Observed {
    /// The transport proves that no byte of the request left us.
    NotSent {
        /// What stopped it.
        why: String,
    },
    /// A whole answer came back.
    Answer {
        /// The HTTP status.
        status: u16,
        /// The body.
        body: Bytes,
    },
    /// Bytes left us and no whole answer came back: time-out, reset, end of stream, truncated body.
    Broken {
        /// What was seen.
        why: String,
    },
}

/// A record as the destination shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The destination's own id, `T93`.
    pub id: String,
    /// All its fields.
    pub fields: Value,
}

/// What an observation of a create proves about that send (WORKFLOW.md calls these E+, E- and E0).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// E+: the record exists; this is it.
    Created(Record),
    /// E+ partial: success without a readable record.
    CreatedWithoutRef,
    /// The destination says that a record with our identity exists: read it before believing it.
    Exists {
        /// Its id, where the conflict names it.
        id: Option<String>,
    },
    /// E- final: a documented refusal before execution.
    Refused(String),
    /// E- retryable: this send did nothing, a later one may succeed.
    NotApplied(String),
    /// E0: nothing is proven.
    Unknown(String),
}

/// What one observation of a create proves. Everything that the contract does not document proves nothing.
pub fn prove(observed: &Observed, contract: &Contract, hidden: &Hidden) -> Proof {
    let (status, body) = match observed {
        Observed::NotSent { why } => {
            return Proof::NotApplied(format!("nothing was sent: {}", hidden.clean(why)));
        }
        Observed::Broken { why } => return Proof::Unknown(hidden.clean(why)),
        Observed::Answer { status, body } => (*status, body),
    };
    match status {
        // Accepted is not created: a job may still fail.
        202 => Proof::CreatedWithoutRef,
        200..=299 => read_record(body).map_or(Proof::CreatedWithoutRef, Proof::Created),
        _ if is_conflict(status, body, contract) => Proof::Exists { id: existing_id(body) },
        _ if contract.not_executed(status, body) => {
            let reason = format!("{status} {}", error_text(body, hidden));
            if matches!(status, 429 | 503) { Proof::NotApplied(reason) } else { Proof::Refused(reason) }
        }
        _ => Proof::Unknown(format!("{status} {}", error_text(body, hidden))),
    }
}

/// Whether an answer is the contract's way of saying that a record with this identity exists.
fn is_conflict(status: u16, body: &[u8], contract: &Contract) -> bool {
    use destinations::contract::OnConflict;
    contract.converge.iter().any(|converge| match &converge.on_conflict {
        OnConflict::Error { status: declared, code } => {
            *declared == status
                && code.as_deref().is_none_or(|code| error_code(body).as_deref() == Some(code))
        }
        _ => false,
    })
}

/// Reads `{"ticket": {"id": …}}`.
pub fn read_record(body: &[u8]) -> Option<Record> {
    let value: Value = serde_json::from_slice(body).ok()?;
    record_of(value.get("ticket")?)
}

/// A record from its JSON object; none without a readable id.
pub fn record_of(fields: &Value) -> Option<Record> {
    let id = match fields.get("id")? {
        Value::String(id) if !id.is_empty() => id.clone(),
        Value::Number(id) => id.to_string(),
        _ => return None,
    };
    Some(Record { id, fields: fields.clone() })
}

fn error_field(body: &[u8], field: &str) -> Option<String> {
    let value: Value = serde_json::from_slice(body).ok()?;
    Some(value.get("error")?.get(field)?.as_str()?.to_owned())
}

fn error_code(body: &[u8]) -> Option<String> {
    error_field(body, "code")
}

fn existing_id(body: &[u8]) -> Option<String> {
    error_field(body, "existing_id")
}

/// The error's code, or the start of the body: enough to recognise it, never the whole, and nothing hidden.
fn error_text(body: &[u8], hidden: &Hidden) -> String {
    let text = error_code(body).unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
    hidden.clean(&text).chars().take(80).collect()
}

/// Whether a record is the one that an operation asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// It carries our reference, or our marker.
    Ours,
    /// It carries no reference at all, and its content is what we asked for.
    UnclaimedSame,
    /// It carries no reference at all, and does not show all that we asked for.
    Unclaimed,
    /// It is something else.
    NotOurs(&'static str),
}

/// The fields that say whose a record is.
const CLAIMS: [&str; 2] = ["external_id", "marker"];

/// Compares a record with the body that an operation sends.
pub fn ownership(record: &Record, sent: &Value) -> Ownership {
    let claim = CLAIMS
        .into_iter()
        .filter_map(|field| Some((record.fields.get(field)?.as_str()?, sent.get(field)?.as_str()?)))
        .collect::<Vec<_>>();
    if claim.iter().any(|(theirs, ours)| theirs != ours) {
        return Ownership::NotOurs("it carries another operation's reference");
    }
    let content =
        || sent.as_object().into_iter().flatten().filter(|(name, _)| !CLAIMS.contains(&name.as_str()));
    let shown = |name: &str| record.fields.get(name);
    if content().any(|(name, value)| shown(name).is_some_and(|theirs| theirs != value)) {
        return Ownership::NotOurs("its content differs from what was asked for");
    }
    let whole = content().all(|(name, _)| shown(name).is_some());
    match (claim.is_empty(), whole) {
        (false, _) => Ownership::Ours,
        (true, true) => Ownership::UnclaimedSame,
        (true, false) => Ownership::Unclaimed,
    }
}

/// The result of looking a reference up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookupReport {
    /// Every page was read; these matched.
    Complete {
        /// The matches.
        matches: Vec<Record>,
        /// Pages read.
        pages: u32,
    },
    /// Something is missing: an error, a broken page, or a limit. Never to be read as "not there".
    Incomplete(String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answer(status: u16, body: Value) -> Observed {
        Observed::Answer { status, body: Bytes::from(body.to_string()) }
    }

    fn contract(id: &str) -> Contract {
        destinations::named(id).expect("a built-in contract")
    }

    #[test]
    fn only_a_readable_id_is_a_confirmation() {
        let desk = contract("desk_nothing");
        let created = prove(&answer(201, json!({"ticket": {"id": "T93"}})), &desk, &Hidden::default());
        assert!(matches!(created, Proof::Created(Record { id, .. }) if id == "T93"));
        for body in [json!({}), json!({"ticket": {}}), json!({"ticket": {"id": ""}}), json!([])] {
            assert_eq!(prove(&answer(201, body), &desk, &Hidden::default()), Proof::CreatedWithoutRef);
        }
        let accepted = prove(&answer(202, json!({"ticket": {"id": "T93"}})), &desk, &Hidden::default());
        assert_eq!(accepted, Proof::CreatedWithoutRef, "accepted is not created");
    }

    #[test]
    fn silence_and_undocumented_errors_prove_nothing() {
        let desk = contract("desk_nothing");
        let broken = Observed::Broken { why: "no answer within 10s".into() };
        assert!(matches!(prove(&broken, &desk, &Hidden::default()), Proof::Unknown(_)));
        for status in [408, 409, 500, 502, 504] {
            assert!(
                matches!(prove(&answer(status, json!({})), &desk, &Hidden::default()), Proof::Unknown(_)),
                "{status}"
            );
        }
    }

    #[test]
    fn a_documented_refusal_is_final_and_nothing_sent_is_retryable() {
        let desk = contract("desk_nothing");
        let refused =
            prove(&answer(422, json!({"error": {"code": "validation"}})), &desk, &Hidden::default());
        assert_eq!(refused, Proof::Refused("422 validation".into()));
        let unsent = Observed::NotSent { why: "connection refused".into() };
        assert!(matches!(prove(&unsent, &desk, &Hidden::default()), Proof::NotApplied(_)));
    }

    #[test]
    fn a_conflict_is_a_reason_to_read_not_a_failure() {
        let desk = contract("desk_unique_ref");
        let conflict = json!({"error": {"code": "external_id_taken", "existing_id": "T93"}});
        assert_eq!(
            prove(&answer(409, conflict), &desk, &Hidden::default()),
            Proof::Exists { id: Some("T93".into()) }
        );
        let other =
            prove(&answer(409, json!({"error": {"code": "edit_conflict"}})), &desk, &Hidden::default());
        assert!(matches!(other, Proof::Unknown(_)));
    }

    #[test]
    fn a_record_is_ours_only_by_its_reference_or_its_whole_content() {
        let sent = json!({"title": "Access", "external_id": "wf1-a", "marker": "R17:create-ticket:v1"});
        let record = |fields: Value| record_of(&fields).expect("it has an id");
        let ours = record(json!({"id": "T1", "title": "Access", "external_id": "wf1-a"}));
        assert_eq!(ownership(&ours, &sent), Ownership::Ours);
        let bare = record(json!({"id": "T1", "title": "Access"}));
        assert_eq!(ownership(&bare, &sent), Ownership::UnclaimedSame);
        assert_eq!(ownership(&record(json!({"id": "T1"})), &sent), Ownership::Unclaimed);
        let claimed = record(json!({"id": "T1", "title": "Access", "external_id": "wf1-b"}));
        assert!(matches!(ownership(&claimed, &sent), Ownership::NotOurs(_)));
        let other = record(json!({"id": "T1", "title": "Printer", "external_id": "wf1-a"}));
        assert!(matches!(ownership(&other, &sent), Ownership::NotOurs(_)));
    }
}
