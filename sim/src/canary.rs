//! A scenario with a mistake of its own put into it, to show that the harness would notice.

use crate::catalogue::Catalogue;
use crate::disk::DiskImage;
use crate::fault::Variation;
use crate::plan::{Delivery, Plan, Workload};
use crate::scenario::{
    Believes, BoxError, BoxFuture, Choice, Decision, DrawnFaults, Goal, Node, Scenario, Seen, Serves, Story,
};
use crate::seed::Seed;
use destinations::{Assumptions, Contract};
use std::sync::Arc;

/// The mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// None.
    None,
    /// It names operations by the order of a hash map.
    HashMapOrder,
    /// The destination keeps nothing of what its contract promises about repeated requests.
    IgnoresKeys,
}

/// A scenario of a catalogue, with the mistake.
pub(crate) struct Canary {
    catalogue: Arc<Catalogue>,
    of: usize,
    bug: Bug,
    only: Option<Arc<Contract>>,
}

impl Canary {
    /// The scenario at this index, with a mistake; none where there is none.
    pub(crate) fn new(catalogue: &Arc<Catalogue>, of: usize, bug: Bug) -> Option<Self> {
        catalogue.scenarios.get(of)?;
        Some(Canary { catalogue: Arc::clone(catalogue), of, bug, only: None })
    }

    fn inner(&self) -> &dyn Scenario {
        &*self.catalogue.scenarios[self.of]
    }
}

/// The first scenario and contract that promise that a repeated key makes nothing new, with a destination
/// that does not keep it; none where nobody promises it.
pub(crate) fn broken_promise(catalogue: &Arc<Catalogue>) -> Option<Canary> {
    (0..catalogue.scenarios.len()).find_map(|of| {
        let contracts = catalogue.scenarios[of].contracts();
        let promised = contracts.into_iter().find(|contract| contract.dedup_key.is_some())?;
        let bird = Canary::new(catalogue, of, Bug::IgnoresKeys)?;
        Some(Canary { only: Some(promised), ..bird })
    })
}

/// The same contract without a word about repeated requests.
fn without_keys(contract: &Contract) -> Arc<Contract> {
    Arc::new(Contract { dedup_key: None, converge: vec![], ..contract.clone() })
}

/// Names an operation by whatever a hash map has first.
#[expect(clippy::disallowed_types, reason = "this mistake is what must be noticed")]
fn first_of_a_hash_map(_: Seen<'_>) -> Option<String> {
    let names: std::collections::HashMap<u32, String> =
        (0..64).map(|n| (n, format!("operation-{n}"))).collect();
    names.into_values().next()
}

impl Scenario for Canary {
    fn name(&self) -> &'static str {
        self.inner().name()
    }
    fn story(&self) -> Story {
        self.inner().story()
    }
    fn contracts(&self) -> Vec<Arc<Contract>> {
        match &self.only {
            Some(promised) => vec![without_keys(promised)],
            None => self.inner().contracts(),
        }
    }
    fn told(&self, contract: &Arc<Contract>) -> Arc<Contract> {
        self.only.as_ref().map_or_else(|| self.inner().told(contract), Arc::clone)
    }
    fn assumptions(&self, contract: &Contract) -> Assumptions {
        self.inner().assumptions(contract)
    }
    fn workload(&self, contract: &Contract, seed: Seed) -> Workload {
        self.inner().workload(contract, seed)
    }
    fn faults(&self, contract: &Contract, workload: &Workload, seed: Seed) -> DrawnFaults {
        self.inner().faults(contract, workload, seed)
    }
    fn redelivery(&self, delivery: &Delivery, how: Variation, copy: u32) -> Option<Delivery> {
        self.inner().redelivery(delivery, how, copy)
    }
    fn boot(&self, node: Node) -> BoxFuture<'static, Result<(), BoxError>> {
        self.inner().boot(node)
    }
    fn image(&self) -> DiskImage {
        self.inner().image()
    }
    fn believes(&self) -> Believes {
        self.inner().believes()
    }
    fn serves(&self) -> Serves {
        match self.bug {
            Bug::HashMapOrder => first_of_a_hash_map,
            Bug::None | Bug::IgnoresKeys => self.inner().serves(),
        }
    }
    fn decision(&self, operation: &str, choice: &Choice, plan: &Plan) -> Option<Decision> {
        self.inner().decision(operation, choice, plan)
    }
    fn settles_within_s(&self, contract: &Contract) -> u64 {
        self.inner().settles_within_s(contract)
    }
    fn max_sends(&self) -> u32 {
        self.inner().max_sends()
    }
    fn goals(&self) -> Vec<Goal> {
        self.inner().goals()
    }
}
