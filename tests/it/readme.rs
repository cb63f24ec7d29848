//! What the README shows is what its commands print, and what it counts is what there is.

use crate::explored::command;
use sim::fault::KINDS;
use std::fs;

fn file(name: &str) -> String {
    fs::read_to_string(format!("../{name}")).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The text between two marks, the first of which comes after `from`.
fn between<'t>(text: &'t str, from: &str, open: &str, close: &str) -> &'t str {
    let text = text.split_once(from).unwrap_or_else(|| panic!("no {from}")).1;
    let text = text.split_once(open).unwrap_or_else(|| panic!("no {open} after {from}")).1;
    text.split_once(close).unwrap_or_else(|| panic!("no {close} after {open}")).0
}

#[test]
fn the_failing_run_is_what_its_command_prints() {
    let readme = file("README.md");
    let line = between(&readme, "## A failing run", "cargo sim ", "\n");
    let arguments: Vec<&str> = line.split(' ').collect();
    let shown = between(&readme, "## A failing run", "```text\n", "```");
    let done = command(&arguments).env("NO_COLOR", "1").output().expect("the system starts this program");
    let printed = String::from_utf8(done.stdout).expect("text");
    assert_eq!(done.status.code(), Some(1), "{printed}");
    assert!(printed.contains(shown), "the README has\n{shown}\nand `cargo sim {line}` prints\n{printed}");
}

#[test]
fn the_numbers_are_those_of_the_catalogue() {
    let readme = file("README.md");
    let kinds = format!("There are {} kinds of faults", KINDS.len());
    assert!(readme.contains(&kinds), "the README does not say `{kinds}`");
    let rows = file("scenarios/INCIDENTS.md").lines().filter(|line| line.ends_with("` |")).count();
    let played = format!("for {rows} of 68 public reports");
    assert!(readme.contains(&played), "the README does not say `{played}`");
    assert!(file("scenarios/INCIDENTS.md").contains(&format!("{rows} of 68 are played")));
}
