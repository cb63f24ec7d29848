//! Each fault on the side of the node, its disk, its clock, the source and the people does what it says, and
//! the workflow survives it where it can be survived.

use sim::belief::Basis;
use sim::fault::{Call, ExchangeName, Fault, FaultTape, Keep, Loss, Phase, Place, Variation, What, When};
use sim::history::{Event, Kind};
use sim::plan::Plan;
use sim::run::{End, Moment, Options, Run};
use sim::scenario::Scenario;
use sim::seed::Seed;
use sim::verdict::Verdict;
use std::collections::BTreeSet;

const R17: &str = "R17:create-ticket:v1";
const FIRST: &str = "R17/1";
const AGAIN: &str = "R17/1+1";

fn with_scenario<T>(name: &str, work: impl FnOnce(&dyn Scenario) -> T) -> T {
    let catalogue = scenarios::catalogue();
    work(&**catalogue.scenarios.iter().find(|s| s.name() == name).expect("a known story"))
}

/// The plan of a story with these faults and no others.
fn planned(scenario: &dyn Scenario, contract: &str, seed: u64, faults: Vec<Fault>) -> Plan {
    let contract = scenario.contracts().into_iter().find(|c| c.id == contract).expect("a known contract");
    let mut plan = sim::draft::draft(scenario, &contract, Seed(seed), None, Some(&[])).expect("a plan");
    plan.tape = FaultTape::new(faults).expect("distinct places");
    plan
}

fn ran(scenario: &dyn Scenario, plan: &Plan) -> (Run, Verdict) {
    let run = sim::world::run_plan(scenario, plan, &Options { places: true, ..Options::default() });
    let verdict = sim::invariants::judge(&run, scenario).verdict;
    (run, verdict)
}

/// A run that holds, in which every fault strikes.
fn held(name: &str, contract: &str, faults: Vec<Fault>) -> Run {
    let told = format!("{name}/{contract}: {faults:?}");
    let (run, verdict) = with_scenario(name, |s| ran(s, &planned(s, contract, 3, faults)));
    assert_eq!(verdict, Verdict::Held, "{told}");
    assert_eq!(run.end, End::Finished { settled: true }, "{told}");
    assert!(run.fired.iter().all(Option::is_some), "{told}: {:?}", run.fired);
    run
}

fn exchange(call: Call, about: &str, nth: u32) -> ExchangeName {
    ExchangeName { call, about: about.into(), nth }
}

fn create(nth: u32) -> ExchangeName {
    exchange(Call::Create, R17, nth)
}

fn at_source(what: What) -> Fault {
    Fault { at: Place::Delivery(FIRST.into()), what }
}

fn on_create(what: What) -> Fault {
    Fault { at: Place::Exchange(create(1)), what }
}

fn at_sync(boot: u32, nth: u32, when: When, what: What) -> Fault {
    Fault { at: Place::Sync { boot, nth, when }, what }
}

/// When something happened for the first time, in milliseconds.
fn millis(run: &Run, wanted: impl Fn(&Kind) -> bool) -> u64 {
    let event = run.history.events().iter().find(|event| wanted(&event.kind));
    event.unwrap_or_else(|| panic!("it did not happen: {:?}", run.plan.tape)).t_ns.millis()
}

fn left(run: &Run, wanted: &ExchangeName) -> u64 {
    millis(run, |kind| matches!(kind, Kind::Sent { exchange, .. } if exchange == wanted))
}

fn struck(kind: &Kind) -> bool {
    matches!(kind, Kind::Fault { .. })
}

/// The statuses that somebody heard, in order.
fn heard(run: &Run, call: Call, about: &str) -> Vec<u16> {
    let status = |event: &Event| match &event.kind {
        Kind::Received { exchange, status, .. } if exchange.call == call && exchange.about == about => {
            Some(*status)
        }
        _ => None,
    };
    run.history.events().iter().filter_map(status).collect()
}

/// The deliveries in the workflow's records.
fn recorded(run: &Run) -> BTreeSet<&str> {
    let belief = run.belief().expect("read at the end");
    belief.deliveries.iter().map(|delivery| delivery.id.as_str()).collect()
}

