//! A failure told in at most twelve steps: a filter of the history, no paraphrase, no guess at the cause.

mod draw;
mod facts;
mod pick;
mod sides;
mod text;

pub use text::to_ascii;
pub(crate) use text::{cut, wrap};

use crate::history::Step;
use crate::replay::{Answer, Need, ToldFault};
use crate::run::Run;
use crate::verdict::{InvariantId, Violation};
use destinations::Contract;

/// The most steps that a story has.
pub const STEPS_MAX: usize = 12;
/// The most columns that a line has.
pub const WIDTH: usize = 80;

/// What a story is made of.
pub struct Tale<'a> {
    /// The run.
    pub run: &'a Run,
    /// The violation that is told; none for a run that holds.
    pub violation: Option<&'a Violation>,
    /// The other invariants that the run violates.
    pub also: Vec<InvariantId>,
    /// The faults of its tape.
    pub faults: &'a [ToldFault],
    /// The contract, for the facts that matter.
    pub contract: Option<&'a Contract>,
    /// The command that shows it again.
    pub replay: String,
    /// Tell nothing after this step.
    pub until: Option<Step>,
}

impl<'a> Tale<'a> {
    /// The tale of an answer.
    pub fn of(answer: &'a Answer, contract: Option<&'a Contract>, until: Option<Step>) -> Self {
        Tale {
            run: &answer.ran.run,
            violation: answer.violation(),
            also: answer.also(),
            faults: &answer.faults,
            contract,
            replay: answer.question.to_string(),
            until,
        }
    }

    /// The story, a line each, no line wider than [`WIDTH`], except that a command is never broken.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![];
        if let Some(violation) = self.violation {
            lines.extend(wrap(&violation.message, 2, WIDTH));
            lines.push(String::new());
        }
        let keys = facts::KeyNames::of(self.run);
        let lanes = draw::Lanes::of(self.run);
        let steps = pick::pick(self, &lanes);
        lines.extend(draw::draw(self, &lanes, &steps, &keys));
        lines.push(String::new());
        lines.extend(sides::side_by_side(self, &lanes, &keys));
        lines.push(String::new());
        lines.extend(self.findings(&keys));
        lines.push(String::new());
        lines.push(format!("  replay  {}", self.replay));
        lines
    }

    /// The sentences under the picture: only what was shown.
    fn findings(&self, keys: &facts::KeyNames) -> Vec<String> {
        let mut lines = vec![];
        if let Some(violation) = self.violation {
            let id = violation.invariant;
            lines.extend(wrap(&format!("{}: {}", id.name, full_stop(id.says)), 2, WIDTH));
        }
        if !self.also.is_empty() {
            let names: Vec<&str> = self.also.iter().map(|id| id.name).collect();
            lines.extend(wrap(&format!("Also violated: {}.", names.join(", ")), 2, WIDTH));
        }
        for sentence in needed(self.faults, self.violation) {
            lines.extend(wrap(&sentence, 2, WIDTH));
        }
        if let (Some(contract), Some(violation)) = (self.contract, self.violation) {
            for fact in facts::of_contract(self.run, &violation.about, contract, keys) {
                lines.extend(wrap(&fact, 2, WIDTH));
            }
        }
        lines
    }
}

fn full_stop(sentence: &str) -> String {
    format!("{}.", sentence.trim_end_matches('.'))
}

/// What leaving faults out has shown.
fn needed(faults: &[ToldFault], violation: Option<&Violation>) -> Vec<String> {
    let Some(violation) = violation else {
        return faults.iter().filter(|fault| !fault.fired).map(never_fired).collect();
    };
    if faults.is_empty() {
        return vec!["No fault is needed: this run fails without any.".into()];
    }
    let holds: Vec<u32> = faults.iter().filter(|f| f.need == Need::Holds).map(|f| f.n).collect();
    let mut sentences = vec![];
    if holds.len() == faults.len() {
        sentences.push(match holds.as_slice() {
            [only] => format!("Fault {only} is needed: without it, this run holds."),
            [a, b] => {
                format!("Both faults are needed: without fault {a}, or without fault {b}, this run holds.")
            }
            all => format!("All {} faults are needed: without any one of them, this run holds.", all.len()),
        });
        return sentences;
    }
    for fault in faults {
        sentences.push(match &fault.need {
            Need::Holds => format!("Fault {} is needed: without it, this run holds.", fault.n),
            Need::Breaks(other) if other == violation.invariant.name => {
                format!("Fault {} is needed: without it, {other} is violated in another way.", fault.n)
            }
            Need::Breaks(other) => {
                format!("Fault {} is needed: without it, {other} is violated instead.", fault.n)
            }
            Need::Undecided => format!("Without fault {}, this run hits a limit.", fault.n),
            Need::Untried | Need::Same if !fault.fired => never_fired(fault),
            Need::Same => format!("Fault {} is not needed: without it, the same failure comes.", fault.n),
            Need::Untried => continue,
        });
    }
    if faults.iter().any(|fault| fault.need == Need::Untried) {
        sentences.push("Which of its faults are needed was not tried.".into());
    }
    sentences
}

fn never_fired(fault: &ToldFault) -> String {
    format!("Fault {} never struck: {} ({}).", fault.n, fault.fault.what, fault.fault.at)
}

#[cfg(test)]
mod tests;
