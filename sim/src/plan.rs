//! A plan: everything that a run will do, drawn from its seed before anything runs.

use crate::fault::{Fault, FaultTape};
use crate::scenario::Scenario;
use crate::seed::Seed;
use destinations::Contract;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Names one run: `scenario/contract@seed`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Case {
    /// The scenario.
    pub scenario: String,
    /// The contract.
    pub contract: String,
    /// The seed.
    pub seed: Seed,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}@{}", self.scenario, self.contract, self.seed)
    }
}

/// Why a text names no case.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a case; a case looks like one-ticket/zendesk_ticket@760")]
pub struct CaseError(String);

impl FromStr for Case {
    type Err = CaseError;
    fn from_str(text: &str) -> Result<Self, CaseError> {
        let wrong = || CaseError(text.to_owned());
        let (path, seed) = text.rsplit_once('@').ok_or_else(wrong)?;
        let (scenario, contract) = path.split_once('/').ok_or_else(wrong)?;
        let seed = match seed.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => seed.parse(),
        };
        let seed = Seed(seed.map_err(|_| wrong())?);
        if scenario.is_empty() || contract.is_empty() {
            return Err(wrong());
        }
        Ok(Case { scenario: scenario.into(), contract: contract.into(), seed })
    }
}

/// The reference of the record that every simulated desk has from the start, as the control for look-ups.
pub const SENTINEL: &str = "in-doubt-sentinel";
/// A `requester` that every simulated desk refuses.
pub const UNKNOWN_REQUESTER: &str = "nobody";

/// Everything that a run will do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Which run this is.
    pub case: Case,
    /// The workflow with this one known mistake.
    pub mutant: Option<String>,
    /// What the outside asks for.
    pub workload: Workload,
    /// What goes wrong.
    pub tape: FaultTape,
    /// Those of its faults without which the scenario's expectation means nothing.
    pub own: Vec<Fault>,
    /// Seeds the scheduler.
    pub schedule: u64,
}

/// A plan that can be written down: the seed that its workload and its pace are drawn from, and its tape.
///
/// All searches emit these, so every failure takes one way to replay, shrinking and case files.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Recipe {
    /// Scenario, contract and seed.
    pub case: Case,
    /// The workflow with this one known mistake.
    pub mutant: Option<String>,
    /// The faults, all of them.
    pub tape: FaultTape,
    /// The deliveries that are kept, by name; none: all that the seed draws.
    pub deliveries: Option<Vec<String>>,
    /// Seeds the scheduler; none: drawn from the seed.
    pub schedule: Option<u64>,
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.case.fmt(f)
    }
}

/// Why a recipe gives no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecipeError {
    /// It keeps a delivery that the seed does not draw.
    #[error("seed {seed} draws no delivery `{name}`; it draws: {}", drawn.join(", "))]
    NoDelivery {
        /// The seed.
        seed: Seed,
        /// The delivery that was named.
        name: String,
        /// Those that there are.
        drawn: Vec<String>,
    },
}

impl Recipe {
    /// The recipe of a plan.
    pub fn of(plan: &Plan, drawn: &Workload) -> Recipe {
        let names = |workload: &Workload| -> Vec<String> {
            workload.deliveries.iter().map(|delivery| delivery.name.clone()).collect()
        };
        let kept = names(&plan.workload);
        Recipe {
            case: plan.case.clone(),
            mutant: plan.mutant.clone(),
            tape: plan.tape.clone(),
            deliveries: (kept != names(drawn)).then_some(kept),
            schedule: (plan.schedule != schedule(plan.case.seed)).then_some(plan.schedule),
        }
    }

