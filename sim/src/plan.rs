//! A plan: everything that a run will do, drawn from its seed before anything runs.

use crate::fault::{Fault, FaultTape};
use crate::seed::Seed;
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

/// What the outside asks for.
#[derive(Clone, Debug, Default)]
pub struct Workload {
    /// The business requests.
    pub requests: Vec<Ask>,
    /// Their arrivals, in order of time.
    pub deliveries: Vec<Delivery>,
    /// Milliseconds that a person takes to look at an exception; none: nobody looks during the run.
    pub person_after_ms: Option<u64>,
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
    /// None: the request is rejected.
    Rejected,
    /// None, and a person owns the question.
    NoneOwned,
    /// Exactly one, which a person has confirmed or still has to.
    OneOwned,
    /// At most one: recorded, or owned by a person.
    AtMostOne,
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
