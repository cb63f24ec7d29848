//! What a person can do with a case at a moment, and in words what each act leads to.

use super::judge::{absent_from, is_at_risk, is_contradicted, may_create};
use crate::clock::Timestamp;
use crate::definition::Workflow;
use crate::known::Known;
use crate::licence::doubt;
use crate::state::{Event, State, next};
use crate::store::{Dossier, Operation};
use serde::Serialize;

/// An act that a person can choose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Offer {
    /// `confirm_found`, `declare_absent` …
    pub action: &'static str,
    /// What it leads to.
    pub consequence: String,
    /// It is refused before this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earliest: Option<Timestamp>,
    /// It is refused after this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest: Option<Timestamp>,
    /// Whether it is refused without `accept_risk`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub at_risk: bool,
}

impl Offer {
    fn new(action: &'static str, consequence: impl Into<String>) -> Offer {
        Offer { action, consequence: consequence.into(), earliest: None, latest: None, at_risk: false }
    }
}

/// What can be done with an operation; nothing where it has ended and nobody has to decide.
pub(crate) fn offers(dossier: &Dossier, workflow: &Workflow, now: Timestamp) -> Vec<Offer> {
    let operation = &dossier.operation;
    let mut offers = of_case(dossier, workflow, now);
    if operation.cancelled {
        offers.retain(|offer| !offer.action.starts_with("authorise_"));
    } else if !operation.state.is_terminal() {
        let ends = next(operation.state, Event::Cancelled).is_ok() && !is_contradicted(dossier);
        let words = if ends {
            "It is withdrawn; nothing was applied."
        } else {
            "Nothing further is sent; what may have been applied stays in doubt until it is known."
        };
        offers.push(Offer::new("cancel", words));
    }
    offers
}

/// What can be done with its case.
fn of_case(dossier: &Dossier, workflow: &Workflow, now: Timestamp) -> Vec<Offer> {
    let operation = &dossier.operation;
    let mut offers = match operation.state {
        State::ExceptionUnsent if is_contradicted(dossier) => vec![confirm()],
        State::ExceptionUnsent => unsent(),
        State::ExceptionInDoubt => in_doubt(dossier, workflow, now),
        State::DeclaredAbsent => absent(dossier, workflow, now),
        State::Authorised | State::AuthorisedCreation | State::AuthorisedResend => {
            let words = "What was permitted is taken back, and the operation is closed.";
            return vec![confirm(), Offer { at_risk: is_at_risk(dossier), ..Offer::new("reject", words) }];
        }
        _ if dossier.exceptions.is_empty() => return vec![],
        _ => vec![Offer::new("reject", "The change is turned down; the operation goes on as it is.")],
    };
    offers.push(Offer::new("assign", "Somebody else owns the case, with the same deadline, and is told."));
    let latest = dossier.exceptions.iter().map(|case| case.deadline).min();
    offers.push(Offer {
        latest,
        ..Offer::new("snooze", "The case rests until then, at most until its deadline.")
    });
    let words = "It is on record; whoever decides on an older view is told that there is more.";
    offers.push(Offer::new("add_evidence", words));
    offers
}

fn confirm() -> Offer {
    let words =
        "The record is fetched and compared; if it is this operation's, the operation is completed with it.";
    Offer::new("confirm_found", words)
}

fn unsent() -> Vec<Offer> {
    vec![
        confirm(),
        Offer::new("authorise_resend", "It is sent once more with the same key; nothing was applied so far."),
        Offer::new("reject", "It is withdrawn; nothing was applied, so no record is left behind."),
    ]
}

fn in_doubt(dossier: &Dossier, workflow: &Workflow, now: Timestamp) -> Vec<Offer> {
    let operation = &dossier.operation;
    let mut offers = vec![confirm()];
    let recovery = workflow.recovery();
    if recovery.may_resend(&doubt(&Known::from(dossier.clone()).facts(), now)).is_some() {
        let words = "The same key and bytes are sent once more; the destination keeps a second record from being made.";
        let latest = lapses(operation, workflow);
        offers.push(Offer { latest, ..Offer::new("authorise_resend", words) });
    }
    let words =
        "It is on record that there is none; then another one can be permitted, or the operation withdrawn.";
    let absent = absent_from(dossier, recovery);
    let earliest = absent.ok().filter(|earliest| now < *earliest);
    offers.push(Offer { earliest, at_risk: absent.is_err(), ..Offer::new("declare_absent", words) });
    let words = "It is closed without a proof; a record may exist that nobody knows of.";
    offers.push(Offer { at_risk: true, ..Offer::new("reject", words) });
    offers
}

fn absent(dossier: &Dossier, workflow: &Workflow, now: Timestamp) -> Vec<Offer> {
    let definition = workflow.definition();
    let mut offers = vec![confirm()];
    if may_create(dossier, definition, now).is_ok() {
        let who = if definition.second_person { " Somebody else than who declared it absent." } else { "" };
        let create = format!("Another record is made under another key, once.{who}");
        offers.push(Offer::new("authorise_creation", create));
    }
    let words = "The declaration is made anew: a permission needs a fresh one.";
    let at_risk = absent_from(dossier, workflow.recovery()).is_err();
    offers.push(Offer { at_risk, ..Offer::new("declare_absent", words) });
    let words = "It is withdrawn; it was declared that there is no record.";
    offers.push(Offer { at_risk: is_at_risk(dossier), ..Offer::new("reject", words) });
    offers
}

fn lapses(operation: &Operation, workflow: &Workflow) -> Option<Timestamp> {
    let replay = workflow.recovery().replay.as_ref()?;
    Some(operation.first_intent?.after(replay.safe_for))
}
