//! What is printed for people and for machines; nothing here runs anything.

pub mod certificate;
pub mod json;
pub mod ledger;
pub mod likelihood;
pub mod matrix;
pub mod text;

use crate::enumerate::Certificate;
use crate::explore::{Exploration, Failure, Request};
use crate::history::Step;
use crate::replay::Answer;
use crate::story::Tale;
use destinations::Contract;

/// A failure, told.
pub struct ToldFailure<'a> {
    /// Its sums.
    pub failure: &'a Failure,
    /// Its example, run again.
    pub answer: &'a Answer,
    /// The contract of the example.
    pub contract: &'a Contract,
    /// The folder with its files, where they could be written.
    pub artifacts: Option<&'a str>,
    /// Its case file, where it could be written.
    pub file: Option<String>,
    /// Wall-clock seconds that it took to shrink and to tell.
    pub seconds: Option<f64>,
}

impl ToldFailure<'_> {
    /// The story, a line each.
    pub fn story(&self) -> Vec<String> {
        Tale::of(self.answer, Some(self.contract), None::<Step>).lines()
    }
}

/// Everything that is known after an exploration.
pub struct Explored<'a> {
    /// What was asked.
    pub request: &'a Request,
    /// What came of it.
    pub done: &'a Exploration,
    /// What was enumerated.
    pub certificates: &'a [Certificate],
    /// The current commit.
    pub commit: Option<&'a str>,
    /// Wall-clock seconds.
    pub wall_s: f64,
    /// Processor seconds.
    pub cpu_s: Option<f64>,
    /// Peak memory.
    pub peak_rss_bytes: Option<u64>,
    /// The exit code.
    pub exit: u8,
    /// Whether unreached goals are findings: not where a mistake was put in on purpose.
    pub tells_never: bool,
    /// Whether everything was explored, so that an invariant that was never evaluated is a finding.
    pub is_whole: bool,
}

/// What kind of thing had to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Due {
    /// A scenario is run.
    Run,
    /// A goal of a scenario is reached.
    Goal,
    /// An invariant is evaluated.
    Always,
    /// A fault of a kind strikes.
    Fault,
    /// A fault of a kind strikes at a kind of boundary under contracts of a class.
    Cell,
    /// What is listed as impossible does not happen: else the list hides what must be covered.
    Excluded,
}

/// Something that had to happen in some seed, and did not.
pub struct Never {
    /// What kind of thing it is.
    pub due: Due,
    /// The scenario; none where it is about all of them.
    pub scenario: Option<&'static str>,
    /// What.
    pub goal: String,
    /// Seeds in which it could have happened.
    pub seeds: u64,
}

impl Explored<'_> {
    /// What was never reached and never evaluated.
    pub fn never(&self) -> Vec<Never> {
        // What was broken off says nothing about what it would have reached.
        if !self.tells_never || self.done.interrupted || self.done.out_of_time {
            return vec![];
        }
        let mut never = vec![];
        for scenario in self.done.scenarios.iter().filter(|scenario| scenario.runs > 0) {
            let missed = scenario.goals.iter().filter(|(_, count)| *count == 0);
            never.extend(missed.map(|(goal, _)| Never {
                due: Due::Goal,
                scenario: Some(scenario.name),
                goal: (*goal).to_owned(),
                seeds: scenario.runs,
            }));
        }
        let idle = self.done.scenarios.iter().filter(|scenario| scenario.runs == 0);
        never.extend(idle.map(|scenario| Never {
            due: Due::Run,
            scenario: Some(scenario.name),
            goal: "a run at all".into(),
            seeds: self.done.runs,
        }));
        if self.is_whole {
            let invariants = crate::invariants::INVARIANTS.iter().zip(&self.done.evaluated);
            never.extend(invariants.filter(|(_, count)| **count == 0).map(|(id, _)| Never {
                due: Due::Always,
                scenario: None,
                goal: format!("{} {} evaluated", id.id, id.name),
                seeds: self.done.runs,
            }));
            never.extend(self.never_struck());
        }
        never
    }

    /// Kinds of faults that were planned and struck nowhere, and cells that were never filled.
    fn never_struck(&self) -> impl Iterator<Item = Never> {
        let (done, seeds) = (self.done, self.done.runs);
        let never = move |due, goal| Never { due, scenario: None, goal, seeds };
        let dead = done.dead().into_iter().map(move |kind| never(Due::Fault, format!("{kind} strikes")));
        let missed = done.coverage.missed().map(move |cell| never(Due::Cell, cell.to_string()));
        let wrong = done.coverage.unexpected();
        let wrong = wrong.map(move |cell| never(Due::Excluded, format!("the exclusion of {cell} held")));
        dead.chain(missed).chain(wrong)
    }

    /// Runs a processor second.
    pub fn runs_per_cpu_s(&self) -> Option<f64> {
        self.cpu_s.filter(|cpu| *cpu > 0.0).map(|cpu| self.done.runs as f64 / cpu)
    }
}
