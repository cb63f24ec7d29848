//! Drawing a plan from a seed: pure, before anything runs.

use crate::fault::{FaultTape, KINDS};
use crate::plan::{Case, Plan, schedule};
use crate::scenario::{DrawnFaults, Scenario};
use crate::seed::Seed;
use destinations::Contract;

/// Why no plan can be drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DraftError {
    /// `--faults` names a kind that does not exist.
    #[error("there is no fault kind `{0}`; there are: {known}", known = KINDS.join(", "))]
    UnknownKind(String),
    /// The scenario does not know the mutant.
    #[error("there is no mutant `{0}`")]
    UnknownMutant(String),
}

/// The plan of a seed. With `kinds`, only faults of these kinds stay on the tape (`none` is the empty list).
///
/// # Errors
/// When a fault kind or the mutant does not exist.
pub fn draft(
    scenario: &dyn Scenario,
    contract: &Contract,
    seed: Seed,
    mutant: Option<&str>,
    kinds: Option<&[String]>,
) -> Result<Plan, DraftError> {
    if let Some(unknown) = kinds.into_iter().flatten().find(|kind| !KINDS.contains(&kind.as_str())) {
        return Err(DraftError::UnknownKind(unknown.clone()));
    }
    if let Some(name) = mutant.filter(|name| scenario.mutants().iter().all(|known| known.name != *name)) {
        return Err(DraftError::UnknownMutant(name.into()));
    }
    let workload = scenario.workload(contract, seed);
    let DrawnFaults { own, more } = scenario.faults(contract, &workload, seed);
    let mut faults = [own.clone(), more].concat();
    faults.retain(|fault| fault.what.is_on(kinds));
    Ok(Plan {
        case: Case { scenario: scenario.name().into(), contract: contract.id.clone(), seed },
        mutant: mutant.map(str::to_owned),
        workload,
        tape: FaultTape::first_of_each_place(faults),
        own,
        schedule: schedule(seed),
    })
}
