//! Each known mistake is found by the invariant that names it, told so that a reader can name it, and told
//! again in a process of its own to the byte.

use destinations::Contract;
use sim::pipeline::Pipeline;
use sim::plan::Case;
use sim::replay::{Answer, Question, replay};
use sim::report::json;
use sim::scenario::{Mutant, Scenario};
use sim::seed::Seed;
use sim::story::{STEPS_MAX, Tale, WIDTH};
use sim::verdict::Verdict;
use sim::watch::Watch;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::Arc;

/// Set in the process that this test starts.
const ALONE: &str = "INDOUBT_TEST_MISTAKES";
/// Begins each line that such a process says.
const MARK: &str = "alone: ";
/// So many mistakes, the first of the list, are told in full.
const TOLD: usize = 6;
/// Seeds in which each of them must show.
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
    let mut mutants = scenarios::catalogue().scenarios[0].mutants();
    mutants.truncate(TOLD);
    mutants
}

/// Everything that must be the same in another process.
fn evidence(answer: &Answer) -> Vec<String> {
    let mut lines = json::history(answer, None);
    let fingerprint = answer.fingerprint().expect("it is violated");
    lines.push(format!("{} {fingerprint} {:016x}", answer.question, answer.ran.run.history.hash()));
    lines
}

#[test]
fn the_first_mistakes_are_told_by_the_invariants_that_name_them() {
    let mutants = mutants();
    assert_eq!(mutants.len(), TOLD);
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
fn they_are_told_again_in_a_fresh_process() {
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

/// Seeds in which a case is looked for when the one that is named does not catch its mistake any more.
const SEARCHED: u64 = 6_000;

/// Where each mistake is caught.
const CAUGHT: &[(&str, &str)] = &[
    ("fresh-key-per-retry", "time-out-before-effect/desk_strong_lookup@94"),
    ("timeout-is-rejection", "no-guarantee/desk_nothing@6"),
    ("send-before-intent", "crash-between-steps/desk_nothing@16"),
    ("skip-fsync", "crash-between-steps/desk_nothing@16"),
    ("lookup-then-create", "repeated-delivery/zendesk_ticket@889"),
    ("ignore-safe-until", "key-lapsed/zendesk_ticket@231"),
    ("delivery-id-in-key", "repeated-delivery/jira_cloud_issue@2"),
    ("same-key-for-all", "one-ticket/desk_strong_lookup@964"),
    ("key-per-process", "crash-between-steps/zendesk_ticket@312"),
    ("body-rendered-anew", "time-out-before-effect/desk_strong_lookup@94"),
    ("changed-payload-sent", "changed-request/zendesk_ticket@787"),
    ("acknowledged-before-durable", "sync-kill-power-cut/jira_cloud_issue@365"),
    ("repeat-not-recorded", "one-ticket/desk_unique_ref@833"),
    ("refusal-not-recorded", "permanent-validation-failure/desk_nothing@3496"),
    ("repeat-starts-over", "repeated-delivery/jira_cloud_issue@2"),
    ("memory-only-dedupe", "repeated-delivery/jira_cloud_issue@159"),
    ("hang-up-cuts-short", "source-gives-up/desk_strong_lookup@62"),
    ("error-is-rejection", "repeated-delivery/desk_nothing@274"),
    ("conflict-is-failure", "time-out-after-effect/desk_unique_ref@314"),
    ("conflict-retried-fresh", "time-out-after-effect/desk_unique_ref@314"),
    ("success-without-id-resends", "success-without-id/desk_strong_lookup@10"),
    ("success-without-id-completes", "success-without-id/desk_strong_lookup@10"),
    ("refusal-retried", "permanent-validation-failure/desk_strong_lookup@21"),
    ("panic-on-unreadable", "success-without-id/desk_strong_lookup@10"),
    ("client-retries", "time-out-after-effect/desk_nothing@11"),
    ("no-send-timeout", "no-guarantee/desk_nothing@6"),
    ("resend-in-flight", "time-out-after-effect/zendesk_ticket@101"),
    ("budget-not-kept", "retries-exhausted/desk_strong_lookup@37"),
    ("budget-forgotten-at-start", "crash-between-steps/desk_nothing@16"),
    ("counted-at-end", "crash-between-steps/desk_nothing@16"),
    ("settle-without-horizon", "time-out-before-effect/desk_strong_lookup@94"),
    ("no-positive-control", "time-out-before-effect/desk_strong_lookup@94"),
    ("looks-for-ever", "crash-between-steps/jira_cloud_issue@22"),
    ("doubt-expires", "no-guarantee/desk_nothing@6"),
    ("crash-returns-to-ready", "crash-between-steps/desk_nothing@16"),
    ("crash-means-done", "crash-between-steps/desk_nothing@16"),
    ("crash-means-failed", "crash-between-steps/desk_nothing@16"),
    ("forgets-open-at-start", "crash-between-steps/desk_nothing@16"),
    ("ended-taken-up-again", "crash-between-steps/desk_unique_ref@90"),
    ("nothing-after-opening", "sync-kill-power-cut/desk_unique_ref@73"),
    ("no-write-after-checkpoint", "crash-between-steps/jira_cloud_issue@1696"),
    ("unknown-commit-stands", "late-commit/desk_strong_lookup@253"),
    ("unknown-commit-retried", "late-commit/desk_strong_lookup@253"),
    ("evidence-dropped", "no-guarantee/desk_nothing@264"),
    ("given-up-when-full", "retries-exhausted/desk_strong_lookup@790"),
    ("exception-without-owner", "no-guarantee/desk_nothing@6"),
    ("exception-without-alert", "no-guarantee/desk_nothing@6"),
];

/// Mistakes that no fault of the tape reaches yet, and what has to happen for each.
const OUT_OF_REACH: &[(&str, &str)] = &[
    ("accepted-is-created", "a create that is answered 202 with an id and never executed"),
    ("any-match-is-ours", "a look-up that finds another operation's record"),
    ("clock-not-monotone", "a wall clock that steps back while a key lapses"),
    ("confirm-unchecked", "a person who names another operation's record"),
    ("decision-without-version", "two people who decide on one case at once"),
    ("first-page-only", "a look-up whose match, or whose end, is on a later page"),
    ("lookup-error-is-miss", "a look-up that fails when its miss would decide"),
    ("panic-on-poison", "a delivery whose request is no object"),
    ("unfetched-is-proof", "a person who names a record that is not there"),
];

/// The run of a case, with this mistake or without one: the invariants that it violates.
fn violated(case: &str, mutant: Option<&str>) -> Vec<&'static str> {
    let case: Case = case.parse().expect("a case");
    let catalogue = scenarios::catalogue();
    let scenario = catalogue.scenarios.iter().find(|scenario| scenario.name() == case.scenario);
    let scenario = scenario.expect("a story of the catalogue");
    let contract = scenario.contracts().into_iter().find(|contract| contract.id == case.contract);
    let contract = contract.expect("the story is told with this contract");
    let plan = sim::draft::draft(&**scenario, &contract, case.seed, mutant, None).expect("a plan");
    let run = sim::world::run_plan(&**scenario, &plan, &sim::run::Options::default());
    match sim::invariants::judge(&run, &**scenario).verdict {
        Verdict::Violated(all) => all.iter().map(|violation| violation.invariant.id).collect(),
        Verdict::Held => vec![],
        other => panic!("{case}: {other:?}"),
    }
}

/// The first case in which a mistake is caught now: draws change, and this one takes the place of one that
/// does not catch it any more.
fn found(mutant: &Mutant) -> Option<String> {
    let catalogue = scenarios::catalogue();
    (0..SEARCHED).find_map(|seed| {
        let mut draw = Seed(seed).stream("case");
        let scenario = draw.pick(&catalogue.scenarios);
        let contract = draw.pick(&scenario.contracts()).clone();
        is_caught(&**scenario, &contract, seed, mutant)
            .then(|| Case {
                scenario: scenario.name().into(),
                contract: contract.id.clone(),
                seed: Seed(seed),
            })
            .map(|case| case.to_string())
    })
}

/// Each has a case in which its invariant breaks, and which holds without it.
#[test]
fn every_mistake_has_a_case_that_catches_it() {
    let cases: BTreeMap<&str, &str> = CAUGHT.iter().copied().collect();
    let unreached: BTreeMap<&str, &str> = OUT_OF_REACH.iter().copied().collect();
    let mutants = scenarios::catalogue().scenarios[0].mutants();
    assert_eq!(cases.len() + unreached.len(), mutants.len());
    let mut survived = vec![];
    for mutant in &mutants {
        let Some(case) = cases.get(mutant.name) else {
            assert!(unreached.contains_key(mutant.name), "{} has no case", mutant.name);
            continue;
        };
        if !violated(case, Some(mutant.name)).contains(&mutant.killed_by) {
            survived.push(format!("(\"{}\", {:?}), not {case}", mutant.name, found(mutant)));
        }
    }
    assert_eq!(survived, Vec::<String>::new());
    for case in cases.values().collect::<BTreeSet<_>>() {
        assert_eq!(violated(case, None), Vec::<&str>::new(), "{case} without a mistake");
    }
}
