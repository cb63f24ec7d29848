use super::*;
use crate::explore::{self, Exploration, Flow};
use crate::fault::{ExchangeName, Fault, Phase, What, When};
use crate::fixture;
use crate::fixture::{OPERATION, catalogue, create, pipeline, request};
use crate::history::{History, Kind, Nanos, Step};
use crate::pipeline::Pipeline;
use crate::run::Visit;
use crate::verdict::Verdict;
use destinations::Class;
use std::sync::atomic::AtomicBool;

/// The fixture's runs come by these places, one of them only behind a fault.
fn visits(run: &Run) -> Vec<Visit> {
    let mut places = vec![
        Place::Exchange(create(1)),
        Place::Phase { exchange: create(1), phase: Phase::Applied },
        Place::Sync { boot: 1, nth: 1, when: When::After },
    ];
    if run.fired.iter().any(Option::is_some) {
        places.push(Place::Sync { boot: 1, nth: 2, when: When::After });
    }
    places.into_iter().map(|place| fixture::visit(place, Step(1))).collect()
}

fn traced() -> Pipeline {
    Pipeline {
        run: |scenario, plan, options| {
            let mut run = (pipeline().run)(scenario, plan, options);
            run.visits = visits(&run);
            run
        },
        ..pipeline()
    }
}

fn search(pipeline: Pipeline, jobs: usize, mutant: Option<&str>, budget: u64) -> (Guided, Exploration) {
    let (catalogue, never) = (Arc::new(catalogue()), AtomicBool::new(false));
    let mut tell = |_: crate::explore::Notice<'_>| {};
    let mut search = Search::new(&catalogue, pipeline, request("0..40", jobs, mutant), &never, &mut tell);
    let (guided, _) = guided(&mut search, budget);
    (guided, search.finish())
}

/// Its stages are shorter than the time between two looks at the clock.
#[test]
fn it_ends_when_it_is_broken_off_and_when_the_time_is_over() {
    let catalogue = Arc::new(catalogue());
    let mut silent = |_: crate::explore::Notice<'_>| {};
    for interrupted in [true, false] {
        let (is_over, time) = (AtomicBool::new(interrupted), Some(std::time::Duration::ZERO));
        let request = explore::Request { time: time.filter(|_| !interrupted), ..request("0..40", 2, None) };
        let mut search = Search::new(&catalogue, traced(), request, &is_over, &mut silent);
        let (_, flow) = guided(&mut search, 100_000);
        let done = search.finish();
        assert_eq!((flow, done.interrupted, done.out_of_time), (Flow::Over, interrupted, !interrupted));
        // How soon it is noticed depends on how busy the machine is; the budget is ten times as much.
        assert!(done.runs < 10_000, "{} runs", done.runs);
    }
}

#[test]
fn any_number_of_threads_finds_the_same() {
    let (one, sums) = search(traced(), 1, None, 200);
    assert_eq!((one.runs, sums.runs), (200, 200));
    for jobs in [2, 5] {
        let (many, other) = search(traced(), jobs, None, 200);
        assert_eq!((&many, other.hash()), (&one, sums.hash()), "{jobs} jobs");
    }
}

/// The kill strikes only at a sync that exists only after a lost answer: one change leads to the next.
#[test]
fn what_is_behind_a_fault_is_reached() {
    let (found, _) = search(traced(), 2, None, 400);
    let killed = found.reached.iter().any(|tuple| {
        tuple.believed.starts_with("in doubt")
            && tuple.fault.as_ref().is_some_and(|(what, at)| *what == "kill" && at == "after sync")
    });
    assert!(killed, "{:#?}", found.reached);
    assert!(found.kept as u64 * 4 < found.runs, "{} of {} kept", found.kept, found.runs);
}

#[test]
fn a_mistake_is_found() {
    let (_, done) = search(traced(), 2, Some(crate::fixture::MUTANT), 400);
    assert_eq!(done.failures.len(), 1);
    let failure = &done.failures[0];
    assert_eq!((failure.invariant.id, failure.strategy, failure.by_seed), ("V7", "guided", false));
    assert_eq!(failure.example.tape.faults().len(), 2);
}

