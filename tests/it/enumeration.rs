//! Enumeration of the real workflow: what there is to try, that skipping loses nothing, and that the
//! certificate notices what was left out.

use destinations::Contract;
use sim::enumerate::{Certificate, Subject, enumerate};
use sim::explore::{Chosen, Exploration, Notice, Request, Search};
use sim::pipeline::Pipeline;
use sim::seed::Seed;
use sim::seeds::Seeds;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The run that every other scenario breaks in one place.
const PLAIN: &str = "first-delivery";
/// Kinds that are enough to reach every part of the workflow and few enough to try every pair.
const FEW: &[&str] = &["lose-response", "apply-late", "kill", "pause"];

/// Kinds of which one place is as good as the next for a while: what tells them apart is counted.
const OF_THE_MACHINE: &[&str] =
    &["power-cut", "clock-step", "clock-rate", "sync-error", "disk-full", "read-error", "apply-late"];

/// Kinds that strike a process, its disk, its clock, an answer and a delivery.
const MANY: &[&str] =
    &["lose-response", "apply-late", "error-after", "kill", "pause", "sync-error", "poison"];
/// A scenario that has several requests in some seeds.
const SEVERAL: &str = "one-ticket";

/// What is enumerated.
struct How<'a> {
    scenario: &'a str,
    contract: &'a str,
    mutant: Option<&'a str>,
    kinds: Option<&'a [&'a str]>,
    depth: u32,
    skips: bool,
    seed: Seed,
}

impl Default for How<'_> {
    fn default() -> Self {
        How {
            scenario: PLAIN,
            contract: "zendesk_ticket",
            mutant: None,
            kinds: None,
            depth: 2,
            skips: true,
            seed: Seed(0),
        }
    }
}

fn enumerated(how: &How<'_>) -> (Certificate, Exploration) {
    let catalogue = Arc::new(scenarios::catalogue());
    let index = catalogue.scenarios.iter().position(|one| one.name() == how.scenario).expect("a scenario");
    let scenario = &*catalogue.scenarios[index];
    let contract = scenario.contracts().into_iter().find(|one| one.id == how.contract).expect("a contract");
    let contracts = vec![Arc::clone(&contract)];
    let chosen = vec![Chosen { contracts, ..Chosen::whole(&catalogue, index, how.mutant) }];
    let request = Request {
        jobs: 2,
        mutant: how.mutant.map(str::to_owned),
        kinds: how.kinds.map(|kinds| kinds.iter().map(|kind| (*kind).to_owned()).collect()),
        ..Request::of(chosen, Seeds::range(0..1))
    };
    let subject = Subject { skips: how.skips, seed: how.seed, ..Subject::new(0, &contract, how.depth) };
    let pipeline = Pipeline::real().expect("this build can simulate");
    let quiet = AtomicBool::new(false);
    let mut silent = |_: Notice<'_>| {};
    let mut search = Search::new(&catalogue, pipeline, request, &quiet, &mut silent);
    let (certificate, _) = enumerate(&mut search, &subject);
    let done = search.finish();
    assert_eq!((done.harness, done.differing), (0, 0), "{:?}", done.harness_examples);
    (certificate, done)
}

fn fingerprints(done: &Exploration) -> BTreeSet<String> {
    done.failures.iter().map(|failure| failure.fingerprint.0.clone()).collect()
}

/// Boundaries and singles of the plain run, by contract: a boundary that goes missing is seen here.
#[test]
fn what_there_is_to_try() {
    let mut told = String::new();
    for contract in destinations::builtin() {
        let Contract { id, .. } = &contract;
        let (certificate, _) = enumerated(&How { contract: id, depth: 1, ..How::default() });
        assert!(certificate.complete && certificate.drift == 0, "{certificate:?}");
        assert_eq!(certificate.violated, 0, "{certificate:?}");
        assert_eq!(certificate.contract_digest, contract.digest());
        let skipped = certificate.skipped.iter().map(|(why, n)| format!("; {n} {why}")).collect::<String>();
        told += &format!("{id}: {} boundaries, {} singles", certificate.boundaries, certificate.singles);
        told += &format!("{skipped}\n");
        for (kind, n) in &certificate.boundaries_by_kind {
            told += &format!("  {n} {kind}\n");
        }
    }
    insta::assert_snapshot!(told);
}

/// Whether the same failures are found with and without skipping.
fn assert_nothing_is_lost(how: &How<'_>) -> (Certificate, Certificate) {
    losses(how).unwrap_or_else(|lost| panic!("{lost}"))
}

