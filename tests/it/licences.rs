//! The licence over every contract: what is known less of, is never sent more of.

use destinations::{Assumptions, Contract, Recovery, builtin, recovery};
use serde_json::Value;
use std::time::Duration;
use workflow::licence::{Facts, MissAt, Next, next_step};
use workflow::state::State;
use workflow::store::{Authorisation, Authorised};
use workflow::{Policy, Timestamp};

const START: Timestamp = Timestamp(1_000_000_000);

fn at(seconds: u64) -> Timestamp {
    START.after(Duration::from_secs(seconds))
}

/// What only ever forbids: not to know of it is no more careful.
const FORBIDDING: [&str; 3] = ["holes", "clock_skew_margin", "evidence"];
const FORBIDDING_WORDS: [&str; 3] = ["executes", "may_execute", "fail_open"];

/// Every contract that knows one thing less, with what that is.
fn weakened(contract: &Contract) -> Vec<(String, Contract)> {
    let tree = serde_json::to_value(contract).expect("a contract is plain data");
    let mut paths = vec![];
    collect(&tree, &mut vec![], &mut paths);
    let without = |path: &Vec<String>| {
        let mut tree = tree.clone();
        remove(&mut tree, path);
        let less: Contract = serde_json::from_value(tree).ok()?;
        (less != *contract).then(|| (path.join("."), less))
    };
    paths.iter().filter_map(without).collect()
}

fn collect(tree: &Value, path: &mut Vec<String>, paths: &mut Vec<Vec<String>>) {
    let children: Vec<(String, &Value)> = match tree {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(n, value)| (n.to_string(), value)).collect(),
        _ => return,
    };
    for (name, value) in children {
        let forbids = FORBIDDING.contains(&name.as_str())
            || (name == "unknown" && path.first().is_some_and(|first| first == "errors"))
            || value.as_str().is_some_and(|word| FORBIDDING_WORDS.contains(&word));
        if forbids {
            continue;
        }
        path.push(name);
        if !(path.len() == 1 && path[0] == "time") {
            paths.push(path.clone());
        }
        collect(value, path, paths);
        path.pop();
    }
}

fn remove(tree: &mut Value, path: &[String]) {
    let Some((last, parents)) = path.split_last() else { return };
    let parent = parents.iter().try_fold(tree, |tree, name| match tree {
        Value::Object(fields) => fields.get_mut(name),
        Value::Array(items) => items.get_mut(name.parse::<usize>().ok()?),
        _ => None,
    });
    match parent {
        Some(Value::Object(fields)) => drop(fields.remove(last)),
        Some(Value::Array(items)) => drop(items.remove(last.parse::<usize>().expect("an index"))),
        _ => unreachable!("the path was collected from this tree"),
    }
}

/// Assumptions of a careful operator, and of one who attests what can be attested.
fn assumptions() -> [Assumptions; 3] {
    let attested = Some(Duration::from_secs(90));
    [
        Assumptions::default(),
        Assumptions { assumed_late_commit: attested, ..Assumptions::default() },
        Assumptions { assumed_late_commit: attested, attested_atomic: true, ..Assumptions::default() },
    ]
}

/// What a person can have permitted in a state: nothing, long ago, and for a long time to come.
fn authorisations(state: State) -> impl Iterator<Item = Option<Authorisation>> {
    let until = |expires| Authorisation {
        id: 1,
        kind: if state == State::AuthorisedCreation { Authorised::Creation } else { Authorised::Resend },
        by: "c42".into(),
        reason: "it is needed".into(),
        issued: at(10),
        expires,
        consumed_by: None,
        voided: None,
    };
    let given = [Some(until(at(11))), Some(until(at(1_000_000)))];
    [None].into_iter().chain(given.into_iter().filter(move |_| state.is_authorised()))
}

/// Where an operation can be when the next step is chosen: each state, with few and many sends and checks,
/// young and old, with and without look-ups that found nothing.
fn grid() -> Vec<(Facts, Timestamp)> {
    let mut grid = vec![];
    let misses = |age: u64, now: u64| {
        let miss = |at_seconds: u64, whole: bool| MissAt {
            at: at(at_seconds),
            complete: whole,
            control_found: whole,
        };
        let late = now.saturating_sub(age);
        [
            vec![],
            vec![miss(late, true)],
            vec![miss(late, false)],
            vec![miss(late.saturating_sub(400), true), miss(late, true)],
        ]
    };
    for state in State::ALL {
        for sends in [0, 1, 4, 5] {
            for checks in [0, 7, 8, 20] {
                for now in [11, 60, 99, 101, 140, 161, 600, 5_000, 6_400, 6_600, 7_100, 7_300, 100_000] {
                    for misses in misses(5, now) {
                        for not_before in [0, 120] {
                            let facts = |authorisation| Facts {
                                authorisation,
                                state,
                                sends,
                                checks,
                                first_intent: (sends > 0).then_some(START),
                                last_possible_send: (sends > 0).then_some(at(10)),
                                not_before: at(not_before),
                                misses: misses.clone(),
                                cancelled: false,
                            };
                            let all = authorisations(state).map(|given| (facts(given), at(now)));
                            grid.extend(all);
                        }
                    }
                }
            }
        }
    }
    grid
}