/// Where no plan makes a difference, only the first run of each class of contracts is kept.
#[test]
fn only_what_is_new_is_kept() {
    let blank = Pipeline {
        run: |scenario, plan, options| {
            let mut plan = plan.clone();
            let tape = std::mem::take(&mut plan.tape);
            let mut run = (pipeline().run)(scenario, &plan, options);
            run.visits = visits(&run);
            run.fired = vec![None; tape.faults().len()];
            run.plan.tape = tape;
            run
        },
        ..pipeline()
    };
    let (found, done) = search(blank, 2, None, 200);
    let classes: BTreeSet<Class> = found.reached.iter().map(|tuple| tuple.class).collect();
    assert_eq!((found.kept, done.held), (classes.len(), 200));
}

/// What is broken is reported and not built upon.
#[test]
fn what_is_violated_is_not_kept() {
    let broken = Pipeline {
        judge: |run, scenario| {
            let mut judgement = (pipeline().judge)(run, scenario);
            if let Verdict::Held = judgement.verdict {
                judgement.verdict = Verdict::Undecided("not this time".into());
            }
            judgement
        },
        ..traced()
    };
    assert_eq!(search(broken, 2, None, 130).0.kept, 0);
}

/// A history by hand: each part of a tuple is read from the events it stands for.
#[test]
fn a_tuple_is_both_sides_and_the_fault() {
    let plan = (pipeline().draft)(&crate::fixture::Toy("one-ticket"), &contract(), Seed(0), None, None);
    let mut plan = plan.unwrap();
    let late = Fault { at: Place::Exchange(create(1)), what: What::ApplyLate(60_000) };
    let lost = ExchangeName { call: crate::fault::Call::Deliver, about: "R17/d-1".into(), nth: 1 };
    let pause = Fault { at: Place::Phase { exchange: lost, phase: Phase::Answered }, what: What::Pause(1) };
    plan.tape = FaultTape::new(vec![late, pause]).unwrap();
    let mut run = (pipeline().run)(&crate::fixture::Toy("one-ticket"), &plan, &Default::default());
    let mut history = History::default();
    let mut add = |kind| history.add(Nanos(0), "workflow", kind, None);
    let journal = |words: &str| Kind::Journal { about: OPERATION.into(), words: words.into() };
    let effect = |record: &str| Kind::Effect {
        about: OPERATION.into(),
        record: record.into(),
        key: Some("K1".into()),
        late: true,
    };
    let fault = |n, what| Kind::Fault { n, what, words: String::new() };
    let n = |kind: &str| {
        plan.tape.faults().iter().position(|fault| fault.what.kind() == kind).unwrap() as u32 + 1
    };
    add(journal("sent, 1 send"));
    add(fault(n("apply-late"), "apply-late"));
    add(journal("in_doubt, 1 send"));
    add(effect("T93"));
    add(fault(n("pause"), "pause"));
    add(journal("confirmed, 1 send, record T93"));
    run.history = history;
    let read = tuples(&run, Class::Replay);
    let told: BTreeSet<String> = read
        .iter()
        .map(|tuple| {
            let fault = tuple.fault.as_ref().map(|(what, at)| format!("{what} at {at}"));
            let Tuple { believed, records, keys, late, .. } = tuple;
            format!("{believed}: {records}/{keys}/{late} {}", fault.unwrap_or_default())
        })
        .collect();
    let expected = [
        "confirmed, 1 send: 1/1/0 pause at delivery answered",
        "in_doubt, 1 send: 0/0/1 apply-late at create",
        "in_doubt, 1 send: 1/1/0 pause at delivery answered",
        "sent, 1 send: 0/0/0 ",
        "sent, 1 send: 0/0/0 apply-late at create",
    ];
    assert_eq!(told.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}

fn contract() -> Contract {
    destinations::named("zendesk_ticket").unwrap()
}
