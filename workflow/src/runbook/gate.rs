//! The gate: why a workflow must not go live yet.

use super::results::{Observed, Results, Sums};
use super::situations;
use super::{About, Played};
use crate::definition::Definition;
use crate::file::WorkflowFile;
use std::collections::BTreeSet;

/// Why this workflow must not go live yet; empty where nothing speaks against it.
pub fn blockers(file: &WorkflowFile, results: Option<&Results>) -> Vec<String> {
    let without = file.decisions.iter().filter(|decision| decision.owner.is_none());
    let mut blockers: Vec<String> = without
        .map(|decision| {
            let path = &decision.open.path;
            format!("the decision `{path}` has no owner: {}", decision.open.question)
        })
        .collect();
    match results {
        None => blockers.push("there are no simulation results".into()),
        Some(results) => blockers.extend(of_results(file, results)),
    }
    blockers
}

/// The results that speak about this workflow and its contract, as they are now.
pub(super) fn ours<'a>(
    definition: &Definition,
    results: &'a Results,
) -> impl Iterator<Item = &'a Observed> + use<'a> {
    let (contract, workflow) = (definition.contract.digest(), definition.digest());
    results.observed.iter().filter(move |one| {
        one.mutant.is_none()
            && one.contract_digest == contract
            && one.workflow_digest.as_ref() == Some(&workflow)
    })
}

fn of_results(file: &WorkflowFile, results: &Results) -> Vec<String> {
    let definition = file.workflow.definition();
    let mut blockers = vec![];
    if results.summaries.iter().any(|summary| summary.interrupted) {
        blockers.push("the simulation was broken off".to_owned());
    }
    if results.summaries.iter().any(|summary| summary.determinism.differing > 0) {
        blockers.push("the simulation is not deterministic: runs differ from their second run".to_owned());
    }
    if ours(definition, results).next().is_none() {
        blockers.push(of_another(definition, results));
        return blockers;
    }
    let about = About { definition, recovery: file.workflow.recovery() };
    for situation in situations::all(about) {
        let Played::Scenario(name) = situation.played else { continue };
        if Sums::of(ours(definition, results).filter(|one| one.scenario == name)).runs == 0 {
            blockers.push(format!("the scenario `{name}` was not simulated with this workflow"));
        }
    }
    let scenarios: BTreeSet<&str> = ours(definition, results).map(|one| one.scenario.as_str()).collect();
    for name in scenarios {
        let sums = Sums::of(ours(definition, results).filter(|one| one.scenario == name));
        let what = [
            (sums.violated, "violate an invariant"),
            (sums.undecided, "are undecided"),
            (sums.harness_errors, "failed in the simulator itself"),
        ];
        for (count, what) in what.into_iter().filter(|(count, _)| *count > 0) {
            blockers.push(format!("`{name}`: {count} of {} simulated runs {what}", sums.runs));
        }
    }
    blockers
}

/// What the results are of instead, the nearest miss first.
fn of_another(definition: &Definition, results: &Results) -> String {
    let (id, contract) = (&definition.contract.id, definition.contract.digest());
    let sound = || results.observed.iter().filter(|one| one.mutant.is_none());
    if sound().any(|one| one.contract_digest == contract) {
        let version = definition.digest();
        return format!("the simulation results are of another workflow version; this one is {version}");
    }
    if sound().any(|one| one.contract == *id) {
        return format!(
            "the simulation results are of another version of the contract `{id}`; this one is {contract}"
        );
    }
    match results.observed.iter().find_map(|one| one.mutant.as_ref()) {
        Some(mutant) => format!("the simulation results are of the mutant `{mutant}`, not of the workflow"),
        None => format!("the simulation results are of another contract than `{id}`"),
    }
}
