//! The whole catalogue in the simulator: every story with every contract, every goal, every mutant, and
//! repeatability.

use sim::catalogue::Catalogue;
use sim::draft::draft;
use sim::fault::KINDS;
use sim::invariants::judge;
use sim::plan::{Expect, Plan};
use sim::run::{End, Options, Run};
use sim::scenario::{Mutant, Scenario};
use sim::seed::Seed;
use sim::verdict::{Judgement, Verdict};
use sim::world::run_plan;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

type Contract = Arc<destinations::Contract>;

/// Every pair of a scenario and a contract for which it makes sense.
fn pairs(catalogue: &Catalogue) -> Vec<(&dyn Scenario, Contract)> {
    let of = |scenario: &'_ dyn Scenario| scenario.contracts();
    let scenarios = catalogue.scenarios.iter();
    scenarios.flat_map(|s| of(&**s).into_iter().map(move |contract| (&**s, contract))).collect()
}

fn plan(scenario: &dyn Scenario, contract: &Contract, seed: u64, mutant: Option<&str>) -> Plan {
    draft(scenario, contract, Seed(seed), mutant, None).expect("the scenario knows the mutant")
}

fn run(scenario: &dyn Scenario, plan: &Plan) -> (Run, Judgement) {
    let run = run_plan(scenario, plan, &Options::default());
    let judgement = judge(&run, scenario);
    (run, judgement)
}

/// The scenario and the contract that an exploration draws for a seed.
fn drawn<'a>(pairs: &[(&'a dyn Scenario, Contract)], seed: u64) -> (&'a dyn Scenario, Contract) {
    Seed(seed).stream("pair").pick(pairs).clone()
}

#[test]
fn every_scenario_holds_with_every_contract() {
    let catalogue = scenarios::catalogue();
    let pairs = pairs(&catalogue);
    assert!(pairs.len() >= 40, "{} pairs", pairs.len());
    for (scenario, contract) in &pairs {
        for seed in 0..20 {
            let plan = plan(*scenario, contract, seed, None);
            let (run, judgement) = run(*scenario, &plan);
            assert_eq!(judgement.verdict, Verdict::Held, "{}", plan.case);
            assert!(matches!(run.end, End::Finished { settled: true }), "{}: {:?}", plan.case, run.end);
        }
    }
}

/// The desk's own ledger, and not the workflow's opinion, has the number of records that the story expects.
#[test]
fn the_ledger_holds_what_each_story_expects() {
    let catalogue = scenarios::catalogue();
    let mut counted = 0;
    for (scenario, contract) in pairs(&catalogue) {
        for seed in 100..110 {
            let plan = plan(scenario, &contract, seed, None);
            let (run, _) = run(scenario, &plan);
            for ask in &plan.workload.requests {
                let effects = run.ledger.effects().iter().zip(&run.made_for);
                let records: BTreeSet<_> = effects
                    .filter(|(_, made_for)| **made_for == ask.operation)
                    .map(|(e, _)| &e.record)
                    .collect();
                let alone = plan.tape.faults().iter().all(|fault| plan.own.contains(fault));
                let allowed = match ask.expect {
                    // What else goes wrong may leave the matter to a person, with nothing made.
                    Expect::Recorded | Expect::OneOwned if !alone => 0..=1,
                    Expect::Recorded | Expect::OneOwned => 1..=1,
                    Expect::Rejected | Expect::Refused | Expect::NoneOwned | Expect::NoRecord => 0..=0,
                    Expect::AtMostOne => 0..=1,
                };
                assert!(allowed.contains(&records.len()), "{} {}: {records:?}", plan.case, ask.operation);
                counted += 1;
            }
        }
    }
    assert!(counted > 400, "{counted} requests");
}

#[test]
fn every_goal_is_reached() {
    let catalogue = scenarios::catalogue();
    for scenario in &catalogue.scenarios {
        let (contracts, goals) = (scenario.contracts(), scenario.goals());
        assert!(!goals.is_empty(), "{} has no goal", scenario.name());
        let mut reached = vec![false; goals.len()];
        for seed in 0..300 {
            if reached.iter().all(|reached| *reached) {
                break;
            }
            let contract = &contracts[seed as usize % contracts.len()];
            let (_, judgement) = run(&**scenario, &plan(&**scenario, contract, seed, None));
            reached.iter_mut().zip(judgement.goals).for_each(|(reached, now)| *reached |= now);
        }
        let missed: Vec<_> = goals.iter().zip(&reached).filter(|(_, r)| !**r).map(|(g, _)| g.name).collect();
        assert_eq!(missed, Vec::<&str>::new(), "{}", scenario.name());
    }
}

