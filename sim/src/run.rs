//! A finished run: what was planned, what happened, what each side holds.

use crate::belief::Belief;
use crate::fault::Place;
use crate::history::{History, Nanos, Step};
use crate::plan::{Delivery, Plan};
use destinations::Ledger;

/// Stands for the operation of an effect that no request made.
pub const BY_HAND: &str = "by hand";

/// How a plan is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The limit of steps; a run that reaches it is undecided.
    pub steps_max: u32,
    /// Whether notes of the workflow's journal are taken, for a run that is told in full.
    pub journal: bool,
    /// Whether the places are noted at which faults could have struck.
    pub places: bool,
    /// From where on everything is drawn anew.
    pub reroll: Option<Reroll>,
}

/// A run that is as it was up to a boundary, and another one after it: latencies, service times, the
/// scheduler's choices and people's delays come from another seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reroll {
    /// The last boundary that is kept, by its place among the run's visits, from 1; 0 keeps nothing.
    pub after_visit: u32,
    /// The seed of what follows.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options { steps_max: 20_000, journal: false, places: false, reroll: None }
    }
}

/// When a belief was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// From what a crash left on the disk.
    Crash,
    /// While the storm lasts, to see whether all has settled.
    Storm,
    /// After the storm.
    Calm,
    /// At the end.
    End,
}

/// A place that a run came by, where a fault could have struck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    /// The place.
    pub place: Place,
    /// The last step before it.
    pub step: Step,
    /// When.
    pub at: Nanos,
    /// What the workflow's processes had done by then.
    pub work: Work,
    /// Whether something was written that no sync has made durable.
    pub unsynced: bool,
}

/// What the workflow's processes have asked of their machine: how often each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Looked at the wall clock.
    pub clock_reads: u32,
    /// Read from the disk.
    pub reads: u32,
    /// Written to the disk, without a sync.
    pub writes: u32,
    /// Synced a file.
    pub syncs: u32,
}

/// What the workflow believed at a moment.
#[derive(Clone, Debug)]
pub struct BeliefAt {
    /// When.
    pub moment: Moment,
    /// The last step before it.
    pub step: Step,
    /// What.
    pub belief: Belief,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Everything settled, or the time to settle passed.
    Finished {
        /// Whether every operation had ended or was owned in time.
        settled: bool,
    },
    /// A limit was hit; nothing can be said.
    Limit(String),
    /// The system under test panicked, or a process of it ended with an error on a live machine.
    Failed(String),
    /// The harness itself failed.
    Harness(String),
}

/// A finished run.
#[derive(Clone, Debug)]
pub struct Run {
    /// What was planned.
    pub plan: Plan,
    /// What happened.
    pub history: History,
    /// What the destination holds.
    pub ledger: Ledger,
    /// The operation that each effect of the ledger was made for, in the ledger's order; [`BY_HAND`] where no
    /// request made it.
    pub made_for: Vec<String>,
    /// What the workflow believed, at each crash, after the storm, and at the end.
    pub beliefs: Vec<BeliefAt>,
    /// Each fault of the tape: the step at which it struck.
    pub fired: Vec<Option<Step>>,
    /// The deliveries that faults of the tape have made.
    pub further: Vec<Delivery>,
    /// The places that it came by, in order; noted where it was asked for.
    pub visits: Vec<Visit>,
    /// How it ended.
    pub end: End,
    /// Simulated time.
    pub elapsed: Nanos,
    /// Messages that crossed the simulated network.
    pub messages: u64,
}

impl Run {
    /// Every delivery: those of the plan, then those that faults have made.
    pub fn deliveries(&self) -> impl Iterator<Item = &Delivery> {
        self.plan.workload.deliveries.iter().chain(&self.further)
    }

    /// The name under which a workflow can know a delivery: one that is to the byte the same as another
    /// carries that one's id.
    pub fn known_as<'a>(&'a self, name: &'a str) -> &'a str {
        let Some(further) = self.further.iter().find(|delivery| delivery.name == name) else { return name };
        let same = self.deliveries().find(|delivery| delivery.body == further.body);
        same.map_or(name, |first| &first.name)
    }

    /// What the workflow believed at the end.
    pub fn belief(&self) -> Option<&Belief> {
        self.beliefs.last().map(|at| &at.belief)
    }
}
