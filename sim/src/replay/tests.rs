use super::*;
use crate::fixture::{MUTANT, Toy, pipeline};
use crate::plan::Plan;
use crate::run::Run;

fn ask(seed: u64, change: impl FnOnce(&mut Question)) -> Result<Answer, ReplayError> {
    ask_of(pipeline(), seed, change)
}

fn ask_of(pipeline: Pipeline, seed: u64, change: impl FnOnce(&mut Question)) -> Result<Answer, ReplayError> {
    let scenario = Toy("one-ticket");
    let contract = scenario.contracts().remove(0);
    let mut question = Question::about(format!("one-ticket/zendesk_ticket@{seed}").parse().unwrap());
    change(&mut question);
    replay(pipeline, &scenario, &contract, &question, &Watch::default())
}

fn with_mutant(question: &mut Question) {
    question.mutant = Some(MUTANT.into());
}

#[test]
fn a_tape_is_reduced_to_what_the_failure_needs() {
    let answer = ask(0, with_mutant).unwrap();
    assert_eq!((answer.before.faults, answer.faults.len()), (3, 2));
    assert!(answer.faults.iter().all(|fault| fault.need == Need::Holds && fault.fired));
    assert_eq!(answer.violation().map(|violation| violation.invariant.id), Some("V7"));
    assert_eq!(answer.also().iter().map(|id| id.id).collect::<Vec<_>>(), ["V1"]);
    assert_eq!(answer.difference, None);
}

#[test]
fn the_same_question_has_the_same_answer() {
    let (a, b) = (ask(4, with_mutant).unwrap(), ask(4, with_mutant).unwrap());
    assert_eq!(a.ran.run.history.events(), b.ran.run.history.events());
    assert_eq!(a.fingerprint(), b.fingerprint());
    assert_eq!(a.faults, b.faults);
}

#[test]
fn what_if_a_fault_had_not_struck() {
    let all = ask(0, |q| {
        with_mutant(q);
        q.all_faults = true;
    });
    assert_eq!(all.unwrap().faults.len(), 3);
    let less = ask(0, |q| {
        with_mutant(q);
        q.without = Some(1);
    });
    assert_eq!(less.unwrap().told, None);
    let error = ask(0, |q| {
        with_mutant(q);
        q.without = Some(3);
    });
    let message = "there is no fault 3 to leave out: one-ticket/zendesk_ticket@0 has 2";
    assert_eq!(error.unwrap_err().to_string(), message);
}

#[test]
fn a_run_that_never_repeats_is_found() {
    fn drifting(scenario: &dyn Scenario, plan: &Plan, options: &Options) -> Run {
        use std::sync::atomic::{AtomicU64, Ordering};
        static CALLS: AtomicU64 = AtomicU64::new(0);
        let mut run = (pipeline().run)(scenario, plan, options);
        let end = *run.history.events().last().map(|event| &event.t_ns).unwrap();
        let kind = crate::history::Kind::End { records: CALLS.fetch_add(1, Ordering::Relaxed) as u32 };
        run.history.add(end, "source", kind, None);
        run
    }
    let answer = ask_of(Pipeline { run: drifting, ..pipeline() }, 1, |_| {}).unwrap();
    let difference = answer.difference.expect("each run has another end");
    assert!(difference.a.contains("end, ") && difference.a != difference.b, "{difference:?}");
}

#[test]
fn a_panic_of_the_harness_is_an_error() {
    let broken = Pipeline { run: |_, _, _| panic!("the world fell over"), ..pipeline() };
    let error = ask_of(broken, 1, |_| {}).unwrap_err().to_string();
    assert!(error.contains("the world fell over") && error.contains("replay/tests.rs"), "{error}");
}

#[test]
fn a_question_is_a_command() {
    let mut question = Question::about("a/b@7".parse().unwrap());
    assert_eq!(question.to_string(), "cargo sim replay a/b@7");
    question.mutant = Some("m".into());
    question.kinds = Some(vec![]);
    question.steps_max = 5;
    question.without = Some(2);
    let command = "cargo sim replay a/b@7 --mutant m --faults none --steps-max 5 --without-fault 2";
    assert_eq!(question.to_string(), command);
    question.kinds = Some(vec!["kill".into(), "hang".into()]);
    question.all_faults = true;
    assert!(
        question.to_string().contains("--faults kill,hang") && question.to_string().contains("--all-faults")
    );
}