fn basis(run: &Run) -> Basis {
    run.belief().and_then(|belief| belief.operation(R17)).expect("it is known").basis
}

/// Every further delivery is one that its source really makes, and none of them makes a second record.
#[test]
fn a_request_is_delivered_again_in_every_variation() {
    let table: [(Variation, &[u16], bool); 5] = [
        (Variation::Same, &[202], false),
        (Variation::NewId, &[202], true),
        (Variation::Volatile, &[202], true),
        (Variation::Meaning, &[409], true),
        (Variation::Poison, &[400, 400, 400], false),
    ];
    for contract in ["zendesk_ticket", "desk_nothing"] {
        for (how, statuses, is_recorded) in table {
            let fault = at_source(What::Redeliver { how, after_ms: 15_000 });
            let run = held("first-delivery", contract, vec![fault]);
            assert_eq!(heard(&run, Call::Deliver, AGAIN), statuses, "{how:?}");
            assert_eq!(recorded(&run).contains(AGAIN), is_recorded, "{how:?}");
            assert!(recorded(&run).contains(FIRST));
            assert_eq!(run.ledger.effects().len(), 1, "{how:?}");
            let again = exchange(Call::Deliver, AGAIN, 1);
            let first = left(&run, &exchange(Call::Deliver, FIRST, 1));
            assert!((15_000..15_010).contains(&(left(&run, &again) - first)), "{how:?}");
            assert_eq!(millis(&run, struck), left(&run, &again), "the fault strikes as the delivery leaves");
            assert!(run.visits.iter().any(|visit| visit.place == Place::Exchange(again.clone())));
            let [further] = &run.further[..] else { panic!("{:?}", run.further) };
            let same = further.body == run.plan.workload.deliveries[0].body;
            assert_eq!((further.name.as_str(), same), (AGAIN, how == Variation::Same));
        }
    }
}

/// The changed meaning waits for a person beside the operation, which goes on as it was.
#[test]
fn a_changed_meaning_that_comes_first_is_the_one_that_counts() {
    let again = What::Redeliver { how: Variation::Meaning, after_ms: 0 };
    let lost = Fault {
        at: Place::Exchange(exchange(Call::Deliver, FIRST, 1)),
        what: What::LoseRequest(Loss::Silence),
    };
    let run = held("first-delivery", "zendesk_ticket", vec![at_source(again), lost]);
    assert_eq!(heard(&run, Call::Deliver, AGAIN), [202]);
    assert_eq!(heard(&run, Call::Deliver, FIRST), [409]);
    assert_eq!(run.ledger.effects().len(), 1);
}

#[test]
fn copies_leave_at_one_instant_and_make_one_record() {
    for copies in [2, 8, 200] {
        let run = held("first-delivery", "desk_unique_ref", vec![at_source(What::AtOnce(copies))]);
        let left: Vec<u64> = run
            .history
            .events()
            .iter()
            .filter(|event| {
                matches!(&event.kind, Kind::Sent { exchange, .. }
                    if exchange.call == Call::Deliver && exchange.nth == 1)
            })
            .map(|event| event.t_ns.millis())
            .collect();
        assert_eq!(left.len(), copies as usize);
        assert!(left[left.len() - 1] - left[0] <= 1, "{left:?}");
        assert_eq!((recorded(&run).len(), run.further.len()), (copies as usize, copies as usize - 1));
        assert_eq!(run.ledger.effects().len(), 1);
    }
}

#[test]
fn a_delivery_that_is_held_back_is_overtaken() {
    let run = held("changed-request", "zendesk_ticket", vec![at_source(What::HoldBack(15_000))]);
    let (first, second) = (exchange(Call::Deliver, FIRST, 1), exchange(Call::Deliver, "R17/2", 1));
    assert!((15_000..15_010).contains(&(left(&run, &first) - millis(&run, struck))));
    assert!(left(&run, &second) < left(&run, &first));
    assert_eq!(
        (heard(&run, Call::Deliver, "R17/2"), heard(&run, Call::Deliver, FIRST)),
        (vec![202], vec![409])
    );
}