/// So many seeds are about ten for each scenario with each of its contracts.
const SOON: u64 = 1_500;

/// The first mistakes of the list are each caught soon, by the invariant that is named for it, and the same
/// seed holds without it.
#[test]
fn the_first_mutants_are_killed_soon_by_their_invariants() {
    let catalogue = scenarios::catalogue();
    let pairs = pairs(&catalogue);
    let names = [
        "fresh-key-per-retry",
        "timeout-is-rejection",
        "send-before-intent",
        "skip-fsync",
        "lookup-then-create",
        "ignore-safe-until",
    ];
    let mut mutants = catalogue.scenarios[0].mutants();
    mutants.truncate(names.len());
    assert_eq!(mutants.iter().map(|mutant| mutant.name).collect::<Vec<_>>(), names);
    for mutant in mutants {
        // A thread of its own: connections are kept between the runs of a thread, and not between these two
        // kinds.
        let killed = on_a_thread(move || (0..SOON).find(|seed| is_killed(&mutant, *seed)));
        let killed = killed.join().expect("no panic");
        let seed = killed.unwrap_or_else(|| panic!("{} survives {SOON} seeds", mutant.name));
        let (scenario, contract) = drawn(&pairs, seed);
        let (_, sound) = run(scenario, &plan(scenario, &contract, seed, None));
        assert_eq!(sound.verdict, Verdict::Held, "{}: without the mistake seed {seed} holds", mutant.name);
    }
}

fn is_killed(mutant: &Mutant, seed: u64) -> bool {
    let catalogue = scenarios::catalogue();
    let (scenario, contract) = drawn(&pairs(&catalogue), seed);
    let (_, judgement) = run(scenario, &plan(scenario, &contract, seed, Some(mutant.name)));
    let Verdict::Violated(all) = &judgement.verdict else { return false };
    all.iter().any(|violation| violation.invariant.id == mutant.killed_by)
}

/// What a run leaves on its thread is nothing to the next one, whichever kinds the two are of.
#[test]
fn runs_with_and_without_a_mistake_share_a_thread() {
    let mixed = |seed: u64| {
        let catalogue = scenarios::catalogue();
        let mutant = (seed % 3 == 1).then_some("fresh-key-per-retry");
        let (scenario, contract) = drawn(&pairs(&catalogue), seed);
        let (run, judgement) = run(scenario, &plan(scenario, &contract, seed, mutant));
        assert!(matches!(run.end, End::Finished { .. }), "{}: {:?}", run.plan.case, run.end);
        assert!(mutant.is_some() || judgement.verdict == Verdict::Held, "{}", run.plan.case);
        (run.history.hash(), run.history.events().len())
    };
    for seed in 0..60 {
        let alone = on_a_thread(move || mixed(seed)).join().expect("no panic");
        assert_eq!(mixed(seed), alone, "seed {seed} after others");
    }
}

/// Without a fault, whatever its story is about, each request becomes one record with one send, unless it can
/// never be served.
#[test]
fn without_faults_every_scenario_completes() {
    let catalogue = scenarios::catalogue();
    for (scenario, contract) in pairs(&catalogue) {
        for seed in 0..5 {
            let plan = draft(scenario, &contract, Seed(seed), None, Some(&[])).expect("a plan");
            assert_eq!(plan.tape.faults(), []);
            let (run, _) = run(scenario, &plan);
            let case = &plan.case;
            assert!(matches!(run.end, End::Finished { settled: true }), "{case}: {:?}", run.end);
            let unservable = |name: &str| is_unservable(scenario, &plan, name);
            let asked = plan.workload.requests.iter().map(|ask| ask.operation.as_str());
            let mut wanted: Vec<&str> = asked.filter(|name| !unservable(name)).collect();
            let mut made: Vec<&str> = run.made_for.iter().map(String::as_str).collect();
            wanted.sort_unstable();
            made.sort_unstable();
            assert_eq!(made, wanted, "{case}");
            let sends = scenarios::goals::sends(&run);
            assert!(sends <= plan.workload.requests.len(), "{case}: {sends} sends");
        }
    }
}

