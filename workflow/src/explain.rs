//! What people read of an operation: facts, the licence or why there is none, the next action and its
//! earliest time.

use crate::clock::Timestamp;
use crate::definition::Definition;
use crate::definition::Workflow;
use crate::known::Known;
use crate::licence::{Next, Reason, next_step};
use crate::people::{Offer, offers};
use crate::state::{Public, State};
use crate::store::{Attempt, Authorisation, Dossier, Evidence, Exception, Operation};
use destinations::contract::LookupBy;
use serde::Serialize;

/// An operation as people and programs read it.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// Its key.
    pub operation: String,
    /// One of the six public words.
    pub state: Public,
    /// The detail.
    pub detail: &'static str,
    /// The destination's record.
    pub external_ref: Option<String>,
    /// What is known, in one sentence.
    pub facts: String,
    /// What happens next.
    pub next_action: String,
    /// Not before this.
    pub earliest: Option<Timestamp>,
    /// Why it may be sent at this moment, or why not.
    pub licence: String,
    /// What the contract guarantees.
    pub guarantee: String,
    /// Whether it was cancelled: nothing further is sent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
    /// The version to name in a decision.
    pub version: u32,
    /// Every send, each counted before its first byte.
    pub attempts: Vec<Attempt>,
    /// Every observation.
    pub evidence: Vec<Evidence>,
    /// Open cases for people.
    pub exceptions: Vec<Exception>,
    /// What a person permits and nobody has used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorisation: Option<Authorisation>,
    /// What a person can do at this moment, and what each act leads to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Offer>,
}

/// Explains an operation at an instant.
pub(crate) fn explain(dossier: Dossier, workflow: &Workflow, now: Timestamp) -> Explanation {
    let known = Known::from(dossier.clone());
    let definition = workflow.definition();
    let next = next_step(&known.facts(), workflow.recovery(), &definition.policy, now);
    let actions = offers(&dossier, workflow, now);
    let operation = dossier.operation;
    let (next_action, earliest, licence) = words(&next, &operation, &dossier.exceptions);
    Explanation {
        state: operation.state.public(),
        detail: operation.state.as_str(),
        facts: facts_of(&operation),
        next_action,
        earliest,
        licence,
        guarantee: workflow.recovery().class().to_string(),
        cancelled: operation.cancelled,
        version: operation.version,
        operation: operation.key.to_string(),
        external_ref: operation.external_ref,
        attempts: dossier.attempts,
        evidence: dossier.evidence,
        exceptions: dossier.exceptions,
        authorisation: dossier.authorisation,
        actions,
    }
}

fn words(next: &Next, operation: &Operation, cases: &[Exception]) -> (String, Option<Timestamp>, String) {
    let none = |why: &str| format!("none: {why}");
    match next {
        Next::Send(licence) => ("send".into(), None, licence.ground().to_string()),
        Next::Look => ("look the record up".into(), None, none("a look-up comes first")),
        Next::Wait(due) => ("wait".into(), Some(*due), none("it is too early")),
        Next::AcceptNegative => {
            ("record that nothing was applied".into(), None, none("the proof comes first"))
        }
        Next::Person(reason) => {
            (format!("hand over to a person ({})", reason.code()), None, none("only a person can go on"))
        }
        Next::Lapsed => (
            "give it back to its owner (authorisation_lapsed)".into(),
            None,
            none("what was permitted cannot be used any more"),
        ),
        Next::Withdraw => ("end it: it was cancelled".into(), None, none("it was cancelled")),
        Next::Nothing if operation.state.is_terminal() => ("nothing".into(), None, none("it has ended")),
        Next::Nothing => match cases.first() {
            Some(case) => (
                format!("{} decides ({})", case.owner, case.reason),
                Some(case.deadline),
                none("a person decides first"),
            ),
            None => ("wait for the send that is under way".into(), None, none("one send at a time")),
        },
    }
}