#[test]
fn the_source_and_people_can_be_held_up() {
    let delay = |exchange: ExchangeName| Fault {
        at: Place::Phase { exchange, phase: Phase::BeforeSend },
        what: What::Delay(3_000),
    };
    let delivery = exchange(Call::Deliver, FIRST, 1);
    let run = held("first-delivery", "zendesk_ticket", vec![delay(delivery.clone())]);
    assert!((3_000..3_010).contains(&(left(&run, &delivery) - millis(&run, struck))));
    let decision = exchange(Call::Decide, R17, 1);
    let lost = on_create(What::LoseResponse(Loss::Silence));
    let run = held("no-guarantee", "desk_nothing", vec![delay(decision.clone()), lost]);
    let decided = millis(&run, |kind| matches!(kind, Kind::Person { .. }));
    assert!((3_000..3_010).contains(&(left(&run, &decision) - decided)));
    assert_eq!(basis(&run), Basis::Person);
}

/// A fault, how an exchange was lost, whether there is a record, what people heard, and what the operation
/// stands on at the end.
type Erring<'a> = (Option<What>, Loss, bool, &'a [u16], Basis);

#[test]
fn people_err_in_each_way_and_are_refused_where_they_must_be() {
    let late = What::ActLate(86_400_000);
    let table: [Erring<'_>; 8] = [
        (Some(What::WrongReference), Loss::Silence, true, &[422, 200], Basis::Person),
        (Some(What::WrongReference), Loss::Silence, false, &[422, 200], Basis::AcceptedRisk),
        (Some(What::StaleView), Loss::Reset, true, &[409, 200], Basis::Person),
        (Some(What::StaleView), Loss::Reset, false, &[409, 200], Basis::AcceptedRisk),
        (Some(late.clone()), Loss::Silence, true, &[200], Basis::Person),
        (Some(late), Loss::Silence, false, &[200], Basis::AcceptedRisk),
        (None, Loss::Silence, true, &[200], Basis::Person),
        (None, Loss::Silence, false, &[], Basis::None),
    ];
    for (what, loss, exists, statuses, stands_on) in table {
        let lost = if exists { What::LoseResponse(loss) } else { What::LoseRequest(loss) };
        let case = what.clone().map(|what| Fault { at: Place::Case(R17.into()), what });
        let run = held("no-guarantee", "desk_nothing", case.into_iter().chain([on_create(lost)]).collect());
        assert_eq!(heard(&run, Call::Decide, R17), statuses, "{what:?} {exists}");
        assert_eq!(basis(&run), stands_on, "{what:?} {exists}");
        assert_eq!(run.ledger.effects().len(), usize::from(exists));
        if let Some(What::ActLate(ms)) = what {
            let asked = millis(&run, |kind| matches!(kind, Kind::Fault { what: "act-late", .. }));
            assert!(millis(&run, |kind| matches!(kind, Kind::Person { .. })) >= asked + ms);
        }
        if what.is_none() && !exists {
            let op = run.belief().and_then(|belief| belief.operation(R17)).expect("it is known");
            assert!(op.waiting.is_owned(), "who finds nothing leaves the case open: {op:?}");
        }
    }
}

/// One of two decisions is taken and the other one is refused. Who points to a record has it checked at the
/// destination first; who rejects meanwhile is faster, and the other's view is stale by then.
#[test]
fn two_people_decide_at_once_and_one_of_them_is_heard() {
    for seed in 0..20 {
        for lost in [What::LoseResponse(Loss::Silence), What::LoseRequest(Loss::Silence)] {
            let case = Fault { at: Place::Case(R17.into()), what: What::TwoAtOnce };
            let (run, verdict) = with_scenario("no-guarantee", |s| {
                ran(s, &planned(s, "desk_nothing", seed, vec![case, on_create(lost)]))
            });
            assert_eq!(verdict, Verdict::Held, "seed {seed}");
            let mut statuses = heard(&run, Call::Decide, R17);
            statuses.sort_unstable();
            assert_eq!(statuses, [200, 409], "seed {seed}");
            let words: BTreeSet<&str> = run
                .history
                .events()
                .iter()
                .filter_map(|e| {
                    if let Kind::Person { words, .. } = &e.kind { Some(words.as_str()) } else { None }
                })
                .collect();
            assert_eq!(words.len(), 2, "two people say two things: {words:?}");
            assert_eq!(basis(&run), Basis::AcceptedRisk, "seed {seed}");
        }
    }
}

