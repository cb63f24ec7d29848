//! The plans of one depth: the scenario's own faults and some of an alphabet.

use super::walk::Addition;
use crate::catalogue::Catalogue;
use crate::explore::Plans;
use crate::fault::{Fault, FaultTape};
use crate::pipeline::Pipeline;
use crate::plan::{Case, Plan, Recipe};
use destinations::Contract;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How reports name this search.
pub(super) const STRATEGY: &str = "enumerate";

/// Faults by number: a plan is a few numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Alphabet {
    faults: Vec<Fault>,
    numbers: BTreeMap<Fault, u32>,
}

impl Alphabet {
    /// The number of a fault; a new one where it has none.
    pub(super) fn number(&mut self, fault: &Fault) -> u32 {
        if let Some(number) = self.numbers.get(fault) {
            return *number;
        }
        let number = u32::try_from(self.faults.len()).expect("nobody enumerates four billion faults");
        self.faults.push(fault.clone());
        self.numbers.insert(fault.clone(), number);
        number
    }

    /// The fault with this number.
    pub(super) fn fault(&self, number: u32) -> &Fault {
        &self.faults[number as usize]
    }

    /// The tape of a plan: these faults beside the scenario's own.
    ///
    /// # Panics
    /// When a plan was made that is no tape.
    pub(super) fn tape(&self, own: &FaultTape, added: &[u32]) -> FaultTape {
        let added = added.iter().map(|number| self.fault(*number).clone());
        let all = own.faults().iter().cloned().chain(added).collect();
        FaultTape::new(all).expect("each fault was put on the tape before it was written down")
    }
}

/// Plans that differ in their tapes only.
pub(super) struct Tapes {
    /// Index of the scenario among those chosen, and in the catalogue.
    pub(super) chosen: (usize, usize),
    pub(super) contract: Arc<Contract>,
    /// The plan without an added fault.
    pub(super) base: Recipe,
    pub(super) alphabet: Alphabet,
    /// The added faults of each plan.
    pub(super) added: Vec<Addition>,
    pub(super) traced: bool,
    /// So many of the first are run twice and compared.
    pub(super) twice: u64,
}

impl Plans for Tapes {
    fn strategy(&self) -> &'static str {
        STRATEGY
    }

    fn about(&self) -> String {
        format!("{}/{}", self.base.case.scenario, self.base.case.contract)
    }

    fn len(&self) -> u64 {
        self.added.len() as u64
    }

    fn case(&self, _: u64) -> (usize, Case) {
        (self.chosen.0, self.base.case.clone())
    }

    fn plan(&self, k: u64, catalogue: &Catalogue, _: &Pipeline) -> Result<Plan, String> {
        let tape = self.alphabet.tape(&self.base.tape, &self.added[k as usize].faults);
        let recipe = Recipe { tape, ..self.base.clone() };
        let scenario = &*catalogue.scenarios[self.chosen.1];
        recipe.plan(scenario, &self.contract).map_err(|error| error.to_string())
    }

    fn twice(&self) -> u64 {
        self.twice
    }

    fn traced(&self) -> bool {
        self.traced
    }
}
