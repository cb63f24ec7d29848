//! The sums of an exploration; they depend on the results and their order, never on threads or time.

use super::pool::{Came, Outcome};
use super::results::PairTally;
use crate::coverage::Coverage;
use crate::fault::KINDS;
use crate::plan::{Case, Recipe};
use crate::replay::Difference;
use crate::verdict::{Fingerprint, InvariantId};
use siphasher::sip::SipHasher13;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash as _, Hasher as _};

/// Examples that are kept of what is not a failure of the workflow.
const EXAMPLES_MAX: usize = 3;
/// An exploration ends after so many harness errors: no result counts any more.
pub(super) const HARNESS_MAX: u64 = 5;
/// Settling times are counted in tenths of a second.
const TENTH_NS: u64 = 100_000_000;

/// What came of many seeds.
#[derive(Clone, Debug)]
pub struct Exploration {
    /// Each scenario that was chosen, in its order.
    pub scenarios: Vec<ScenarioTally>,
    /// The same for each contract that a scenario is run with.
    pub pairs: Vec<PairTally>,
    /// Each distinct failure, in the order in which it was first seen.
    pub failures: Vec<Failure>,
    /// Runs.
    pub runs: u64,
    /// Runs in which every invariant held.
    pub held: u64,
    /// Runs that violate an invariant.
    pub violated: u64,
    /// Runs that hit a limit.
    pub undecided: u64,
    /// Runs of plans that nobody could survive.
    pub invalid: u64,
    /// Runs in which the harness failed.
    pub harness: u64,
    /// The first undecided cases and why.
    pub undecided_examples: Vec<(Case, String)>,
    /// The first plans that nobody could survive, each with what they ask for.
    pub invalid_examples: Vec<(Case, String)>,
    /// The first harness errors.
    pub harness_examples: Vec<(Case, String)>,
    /// How often each invariant was evaluated.
    pub evaluated: Vec<u64>,
    /// Where faults struck, and where they could have.
    pub coverage: Coverage,
    /// Events.
    pub events: u64,
    /// Simulated nanoseconds.
    pub simulated_ns: u128,
    /// Runs that were made twice.
    pub checked: u64,
    /// How many of them differ.
    pub differing: u64,
    /// The first differences.
    pub difference_examples: Vec<(Case, Difference)>,
    /// It ended before its last seed because enough failures were found.
    pub stopped_early: bool,
    /// It ended before its last seed because its time was over.
    pub out_of_time: bool,
    /// Somebody ended it.
    pub interrupted: bool,
    /// A run never ended.
    pub hung: bool,
    hasher: SipHasher13,
}

/// The sums of one scenario.
#[derive(Clone, Debug)]
pub struct ScenarioTally {
    /// Its name.
    pub name: &'static str,
    /// Runs.
    pub runs: u64,
    /// Runs that held.
    pub held: u64,
    /// Runs that violate an invariant.
    pub violated: u64,
    /// Faults that struck, by kind in the order of [`KINDS`].
    pub fired: [u64; KINDS.len()],
    /// Faults that never struck.
    pub drifted: [u64; KINDS.len()],
    /// Runs that reached each goal.
    pub goals: Vec<(&'static str, u64)>,
    settled: BTreeMap<u64, u64>,
}

/// One distinct failure, however many seeds hit it.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Its name.
    pub fingerprint: Fingerprint,
    /// The invariant that is told.
    pub invariant: InvariantId,
    /// The plan with the fewest faults and deliveries.
    pub example: Recipe,
    /// Whether the example's seed alone repeats it.
    pub by_seed: bool,
    /// The search that found it first.
    pub strategy: &'static str,
    /// Runs of the whole exploration until then, this one included.
    pub after_runs: u64,
    /// Seeds that hit it.
    pub seeds_failing: u64,
    /// Every other invariant that any of these seeds violates.
    pub also: BTreeSet<InvariantId>,
    size: (usize, usize),
}

