//! The gate of the runbook, fed with what the simulator really prints: the example's workflow may go live.

use crate::explored::command;
use workflow::file::WorkflowFile;
use workflow::runbook::{Results, Runbook};

const EXAMPLE: &str = include_str!("../../workflow/examples/access_request.toml");

/// What `explore --format json` printed about these seeds of the six situations.
fn explored(more: &[&str]) -> Results {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let artifacts = folder.path().join("artifacts");
    let scenarios = [
        "first-delivery",
        "repeated-delivery",
        "concurrent-delivery",
        "time-out-after-effect",
        "crash-between-steps",
        "permanent-validation-failure",
    ];
    let mut line = vec!["explore"];
    line.extend(scenarios);
    line.extend(["--seeds", "0..400", "--strategy", "swarm", "--format", "json", "--artifacts"]);
    line.push(artifacts.to_str().expect("our paths are text"));
    line.extend(more);
    let done = command(&line).output().expect("the system starts this program");
    let printed = String::from_utf8(done.stdout).expect("text");
    // The test program that plays the command line says something of its own before it.
    let (_, lines) = printed.split_once("\n{").unwrap_or_else(|| panic!("{printed}"));
    Results::read(&format!("{{{lines}")).unwrap_or_else(|why| panic!("{why}\n{printed}"))
}

fn example() -> WorkflowFile {
    let contract = |name: &str| destinations::named(name).ok_or_else(|| format!("no contract {name}"));
    WorkflowFile::from_toml("access_request.toml", EXAMPLE, &contract).expect("the example is a workflow")
}

#[test]
fn what_the_simulator_prints_opens_the_gate() {
    let book = Runbook::of(&example(), Some(explored(&[])));
    assert_eq!(book.blockers, [""; 0]);
    let observed = &book.results.as_ref().expect("they were given").observed;
    let of = |scenario: &str, contract: &str| {
        let found = observed.iter().find(|one| one.scenario == scenario && one.contract == contract);
        found.unwrap_or_else(|| panic!("no {scenario} with {contract}"))
    };
    let first = of("first-delivery", "zendesk_ticket");
    assert!(first.runs > 0 && first.held == first.runs);
    let counted = first.operations;
    assert!(counted.one > 0 && counted.several == 0, "{counted:?}");
    let refused = of("permanent-validation-failure", "zendesk_ticket").operations;
    assert!(refused.none > 0, "{refused:?}");
    let asked = of("time-out-after-effect", "desk_nothing");
    assert!(asked.cases.get("nothing_permitted").is_some_and(|count| *count > 0), "{:?}", asked.cases);
    let text = book.markdown();
    assert!(text.contains("`first-delivery`: ") && text.contains("seeds 0..400"), "{text}");
}

#[test]
fn what_a_mutant_did_keeps_it_closed() {
    let book = Runbook::of(&example(), Some(explored(&["--mutant", "fresh-key-per-retry", "--no-shrink"])));
    let told = "the simulation results are of the mutant `fresh-key-per-retry`, not of the workflow";
    assert_eq!(book.blockers, [told]);
}