/// What is known of an operation, in one sentence.
fn facts_of(operation: &Operation) -> String {
    let sends = match operation.sends {
        0 => "Nothing was sent.".to_owned(),
        1 => "It was sent once.".to_owned(),
        n => format!("It was sent {n} times."),
    };
    let known = match operation.state {
        State::Received | State::Ready => "It has not begun.",
        State::Backoff => "Every send is proven to have had no effect.",
        State::Sent | State::SentInDoubt => "A send is under way.",
        State::InDoubt | State::ExceptionInDoubt => {
            "The destination may have written the record; no evidence says that it did or did not."
        }
        State::RefMissing => "The destination reported success without saying which record.",
        State::ExceptionUnsent => "No record exists on its account.",
        State::DeclaredAbsent => "A person looked, found no record, and declared that none will come.",
        State::Authorised => "No record exists on its account; a person permits another send.",
        State::AuthorisedCreation => {
            "A person declared that there is no record; a person permits another one, under another key."
        }
        State::AuthorisedResend => {
            "The destination may have written the record; a person permits the same send once more."
        }
        State::Confirmed => "The destination confirmed the record.",
        State::ConfirmedByPerson => "A person pointed to the record, and the destination confirmed it.",
        State::Invalid => "It never met its own rules; nothing was sent.",
        State::RefusedByDestination => "The destination refused it before doing anything.",
        State::Withdrawn if operation.cancelled => "It was cancelled; nothing had been applied.",
        State::Withdrawn => "A person withdrew it; nothing had been applied.",
        State::AcceptedRisk => "A person closed it without a proof and answers for that.",
    };
    let cancelled = match operation.state {
        _ if !operation.cancelled || operation.state == State::Withdrawn => "",
        State::Confirmed | State::ConfirmedByPerson => {
            " It was cancelled too late: undo it at the destination, where that is wanted."
        }
        _ => " It was cancelled: nothing further is sent.",
    };
    format!("{sends} {known}{cancelled}")
}

/// What is known when a changed request opens a case: the operation itself goes on untouched.
pub(crate) const CHANGED: &str = "The same request arrived again with another meaning. The operation goes on \
    with its first meaning; nothing was sent for the new one.";

/// What is known when a request that was rejected comes again with another meaning.
pub(crate) const CHANGED_AFTER_REJECTION: &str = "The same request arrived again with another meaning. The first one \
    was rejected and nothing was sent; nothing is sent for the new one either. If it is a correction, it has to be \
    delivered under a request id of its own.";

/// What is known when a case is opened.
pub(crate) fn facts(operation: &Operation, reason: Reason) -> String {
    let why = match reason {
        Reason::RetriesExhausted => "The budget of sends is spent.",
        Reason::NothingPermitted => "The destination's contract permits neither another send nor a look-up.",
        Reason::NotFoundInTime => "Look-ups found nothing, and a miss proves nothing at this destination.",
        Reason::KeyLapses => {
            "The destination may have forgotten the key; with it or without it, a send could make a second record."
        }
        Reason::RefMissing => {
            "The destination reported success without an id; sending again would make a second record."
        }
        Reason::Conflict => "Records contradict each other.",
        Reason::ChangedRequest => CHANGED,
        Reason::Cancelled => "Nothing that may still be asked tells what became of it.",
        Reason::CreationFailed => "The send that a person had permitted had no effect: decide anew.",
        Reason::AuthorisationLapsed => "What a person had permitted was not used: decide anew.",
    };
    format!("{} {why}", facts_of(operation))
}

/// The look-up that a person does by hand.
pub(crate) fn lookup_by_hand(operation: &Operation, definition: &Definition) -> String {
    let key = &operation.key;
    match definition.contract.lookup.iter().find(|lookup| lookup.by == LookupBy::ExternalRef) {
        Some(_) => format!("search for external_id {}, then for \"{key}\"", operation.wire_key),
        None => format!("search for \"{key}\" in account {}", definition.account),
    }
}
