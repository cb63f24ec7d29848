use super::*;
use crate::coverage::Mark;
use crate::explore::{Exploration, explore};
use crate::fault::{Fault, Place, What, When};
use crate::fixture::{MUTANT, catalogue, pipeline, request};
use crate::replay::{Question, replay};
use crate::report::json;
use crate::watch::Watch;
use destinations::Contract;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const PLAIN: Style = Style { color: false, ascii: false };

/// The lines of text and of JSON about an exploration whose costs are made up.
fn reported(
    mutant: Option<&str>,
    change: impl FnOnce(&mut Exploration),
    exit: u8,
) -> (Vec<String>, Vec<String>) {
    let catalogue = Arc::new(catalogue());
    let request = request("0..2000", 2, mutant);
    let quiet = AtomicBool::new(false);
    let mut done = explore(&catalogue, pipeline(), request.clone(), &quiet, &mut |_| {});
    change(&mut done);
    let explored = Explored {
        request: &request,
        done: &done,
        certificates: &[],
        commit: Some("4f1c2aa"),
        wall_s: 64.06,
        cpu_s: Some(1.6),
        peak_rss_bytes: Some(23_000_000),
        exit,
        tells_never: mutant.is_none(),
        is_whole: mutant.is_none(),
    };
    let (mut lines, mut json_lines) = (vec![], vec![]);
    for one in &done.failures {
        let scenario = catalogue.scenarios.iter().find(|s| s.name() == one.example.case.scenario).unwrap();
        let contract = scenario.contracts().into_iter().find(|c| c.id == one.example.case.contract).unwrap();
        let question =
            Question { mutant: mutant.map(str::to_owned), ..Question::about(one.example.case.clone()) };
        let answer = replay(pipeline(), &**scenario, &contract, &question, &Watch::default()).unwrap();
        let artifacts = Some("target/in-doubt/latest/x");
        let (file, seconds) = (Some("target/in-doubt/pending/one.toml".into()), Some(9.84));
        let told =
            ToldFailure { failure: one, answer: &answer, contract: &contract, artifacts, file, seconds };
        lines.extend(failure(PLAIN, &told, done.runs));
        json_lines.push(json::failure(&told, done.runs));
    }
    lines.extend(scenarios(PLAIN, &explored));
    lines.extend(summary(PLAIN, &explored));
    let (cells, never): (Vec<_>, Vec<_>) =
        explored.never().into_iter().partition(|never| never.due == Due::Cell);
    json_lines.extend(never.iter().chain(cells.iter().take(2)).map(json::never));
    json_lines.extend(json::results(&explored));
    json_lines.push(json::summary(&explored));
    (lines, json_lines)
}

fn pretty(lines: &[String]) -> String {
    let parsed = lines.iter().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    parsed.map(|value| serde_json::to_string_pretty(&value).unwrap() + "\n").collect()
}

#[test]
fn nothing_found() {
    let (lines, json_lines) = reported(None, |_| {}, 0);
    insta::assert_snapshot!("held", lines.join("\n"));
    insta::assert_snapshot!("held_json", pretty(&json_lines));
}

#[test]
fn a_mutant_found() {
    let (lines, json_lines) = reported(Some(MUTANT), |_| {}, 1);
    insta::assert_snapshot!("violated", lines.join("\n"));
    insta::assert_snapshot!("violated_json", pretty(&json_lines));
}

#[test]
fn everything_that_can_go_wrong() {
    let (lines, json_lines) = reported(
        None,
        |done| {
            let case: Case = "one-ticket/zendesk_ticket@760".parse().unwrap();
            done.undecided_examples.push((case.clone(), "20000 steps".into()));
            done.harness_examples.push((case.clone(), "panic at sim/src/world.rs:7: no such node".into()));
            let difference = Difference { step: 117, a: "key 7d0f".into(), b: "key 19ab".into() };
            done.compared(&case, Some(difference));
            done.invalid_examples.push((case.clone(), "kill (1st disk sync): too long".into()));
            (done.undecided, done.invalid, done.harness, done.stopped_early) = (1, 1, 1, true);
        },
        5,
    );
    insta::assert_snapshot!("wrong", lines.join("\n"));
    // What was broken off says nothing about what it would have reached.
    let (cut, _) = reported(None, |done| done.interrupted = true, 3);
    assert!(
        lines.iter().any(|line| line.contains("NEVER")) && !cut.iter().any(|line| line.contains("NEVER"))
    );
    assert!(json_lines.last().unwrap().ends_with("\"exit\":5}"));
}

