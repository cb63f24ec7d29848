//! `list`: what there is to run, what it is run against, and what was kept of earlier runs.

use super::args::{Format, ListArgs};
use super::subject::{Kept, open, shown, tomls};
use super::{CliError, Context, choose, exit};
use crate::catalogue::Catalogue;
use crate::invariants::INVARIANTS;
use crate::report::json::line as json_line;
use crate::scenario::Scenario;
use serde::Serialize;

pub(super) fn run(cx: &mut Context<'_>, args: &ListArgs) -> Result<u8, CliError> {
    let named: Result<Vec<usize>, CliError> =
        args.scenarios.iter().map(|name| choose::scenario(&cx.catalogue, name)).collect();
    let named = named?;
    let kept = cases(&cx.catalogue)?;
    let lines = match (cx.format, named.is_empty()) {
        (Format::Json, _) => [json(&cx.catalogue), kept.iter().map(case_json).collect()].concat(),
        (_, true) => [text(&cx.catalogue), cases_text(&kept)].concat(),
        (_, false) => named.iter().flat_map(|index| full(&*cx.catalogue.scenarios[*index])).collect(),
    };
    for line in lines {
        let line = if cx.format == Format::Json { line } else { cx.out_style.line(&line) };
        cx.print(&line);
    }
    Ok(exit::HELD)
}

/// The committed cases.
fn cases(catalogue: &Catalogue) -> Result<Vec<Kept>, CliError> {
    let paths = catalogue.cases.as_deref().map_or(Ok(vec![]), tomls)?;
    paths.iter().map(|path| open(catalogue, path)).collect()
}

fn cases_text(kept: &[Kept]) -> Vec<String> {
    if kept.is_empty() {
        return vec![];
    }
    let mut lines =
        vec![String::new(), "Cases: what was found once, and runs first in every exploration".into()];
    let width = kept.iter().map(|one| one.name().len()).max().unwrap_or(0);
    lines.extend(kept.iter().map(|one| {
        let case = &one.case;
        format!("  {:<width$}  {:<8}  {}", one.name(), case.expect.word(), case.recipe.case)
    }));
    lines
}

#[derive(Serialize)]
struct CaseLine<'a> {
    kind: &'static str,
    name: String,
    file: String,
    case: String,
    mutant: Option<&'a str>,
    expect: &'static str,
    found: Option<&'a str>,
    issue: Option<&'a str>,
    faults: usize,
    head: &'a [String],
}

fn case_json(kept: &Kept) -> String {
    let case = &kept.case;
    json_line(&CaseLine {
        kind: "case",
        name: kept.name(),
        file: shown(&kept.path),
        case: case.recipe.case.to_string(),
        mutant: case.recipe.mutant.as_deref(),
        expect: case.expect.word(),
        found: case.found.as_ref().map(|found| found.0.as_str()),
        issue: case.issue.as_deref(),
        faults: case.recipe.tape.faults().len(),
        head: &case.head,
    })
}

fn first_line(scenario: &dyn Scenario) -> &'static str {
    scenario.story().lines.trim().lines().next().unwrap_or("").trim()
}

fn text(catalogue: &Catalogue) -> Vec<String> {
    let mut lines = vec!["Scenarios (cargo sim list SCENARIO tells one in full)".to_owned()];
    let width = catalogue.scenarios.iter().map(|scenario| scenario.name().len()).max().unwrap_or(0);
    lines.extend(catalogue.scenarios.iter().map(|s| format!("  {:<width$}  {}", s.name(), first_line(&**s))));
    lines.extend([
        String::new(),
        "Contracts, and the best that each permits after a send in doubt".to_owned(),
    ]);
    let contracts = choose::contracts(catalogue);
    let width = contracts.iter().map(|(contract, _)| contract.id.len()).max().unwrap_or(0);
    for (contract, scenario) in contracts {
        let class = class(catalogue, &contract, scenario);
        lines.push(format!(
            "  {:<width$}  {class:<16}  {}, {}",
            contract.id, contract.system, contract.operation
        ));
    }
    lines.extend([
        String::new(),
        "Mutants: known mistakes, each with the invariant that must catch it".to_owned(),
    ]);
    let mutants = choose::mutants(catalogue);
    let width = mutants.iter().map(|(mutant, _)| mutant.name.len()).max().unwrap_or(0);
    for (mutant, _) in mutants {
        lines.push(format!("  {:<width$}  {:<3}  {}", mutant.name, mutant.killed_by, mutant.mistake));
    }
    lines.extend([String::new(), "Invariants".to_owned()]);
    lines.extend(INVARIANTS.iter().map(|id| format!("  {:<3}  {:<17}  {}", id.id, id.name, id.says)));
    lines
}