/// Whether a step sends, or opens the way to a send.
fn is_bold(step: &Next) -> bool {
    matches!(step, Next::Send(_) | Next::AcceptNegative)
}

#[test]
fn a_contract_that_knows_less_never_sends_more() {
    let (grid, policy) = (grid(), Policy::default());
    let bold = |recovery: &Recovery| -> Vec<bool> {
        let step = |(facts, now): &(Facts, Timestamp)| is_bold(&next_step(facts, recovery, &policy, *now));
        grid.iter().map(step).collect()
    };
    let (mut compared, mut more_careful) = (0, 0);
    for assumptions in assumptions() {
        for contract in builtin() {
            let strong = bold(&recovery(&contract, &assumptions));
            for (path, less) in weakened(&contract) {
                let weak = bold(&recovery(&less, &assumptions));
                compared += 1;
                more_careful += usize::from(weak != strong);
                let worse = (0..grid.len()).find(|n| weak[*n] && !strong[*n]);
                if let Some(n) = worse {
                    panic!("{} without {path} sends where it must not: {:?}", contract.id, grid[n]);
                }
            }
        }
    }
    assert!(compared > 150 && more_careful > 10, "{compared} compared, {more_careful} more careful");
}

/// What was cancelled is never sent, whatever contract, doubt and people say; and it goes on to an end.
#[test]
fn what_was_cancelled_is_sent_no_more() {
    let policy = Policy::default();
    let (mut ended, mut looked) = (0, 0);
    for contract in builtin() {
        let recovery = recovery(&contract, &Assumptions::default());
        for (facts, now) in grid() {
            let wanted = next_step(&facts, &recovery, &policy, now);
            let step = next_step(&Facts { cancelled: true, ..facts.clone() }, &recovery, &policy, now);
            assert!(!matches!(step, Next::Send(_)), "{} sends {facts:?}", contract.id);
            assert_eq!(wanted == Next::Nothing, step == Next::Nothing, "{facts:?}");
            ended += u32::from(step == Next::Withdraw);
            looked += u32::from(step == Next::Look);
        }
    }
    assert!(ended > 1_000 && looked > 1_000, "{ended} ended, {looked} looked for");
}

/// The rules that hold for any contract, over the whole grid.
#[test]
fn no_contract_sends_where_no_contract_may() {
    let policy = Policy::default();
    for assumptions in assumptions() {
        for contract in builtin() {
            let recovery = recovery(&contract, &assumptions);
            for (facts, now) in grid() {
                let step = next_step(&facts, &recovery, &policy, now);
                let sends = matches!(step, Next::Send(_));
                let about = format!("{} {facts:?} at {now:?}: {step:?}", contract.id);
                assert!(!sends || !(facts.state.is_terminal() || facts.state.is_exception()), "{about}");
                assert!(!sends || facts.state != State::RefMissing, "{about}");
                assert!(!sends || !matches!(facts.state, State::Sent | State::SentInDoubt), "{about}");
                let first = matches!(facts.state, State::Received | State::Ready);
                // A person's word goes beyond budget and pause, once, and no further than the contract.
                let first = first || facts.state.is_authorised();
                let stands = facts.authorisation.as_ref().is_some_and(|given| now < given.expires);
                assert!(!sends || stands || !facts.state.is_authorised(), "nobody permits it: {about}");
                let again = facts.state == State::AuthorisedResend;
                let licensed = recovery.may_resend(&workflow::licence::doubt(&facts, now)).is_some();
                assert!(!sends || !again || licensed, "the contract does not permit it: {about}");
                assert!(!sends || first || facts.sends < policy.max_sends, "beyond the budget: {about}");
                assert!(!sends || first || now >= facts.not_before, "too early: {about}");
                let untold = facts.state == State::InDoubt && contract.id == "desk_nothing";
                assert!(!untold || !is_bold(&step), "{about}");
            }
        }
    }
}

/// Nothing that can still move is left without a next step.
#[test]
fn whatever_has_not_ended_has_a_next_step() {
    let policy = Policy::default();
    for contract in builtin() {
        let recovery = recovery(&contract, &Assumptions::default());
        for (facts, now) in grid() {
            let open = !facts.state.is_terminal() && !facts.state.is_exception();
            let in_hand = matches!(facts.state, State::Sent | State::SentInDoubt);
            let step = next_step(&facts, &recovery, &policy, now);
            assert_eq!(step == Next::Nothing, !open || in_hand, "{} {facts:?} at {now:?}", contract.id);
            if let Next::Wait(due) = step {
                assert!(due > now, "{}: waits for what has passed: {facts:?} at {now:?}", contract.id);
            }
        }
    }
}
