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
                let (name, contract_id) = (scenario.name().to_owned(), contract.id.clone());
                let case = Case { scenario: name, contract: contract_id, seed: Seed(seed) };
                let question = Question { mutant: Some(mutant.name.into()), ..Question::about(case) };
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
    ("fresh-key-per-retry", "key-store-down/zendesk_ticket@34"),
    ("timeout-is-rejection", "no-guarantee/desk_nothing@11"),
    ("send-before-intent", "key-lapsed/zendesk_ticket@18"),
    ("skip-fsync", "crash-between-steps/desk_nothing@96"),
    ("lookup-then-create", "repeated-delivery/desk_nothing@13"),
    ("ignore-safe-until", "key-lapsed/zendesk_ticket@18"),
    ("delivery-id-in-key", "concurrent-delivery/jira_cloud_issue@2"),
    ("same-key-for-all", "one-ticket/jira_cloud_issue@798"),
    ("key-per-process", "crash-between-steps/desk_strong_lookup@72"),
    ("body-rendered-anew", "key-store-down/zendesk_ticket@34"),
    ("changed-payload-sent", "changed-request/desk_strong_lookup@288"),
    ("acknowledged-before-durable", "sync-kill-power-cut/desk_strong_lookup@411"),
    ("repeat-not-recorded", "key-lapsed/zendesk_ticket@511"),
    ("repeat-starts-over", "repeated-delivery/desk_nothing@13"),
    ("memory-only-dedupe", "key-lapsed/zendesk_ticket@60"),
    ("hang-up-cuts-short", "source-gives-up/zendesk_ticket@52"),
    ("error-is-rejection", "first-delivery/desk_unique_ref@643"),
    ("conflict-is-failure", "time-out-after-effect/desk_unique_ref@39"),
    ("conflict-retried-fresh", "key-store-down/zendesk_ticket@34"),
    ("success-without-id-resends", "success-without-id/desk_strong_lookup@343"),
    ("success-without-id-completes", "success-without-id/desk_unique_ref@54"),
    ("refusal-retried", "permanent-validation-failure/jira_cloud_issue@43"),
    ("panic-on-unreadable", "success-without-id/desk_unique_ref@54"),
    ("client-retries", "no-guarantee/desk_nothing@11"),
    ("no-send-timeout", "concurrent-delivery/jira_cloud_issue@1"),
    ("resend-in-flight", "key-store-down/zendesk_ticket@34"),
    ("budget-not-kept", "retries-exhausted/desk_nothing@28"),
    ("budget-forgotten-at-start", "key-lapsed/zendesk_ticket@18"),
    ("counted-at-end", "key-lapsed/zendesk_ticket@18"),
    ("settle-without-horizon", "late-commit/desk_strong_lookup@62"),
    ("no-positive-control", "time-out-before-effect/desk_strong_lookup@63"),
    ("lookup-error-is-miss", "look-up-fails/desk_strong_lookup@9"),
    ("first-page-only", "second-page/desk_strong_lookup@386"),
    ("any-match-is-ours", "source-gives-up/desk_strong_lookup@774"),
    ("looks-for-ever", "crash-between-steps/jira_cloud_issue@536"),
    ("doubt-expires", "no-guarantee/desk_nothing@11"),
    ("crash-returns-to-ready", "key-lapsed/zendesk_ticket@18"),
    ("crash-means-done", "key-lapsed/zendesk_ticket@18"),
    ("crash-means-failed", "key-lapsed/zendesk_ticket@18"),
    ("forgets-open-at-start", "key-lapsed/zendesk_ticket@18"),
    ("ended-taken-up-again", "crash-between-steps/desk_strong_lookup@363"),
    ("nothing-after-opening", "sync-kill-power-cut/jira_cloud_issue@413"),
    ("no-write-after-checkpoint", "failed-commit/desk_nothing@4086"),
    ("unknown-commit-stands", "failed-commit/desk_nothing@110"),
    ("unknown-commit-retried", "failed-commit/desk_unique_ref@465"),
    ("evidence-dropped", "poison-delivery/desk_nothing@3594"),
    ("given-up-when-full", "success-without-id/desk_unique_ref@400"),
    ("exception-without-owner", "no-guarantee/desk_nothing@11"),
    ("exception-without-alert", "no-guarantee/desk_nothing@11"),
    ("confirm-unchecked", "wrong-reference/desk_nothing@15"),
    ("unfetched-is-proof", "wrong-reference/desk_nothing@15"),
    ("decision-untraced", "made-anew/jira_cloud_issue@0"),
    ("absence-too-early", "made-anew/desk_nothing@9"),
    ("authorisation-reusable", "made-anew/jira_cloud_issue@389"),
    ("authorisation-forgotten", "made-anew/jira_cloud_issue@389"),
    ("creation-retried", "made-anew/jira_cloud_issue@147"),
    ("hang-up-cuts-decision", "made-anew/desk_nothing@1249"),
    ("cancel-is-rejection", "cancelled/zendesk_ticket@55"),
    ("cancel-not-kept", "cancelled/zendesk_ticket@20"),
    ("version-starts-beside", "upgraded/jira_cloud_issue@2"),
    ("tombstone-dropped", "purged/jira_cloud_issue@2"),
    ("no-second-look", "reconciled/desk_unique_ref@303"),
    ("reconciled-one-way", "reconciled/zendesk_ticket@122"),
    ("key-left-out", "proxy-resends/desk_unique_ref@2"),
    ("panic-on-poison", "poison-delivery/jira_cloud_issue@2"),
];

/// The run of a case, with this mistake or without one: the invariants that it violates.
pub(crate) fn violated(case: &str, mutant: Option<&str>) -> Vec<&'static str> {
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
    let mutants = scenarios::catalogue().scenarios[0].mutants();
    assert_eq!(cases.len(), mutants.len());
    let mut survived = vec![];
    for mutant in &mutants {
        let case = cases.get(mutant.name).unwrap_or_else(|| panic!("{} has no case", mutant.name));
        if !violated(case, Some(mutant.name)).contains(&mutant.killed_by) {
            survived.push(format!("(\"{}\", {:?}), not {case}", mutant.name, found(mutant)));
        }
    }
    assert_eq!(survived, Vec::<String>::new());
    for case in cases.values().collect::<BTreeSet<_>>() {
        assert_eq!(violated(case, None), Vec::<&str>::new(), "{case} without a mistake");
    }
}