/// The certificates with and without skipping; or the failures that are found with one of them only.
fn losses(how: &How<'_>) -> Result<(Certificate, Certificate), String> {
    let (less, some) = enumerated(how);
    let (more, all) = enumerated(&How { skips: false, ..*how });
    let what = format!("{} {} {:?}", how.scenario, how.contract, how.mutant);
    let (found, there) = (fingerprints(&some), fingerprints(&all));
    if found != there {
        let lost: Vec<&String> = there.symmetric_difference(&found).collect();
        return Err(format!("{what}: {lost:?} of {}, {} of {} runs", there.len(), less.runs, more.runs));
    }
    assert!(less.complete && more.complete && less.drift + more.drift == 0, "{what}: {less:?}");
    assert!(how.mutant.is_some() || some.failures.is_empty(), "{what}: {:?}", some.failures);
    Ok((less, more))
}

#[test]
fn skipping_loses_no_failure() {
    let mutants = [
        None,
        Some("fresh-key-per-retry"),
        Some("timeout-is-rejection"),
        Some("ignore-safe-until"),
        Some("counted-at-end"),
        Some("memory-only-dedupe"),
    ];
    for mutant in mutants {
        let how = How { mutant, kinds: Some(FEW), ..How::default() };
        let (less, more) = assert_nothing_is_lost(&how);
        assert!(mutant.is_none() || more.violated > 0, "{mutant:?} is not found: nothing is shown");
        assert!(less.runs * 10 < more.runs * 9, "{} of {} runs", less.runs, more.runs);
    }
}

#[test]
fn skipping_loses_no_failure_of_the_machine() {
    for mutant in [None, Some("skip-fsync"), Some("send-before-intent"), Some("resend-in-flight")] {
        let how = How { mutant, kinds: Some(OF_THE_MACHINE), ..How::default() };
        let (less, more) = assert_nothing_is_lost(&how);
        assert!(mutant.is_none() || more.violated > 0, "{mutant:?} is not found: nothing is shown");
        assert!(less.runs * 10 < more.runs * 7, "{} of {} runs", less.runs, more.runs);
    }
}

/// The first seed that has two requests, each delivered once.
fn two_requests(contract: &str) -> Seed {
    let catalogue = scenarios::catalogue();
    let scenario = catalogue.scenarios.iter().find(|one| one.name() == SEVERAL).expect("a scenario");
    let contract = destinations::named(contract).expect("it comes with the crate");
    let has_two = |seed: &Seed| {
        let workload = scenario.workload(&contract, *seed);
        (workload.requests.len(), workload.deliveries.len()) == (2, 2)
    };
    (0..1_000).map(Seed).find(has_two).expect("one of a thousand seeds")
}

/// Two requests: what strikes one and leaves the other alone is not tried beside what strikes the other.
#[test]
fn what_is_independent_is_skipped_and_nothing_lost() {
    let seed = two_requests("desk_strong_lookup");
    for mutant in [None, Some("same-key-for-all"), Some("error-is-rejection")] {
        let kinds: &[&str] = &["lose-response", "lose-request", "error-after"];
        let contract = "desk_strong_lookup";
        let how = How { scenario: SEVERAL, contract, mutant, kinds: Some(kinds), seed, ..How::default() };
        let (less, more) = assert_nothing_is_lost(&how);
        assert!(mutant.is_none() || more.violated > 0, "{mutant:?} is not found: nothing is shown");
        assert!(mutant.is_some() || less.skipped.get("independent").is_some_and(|n| *n > 0), "{less:?}");
    }
}

/// Every mistake, each with one of the contracts in turn. Not every mistake shows with these kinds: those
/// that do are counted.
#[test]
fn skipping_loses_no_failure_of_any_mistake() {
    let (catalogue, contracts) = (scenarios::catalogue(), destinations::builtin());
    let mutants = catalogue.scenarios[0].mutants();
    let (mut shown, mut lost) = (0, vec![]);
    for (mutant, contract) in mutants.iter().zip(contracts.iter().cycle()) {
        let how =
            How { contract: &contract.id, mutant: Some(mutant.name), kinds: Some(MANY), ..How::default() };
        match losses(&how) {
            Ok((_, more)) => shown += u32::from(more.violated > 0),
            Err(why) => lost.push(why),
        }
    }
    assert!(lost.is_empty(), "{}", lost.join("\n"));
    assert!(shown > 20, "only {shown} mistakes show");
}