/// A second connection to the store is open while people decide: the process can die at any point of that.
#[test]
fn a_process_that_dies_while_a_person_decides_takes_the_decision_or_does_not() {
    let lost = on_create(What::LoseResponse(Loss::Silence));
    let clean = held("no-guarantee", "desk_nothing", vec![lost.clone()]);
    let decides = clean.history.events().iter().find(|event| matches!(event.kind, Kind::Person { .. }));
    let decides = decides.expect("somebody decides").step;
    let mut struck = 0;
    for at in clean.visits.iter().filter(|visit| visit.step >= decides).map(|visit| &visit.place) {
        for what in [What::Kill(100), What::PowerCut { down: 100, keep: Keep::Nothing }, What::Pause(5_000)] {
            let fault = Fault { at: at.clone(), what };
            if fault.check().is_ok() {
                let run = held("no-guarantee", "desk_nothing", vec![lost.clone(), fault]);
                assert_eq!(basis(&run), Basis::Person, "{:?}", run.plan.tape);
                struck += 1;
            }
        }
    }
    assert!(struck > 20, "{struck} faults");
}

/// Where another operation has a record, that is what a person mistakes for the right one.
#[test]
fn the_record_of_another_operation_is_refused() {
    let seed = (0..50).find(|seed| {
        with_scenario("one-ticket", |s| planned(s, "desk_nothing", *seed, vec![]).workload.requests.len() > 1)
    });
    let case = Fault { at: Place::Case(R17.into()), what: What::WrongReference };
    let faults = vec![case, on_create(What::LoseResponse(Loss::Silence))];
    let (run, verdict) = with_scenario("one-ticket", |s| {
        ran(s, &planned(s, "desk_nothing", seed.expect("a seed with two requests"), faults))
    });
    assert_eq!(verdict, Verdict::Held);
    assert_eq!(heard(&run, Call::Decide, R17), [422, 200]);
    let other = run.made_for.iter().position(|made_for| made_for != R17).expect("another record");
    let record = &run.ledger.effects()[other].record;
    let pointed = |kind: &Kind| matches!(kind, Kind::Person { words, .. } if words.contains(record.as_str()));
    assert!(run.history.events().iter().any(|event| pointed(&event.kind)));
    assert_eq!(basis(&run), Basis::Person);
}

/// The places of a clean run, and of one in which a person decides.
fn places(name: &str, contract: &str, faults: Vec<Fault>) -> Vec<Place> {
    held(name, contract, faults).visits.into_iter().map(|visit| visit.place).collect()
}

/// Wherever a read fails, the process reads again or is started again; it never builds on what it has not
/// read.
#[test]
fn a_read_that_fails_is_survived_everywhere() {
    let mut restarted = 0;
    let lost = on_create(What::LoseResponse(Loss::Silence));
    for (name, contract, own) in [
        ("first-delivery", "zendesk_ticket", vec![]),
        ("first-delivery", "desk_unique_ref", vec![]),
        ("no-guarantee", "desk_nothing", vec![lost]),
    ] {
        for at in places(name, contract, own.clone()) {
            let fault = Fault { at, what: What::ReadError };
            if fault.check().is_err() {
                continue;
            }
            let run = held(name, contract, [own.clone(), vec![fault]].concat());
            restarted += run.history.events().iter().filter(|e| e.kind == Kind::Killed).count();
            assert_eq!(run.ledger.effects().len(), 1);
        }
    }
    assert!(restarted > 5, "a failed read ended the process {restarted} times");
}

