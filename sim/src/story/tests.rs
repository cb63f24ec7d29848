use super::*;
use crate::fixture;
use crate::history::Kind;
use crate::plan::Case;
use crate::replay::{Question, replay};
use crate::scenario::Scenario;
use crate::watch::Watch;

fn answer(question: Question) -> Answer {
    let scenario = fixture::Toy("one-ticket");
    let contract = scenario.contracts().remove(0);
    replay(fixture::pipeline(), &scenario, &contract, &question, &Watch::default()).unwrap()
}

fn question(seed: u64, mutant: Option<&str>) -> Question {
    let case: Case = format!("one-ticket/zendesk_ticket@{seed}").parse().unwrap();
    Question { mutant: mutant.map(str::to_owned), ..Question::about(case) }
}

fn story(question: Question) -> Vec<String> {
    let contract = destinations::named("zendesk_ticket").unwrap();
    Tale::of(&answer(question), Some(&contract), None).lines()
}

/// Every line but the command fits.
fn fits(lines: &[String]) -> bool {
    lines.iter().all(|line| line.chars().count() <= WIDTH || line.starts_with("  replay  "))
}

#[test]
fn a_violation_is_told() {
    let lines = story(question(0, Some(fixture::MUTANT)));
    assert!(fits(&lines));
    assert_eq!(lines.iter().filter(|line| line.contains("cargo sim replay")).count(), 1);
    insta::assert_snapshot!("story", lines.join("\n"));
    let ascii: Vec<String> = lines.iter().map(|line| to_ascii(line)).collect();
    assert!(ascii.iter().all(|line| line.is_ascii()));
    insta::assert_snapshot!("story_ascii", ascii.join("\n"));
}

#[test]
fn a_run_that_holds_is_told_too() {
    let lines = story(question(0, None));
    assert!(fits(&lines));
    insta::assert_snapshot!("story_held", lines.join("\n"));
}

#[test]
fn a_story_has_twelve_steps_at_most_and_the_blamed_ones() {
    let answer = answer(question(0, Some(fixture::MUTANT)));
    let tale = Tale::of(&answer, None, None);
    let steps = pick::pick(&tale, &draw::Lanes::of(tale.run));
    assert!(steps.len() <= STEPS_MAX);
    assert!(tale.violation.unwrap().blame.iter().all(|step| steps.contains(step)));
    let faults = tale.run.history.events().iter().filter(|event| matches!(event.kind, Kind::Fault { .. }));
    assert!(faults.map(|event| event.step).all(|step| steps.contains(&step)));
}

#[test]
fn only_what_was_shown_is_said() {
    let told = answer(question(0, Some(fixture::MUTANT)));
    let mut shown = String::new();
    let needs = [
        Need::Holds,
        Need::Breaks("no-limbo".into()),
        Need::Breaks("stable-identity".into()),
        Need::Undecided,
        Need::Untried,
    ];
    for first in &needs {
        let mut faults = told.faults.clone();
        faults[0].need = first.clone();
        shown += &(needed(&faults, told.violation()).join("\n") + "\n\n");
        faults.truncate(1);
        shown += &(needed(&faults, told.violation()).join("\n") + "\n\n");
    }
    shown += &needed(&[], told.violation()).join("\n");
    insta::assert_snapshot!("needed", shown);
}

#[test]
fn nothing_after_the_asked_step_is_told() {
    let answer = answer(question(0, Some(fixture::MUTANT)));
    let tale = Tale { until: Some(Step(6)), ..Tale::of(&answer, None, None) };
    let steps = pick::pick(&tale, &draw::Lanes::of(tale.run));
    assert!(!steps.is_empty() && steps.iter().all(|step| *step <= Step(6)));
}
