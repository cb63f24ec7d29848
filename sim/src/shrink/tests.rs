use super::*;
use crate::fault::{Keep, Loss, Place, When};
use crate::fixture::{CROWD, Toy, create, pipeline};
use crate::history::{History, Kind, Nanos, Step};
use crate::run::{End, Run};
use crate::verdict::{InvariantId, Violation};
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

const BAD: InvariantId = InvariantId { id: "V1", name: "at-most-one", says: "one is enough" };

fn sync(boot: u32, nth: u32, when: When) -> Place {
    Place::Sync { boot, nth, when }
}

/// A run in which everything strikes but what waits for a ninth create; its only event is its end.
fn bare(_: &dyn Scenario, plan: &Plan, _: &Options) -> Run {
    let ninth = |at: &Place| matches!(at, Place::Exchange(exchange) if exchange.nth == 9);
    let fired = |fault: &Fault| (!ninth(&fault.at)).then_some(Step(1));
    let mut history = History::default();
    history.add(Nanos(0), "source", Kind::End { records: 0 }, None);
    Run {
        plan: plan.clone(),
        fired: plan.tape.faults().iter().map(fired).collect(),
        history,
        ledger: destinations::Ledger::default(),
        made_for: vec![],
        beliefs: vec![],
        visits: vec![],
        further: vec![],
        end: End::Finished { settled: true },
        elapsed: Nanos(0),
        messages: 0,
    }
}

fn verdict(fingerprint: Option<&str>) -> Judgement {
    let violation =
        |_| Violation { invariant: BAD, about: "R17".into(), blame: vec![], message: "two".into() };
    let verdict = match fingerprint {
        Some(_) => Verdict::Violated(fingerprint.into_iter().map(violation).collect()),
        None => Verdict::Held,
    };
    let fingerprints = fingerprint.into_iter().map(|name| Fingerprint(name.into())).collect();
    Judgement { verdict, fingerprints, evaluated: vec![], goals: vec![] }
}

/// A bug that needs an answer to be lost, a death after the second sync, a pause of a second, and R20.
fn needs_three(run: &Run, _: &dyn Scenario) -> Judgement {
    let tape = &run.plan.tape;
    let lost = tape.at(&Place::Exchange(create(1))).is_some();
    let died = tape.at(&sync(1, 2, When::After)).is_some();
    let slow = matches!(tape.at(&sync(2, 1, When::Before)), Some((_, What::Pause(ms))) if *ms >= 1_000);
    let asked = run.plan.workload.deliveries.iter().any(|delivery| delivery.name == "R20/d-1");
    verdict((lost && died && slow && asked).then_some("three"))
}

fn tape() -> FaultTape {
    let fault = |at, what| Fault { at, what };
    let cut = What::PowerCut { down: 5_000, keep: Keep::Torn };
    FaultTape::new(vec![
        fault(Place::Exchange(create(1)), What::LoseResponse(Loss::Truncated)),
        fault(Place::Exchange(create(2)), What::ErrorAfter(500)),
        fault(Place::Exchange(create(9)), What::AnswerSlowly(5_000)),
        fault(sync(1, 1, When::Before), What::Kill(30_000)),
        fault(sync(1, 2, When::After), cut.clone()),
        fault(sync(1, 4, When::After), cut),
        fault(sync(2, 1, When::Before), What::Pause(4_000)),
        fault(Place::Delivery("R17/d-1".into()), What::AtOnce(8)),
    ])
    .unwrap()
}

fn recipe(tape: FaultTape) -> Recipe {
    let case = format!("{CROWD}/zendesk_ticket@7").parse().unwrap();
    Recipe { case, mutant: None, tape, deliveries: None, schedule: None }
}

fn shrunk(pipeline: Pipeline, recipe: &Recipe, budget: Budget<'_>) -> Result<Shrunk, TrialError> {
    let scenario = Toy(CROWD);
    let contract = scenario.contracts().remove(0);
    let watch = Watch::default();
    let options = Options::default();
    let trial =
        Trial { pipeline, scenario: &scenario, contract: &contract, killed_by: None, options, watch: &watch };
    shrink(&trial, recipe, budget)
}

fn three() -> Pipeline {
    Pipeline { run: bare, judge: needs_three, ..pipeline() }
}

