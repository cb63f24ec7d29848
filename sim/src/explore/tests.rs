use super::*;
use crate::fixture::{MUTANT, catalogue, pipeline};
use crate::scenario::Scenario;
use crate::verdict::Judgement;

fn request(seeds: &str, jobs: usize, mutant: Option<&str>) -> (Arc<Catalogue>, Request) {
    (Arc::new(catalogue()), crate::fixture::request(seeds, jobs, mutant))
}

fn run(pipeline: Pipeline, (catalogue, request): (Arc<Catalogue>, Request)) -> Exploration {
    explore(&catalogue, pipeline, request, &AtomicBool::new(false), &mut |_| {})
}

#[test]
fn any_number_of_threads_reports_the_same() {
    let one = run(pipeline(), request("0..300", 1, Some(MUTANT)));
    for jobs in [2, 3, 8] {
        let many = run(pipeline(), request("0..300", jobs, Some(MUTANT)));
        assert_eq!(many.hash(), one.hash());
        assert_eq!(format!("{many:?}"), format!("{one:?}"), "{jobs} jobs");
    }
    assert_eq!((one.runs, one.checked, one.differing), (300, TWICE, 0));
}

#[test]
fn one_bug_is_one_failure() {
    let done = run(pipeline(), request("0..300", 2, Some(MUTANT)));
    assert_eq!(done.failures.len(), 1);
    let failure = &done.failures[0];
    assert_eq!(failure.invariant.id, "V7", "the invariant that must kill the mutant is the one that is told");
    assert!(failure.seeds_failing > 50 && failure.seeds_failing == done.violated);
    assert_eq!(failure.example.case.contract, "zendesk_ticket", "the unique reference saves the other one");
    assert_eq!(failure.also.iter().map(|id| id.id).collect::<Vec<_>>(), ["V1"]);
}

#[test]
fn what_never_happened_is_counted() {
    let done = run(pipeline(), request("0..100", 2, None));
    assert_eq!((done.held, done.violated), (100, 0));
    assert!(done.failures.is_empty());
    let scenario = &done.scenarios[0];
    assert_eq!(scenario.goals[1], ("retry after key expiry", 0));
    assert!(scenario.goals[0].1 > 0 && scenario.settles_p99_s() == Some(1.5));
    let slowly = crate::fault::KINDS.iter().position(|kind| *kind == "answer-slowly").unwrap();
    assert_eq!((done.fired()[slowly], done.drifted()[slowly]), (0, 50));
}

#[test]
fn shards_together_are_the_whole() {
    let whole = run(pipeline(), request("0..100", 2, Some(MUTANT)));
    let mut runs = 0;
    let mut violated = 0;
    for number in 1..=8 {
        let (catalogue, mut request) = request("0..100", 2, Some(MUTANT));
        request.shard = format!("{number}/8").parse().unwrap();
        let part = run(pipeline(), (catalogue, request));
        runs += part.runs;
        violated += part.violated;
    }
    assert_eq!((runs, violated), (whole.runs, whole.violated));
}

/// The sums of the contracts of a scenario are those of the scenario, and the ledger's records are counted.
#[test]
fn each_scenario_is_counted_by_contract() {
    for mutant in [None, Some(MUTANT)] {
        let done = run(pipeline(), request("0..300", 2, mutant));
        for scenario in &done.scenarios {
            let pairs = || done.pairs.iter().filter(|pair| pair.scenario == scenario.name);
            let sum = |of: fn(&PairTally) -> u64| pairs().map(of).sum::<u64>();
            assert_eq!(sum(|pair| pair.runs), scenario.runs);
            assert_eq!(sum(|pair| pair.held), scenario.held);
            assert_eq!(sum(|pair| pair.violated), scenario.violated);
            assert!(pairs().all(|pair| pair.contract_digest.len() == 64));
        }
        let several: u64 = done.pairs.iter().map(|pair| pair.records.several).sum();
        let one: u64 = done.pairs.iter().map(|pair| pair.records.one).sum();
        assert_eq!((several, one), (done.violated, done.held), "the mutant makes a second record");
    }
}

fn each_its_own(run: &crate::run::Run, scenario: &dyn Scenario) -> Judgement {
    let mut judgement = (pipeline().judge)(run, scenario);
    for fingerprint in &mut judgement.fingerprints {
        fingerprint.0 += &run.plan.case.seed.to_string();
    }
    judgement
}

#[test]
fn enough_failures_end_it_at_the_same_seed() {
    let pipeline = Pipeline { judge: each_its_own, ..pipeline() };
    let one = run(pipeline, request("0..300", 1, Some(MUTANT)));
    let four = run(pipeline, request("0..300", 4, Some(MUTANT)));
    assert_eq!((one.failures.len(), one.violated, one.stopped_early), (5, 5, true));
    assert_eq!((four.runs, four.hash()), (one.runs, one.hash()));
    let (catalogue, mut request) = request("0..300", 2, Some(MUTANT));
    request.failures_max = None;
    let whole = run(pipeline, (catalogue, request));
    assert!(whole.failures.len() > 50 && whole.failures.len() as u64 == whole.violated);
}

#[test]
fn an_interruption_reports_what_ran() {
    let (catalogue, request) = request("0..1000000000", 2, None);
    let interrupted = AtomicBool::new(false);
    let done = explore(&catalogue, pipeline(), request, &interrupted, &mut |notice| {
        if matches!(notice, Notice::Done { done: 50, .. }) {
            interrupted.store(true, Ordering::Relaxed);
        }
    });
    assert!(done.interrupted && done.runs >= 50 && done.held == done.runs);
}

#[test]
fn time_ends_it_too() {
    let (catalogue, mut request) = request("0..1000000000", 2, None);
    request.time = Some(Duration::from_millis(1));
    let done = run(pipeline(), (catalogue, request));
    assert!(done.out_of_time && done.runs > 0 && !done.interrupted);
}

#[test]
fn a_harness_error_is_never_a_verdict() {
    let broken = Pipeline { run: |_, _, _| panic!("the world fell over"), ..pipeline() };
    let done = run(broken, request("0..100", 2, None));
    assert_eq!((done.held, done.violated, done.harness), (0, 0, 5));
    assert!(done.stopped_early && done.harness_examples[0].1.contains("the world fell over"));
}

#[test]
fn a_run_that_never_ends_is_given_up_and_the_rest_goes_on() {
    let stuck = Pipeline {
        run: |scenario, plan, options| {
            if plan.case.seed.0 == 33 {
                loop {
                    std::thread::park();
                }
            }
            (pipeline().run)(scenario, plan, options)
        },
        ..pipeline()
    };
    let (catalogue, mut request) = request("0..100", 1, None);
    request.run_max = Duration::from_millis(300);
    let mut named = vec![];
    let done = explore(&catalogue, stuck, request, &AtomicBool::new(false), &mut |notice| {
        if let Notice::Hung(case) = notice {
            named.push(case.seed.0);
        }
    });
    assert_eq!((named, done.hung), (vec![33], true));
    assert_eq!((done.runs, done.held, done.undecided), (100, 99, 1));
}
