//! What follows from what was seen of one operation: pure.

use super::Seen;
use crate::evidence::{Ownership, Record};
use crate::people::claims;
use crate::state::{Public, State};
use crate::store::{Dossier, Sighting};
use serde_json::Value;

/// What follows from what was seen of one operation.
#[derive(Clone, Debug, Default)]
pub(super) struct Judged {
    pub(super) sightings: Vec<Sighting>,
    pub(super) matched: bool,
    pub(super) missing: bool,
    pub(super) wrong: bool,
    /// Records that a look-up shows beside the linked one.
    pub(super) others: u64,
    /// Whether the look-up shows the linked record: only then what it does not show is not there.
    pub(super) is_shown: bool,
    pub(super) proves: Proves,
}

/// What records prove of an operation that is not completed.
#[derive(Clone, Debug, Default)]
pub(super) enum Proves {
    #[default]
    Nothing,
    /// It was in doubt, and this is the one record that is its own.
    Completes(Record),
    /// It was proven to have done nothing, and this record is its own.
    Contradicts(Record),
}

pub(super) fn judge(before: &Dossier, now: &Dossier, seen: &Seen, one_way: bool) -> Judged {
    let mut judged = Judged::default();
    let linked = before.operation.external_ref.as_deref();
    if let (Some(Ok(shown)), Some(id)) = (&seen.linked, linked) {
        judge_linked(before, id, shown.as_ref(), &mut judged);
    }
    let found: Vec<&Record> = seen.found.iter().flatten().flatten().filter(|_| !one_way).collect();
    let answered = matches!(seen.found, Some(Ok(_)));
    judged.is_shown = answered && linked.is_none_or(|id| found.iter().any(|record| record.id == id));
    let mut others: Vec<&Record> = vec![];
    for record in found {
        let is_new = Some(record.id.as_str()) != linked && others.iter().all(|other| other.id != record.id);
        if is_new && !carries_other(before, record) {
            others.push(record);
        }
    }
    judged.others = others.len() as u64;
    let state = now.operation.state;
    let sole = match others.as_slice() {
        [record] if linked.is_none() && claims(before, record) == Ownership::Ours => Some((*record).clone()),
        _ => None,
    };
    judged.proves = match sole {
        Some(record) if can_be_completed(state) => Proves::Completes(record),
        Some(record) if is_proven_unsent(state) => Proves::Contradicts(record),
        _ => Proves::Nothing,
    };
    if matches!(judged.proves, Proves::Completes(_)) {
        return judged;
    }
    for record in others {
        judged.sightings.push(beside(record, state));
    }
    judged
}

fn sighting(
    kind: &'static str,
    severity: &'static str,
    id: &str,
    detail: String,
    proposal: &str,
) -> Sighting {
    Sighting { kind, severity, external_ref: Some(id.to_owned()), detail, proposal: proposal.to_owned() }
}

/// The record that is linked to an operation, or its absence.
fn judge_linked(dossier: &Dossier, id: &str, shown: Option<&Record>, judged: &mut Judged) {
    let Some(record) = shown else {
        judged.missing = true;
        let proposal =
            "find out who removed it; where it is still wanted, deliver the request under an id of its own";
        let detail = format!("{id} is not at the destination");
        judged.sightings.push(sighting("missing_there", "high", id, detail, proposal));
        return;
    };
    match claims(dossier, record) {
        Ownership::NotOurs(why) if carries_other(dossier, record) => {
            judged.wrong = true;
            let proposal = "look at both records, and confirm the right one in a request of its own";
            judged.sightings.push(sighting("wrong_link", "high", id, format!("{id}: {why}"), proposal));
        }
        Ownership::NotOurs(_) => {
            judged.matched = true;
            let proposal = "find out who changed it, and whether that is wanted";
            let detail = format!("{id} differs from what was asked for");
            judged.sightings.push(sighting("field_mismatch", "low", id, detail, proposal));
        }
        _ => judged.matched = true,
    }
}

/// A record of an operation beside the one that it is completed with, if it is.
pub(super) fn beside(record: &Record, state: State) -> Sighting {
    let id = record.id.as_str();
    let exists = |kind: &'static str| {
        let proposal = "confirm it where it is wanted, or close it at the destination";
        sighting(kind, "high", id, format!("{id} is there, and it is {state}"), proposal)
    };
    match state.public() {
        Public::Completed => {
            let proposal = "look at both at the destination, and close the one that nobody works on";
            sighting("duplicate_there", "high", id, format!("{id} is a second record"), proposal)
        }
        Public::Rejected => exists("exists_but_rejected"),
        Public::RequiringVerification => exists("exists_but_in_doubt"),
        Public::Received | Public::Validated | Public::Processing => exists("exists_but_open"),
    }
}

/// Whether the one record of its own ends it; nobody has said anything that contradicts that for good.
fn can_be_completed(state: State) -> bool {
    matches!(
        state,
        State::InDoubt
            | State::RefMissing
            | State::ExceptionInDoubt
            | State::DeclaredAbsent
            | State::AuthorisedCreation
            | State::AuthorisedResend
    )
}

/// Whether every send is proven to have had no effect.
fn is_proven_unsent(state: State) -> bool {
    matches!(state, State::Backoff | State::ExceptionUnsent | State::Authorised)
}

/// Whether a record carries a reference that was never this operation's.
fn carries_other(dossier: &Dossier, record: &Record) -> bool {
    let operation = &dossier.operation;
    let sent: Value = serde_json::from_str(&operation.frozen.body).unwrap_or_default();
    ["external_id", "marker"].into_iter().any(|field| {
        let theirs = record.fields.get(field).and_then(Value::as_str);
        let ours = sent.get(field).and_then(Value::as_str);
        theirs.zip(ours).is_some_and(|(theirs, ours)| {
            let older = dossier.attempts.iter().any(|attempt| attempt.wire_key == theirs);
            theirs != ours && !older
        })
    })
}
