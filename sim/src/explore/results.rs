//! What the runs of one scenario with one contract came to: for whoever answers for the workflow.

use super::pool::{Came, Outcome};
use crate::belief::Waiting;
use crate::run::Run;
use crate::scenario::Scenario;
use destinations::{Contract, EffectKind};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The sums of one scenario with one contract.
#[derive(Clone, Debug)]
pub struct PairTally {
    /// The scenario.
    pub scenario: &'static str,
    /// The contract that the destination follows.
    pub contract: String,
    /// SHA-256 of the contract that the workflow is told, hexadecimal.
    pub contract_digest: String,
    /// SHA-256 of the workflow that was run, hexadecimal; none where the scenario does not say.
    pub workflow_digest: Option<String>,
    /// Runs.
    pub runs: u64,
    /// Runs in which every invariant held.
    pub held: u64,
    /// Runs that violate one.
    pub violated: u64,
    /// Runs that hit a limit.
    pub undecided: u64,
    /// Runs of plans that nobody could survive.
    pub invalid: u64,
    /// Runs in which the harness failed.
    pub harness: u64,
    /// What the destination made.
    pub records: Records,
    /// Operations that a person owned, by the reason code of the case.
    pub cases: BTreeMap<String, u64>,
}

/// Operations by how many records the destination made for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// Operations without a record.
    pub none: u64,
    /// Operations with one.
    pub one: u64,
    /// Operations with more than one.
    pub several: u64,
}

impl PairTally {
    pub(super) fn new(scenario: &dyn Scenario, contract: &Arc<Contract>) -> Self {
        let told = scenario.told(contract);
        PairTally {
            scenario: scenario.name(),
            contract: contract.id.clone(),
            contract_digest: told.digest(),
            workflow_digest: scenario.workflow_digest(&told),
            runs: 0,
            held: 0,
            violated: 0,
            undecided: 0,
            invalid: 0,
            harness: 0,
            records: Records::default(),
            cases: BTreeMap::new(),
        }
    }

    pub(super) fn add(&mut self, outcome: &Outcome) {
        self.runs += 1;
        match outcome.came {
            Came::Held => self.held += 1,
            Came::Violated { .. } => self.violated += 1,
            Came::Undecided(_) => self.undecided += 1,
            Came::Harness(_) => self.harness += 1,
            // It says nothing about the workflow.
            Came::Invalid(_) => {
                self.invalid += 1;
                return;
            }
        }
        let Records { none, one, several } = outcome.records;
        self.records.none += none;
        self.records.one += one;
        self.records.several += several;
        for reason in &outcome.cases {
            *self.cases.entry(reason.clone()).or_default() += 1;
        }
    }
}

/// Counts in the destination's ledger what was made for each operation that the run asked for; what people
/// made there by hand is not the workflow's.
pub(super) fn records(run: &Run) -> Records {
    let mut records = Records::default();
    let made = || run.ledger.effects().iter().zip(&run.made_for);
    let asked = run.plan.workload.requests.iter().map(|ask| ask.operation.as_str());
    for operation in asked.collect::<BTreeSet<_>>() {
        let created = made().filter(|(effect, made_for)| {
            effect.kind == EffectKind::Created && !effect.by_hand && made_for.as_str() == operation
        });
        match created.count() {
            0 => records.none += 1,
            1 => records.one += 1,
            _ => records.several += 1,
        }
    }
    records
}

/// The reason of each case that a person owned at some moment: each reason of an operation once.
pub(super) fn cases(run: &Run) -> Vec<String> {
    let beliefs = run.beliefs.iter().flat_map(|at| &at.belief.operations);
    let owned: BTreeSet<(&str, &str)> = beliefs
        .filter_map(|op| match &op.waiting {
            Waiting::Person { reason, .. } => Some((op.name.as_str(), reason.as_str())),
            Waiting::Nothing | Waiting::Engine | Waiting::Nobody => None,
        })
        .collect();
    owned.into_iter().map(|(_, reason)| reason.to_owned()).collect()
}