#[test]
fn words_and_numbers() {
    assert_eq!(grouped(0), "0");
    assert_eq!(grouped(1234567), "1,234,567");
    assert_eq!((count(1, "seed"), count(2000, "seed")), ("1 seed".into(), "2,000 seeds".into()));
    let status = PLAIN.status(Tone::Good, "HELD", "x");
    assert_eq!(status, "        HELD x");
    let color = Style { color: true, ascii: true }.status(Tone::Bad, "NEVER", "é");
    assert_eq!(color, "\u{1b}[1;31m       NEVER\u{1b}[0m ?");
}

/// What a whole exploration never did, when each part of the gate is broken by turns.
#[test]
fn each_gap_is_found_and_nothing_else() {
    let catalogue = Arc::new(catalogue());
    let request = request("0..2000", 2, None);
    let whole = explore(&catalogue, pipeline(), request.clone(), &AtomicBool::new(false), &mut |_| {});
    let never = |change: &dyn Fn(&mut Exploration), is_whole: bool| -> Vec<(Due, String)> {
        let mut done = whole.clone();
        for scenario in &mut done.scenarios {
            scenario.drifted = [0; KINDS.len()];
            scenario.goals.iter_mut().for_each(|(_, count)| *count = 1);
        }
        for cell in whole.coverage.missed() {
            let scenario = &catalogue.scenarios[0];
            let class = |one: &Contract| destinations::recovery(one, &scenario.assumptions(one)).class();
            for contract in scenario.contracts().iter().filter(|one| class(one) == cell.class) {
                done.coverage.struck(&contract.id, &[cell.mark]);
            }
        }
        change(&mut done);
        let explored = Explored {
            request: &request,
            done: &done,
            certificates: &[],
            commit: None,
            wall_s: 0.0,
            cpu_s: None,
            peak_rss_bytes: None,
            exit: 0,
            tells_never: true,
            is_whole,
        };
        explored.never().into_iter().map(|never| (never.due, never.goal)).collect()
    };
    let stale = KINDS.iter().position(|kind| *kind == "stale").unwrap();
    assert_eq!(never(&|_| {}, true), []);
    assert_eq!(never(&|done| done.evaluated[0] = 0, true), [(Due::Always, "V0 no-panic evaluated".into())]);
    assert_eq!(never(&|done| done.scenarios[1].goals[0].1 = 0, true), [(Due::Goal, "a restart".into())]);
    let drifted = |done: &mut Exploration| done.scenarios[0].drifted[stale] = 3;
    assert_eq!(never(&drifted, true), [(Due::Fault, "stale strikes".into())]);
    let hidden = |done: &mut Exploration| {
        let at = Place::Sync { boot: 1, nth: 1, when: When::After };
        done.coverage.struck("zendesk_ticket", &[Mark::of(&Fault { at, what: What::BitFlip })]);
    };
    let told = "the exclusion of bit-flip at after sync (look-up confirms) held".into();
    assert_eq!(never(&hidden, true), [(Due::Excluded, told)]);
    let nothing_struck = |done: &mut Exploration| done.coverage = whole.coverage.clone();
    let cells = never(&nothing_struck, true);
    assert!(cells.len() > 100 && cells.iter().all(|(due, _)| *due == Due::Cell));
    assert!(cells.contains(&(Due::Cell, "pause at after sync (converge)".into())));
    // A part of the seeds or of the scenarios cannot fill everything.
    assert_eq!(never(&nothing_struck, false), []);
}
