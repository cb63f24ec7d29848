use super::*;
use crate::fault::{ExchangeName, When};
use crate::fixture::{catalogue, pipeline};
use crate::seed::Seed;
use destinations::Assumptions;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::time::Duration;

fn places() -> Vec<Place> {
    let exchange = |call, about: &str| ExchangeName { call, about: about.into(), nth: 1 };
    let phase = |call, about, phase| Place::Phase { exchange: exchange(call, about), phase };
    let create = "R17:create-ticket:v1";
    vec![
        Place::Delivery("R17/1".into()),
        phase(Call::Deliver, "R17/1", Phase::BeforeSend),
        Place::Sync { boot: 1, nth: 1, when: When::Before },
        Place::Sync { boot: 1, nth: 1, when: When::After },
        phase(Call::Create, create, Phase::BeforeSend),
        phase(Call::Create, create, Phase::Sent),
        phase(Call::Create, create, Phase::Arrived),
        Place::Exchange(exchange(Call::Create, create)),
        phase(Call::Create, create, Phase::Applied),
        phase(Call::Create, create, Phase::Answered),
    ]
}

fn request(count: u64) -> PctPlans {
    PctPlans::of(&crate::fixture::request("0..50", 1, None), count)
}

/// The fixture's runs, as if they had come by the places above.
fn traced() -> Pipeline {
    Pipeline {
        run: |scenario, plan, options| {
            let mut run = (pipeline().run)(scenario, plan, options);
            let visit = |place| crate::fixture::visit(place, crate::history::Step(1));
            run.visits = places().into_iter().map(visit).collect();
            run
        },
        ..pipeline()
    }
}

#[test]
fn a_plan_is_the_same_whoever_makes_it_and_when() {
    let catalogue = catalogue();
    let made = |plans: &PctPlans, k| {
        let plan = plans.plan(k, &catalogue, &traced()).unwrap();
        assert_eq!(plans.case(k).1, plan.case);
        (plan.case, Vec::from(plan.tape), plan.schedule)
    };
    let (one, other) = (request(120), request(120));
    let forward: Vec<_> = (0..120).map(|k| made(&one, k)).collect();
    let mut backward: Vec<_> = (0..120).rev().map(|k| made(&other, k)).collect();
    backward.reverse();
    assert_eq!(forward, backward);
    // The seeds begin again after 50 plans, and the plans do not.
    assert!(forward.iter().collect::<BTreeSet<_>>().len() > 115);
}

#[test]
fn each_way_to_wait_is_taken_and_orders_are_one_to_three_deep() {
    let plans = request(400);
    let catalogue = catalogue();
    let (mut kinds, mut counts) = (BTreeSet::new(), BTreeSet::new());
    for k in 0..plans.len() {
        let tape = plans.plan(k, &catalogue, &traced()).unwrap().tape;
        let waits = |fault: &&Fault| matches!(fault.what.kind(), "delay" | "hold-back" | "pause");
        kinds.extend(tape.faults().iter().map(|fault| fault.what.kind()));
        counts.insert(tape.faults().iter().filter(waits).count());
    }
    assert!(["delay", "hold-back", "pause"].iter().all(|kind| kinds.contains(kind)));
    assert!(kinds.len() > 12, "ordinary faults strike too: {kinds:?}");
    assert!([1, 2, 3].iter().all(|depth| counts.contains(depth)), "{counts:?}");
}

#[test]
fn kinds_that_are_switched_off_stay_off() {
    let plans = PctPlans { kinds: Some(vec!["pause".into()]), ..request(100) };
    let catalogue = catalogue();
    let tapes = (0..100).map(|k| plans.plan(k, &catalogue, &traced()).unwrap().tape);
    let kinds: BTreeSet<_> = tapes.flat_map(Vec::from).map(|fault| fault.what.kind()).collect();
    assert_eq!(kinds, BTreeSet::from(["pause"]));
}

proptest! {
    #[test]
    fn every_tape_can_be_survived(
        seed: u64,
        contract in 0..destinations::builtin().len(),
        pause_s in 1..20u64,
    ) {
        let contract = &destinations::builtin()[contract];
        let assumptions =
            Assumptions { max_pause: Duration::from_secs(pause_s), ..Assumptions::default() };
        let terms = Terms { contract, assumptions: &assumptions };
        let trace = Trace { tape: FaultTape::default(), places: places() };
        let tape = prioritised(&trace, &terms, &|_| true, &mut Seed(seed).stream("pct"));
        prop_assert_eq!(terms.unsurvivable(&tape), None);
        prop_assert!(tape.faults().len() <= 4);
    }
}