/// After a restart everything is read anew: there a failed read strikes for certain.
#[test]
fn a_read_that_fails_during_recovery_costs_one_more_start() {
    let kill = Fault { at: Place::Phase { exchange: create(1), phase: Phase::Sent }, what: What::Kill(100) };
    let fails = at_sync(2, 1, When::After, What::ReadError);
    let run = held("first-delivery", "zendesk_ticket", vec![kill, fails]);
    let starts = run.history.events().iter().filter(|e| matches!(e.kind, Kind::Started { .. })).count();
    assert!(starts >= 3, "{starts} starts");
}

/// No program survives a disk that decays: such a run is no test of one, whatever becomes of it.
#[test]
fn a_bit_that_flips_is_invalid_and_never_a_failure_of_the_harness() {
    let mut ends = BTreeSet::new();
    let deaths = [None, Some(What::Kill(100)), Some(What::PowerCut { down: 100, keep: Keep::Nothing })];
    for at in places("first-delivery", "zendesk_ticket", vec![]) {
        // Which bit flips is drawn: most are never read again.
        for (then, seed) in deaths.iter().flat_map(|then| (0..12).map(|seed| (then.clone(), seed))) {
            let flip = Fault { at: at.clone(), what: What::BitFlip };
            if flip.check().is_err() {
                continue;
            }
            let then = then
                .map(|what| Fault { at: Place::Phase { exchange: create(1), phase: Phase::Applied }, what });
            let faults = then.into_iter().chain([flip]).collect();
            let (run, verdict) =
                with_scenario("first-delivery", |s| ran(s, &planned(s, "zendesk_ticket", seed, faults)));
            assert!(matches!(&verdict, Verdict::Invalid(why) if why.contains("bit-flip")), "{verdict:?}");
            assert!(!matches!(run.end, End::Harness(_)), "{:?}", run.end);
            let tampered = run.beliefs.iter().any(|at| at.belief.tampered.is_some());
            let end = format!("{:?}", run.end).chars().take(60).collect::<String>();
            ends.insert((end, tampered));
        }
    }
    assert!(ends.len() > 1, "no flipped bit was ever noticed: {ends:?}");
    // What such a run leaves on its thread is nothing to the next one.
    held("first-delivery", "zendesk_ticket", vec![]);
}

#[test]
fn a_sync_that_lies_loses_what_it_claimed() {
    let lies = at_sync(1, 3, When::Before, What::LyingSync);
    let cut = Fault {
        at: Place::Phase { exchange: create(1), phase: Phase::Answered },
        what: What::PowerCut { down: 100, keep: Keep::Nothing },
    };
    let known = |faults: Vec<Fault>| {
        let (run, verdict) =
            with_scenario("first-delivery", |s| ran(s, &planned(s, "zendesk_ticket", 3, faults)));
        let crash = run.beliefs.iter().find(|at| at.moment == Moment::Crash).expect("it crashed");
        (crash.belief.operations.len(), verdict)
    };
    assert_eq!(known(vec![cut.clone()]), (1, Verdict::Held));
    let (operations, verdict) = known(vec![lies, cut]);
    assert_eq!(operations, 0);
    assert!(matches!(&verdict, Verdict::Invalid(why) if why.contains("lying-sync")), "{verdict:?}");
}

/// Wherever the clock is set or changes its pace, within what is assumed, the workflow is not accused of
/// going by it.
#[test]
fn a_clock_that_is_set_is_survived_everywhere() {
    let troubles =
        [What::ClockStep(-240_000), What::ClockStep(20_000), What::ClockRate(1_000), What::ClockRate(-1_000)];
    for (name, contract, own) in [
        ("first-delivery", "zendesk_ticket", What::LoseResponse(Loss::Silence)),
        ("first-delivery", "desk_unique_ref", What::LoseResponse(Loss::Silence)),
        ("first-delivery", "desk_strong_lookup", What::LoseRequest(Loss::Silence)),
        ("first-delivery", "jira_cloud_issue", What::LoseResponse(Loss::Silence)),
    ] {
        let own = on_create(own);
        for at in places(name, contract, vec![own.clone()]) {
            for what in &troubles {
                let fault = Fault { at: at.clone(), what: what.clone() };
                if fault.check().is_ok() {
                    held(name, contract, vec![own.clone(), fault]);
                }
            }
        }
    }
}

