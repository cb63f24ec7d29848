//! The acceptance script: fifteen ways in which a request can come to grief, played with every contract, and
//! for each the number of records at the desk and what the workflow has recorded.

mod rows;
mod trial;

use destinations::Contract;
use rows::{CLASSES, Case, Cell, ROWS, Row, row};
use sim::verdict::Verdict;
use std::collections::BTreeSet;
use std::sync::Arc;
use trial::{Balance, Left, OWNER, class, contracts, run};

/// What the table has to say of a trial: nothing where it ended as it must.
fn wrong(cell: Cell, left: &Left) -> Vec<String> {
    let mut wrong = vec![];
    let mut demand = |holds: bool, what: String| wrong.extend((!holds).then_some(what));
    let Cell::Ends(records, words, case) = cell else { unreachable!("what is not tried has no trial") };
    demand(left.records() == records, format!("{} records at the desk", left.records()));
    demand(left.words() == words, format!("recorded as {}", left.words()));
    let (open, told) = match case {
        Case::None => (None, None),
        Case::Open(reason) => (Some(reason), Some(reason)),
        Case::Decided(reason) => (None, Some(reason)),
    };
    demand(left.open_cases() == Vec::from_iter(open), format!("open cases: {:?}", left.open_cases()));
    demand(left.alerts() == Vec::from_iter(told), format!("alerts to {OWNER}: {:?}", left.alerts()));
    demand(left.cases_are_owned(), "a case without its owner or its deadline".into());
    demand(left.verdict == Verdict::Held, format!("{:?}", left.verdict));
    demand(left.settled, "not settled in time".into());
    demand(left.drift.is_empty(), format!("faults that did not strike: {:?}", left.drift));
    wrong
}

/// One line of the table, and what is wrong with it.
fn played(row: &Row, contract: &Contract) -> (String, Vec<String>) {
    let cell = row.cell(contract);
    let trials: Vec<Left> =
        row.trials(contract).into_iter().map(|trial| run(trial, contract, None)).collect();
    let each = trials.iter().enumerate();
    let wrong = each.flat_map(|(n, left)| {
        let place = format!("row {}, {}, trial {}: ", row.number, contract.id, n + 1);
        wrong(cell, left).into_iter().map(move |what| format!("{place}{what}"))
    });
    let wrong = wrong.collect();
    let class = class(contract).to_string();
    let begin = format!("    {class:<16}  {:<18}", contract.id);
    let line = match cell {
        Cell::NotApplicable => format!("{begin}  not applicable"),
        Cell::NotBuilt => format!("{begin}  not built yet: a request has one step, at one system"),
        Cell::Ends(records, words, case) => {
            let attempts: BTreeSet<usize> = trials.iter().map(Left::attempts).collect();
            let attempts: Vec<String> = attempts.iter().map(usize::to_string).collect();
            let (attempts, case) = (attempts.join(" or "), told(case));
            format!("{begin}  {records}  {words:<39}  {attempts:<6}  {case}")
        }
    };
    (line.trim_end().to_owned(), wrong)
}

fn told(case: Case) -> String {
    match case {
        Case::None => String::new(),
        Case::Open(reason) => format!("{reason}: open, {OWNER} was told"),
        Case::Decided(reason) => format!("{reason}: {OWNER} was told, and has confirmed the record"),
    }
}

#[test]
fn every_row_ends_as_the_table_says_with_every_contract() {
    let mut lines = vec![
        "What R17 comes to: records at the desk, what the workflow recorded, attempts, the case.".to_owned(),
        "Where a row is played in several ways, all of them end as its lines say.".to_owned(),
    ];
    let mut mistakes = vec![];
    for row in ROWS {
        lines.push(format!("\n{:>3} {}", row.number, row.name));
        for contract in contracts() {
            let (line, wrong) = played(row, &contract);
            lines.push(line);
            mistakes.extend(wrong);
        }
    }
    assert_eq!(mistakes, Vec::<String>::new());
    insta::assert_snapshot!("script", lines.join("\n"));
}

/// A contract that comes with the crate later is tried too, and each class has one.
#[test]
fn the_script_is_whole() {
    let tried: BTreeSet<String> = contracts().iter().map(|contract| contract.id.clone()).collect();
    let known: BTreeSet<String> =
        destinations::builtin().into_iter().map(|contract| contract.id.clone()).collect();
    assert_eq!(tried, known);
    let classes: BTreeSet<_> = contracts().iter().map(|contract| class(contract)).collect();
    assert_eq!(classes, CLASSES.into_iter().collect());
    let numbers: BTreeSet<u32> = ROWS
        .iter()
        .map(|row| row.number.trim_end_matches(char::is_alphabetic).parse().expect("a number"))
        .collect();
    assert_eq!(numbers, (1..=15).collect());
}

