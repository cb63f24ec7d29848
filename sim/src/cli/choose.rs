//! From names to what they name; a name that nobody has gets the nearest one and the list.

use super::CliError;
use crate::catalogue::Catalogue;
use crate::explore::Chosen;
use crate::fault::KINDS;
use crate::plan::Case;
use crate::scenario::{Mutant, Scenario};
use destinations::Contract;
use std::sync::Arc;

/// From this likeness on, a name is taken for a slip of the pen.
const NEAR: f64 = 0.7;

/// The scenarios with these names, each with its contracts or the one after the slash.
pub(super) fn scenarios(
    catalogue: &Catalogue,
    names: &[String],
    mutant: Option<&str>,
) -> Result<Vec<Chosen>, CliError> {
    let mut chosen: Vec<Chosen> = vec![];
    if names.is_empty() {
        chosen.extend(Chosen::every(catalogue, mutant));
    }
    for name in names {
        let (name, contract) = match name.split_once('/') {
            Some((name, contract)) => (name, Some(contract)),
            None => (name.as_str(), None),
        };
        let index = scenario(catalogue, name)?;
        let mut one = Chosen::whole(catalogue, index, mutant);
        if let Some(id) = contract {
            one.contracts = vec![self::contract(&*catalogue.scenarios[index], id)?];
        }
        match chosen.iter_mut().find(|known| known.scenario == index) {
            Some(known) => {
                one.contracts.retain(|new| known.contracts.iter().all(|old| old.id != new.id));
                known.contracts.extend(one.contracts);
            }
            None => chosen.push(one),
        }
    }
    match mutant {
        Some(mutant) => with_mutant(catalogue, chosen, mutant),
        None => Ok(chosen),
    }
}

/// Those of the chosen scenarios that can be run with this mistake.
fn with_mutant(catalogue: &Catalogue, chosen: Vec<Chosen>, mutant: &str) -> Result<Vec<Chosen>, CliError> {
    let all = mutants(catalogue);
    let Some((_, offered_by)) = all.iter().find(|(known, _)| known.name == mutant) else {
        let names: Vec<&str> = all.iter().map(|(known, _)| known.name).collect();
        return Err(unknown("there is no mutant", mutant, &names));
    };
    let with: Vec<Chosen> = chosen.into_iter().filter(|one| one.killed_by.is_some()).collect();
    if with.is_empty() {
        let help = format!("these do: {}", offered_by.join(", "));
        return Err(CliError::usage(format!("none of these scenarios runs with mutant `{mutant}`"), help));
    }
    Ok(with)
}

/// The index of the scenario with this name.
pub(super) fn scenario(catalogue: &Catalogue, name: &str) -> Result<usize, CliError> {
    let names: Vec<&str> = catalogue.scenarios.iter().map(|scenario| scenario.name()).collect();
    names.iter().position(|known| *known == name).ok_or_else(|| unknown("there is no scenario", name, &names))
}

/// The contract with this id, among those of a scenario.
pub(super) fn contract(scenario: &dyn Scenario, id: &str) -> Result<Arc<Contract>, CliError> {
    let contracts = scenario.contracts();
    let ids: Vec<&str> = contracts.iter().map(|contract| contract.id.as_str()).collect();
    let what = format!("{} has no contract", scenario.name());
    let found = contracts.iter().find(|contract| contract.id == id);
    found.cloned().ok_or_else(|| unknown(&what, id, &ids))
}

/// The scenario and contract of a case.
pub(super) fn case(
    catalogue: &Catalogue,
    case: &Case,
    mutant: Option<&str>,
) -> Result<(usize, Arc<Contract>), CliError> {
    let name = format!("{}/{}", case.scenario, case.contract);
    let chosen = scenarios(catalogue, &[name], mutant)?.into_iter().next();
    let chosen = chosen.expect("one name gives one scenario");
    let contract = chosen.contracts.into_iter().next().expect("the name has a contract");
    Ok((chosen.scenario, contract))
}

/// The fault kinds of `--faults`: none for all of them, an empty list for no faults.
pub(super) fn kinds(text: Option<&str>) -> Result<Option<Vec<String>>, CliError> {
    let Some(text) = text else { return Ok(None) };
    if text == "none" {
        return Ok(Some(vec![]));
    }
    let known = |kind: &str| {
        let kind = kind.trim();
        if KINDS.contains(&kind) {
            Ok(kind.to_owned())
        } else {
            Err(unknown("there is no fault kind", kind, &KINDS))
        }
    };
    text.split(',').map(known).collect::<Result<_, _>>().map(Some)
}

/// Every known mistake, with the scenarios that can be run with it.
pub(super) fn mutants(catalogue: &Catalogue) -> Vec<(Mutant, Vec<&'static str>)> {
    let mut all: Vec<(Mutant, Vec<&'static str>)> = vec![];
    for scenario in &catalogue.scenarios {
        for mutant in scenario.mutants() {
            match all.iter_mut().find(|(known, _)| known.name == mutant.name) {
                Some((_, offered_by)) => offered_by.push(scenario.name()),
                None => all.push((mutant, vec![scenario.name()])),
            }
        }
    }
    all
}

/// Every contract, with the index of the first scenario that uses it.
pub(super) fn contracts(catalogue: &Catalogue) -> Vec<(Arc<Contract>, usize)> {
    let mut all: Vec<(Arc<Contract>, usize)> = vec![];
    for (index, scenario) in catalogue.scenarios.iter().enumerate() {
        for contract in scenario.contracts() {
            if all.iter().all(|(known, _)| known.id != contract.id) {
                all.push((contract, index));
            }
        }
    }
    all.sort_by(|(a, _), (b, _)| a.id.cmp(&b.id));
    all
}

/// An error for a name that nobody has: what is said before the name, the name, and those that there are.
pub(super) fn unknown(what: &str, name: &str, known: &[&str]) -> CliError {
    let likeness = |candidate: &str| strsim::jaro_winkler(name, candidate);
    let near = known.iter().copied().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    let mut help = vec![];
    if let Some(near) = near.filter(|near| likeness(near) >= NEAR) {
        help.push(format!("did you mean `{near}`?"));
    }
    help.push(if known.is_empty() { "there is none".into() } else { format!("known: {}", known.join(", ")) });
    let code = super::exit::USAGE;
    CliError { code, message: format!("{what} `{name}`"), help }
}