/// The send that was in doubt for so long when the machine came back, with its clock set back by 4 min.
fn after_a_long_night(down: u64, mutant: Option<&str>) -> (Run, Verdict) {
    let kill = Fault { at: Place::Phase { exchange: create(1), phase: Phase::Sent }, what: What::Kill(down) };
    let faults = vec![
        kill,
        on_create(What::LoseRequest(Loss::Silence)),
        at_sync(2, 1, When::Before, What::ClockStep(-240_000)),
    ];
    with_scenario("first-delivery", |s| {
        let mut plan = planned(s, "zendesk_ticket", 3, faults);
        plan.mutant = mutant.map(str::to_owned);
        ran(s, &plan)
    })
}

/// The key may be used for 1 h 48 min and is remembered for 2 h: the margin covers a clock that was set back,
/// and the judge does not take the margin for a mistake; nor does it overlook a key that is forgotten.
#[test]
fn a_judge_allows_for_the_clock_and_for_no_more() {
    let resent = |run: &Run| left(run, &create(2)) - left(run, &create(1));
    let (run, verdict) = after_a_long_night(6_600_000, None);
    assert_eq!(verdict, Verdict::Held);
    assert!(resent(&run) > 6_480_000, "later than the contract is safe for: {}", resent(&run));
    let (run, verdict) = after_a_long_night(7_300_000, Some("ignore-safe-until"));
    assert!(resent(&run) > 7_200_000);
    let Verdict::Violated(all) = &verdict else { panic!("{verdict:?}") };
    assert!(all.iter().any(|violation| violation.invariant.id == "V6"), "{all:?}");
}

/// While the process stands still, its machine and the desk do not: what strikes then has its own time.
#[test]
fn a_kill_during_a_pause_is_not_put_off() {
    let paused =
        Fault { at: Place::Phase { exchange: create(1), phase: Phase::Sent }, what: What::Pause(9_000) };
    let applied = |what| Fault { at: Place::Phase { exchange: create(1), phase: Phase::Applied }, what };
    let run = held("first-delivery", "zendesk_ticket", vec![paused.clone(), applied(What::Kill(100))]);
    let (stopped, killed) = (millis(&run, |k| *k == Kind::Paused), millis(&run, |k| *k == Kind::Killed));
    let started = millis(&run, |kind| matches!(kind, Kind::Started { boot: 2 }));
    assert!(killed < stopped + 1_000, "the desk goes on meanwhile");
    assert_eq!(started, killed + 100);
    // Of two pauses the one that ends last counts.
    let run = held(
        "first-delivery",
        "zendesk_ticket",
        vec![Fault { what: What::Pause(2_000), ..paused }, applied(What::Pause(6_000))],
    );
    let (second, resumed) = {
        let pauses = run.history.events().iter().filter(|event| event.kind == Kind::Paused);
        let times: Vec<u64> = pauses.map(|event| event.t_ns.millis()).collect();
        (times[1], millis(&run, |kind| *kind == Kind::Resumed))
    };
    assert_eq!(resumed, second + 6_000);
}

/// What power cuts leave of a store that was never synced may be no store any more: that is the workflow's
/// fault, and the harness goes on. It takes two cuts and torn sectors, so seeds look for it.
#[test]
fn a_store_that_is_left_damaged_is_a_failure_of_the_workflow() {
    let says = |why: &str| why.contains("what is left of its store cannot be read");
    let is_damaged = |scenario: &dyn Scenario, seed: u64| {
        let contract = scenario.contracts().remove(0);
        let plan = sim::draft::draft(scenario, &contract, Seed(seed), Some("skip-fsync"), None);
        let (run, verdict) = ran(scenario, &plan.expect("a plan"));
        assert!(!matches!(verdict, Verdict::Harness(_)), "{verdict:?}");
        matches!(&run.end, End::Failed(why) if says(why))
    };
    let seeds = 4_000_000..4_008_000;
    let found =
        with_scenario("blind-look-up", |scenario| seeds.clone().find(|seed| is_damaged(scenario, *seed)));
    assert!(found.is_some(), "none of {seeds:?} leaves an unreadable store");
}