/// A request that its own rules or the desk's refuse, also where a story leaves that open.
fn is_unservable(scenario: &dyn Scenario, plan: &Plan, operation: &str) -> bool {
    let asks = &plan.workload.requests;
    scenario.name() == scenarios::stories::permanent_validation_failure::SCENARIO.name
        || asks.iter().any(|ask| ask.operation == operation && ask.expect == Expect::Rejected)
}

/// Kinds that no seed can bring about: no built-in contract lets a workflow survive them.
const MAY_NEVER_STRIKE: [&str; 3] = ["forget-keys", "bit-flip", "lying-sync"];

/// A fault kind that never strikes anywhere is not tested.
#[test]
fn every_kind_of_fault_strikes() {
    let catalogue = scenarios::catalogue();
    let pairs = pairs(&catalogue);
    let mut struck = BTreeMap::new();
    for seed in 0..1_000 {
        let (scenario, contract) = drawn(&pairs, seed);
        let (run, _) = run(scenario, &plan(scenario, &contract, seed, None));
        for (fault, step) in run.plan.tape.faults().iter().zip(&run.fired) {
            *struck.entry(fault.what.kind()).or_insert(0) += u32::from(step.is_some());
        }
    }
    let never = KINDS.iter().filter(|kind| struck.get(*kind).is_none_or(|n| *n == 0));
    let never: Vec<_> = never.filter(|kind| !MAY_NEVER_STRIKE.contains(kind)).collect();
    assert_eq!(never, Vec::<&&str>::new());
}

/// Everything that must repeat: the history's hash and length, the effects, how it ended.
type Result = (u64, usize, u64, Vec<String>, String);

fn result(seed: u64) -> Result {
    thread_local! {
        static CATALOGUE: Catalogue = scenarios::catalogue();
    }
    CATALOGUE.with(|catalogue| {
        let (scenario, contract) = drawn(&pairs(catalogue), seed);
        let (run, judgement) = run(scenario, &plan(scenario, &contract, seed, None));
        let effects = run.ledger.effects().iter().map(|effect| format!("{effect:?}")).collect();
        let end = format!("{:?} {:?} {:?}", run.end, judgement.verdict, run.belief());
        (run.history.hash(), run.history.events().len(), run.history.writes(), effects, end)
    })
}

fn results(seeds: impl Iterator<Item = u64>) -> BTreeMap<u64, Result> {
    seeds.map(|seed| (seed, result(seed))).collect()
}

/// Backwards and in steps: each seed follows others than it did before.
fn shuffled(end: u64) -> impl Iterator<Item = u64> {
    (0..end).map(move |n| (n * 37 + 11) % end)
}

#[expect(clippy::disallowed_methods, reason = "threads of a test, not of a run")]
fn on_a_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> std::thread::JoinHandle<T> {
    std::thread::spawn(work)
}

/// The same seeds, whatever ran before them and beside them, give the same histories.
#[test]
fn a_seed_means_one_run_in_any_order_and_on_any_thread() {
    const SEEDS: u64 = 200;
    let forward = results(0..SEEDS);
    assert_eq!(forward.values().map(|result| result.0).collect::<BTreeSet<_>>().len(), SEEDS as usize);
    let compare = |other: BTreeMap<u64, Result>, how: &str| {
        for (seed, result) in other {
            assert_eq!(forward[&seed], result, "seed {seed} {how}");
        }
    };
    compare(results(shuffled(SEEDS)), "in another order on the same thread");
    let fresh = |seeds: fn() -> Box<dyn Iterator<Item = u64>>| on_a_thread(move || results(seeds()));
    let join = |thread: std::thread::JoinHandle<_>| thread.join().expect("no panic");
    compare(join(fresh(|| Box::new(0..SEEDS))), "on a fresh thread");
    let two = [
        fresh(|| Box::new(shuffled(SEEDS).filter(|seed| seed % 2 == 0))),
        fresh(|| Box::new(shuffled(SEEDS).filter(|seed| seed % 2 == 1))),
    ];
    two.into_iter().for_each(|thread| compare(join(thread), "beside another thread"));
    for seed in [0, 7, 199] {
        let alone = on_a_thread(move || results(std::iter::once(seed)));
        compare(join(alone), "as the first of its thread");
    }
}
