//! What was tried, what was left out and why, and what came of it: enough to say what "nothing found" means.

use super::walk::Addition;
use crate::explore::{Came, Outcome};
use crate::plan::Recipe;
use crate::scenario::Scenario;
use crate::seed::Seed;
use destinations::Contract;
use serde::Serialize;
use sha2::Digest as _;
use std::collections::BTreeMap;

/// Faults that never struck of which the certificate gives the words.
const EXAMPLES_MAX: usize = 3;

/// What an enumeration of one scenario with one contract tried, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Certificate {
    /// The scenario.
    pub scenario: String,
    /// The contract.
    pub contract: String,
    /// The known mistake that it was run with.
    pub mutant: Option<String>,
    /// SHA-256 of the contract's canonical form, hexadecimal.
    pub contract_digest: String,
    /// SHA-256 of the scenario's name, story, workload and own faults, hexadecimal.
    pub scenario_digest: String,
    /// SHA-256 of every fault that the menu offers in the clean run, hexadecimal.
    pub menu_digest: String,
    /// Faults that were added at once, at most.
    pub depth: u32,
    /// Places of the clean run at which a fault can strike.
    pub boundaries: u64,
    /// The same, by kind.
    pub boundaries_by_kind: BTreeMap<String, u64>,
    /// Runs with one added fault.
    pub singles: u64,
    /// Runs with two.
    pub pairs: u64,
    /// Runs with three.
    pub triples: u64,
    /// Plans that were not run, by reason.
    pub skipped: BTreeMap<&'static str, u64>,
    /// Runs in which every invariant held.
    pub held: u64,
    /// Runs that violate one.
    pub violated: u64,
    /// Runs that hit a limit.
    pub undecided: u64,
    /// Runs of plans that nobody could survive.
    pub invalid: u64,
    /// Runs in which the harness failed.
    pub harness_errors: u64,
    /// Runs in which a fault that came between another's place and its strike kept that one from striking.
    pub prevented: u64,
    /// Added faults that never struck: what they were to test was not tested.
    pub drift: u64,
    /// The first of them, in words.
    pub drift_examples: Vec<String>,
    /// What the enumeration does not go beyond.
    pub bounds: Bounds,
    /// Whether every plan within the bounds was run or skipped for a reason.
    pub complete: bool,
    /// Why not.
    pub incomplete: Option<String>,
    /// Runs, the clean one included.
    pub runs: u64,
    /// Wall-clock seconds.
    pub wall_s: f64,
    /// Processor seconds of the whole program meanwhile.
    pub cpu_s: Option<f64>,
}

/// What an enumeration does not go beyond.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Bounds {
    /// The seed that workload, pace and schedule are drawn from.
    pub seed: Seed,
    /// The limit of steps of one run.
    pub steps_max: u32,
    /// The fault kinds that were tried; none: all.
    pub kinds: Option<Vec<String>>,
    /// Which strengths of a fault are tried at which depth.
    pub strengths: &'static str,
}

/// The counts of an enumeration under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    /// Runs by the number of added faults.
    pub(super) ran: [u64; 4],
    held: u64,
    violated: u64,
    undecided: u64,
    invalid: u64,
    harness: u64,
    prevented: u64,
    drift: u64,
    drift_examples: Vec<String>,
}

impl Counts {
    /// Takes in one run with so many added faults, and the words for those that never struck.
    pub(super) fn add(
        &mut self,
        added: &Addition,
        outcome: &Outcome,
        mut never: impl Iterator<Item = String>,
    ) {
        self.ran[added.faults.len()] += 1;
        match &outcome.came {
            Came::Held => self.held += 1,
            Came::Violated { .. } => self.violated += 1,
            Came::Undecided(_) => self.undecided += 1,
            Came::Invalid(_) => self.invalid += 1,
            Came::Harness(_) => self.harness += 1,
        }
        if added.may_prevent {
            self.prevented += u64::from(never.next().is_some());
            return;
        }
        for words in never {
            self.drift += 1;
            if self.drift_examples.len() < EXAMPLES_MAX {
                self.drift_examples.push(words);
            }
        }
    }

    pub(super) fn runs(&self) -> u64 {
        self.ran.iter().sum()
    }
}

/// Everything that the certificate says beside its counts.
pub(super) struct Findings {
    pub(super) boundaries: BTreeMap<String, u64>,
    pub(super) menu_digest: String,
    pub(super) skipped: BTreeMap<&'static str, u64>,
    pub(super) incomplete: Option<String>,
    pub(super) wall_s: f64,
    pub(super) cpu_s: Option<f64>,
}

impl Certificate {
    pub(super) fn new(
        base: &Recipe,
        digests: (String, String),
        depth: u32,
        bounds: Bounds,
        counts: Counts,
        findings: Findings,
    ) -> Certificate {
        let harness = (counts.harness > 0).then(|| format!("the harness failed in {} runs", counts.harness));
        let incomplete = findings.incomplete.or(harness);
        let [_, singles, pairs, triples] = counts.ran;
        Certificate {
            scenario: base.case.scenario.clone(),
            contract: base.case.contract.clone(),
            mutant: base.mutant.clone(),
            contract_digest: digests.0,
            scenario_digest: digests.1,
            menu_digest: findings.menu_digest,
            depth,
            boundaries: findings.boundaries.values().sum(),
            boundaries_by_kind: findings.boundaries,
            singles,
            pairs,
            triples,
            skipped: findings.skipped,
            held: counts.held,
            violated: counts.violated,
            undecided: counts.undecided,
            invalid: counts.invalid,
            harness_errors: counts.harness,
            prevented: counts.prevented,
            drift: counts.drift,
            runs: counts.runs(),
            drift_examples: counts.drift_examples,
            bounds,
            complete: incomplete.is_none(),
            incomplete,
            wall_s: findings.wall_s,
            cpu_s: findings.cpu_s,
        }
    }
}

/// What the scenario is: another story, workload or own fault gives another digest.
pub(super) fn scenario_digest(scenario: &dyn Scenario, contract: &Contract, base: &Recipe) -> String {
    let workload = scenario.workload(contract, base.case.seed);
    let story = scenario.story();
    let own = serde_json::to_string(&base.tape).expect("faults can be written as JSON");
    let told = [scenario.name(), story.lines, story.danger, story.holds].join("\u{0}");
    digest(&format!("{told}\u{0}{workload:?}\u{0}{own}"))
}

/// SHA-256 of a text, hexadecimal.
pub(super) fn digest(text: &str) -> String {
    data_encoding::HEXLOWER.encode(&sha2::Sha256::digest(text.as_bytes()))
}