#[test]
fn a_bug_that_needs_three_faults_keeps_three_and_nothing_else() {
    let done = shrunk(three(), &recipe(tape()), Budget::RUNS).unwrap();
    let what: Vec<&What> = done.recipe.tape.faults().iter().map(|fault| &fault.what).collect();
    let (lost, killed, paused) = (What::LoseResponse(Loss::Silence), What::Kill(100), What::Pause(1_000));
    assert_eq!(what, [&lost, &killed, &paused]);
    assert_eq!(done.recipe.deliveries, Some(vec!["R20/d-1".to_owned()]));
    assert_eq!(done.recipe.schedule, Some(0));
    assert_eq!(done.needs, [Need::Holds, Need::Holds, Need::Holds]);
    assert_eq!(done.before, Size { faults: 8, deliveries: 12, operations: 12 });
    assert_eq!(done.after, Size { faults: 3, deliveries: 1, operations: 1 });
    assert_eq!((done.ended, done.fingerprint), (Ended::Smallest, Some(Fingerprint("three".into()))));
    assert!(done.runs < 100, "{} runs", done.runs);
}

#[test]
fn shrinking_again_changes_nothing() {
    let once = shrunk(three(), &recipe(tape()), Budget::RUNS).unwrap();
    let twice = shrunk(three(), &once.recipe, Budget::RUNS).unwrap();
    assert_eq!((twice.recipe, twice.needs), (once.recipe, once.needs));
    assert_eq!(twice.before, twice.after);
}

#[test]
fn another_failure_is_not_the_same() {
    fn by_count(run: &Run, _: &dyn Scenario) -> Judgement {
        let count = run.plan.tape.faults().len();
        verdict(match count {
            0 => None,
            1..5 => Some("few"),
            _ => Some("many"),
        })
    }
    let pipeline = Pipeline { judge: by_count, ..three() };
    let done = shrunk(pipeline, &recipe(tape()), Budget::RUNS).unwrap();
    assert_eq!(done.after.faults, 5);
    let breaks = Need::Breaks(BAD.name.into());
    assert!(done.needs.iter().all(|need| *need == breaks), "{:?}", done.needs);
}

#[test]
fn what_no_workflow_must_survive_is_never_run() {
    fn survivable(scenario: &dyn Scenario, plan: &Plan, options: &Options) -> Run {
        let contract = scenario.contracts().remove(0);
        let assumptions = scenario.assumptions(&contract);
        let terms = Terms { contract: &contract, assumptions: &assumptions };
        assert_eq!(terms.unsurvivable(&plan.tape), None);
        bare(scenario, plan, options)
    }
    fn blind(run: &Run, _: &dyn Scenario) -> Judgement {
        verdict((!run.plan.tape.faults().is_empty()).then_some("blind"))
    }
    let find = crate::fault::ExchangeName { call: crate::fault::Call::Find, ..create(1) };
    let fault = Fault { at: Place::Exchange(find), what: What::Blind(500_000) };
    let pipeline = Pipeline { run: survivable, judge: blind, ..pipeline() };
    let done = shrunk(pipeline, &recipe(FaultTape::new(vec![fault]).unwrap()), Budget::RUNS).unwrap();
    assert_eq!(done.recipe.tape.faults()[0].what, What::Blind(60_000), "a shorter one cannot be noticed");
}

#[test]
fn a_budget_ends_it_with_what_is_smallest_so_far() {
    for runs in [2, 3, 10, 20] {
        let done = shrunk(three(), &recipe(tape()), Budget { runs, over: &|| false }).unwrap();
        assert_eq!((done.ended, done.runs), (Ended::Runs, runs));
        let again = shrunk(three(), &done.recipe, Budget::RUNS).unwrap();
        assert_eq!(again.fingerprint, done.fingerprint, "it still fails");
    }
    let looks = Cell::new(0);
    let over = || looks.replace(looks.get() + 1) >= 5;
    let cut = shrunk(three(), &recipe(tape()), Budget { runs: RUNS_MAX, over: &over }).unwrap();
    assert_eq!((cut.ended, cut.runs), (Ended::Cut, 7));
    assert!(cut.needs.contains(&Need::Untried));
}

#[test]
fn what_never_repeats_is_not_shrunk() {
    fn drifting(scenario: &dyn Scenario, plan: &Plan, options: &Options) -> Run {
        static CALLS: AtomicU32 = AtomicU32::new(0);
        let mut run = bare(scenario, plan, options);
        let records = CALLS.fetch_add(1, Ordering::Relaxed);
        run.history.add(Nanos(0), "source", Kind::End { records }, None);
        run
    }
    let done = shrunk(Pipeline { run: drifting, ..three() }, &recipe(tape()), Budget::RUNS).unwrap();
    assert_eq!((done.ended, done.runs, done.recipe), (Ended::Nothing, 2, recipe(tape())));
    assert_eq!(done.difference.map(|difference| difference.step), Some(2));
}

#[test]
fn what_holds_is_not_shrunk() {
    let calm = recipe(FaultTape::default());
    let done = shrunk(three(), &calm, Budget::RUNS).unwrap();
    assert_eq!((done.ended, done.fingerprint, done.recipe), (Ended::Nothing, None, calm));
}