/// The contracts with which some trial of a row leaves a second record, and breaks an invariant by it.
fn doubled(numbers: &[&str], mutant: Option<&str>) -> Vec<String> {
    let doubles = |contract: &Arc<Contract>| {
        let trials = numbers.iter().flat_map(|number| row(number).trials(contract));
        let mut left = trials.map(|trial| run(trial, contract, mutant));
        left.any(|left| left.records() > 1 && matches!(left.verdict, Verdict::Violated(_)))
    };
    contracts().into_iter().filter(doubles).map(|contract| contract.id.clone()).collect()
}

const NOBODY: [String; 0] = [];

#[test]
fn a_lapsed_key_never_makes_a_second_ticket() {
    let rows = ["10a", "10b", "10c"];
    for contract in contracts() {
        for trial in rows[..2].iter().flat_map(|number| row(number).trials(&contract)) {
            let left = run(trial, &contract, None);
            assert_eq!(left.records(), 1, "{}", contract.id);
            // Only where the desk itself enforces the reference is anything sent after the silence.
            let most = if contract.converge.is_empty() { 1 } else { 2 };
            assert!(left.attempts() <= most, "{}: {} attempts", contract.id, left.attempts());
        }
        // Where nothing was made, what is sent later makes no second one either; by the key nothing is sent.
        for trial in row("10c").trials(&contract) {
            let left = run(trial, &contract, None);
            let most = if contract.dedup_key.is_some() { 1 } else { 2 };
            assert!(left.records() <= 1 && left.attempts() <= most, "{}", contract.id);
        }
    }
    assert_eq!(doubled(&rows, None), NOBODY);
    assert_eq!(doubled(&rows, Some("ignore-safe-until")), ["zendesk_ticket"]);
    assert_eq!(doubled(&rows, Some("fresh-key-per-retry")), ["desk_unique_ref"]);
}

#[test]
fn a_desk_slower_than_our_patience_never_makes_a_second_ticket() {
    let rows = ["11"];
    for contract in contracts() {
        for trial in row("11").trials(&contract) {
            assert_eq!(run(trial, &contract, None).records(), 1, "{}", contract.id);
        }
    }
    assert_eq!(doubled(&rows, None), NOBODY);
    assert_eq!(doubled(&rows, Some("resend-in-flight")), ["zendesk_ticket"]);
    assert_eq!(doubled(&rows, Some("settle-without-horizon")), ["desk_strong_lookup"]);
    assert_eq!(doubled(&rows, Some("fresh-key-per-retry")), ["zendesk_ticket", "desk_unique_ref"]);
}

#[test]
fn every_repeat_is_recorded_and_only_one_is_sent() {
    for contract in contracts() {
        for (number, deliveries) in [("1", 1), ("2", 4), ("3", 50)] {
            for trial in row(number).trials(&contract) {
                let left = run(trial, &contract, None);
                let seen = (left.deliveries(), left.attempts(), left.records());
                assert_eq!(seen, (deliveries, 1, 1), "row {number}, {}", contract.id);
            }
        }
    }
    // A desk that recognises the key or the reference makes no second one of it.
    let elsewhere = ["desk_strong_lookup", "jira_cloud_issue", "desk_nothing"];
    assert_eq!(doubled(&["2"], Some("memory-only-dedupe")), elsewhere);
}

#[test]
fn after_a_correction_by_hand_the_balance_closes() {
    for contract in contracts() {
        for trial in row("13").trials(&contract) {
            let balance = run(trial, &contract, None).balance();
            assert_eq!(balance, Balance { completed: 3, records: 3, unmatched: vec![] }, "{}", contract.id);
        }
    }
}

#[test]
fn a_changed_request_leaves_the_first_meaning_at_the_desk() {
    for contract in contracts() {
        for trial in row("15").trials(&contract) {
            let left = run(trial, &contract, None);
            let meant = left.bodies.iter().filter(|body| body.contains("access to the archive")).count();
            assert_eq!((left.bodies.len(), meant), (1, 1), "{}: {:?}", contract.id, left.bodies);
        }
    }
}
