use super::*;
use crate::fault::{Place, What};
use crate::plan::{Ask, Delivery, Expect};
use destinations::{Assumptions, Contract};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What no built-in contract lets a workflow survive.
const NEVER: [&str; 3] = ["forget-keys", "bit-flip", "lying-sync"];

fn workload() -> Workload {
    let ask = |n: u32| Ask {
        request: format!("R{n}"),
        operation: format!("R{n}:create-ticket:v1"),
        expect: Expect::AtMostOne,
    };
    let requests = vec![ask(17), ask(18)];
    let deliver = |ask: &Ask| Delivery {
        at_ms: 1,
        name: format!("{}/1", ask.request),
        operation: ask.operation.clone(),
        body: vec![],
    };
    Workload { deliveries: requests.iter().map(deliver).collect(), requests, ..Workload::default() }
}

fn assumptions() -> Assumptions {
    Assumptions { assumed_late_commit: Some(Duration::from_secs(90)), ..Assumptions::default() }
}

fn drawn(contract: &Contract, own: &[Fault], seed: u64) -> Vec<Fault> {
    faults(&Terms { contract, assumptions: &assumptions() }, &workload(), own, Seed(seed))
}

#[test]
fn one_seed_is_one_tape() {
    for contract in destinations::builtin() {
        for seed in 0..50 {
            assert_eq!(drawn(&contract, &[], seed), drawn(&contract, &[], seed));
        }
    }
    let different: BTreeSet<_> = (0..200).map(|seed| drawn(&destinations::builtin()[0], &[], seed)).collect();
    assert!(different.len() > 190, "{}", different.len());
}

#[test]
fn every_kind_that_can_be_survived_is_drawn_and_no_other() {
    let mut met = BTreeMap::new();
    for contract in destinations::builtin() {
        for seed in 0..2_000 {
            for fault in drawn(&contract, &[], seed) {
                *met.entry(fault.what.kind()).or_insert(0) += 1;
            }
        }
    }
    let missing: Vec<_> = KINDS.into_iter().filter(|kind| !met.contains_key(kind)).collect();
    assert_eq!(missing, NEVER);
    let rare: Vec<_> = met.iter().filter(|(_, count)| **count < 20).collect();
    assert_eq!(rare, vec![], "a kind that is hardly ever drawn is hardly ever tested");
}

/// Swarm: among those that are on in some seed, most seeds have only a few kinds.
#[test]
fn seeds_differ_in_what_they_switch_on() {
    let on = |seed| {
        let mix = Mix::draw(&mut Seed(seed).stream("storm"));
        mix.0.iter().filter(|weight| **weight > 0).count()
    };
    let counts: Vec<usize> = (0..300).map(on).collect();
    assert!(counts.iter().any(|count| *count < 10) && counts.iter().any(|count| *count > 30));
}

#[test]
fn a_seed_adds_a_few_faults_and_seldom_many() {
    let contract = destinations::named("zendesk_ticket").unwrap();
    let counts: Vec<usize> = (0..1_000).map(|seed| drawn(&contract, &[], seed).len()).collect();
    let many = counts.iter().filter(|count| **count > 4).count();
    assert!((20..120).contains(&many), "{many}");
    assert!(counts.iter().all(|count| *count <= 6) && counts.iter().filter(|count| **count == 0).count() < 5);
}

/// Spans that matter are drawn where they matter: around the end of a key's life, at the latest commit.
#[test]
fn spans_come_from_the_contract() {
    let contract = destinations::named("zendesk_ticket").unwrap();
    let assumptions = assumptions();
    let terms = Terms { contract: &contract, assumptions: &assumptions };
    let retention = terms.recovery().replay.unwrap().retention.as_millis() as u64;
    let all: Vec<Fault> = (0..3_000).flat_map(|seed| drawn(&contract, &[], seed)).collect();
    let down = |fault: &Fault| match fault.what {
        What::Kill(down) | What::PowerCut { down, .. } => Some(down),
        _ => None,
    };
    let downs: BTreeSet<u64> = all.iter().filter_map(down).collect();
    assert!(downs.iter().any(|down| (retention - 1_000..retention).contains(down)));
    assert!(downs.iter().any(|down| (retention + 1..=retention + 1_000).contains(down)));
    assert!(all.iter().any(|fault| fault.what == What::ApplyLate(terms.latest_commit_ms().unwrap())));
}

proptest! {
    /// Whatever is assumed, whatever the scenario's own fault is: the whole tape can be survived.
    #[test]
    fn nothing_unsurvivable_is_ever_drawn(
        seed: u64,
        contract in 0..destinations::builtin().len(),
        own in 0..4usize,
        pause_s in 0..20u64,
        skew_s in 0..600u64,
        late_s in proptest::option::of(0..200u64),
    ) {
        let contract = &destinations::builtin()[contract];
        let assumptions = Assumptions {
            max_pause: Duration::from_secs(pause_s),
            clock_skew: Duration::from_secs(skew_s),
            assumed_late_commit: late_s.map(Duration::from_secs),
            ..Assumptions::default()
        };
        let terms = Terms { contract, assumptions: &assumptions };
        let sync = |nth| Place::Sync { boot: 1, nth, when: crate::fault::When::Before };
        let own = [
            vec![],
            vec![Fault { at: sync(3), what: What::Pause(pause_s * 600) }],
            vec![Fault { at: sync(3), what: What::SyncError }],
            vec![Fault { at: sync(3), what: What::PowerCut { down: 20, keep: crate::fault::Keep::Torn } }],
        ][own].clone();
        let more = faults(&terms, &workload(), &own, Seed(seed));
        let tape = FaultTape::new([own, more].concat());
        prop_assert!(tape.is_ok(), "{tape:?}");
        prop_assert_eq!(terms.unsurvivable(&tape.unwrap()), None);
    }
}