impl Exploration {
    pub(super) fn new(scenarios: Vec<ScenarioTally>, pairs: Vec<PairTally>, coverage: Coverage) -> Self {
        Exploration {
            scenarios,
            pairs,
            failures: vec![],
            runs: 0,
            held: 0,
            violated: 0,
            undecided: 0,
            invalid: 0,
            harness: 0,
            undecided_examples: vec![],
            invalid_examples: vec![],
            harness_examples: vec![],
            evaluated: vec![],
            coverage,
            events: 0,
            simulated_ns: 0,
            checked: 0,
            differing: 0,
            difference_examples: vec![],
            stopped_early: false,
            out_of_time: false,
            interrupted: false,
            hung: false,
            hasher: SipHasher13::new(),
        }
    }

    /// The hash of every seed, history and verdict, in the order of the seeds.
    pub fn hash(&self) -> u64 {
        self.hasher.finish()
    }

    /// Faults that struck, by kind.
    pub fn fired(&self) -> [u64; KINDS.len()] {
        sums(self.scenarios.iter().map(|scenario| &scenario.fired))
    }

    /// Kinds that were on tapes and never struck anywhere: what they were to test was not tested.
    pub fn dead(&self) -> Vec<&'static str> {
        let counts = self.fired().into_iter().zip(self.drifted());
        KINDS
            .into_iter()
            .zip(counts)
            .filter(|(_, (fired, drifted))| *fired == 0 && *drifted > 0)
            .map(|(kind, _)| kind)
            .collect()
    }

    /// Faults that never struck, by kind.
    pub fn drifted(&self) -> [u64; KINDS.len()] {
        sums(self.scenarios.iter().map(|scenario| &scenario.drifted))
    }

    /// Takes in the comparison of one more run that was made twice.
    pub fn compared(&mut self, case: &Case, difference: Option<Difference>) {
        self.checked += 1;
        if let Some(difference) = difference {
            self.differing += 1;
            keep_example(&mut self.difference_examples, (case.clone(), difference));
        }
    }

    /// Takes in the next plan's outcome; the index of its failure when that is a new one.
    pub(super) fn add(&mut self, outcome: Outcome, strategy: &'static str) -> Option<usize> {
        self.runs += 1;
        self.events += outcome.events;
        self.simulated_ns += u128::from(outcome.elapsed.0);
        self.hash_in(&outcome);
        self.scenarios[outcome.chosen].add(&outcome);
        let case = &outcome.case;
        let is_it = |pair: &&mut PairTally| pair.scenario == case.scenario && pair.contract == case.contract;
        self.pairs.iter_mut().find(is_it).expect("what is run was chosen").add(&outcome);
        if !matches!(outcome.came, Came::Invalid(_)) {
            self.covered(&outcome);
        }
        if let Some(difference) = outcome.twice.clone() {
            self.compared(&outcome.case, difference);
        }
        let Outcome { case, came, size, recipe, by_seed, .. } = outcome;
        match came {
            Came::Held => self.held += 1,
            Came::Violated { all, told } => {
                self.violated += 1;
                let recipe = recipe.expect("a violated plan is written down");
                return self.failed((recipe, by_seed), size, strategy, (&all, told));
            }
            Came::Invalid(why) => {
                self.invalid += 1;
                keep_example(&mut self.invalid_examples, (case, why));
            }
            Came::Undecided(why) => {
                self.undecided += 1;
                keep_example(&mut self.undecided_examples, (case, why));
            }
            Came::Harness(error) => {
                self.harness += 1;
                keep_example(&mut self.harness_examples, (case, error));
            }
        }
        None
    }

    /// What the run has shown to have been looked at and struck.
    fn covered(&mut self, outcome: &Outcome) {
        self.evaluated.resize(self.evaluated.len().max(outcome.evaluated.len()), 0);
        for (sum, count) in self.evaluated.iter_mut().zip(&outcome.evaluated) {
            *sum += u64::from(*count);
        }
        self.coverage.struck(&outcome.case.contract, &outcome.marks);
    }

    fn failed(
        &mut self,
        (example, by_seed): (Recipe, bool),
        size: (usize, usize),
        strategy: &'static str,
        (all, told): (&[(InvariantId, Fingerprint)], usize),
    ) -> Option<usize> {
        let (invariant, fingerprint) = &all[told];
        let also = all.iter().map(|(id, _)| *id).filter(|id| id != invariant);
        if let Some(known) = self.failures.iter_mut().find(|failure| failure.fingerprint == *fingerprint) {
            known.seeds_failing += 1;
            known.also.extend(also);
            if size < known.size {
                (known.size, known.example, known.by_seed) = (size, example, by_seed);
            }
            return None;
        }
        self.failures.push(Failure {
            fingerprint: fingerprint.clone(),
            invariant: *invariant,
            example,
            by_seed,
            strategy,
            after_runs: self.runs,
            seeds_failing: 1,
            also: also.collect(),
            size,
        });
        Some(self.failures.len() - 1)
    }

    fn hash_in(&mut self, outcome: &Outcome) {
        (outcome.case.seed, &outcome.case.scenario, &outcome.case.contract, outcome.hash)
            .hash(&mut self.hasher);
        match &outcome.came {
            Came::Held => 0u8.hash(&mut self.hasher),
            Came::Violated { all, .. } => {
                1u8.hash(&mut self.hasher);
                all.hash(&mut self.hasher);
            }
            Came::Undecided(_) => 2u8.hash(&mut self.hasher),
            Came::Invalid(_) => 4u8.hash(&mut self.hasher),
            Came::Harness(_) => 3u8.hash(&mut self.hasher),
        }
    }
}