fn class(catalogue: &Catalogue, contract: &destinations::Contract, scenario: usize) -> String {
    let assumptions = catalogue.scenarios[scenario].assumptions(contract);
    destinations::recovery(contract, &assumptions).class().to_string()
}

/// One scenario in full.
fn full(scenario: &dyn Scenario) -> Vec<String> {
    let story = scenario.story();
    let mut lines = vec![scenario.name().to_owned()];
    lines.extend(story.lines.trim().lines().map(|line| format!("  {}", line.trim())));
    lines.push(format!("  The dangerous moment: {}", story.danger));
    lines.push(format!("  What must hold: {}", story.holds));
    let join = |names: Vec<String>| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let contracts = scenario.contracts().iter().map(|contract| contract.id.clone()).collect();
    lines.push(format!("  Contracts: {}", join(contracts)));
    let goals = scenario.goals().iter().map(|goal| goal.name.to_owned()).collect();
    lines.push(format!("  Some seed must reach: {}", join(goals)));
    let mutants = scenario.mutants().iter().map(|mutant| mutant.name.to_owned()).collect();
    lines.push(format!("  Mutants: {}", join(mutants)));
    lines.push(String::new());
    lines
}

#[derive(Serialize)]
struct ScenarioLine {
    kind: &'static str,
    name: &'static str,
    story: &'static str,
    danger: &'static str,
    holds: &'static str,
    contracts: Vec<String>,
    goals: Vec<&'static str>,
    mutants: Vec<&'static str>,
}

#[derive(Serialize)]
struct MutantLine {
    kind: &'static str,
    name: &'static str,
    killed_by: &'static str,
    mistake: &'static str,
    scenarios: Vec<&'static str>,
}

#[derive(Serialize)]
struct InvariantLine {
    kind: &'static str,
    id: &'static str,
    name: &'static str,
    says: &'static str,
}

#[derive(Serialize)]
struct ContractLine {
    kind: &'static str,
    id: String,
    system: String,
    operation: String,
    class: String,
}

fn json(catalogue: &Catalogue) -> Vec<String> {
    let scenario = |scenario: &dyn Scenario| {
        json_line(&ScenarioLine {
            kind: "scenario",
            name: scenario.name(),
            story: scenario.story().lines,
            danger: scenario.story().danger,
            holds: scenario.story().holds,
            contracts: scenario.contracts().iter().map(|contract| contract.id.clone()).collect(),
            goals: scenario.goals().iter().map(|goal| goal.name).collect(),
            mutants: scenario.mutants().iter().map(|mutant| mutant.name).collect(),
        })
    };
    let mut lines: Vec<String> = catalogue.scenarios.iter().map(|one| scenario(&**one)).collect();
    lines.extend(choose::mutants(catalogue).into_iter().map(|(mutant, scenarios)| {
        let (name, killed_by, mistake) = (mutant.name, mutant.killed_by, mutant.mistake);
        json_line(&MutantLine { kind: "mutant", name, killed_by, mistake, scenarios })
    }));
    lines.extend(
        INVARIANTS.iter().map(|id| {
            json_line(&InvariantLine { kind: "invariant", id: id.id, name: id.name, says: id.says })
        }),
    );
    lines.extend(choose::contracts(catalogue).into_iter().map(|(contract, scenario)| {
        json_line(&ContractLine {
            kind: "contract",
            id: contract.id.clone(),
            system: contract.system.clone(),
            operation: contract.operation.clone(),
            class: class(catalogue, &contract, scenario),
        })
    }));
    lines
}
