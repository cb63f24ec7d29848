//! The runbook of a workflow: for each situation what is known, what is on record, what happens next, who
//! decides, and what the destination must hold, beside what the simulator observed.
//!
//! Everything in it is derived from the definition and from what its contract permits; no text belongs to one
//! contract.

mod cases;
mod gate;
mod markdown;
mod results;
mod situations;

pub use gate::blockers;
pub use results::{Observed, Results, ResultsError};

use crate::definition::{Definition, Workflow};
use crate::file::{Decision, WorkflowFile};
use crate::licence::Reason;
use destinations::Recovery;
use std::time::Duration;

/// One document for whoever answers for a workflow.
#[derive(Clone, Debug)]
pub struct Runbook {
    /// The workflow.
    pub workflow: Workflow,
    /// What can happen to a request.
    pub situations: Vec<Entry>,
    /// Why a person can be asked, each reason once.
    pub cases: Vec<Entry>,
    /// What the contract leaves open.
    pub decisions: Vec<Decision>,
    /// What the simulator observed; none where nothing was read.
    pub results: Option<Results>,
    /// Why the gate is closed; empty where it is open.
    pub blockers: Vec<String>,
}

/// One situation, and everything that is to be known about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its title.
    pub title: String,
    /// What is known then.
    pub facts: String,
    /// What is on record, in the words of the states.
    pub record: String,
    /// What happens next.
    pub next: String,
    /// Who decides.
    pub decides: String,
    /// How it is brought to an end.
    pub reconcile: String,
    /// How many records the destination must hold for the operation.
    pub expected: Expected,
    /// How the simulator plays it.
    pub played: Played,
}

/// How many records of an operation the destination must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// None.
    None,
    /// One.
    One,
    /// One or none: that is what is in doubt.
    OneOrNone,
    /// As many as before: the situation adds none.
    Unchanged,
}

/// How the simulator plays a situation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Played {
    /// By the scenario of this name.
    Scenario(&'static str),
    /// In any scenario: cases of this reason are counted.
    Case(Reason),
}

impl Runbook {
    /// The runbook of a workflow.
    pub fn of(file: &WorkflowFile, results: Option<Results>) -> Runbook {
        let workflow = file.workflow.clone();
        let about = About { definition: workflow.definition(), recovery: workflow.recovery() };
        Runbook {
            situations: situations::all(about),
            cases: Reason::ALL.into_iter().map(|reason| cases::entry(about, reason)).collect(),
            blockers: blockers(file, results.as_ref()),
            decisions: file.decisions.clone(),
            workflow,
            results,
        }
    }

    /// The document.
    pub fn markdown(&self) -> String {
        markdown::document(self)
    }
}

/// The workflow that words are about.
#[derive(Clone, Copy)]
struct About<'a> {
    definition: &'a Definition,
    recovery: &'a Recovery,
}

impl About<'_> {
    /// Who decides on a case of this reason, and by when.
    fn decides(self, reason: Reason) -> String {
        let Definition { deadline, escalate_to, .. } = self.definition;
        if reason.is_of_a_permission() {
            return format!(
                "Whoever owned the case before, by its first deadline; then {escalate_to} is told."
            );
        }
        let owner = self.definition.owner_of(reason);
        format!("{owner}, within {}; then {escalate_to} is told.", span(*deadline))
    }

    /// The reasons for which a doubt ends with a person under this contract.
    fn ends_of_a_doubt(self) -> Vec<Reason> {
        let all =
            [Reason::RetriesExhausted, Reason::KeyLapses, Reason::NotFoundInTime, Reason::NothingPermitted];
        all.into_iter().filter(|reason| cases::never(self, *reason).is_none()).collect()
    }
}

/// A time in words.
fn span(span: Duration) -> String {
    humantime::format_duration(span).to_string()
}