impl ScenarioTally {
    pub(super) fn new(name: &'static str, goals: Vec<(&'static str, u64)>) -> Self {
        let none = [0; KINDS.len()];
        ScenarioTally {
            name,
            runs: 0,
            held: 0,
            violated: 0,
            fired: none,
            drifted: none,
            goals,
            settled: BTreeMap::new(),
        }
    }

    /// Simulated seconds from calm to quiet, in which 99 of 100 runs settle; none when no run did.
    pub fn settles_p99_s(&self) -> Option<f64> {
        let all: u64 = self.settled.values().sum();
        let mut seen = 0;
        for (tenths, count) in &self.settled {
            seen += count;
            if seen * 100 >= all * 99 {
                return Some(*tenths as f64 / 10.0);
            }
        }
        None
    }

    fn add(&mut self, outcome: &Outcome) {
        self.runs += 1;
        match outcome.came {
            Came::Held => self.held += 1,
            Came::Violated { .. } => self.violated += 1,
            Came::Undecided(_) | Came::Harness(_) => {}
            Came::Invalid(_) => return,
        }
        self.fired = sums([&self.fired, &outcome.fired].into_iter());
        self.drifted = sums([&self.drifted, &outcome.drifted].into_iter());
        for ((_, count), reached) in self.goals.iter_mut().zip(&outcome.goals) {
            *count += u64::from(*reached);
        }
        if let Some(time) = outcome.settled_in {
            *self.settled.entry(time.0.div_ceil(TENTH_NS)).or_default() += 1;
        }
    }
}

fn sums<'a>(lists: impl Iterator<Item = &'a [u64; KINDS.len()]>) -> [u64; KINDS.len()] {
    let mut sums = [0; KINDS.len()];
    for list in lists {
        for (sum, count) in sums.iter_mut().zip(list) {
            *sum += count;
        }
    }
    sums
}

fn keep_example<T>(examples: &mut Vec<T>, example: T) {
    if examples.len() < EXAMPLES_MAX {
        examples.push(example);
    }
}
