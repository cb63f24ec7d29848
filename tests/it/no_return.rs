//! The moment of no return of a real failure: it is the fault after which the second send cannot be avoided,
//! or that send itself.

use sim::fault::{Call, Place};
use sim::likelihood::{Likelihood, RUNS, measure};
use sim::pipeline::Pipeline;
use sim::plan::Plan;
use sim::replay::{Answer, Question, replay};
use sim::run::{Options, Reroll, Run};
use sim::scenario::Scenario;
use sim::seed::Seed;
use sim::watch::Watch;
use std::collections::BTreeSet;

const MUTANT: &str = "fresh-key-per-retry";

/// The first failure of the first story that a fault of the storm brings about.
fn failure(scenario: &dyn Scenario) -> Answer {
    let pipeline = Pipeline::real().expect("this build can simulate");
    let contract = &scenario.contracts()[0];
    for seed in 0..500 {
        let plan = sim::draft::draft(scenario, contract, Seed(seed), Some(MUTANT), None).expect("a plan");
        if plan.tape.faults().is_empty() {
            continue;
        }
        let question = Question { mutant: Some(MUTANT.into()), ..Question::about(plan.case) };
        let answer = replay(pipeline, scenario, contract, &question, &Watch::default()).expect("an answer");
        if answer.violation().is_some_and(|violation| violation.invariant.id == "V7") {
            return answer;
        }
    }
    panic!("{MUTANT} survives 500 seeds of {}", scenario.name())
}

fn measured(scenario: &dyn Scenario, answer: &Answer) -> Likelihood {
    let pipeline = Pipeline::real().expect("this build can simulate");
    let contract = &scenario.contracts()[0];
    let measured = measure(pipeline, scenario, contract, answer, RUNS, &Watch::default());
    measured.expect("no harness error").expect("it fails")
}

#[test]
fn what_leads_to_the_second_send_decides() {
    let catalogue = scenarios::catalogue();
    let scenario = &*catalogue.scenarios[0];
    let answer = failure(scenario);
    let likelihood = measured(scenario, &answer);
    let failed: Vec<u32> = likelihood.decisions.iter().map(|decision| decision.failed).collect();
    assert!(failed[0] <= RUNS / 2, "most runs hold: {failed:?}");
    assert_eq!(failed.last(), Some(&RUNS), "at the end it has failed: {failed:?}");
    let deciding = likelihood.deciding().expect("it rises");
    let is_second_send = deciding.words.contains("2nd create");
    assert!(deciding.fault.is_some() || is_second_send, "{deciding:?} of {failed:?}");
    assert!(deciding.failed >= RUNS * 2 / 3, "{deciding:?} of {failed:?}");
    assert_eq!(likelihood, measured(scenario, &answer), "the same question, the same answer");
}

/// What is kept is kept to the event; what follows is another run.
#[test]
fn a_run_is_the_same_up_to_the_boundary_and_another_one_after_it() {
    let catalogue = scenarios::catalogue();
    let scenario = &*catalogue.scenarios[0];
    let plan = failure(scenario).ran.run.plan;
    let base = run(scenario, &plan, None);
    assert!(base.visits.len() > 10, "{} boundaries", base.visits.len());
    for (index, visit) in base.visits.iter().enumerate() {
        let after_visit = index as u32 + 1;
        let histories: BTreeSet<u64> = (0..4)
            .map(|seed| {
                let other = run(scenario, &plan, Some(Reroll { after_visit, seed }));
                let kept = visit.step.0 as usize;
                assert_eq!(
                    other.history.events()[..kept],
                    base.history.events()[..kept],
                    "{:?}",
                    visit.place
                );
                assert_eq!(other.visits[..=index], base.visits[..=index]);
                other.history.hash()
            })
            .collect();
        let is_early =
            matches!(&visit.place, Place::Phase { exchange, .. } if exchange.call == Call::Deliver);
        assert!(!is_early || histories.len() > 1, "after {:?} nothing is drawn", visit.place);
    }
}

fn run(scenario: &dyn Scenario, plan: &Plan, reroll: Option<Reroll>) -> Run {
    let options = Options { places: true, reroll, ..Options::default() };
    sim::world::run_plan(scenario, plan, &options)
}
