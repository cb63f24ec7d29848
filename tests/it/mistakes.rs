//! Each known mistake is found by the invariant that names it, told so that a reader can name it, and told
//! again in a process of its own to the byte.

use destinations::Contract;
use sim::pipeline::Pipeline;
use sim::replay::{Answer, Question, replay};
use sim::report::json;
use sim::scenario::{Mutant, Scenario};
use sim::seed::Seed;
use sim::story::{STEPS_MAX, Tale, WIDTH};
use sim::verdict::Verdict;
use sim::watch::Watch;
use std::process::Command;
use std::sync::Arc;

/// Set in the process that this test starts.
const ALONE: &str = "INDOUBT_TEST_MISTAKES";
/// Begins each line that such a process says.
const MARK: &str = "alone: ";
/// Seeds in which each mistake must show.
const SEEDS: u64 = 300;

/// One case of every mistake: the first seed over all stories and contracts that its invariant catches,
/// reduced.
fn told(mutant: &Mutant) -> (Answer, Arc<Contract>) {
    let catalogue = scenarios::catalogue();
    let pipeline = Pipeline::real().expect("this build can simulate");
    for seed in 0..SEEDS {
        for scenario in &catalogue.scenarios {
            let contracts = scenario.contracts();
            let contract = &contracts[seed as usize % contracts.len()];
            if is_caught(&**scenario, contract, seed, mutant) {
                let plan = sim::draft::draft(&**scenario, contract, Seed(seed), None, None).expect("a plan");
                let question = Question { mutant: Some(mutant.name.into()), ..Question::about(plan.case) };
                let answer = replay(pipeline, &**scenario, contract, &question, &Watch::default());
                return (answer.expect("an answer"), contract.clone());
            }
        }
    }
    panic!("{} survives {SEEDS} seeds of every story", mutant.name)
}

fn is_caught(scenario: &dyn Scenario, contract: &Contract, seed: u64, mutant: &Mutant) -> bool {
    let plan = sim::draft::draft(scenario, contract, Seed(seed), Some(mutant.name), None).expect("a plan");
    let run = sim::world::run_plan(scenario, &plan, &sim::run::Options::default());
    let Verdict::Violated(all) = sim::invariants::judge(&run, scenario).verdict else { return false };
    all.iter().any(|violation| violation.invariant.id == mutant.killed_by)
}

fn mutants() -> Vec<Mutant> {
    scenarios::catalogue().scenarios[0].mutants()
}

/// Everything that must be the same in another process.
fn evidence(answer: &Answer) -> Vec<String> {
    let mut lines = json::history(answer, None);
    let fingerprint = answer.fingerprint().expect("it is violated");
    lines.push(format!("{} {fingerprint} {:016x}", answer.question, answer.ran.run.history.hash()));
    lines
}

#[test]
fn every_mistake_is_told_by_the_invariant_that_names_it() {
    let mutants = mutants();
    assert_eq!(mutants.len(), 6);
    for mutant in mutants {
        let (answer, contract) = told(&mutant);
        let violation = answer.violation().expect("it is violated");
        assert_eq!(violation.invariant.id, mutant.killed_by, "{}", mutant.name);
        assert_eq!(answer.difference, None, "{} was run twice", mutant.name);
        let lines = Tale::of(&answer, Some(&contract), None).lines();
        // A step begins with its time.
        let steps = lines.iter().filter(|line| {
            line.trim_start().split_once(" s  ").is_some_and(|(time, _)| time.parse::<f64>().is_ok())
        });
        assert!((2..=STEPS_MAX).contains(&steps.count()), "{lines:#?}");
        let replays: Vec<&String> = lines.iter().filter(|line| line.contains("cargo sim replay")).collect();
        assert_eq!(replays.len(), 1, "{lines:#?}");
        let wide =
            lines.iter().find(|line| line.chars().count() > WIDTH && !line.contains("cargo sim replay"));
        assert_eq!(wide, None);
        insta::assert_snapshot!(mutant.name, lines.join("\n"));
    }
}

/// In a process of its own, says everything that must repeat; in an ordinary run of the tests, nothing.
#[test]
fn alone() {
    #[expect(clippy::disallowed_methods, reason = "how this program talks to itself in another process")]
    if std::env::var(ALONE).is_ok() {
        println!();
        for line in mutants().iter().flat_map(|mutant| evidence(&told(mutant).0)) {
            println!("{MARK}{line}");
        }
    }
}

#[test]
fn every_mistake_is_told_again_in_a_fresh_process() {
    let program = std::env::current_exe().expect("the system names this program");
    let said = Command::new(program)
        .args(["--exact", "mistakes::alone", "--nocapture", "--test-threads", "1"])
        .env(ALONE, "1")
        .output()
        .expect("the system starts this program again");
    let text = String::from_utf8(said.stdout).expect("text");
    assert!(said.status.success(), "{text}\n{}", String::from_utf8_lossy(&said.stderr));
    let there: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix(MARK)).collect();
    let here: Vec<String> = mutants().iter().flat_map(|mutant| evidence(&told(mutant).0)).collect();
    assert!(here.len() > 60, "{} lines", here.len());
    assert_eq!(there, here);
}