    /// The plan: pure.
    ///
    /// # Errors
    /// When it keeps a delivery that its seed does not draw.
    pub fn plan(&self, scenario: &dyn Scenario, contract: &Contract) -> Result<Plan, RecipeError> {
        let seed = self.case.seed;
        let mut workload = scenario.workload(contract, seed);
        let own = scenario.faults(contract, &workload, seed).own;
        if let Some(kept) = &self.deliveries {
            let is_drawn = |name: &String| workload.deliveries.iter().any(|delivery| delivery.name == *name);
            if let Some(name) = kept.iter().find(|name| !is_drawn(name)) {
                let drawn = workload.deliveries.iter().map(|delivery| delivery.name.clone()).collect();
                return Err(RecipeError::NoDelivery { seed, name: name.clone(), drawn });
            }
            workload.deliveries.retain(|delivery| kept.contains(&delivery.name));
            let Workload { requests, deliveries, .. } = &mut workload;
            requests.retain(|ask| deliveries.iter().any(|delivery| delivery.operation == ask.operation));
        }
        Ok(Plan {
            case: self.case.clone(),
            mutant: self.mutant.clone(),
            workload,
            tape: self.tape.clone(),
            own,
            schedule: self.schedule.unwrap_or_else(|| schedule(seed)),
        })
    }
}

/// The scheduler's seed that a seed draws.
pub fn schedule(seed: Seed) -> u64 {
    seed.stream("schedule").bits()
}

/// What the outside asks for.
#[derive(Clone, Debug, Default)]
pub struct Workload {
    /// The business requests.
    pub requests: Vec<Ask>,
    /// Their arrivals, in order of time.
    pub deliveries: Vec<Delivery>,
    /// Milliseconds that a person takes to look at an exception; none: nobody looks during the run.
    pub person_after_ms: Option<u64>,
    /// Whether people who find nothing declare so, and have another record made.
    pub made_anew: bool,
    /// Milliseconds after which the first request is cancelled; none: it stays wanted.
    pub cancelled_after_ms: Option<u64>,
    /// Milliseconds after which the records are compared with the destination's for the first time, and twice
    /// more when all is quiet; none: never.
    pub reconciled_after_ms: Option<u64>,
    /// How the destination behaves beyond its contract.
    pub desk: DeskPlan,
}

/// One business request and what must come of it.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Its name, `R17`.
    pub request: String,
    /// The operation that must serve it, `R17:create-ticket:v1`.
    pub operation: String,
    /// What must come of it.
    pub expect: Expect,
}

/// How many records the destination must hold for one request at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Exactly one, recorded by the workflow.
    Recorded,
    /// None: the workflow's own rules reject the request.
    Rejected,
    /// None: the destination refuses the request. What hides that leaves it to a person.
    Refused,
    /// None, and a person owns the question.
    NoneOwned,
    /// Exactly one, which a person has confirmed or still has to.
    OneOwned,
    /// At most one: recorded, or owned by a person.
    AtMostOne,
    /// None: rejected, or owned by a person.
    NoRecord,
}

/// One arrival of a request.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// When, in milliseconds from the start.
    pub at_ms: u64,
    /// `R17/d-1`.
    pub name: String,
    /// The operation that it asks for.
    pub operation: String,
    /// The body of the HTTP request.
    pub body: Vec<u8>,
}

impl Delivery {
    /// The name of its `copy`-th further delivery, from 1: `R17/1+1`.
    pub fn further_name(&self, copy: u32) -> String {
        format!("{}+{copy}", self.name)
    }
}

/// How the fake destination behaves beyond its contract.
#[derive(Clone, Debug, Default)]
pub struct DeskPlan {
    /// Milliseconds from arrival to commit.
    pub service_ms: u64,
    /// Milliseconds until a record shows in look-ups, where the contract allows any lag.
    pub lag_ms: u64,
    /// The seed of its own choices.
    pub seed: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_round_trip() {
        for text in ["one-ticket/zendesk_ticket@760", "a/b@0"] {
            assert_eq!(text.parse::<Case>().map(|c| c.to_string()), Ok(text.into()));
        }
        assert_eq!("a/b@0x10".parse::<Case>().map(|c| c.seed), Ok(Seed(16)));
        for wrong in ["", "a", "a/b", "a@1", "/b@1", "a/@1", "a/b@", "a/b@-1", "a/b@x"] {
            assert!(wrong.parse::<Case>().is_err(), "{wrong}");
        }
    }
}
