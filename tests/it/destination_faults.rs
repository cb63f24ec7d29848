//! Every fault at the destination's side does what it says, is counted, and is survived by the workflow as it
//! is.

use destinations::EffectKind;
use sim::belief::Standing;
use sim::fault::{Call, ExchangeName, Fault, FaultTape, Loss, Omission, Phase, Place, Way, What};
use sim::history::{Deed, Event, Kind};
use sim::invariants::judge;
use sim::plan::{Case, Recipe};
use sim::run::{BY_HAND, Options, Run};
use sim::seed::Seed;
use sim::verdict::Verdict;

const OPERATION: &str = "R17:create-ticket:v1";

fn exchange(call: Call, nth: u32) -> ExchangeName {
    ExchangeName { call, about: OPERATION.into(), nth }
}

fn create(nth: u32) -> Place {
    Place::Exchange(exchange(Call::Create, nth))
}

fn find(nth: u32) -> Place {
    Place::Exchange(exchange(Call::Find, nth))
}

/// A point of the first exchange of this kind.
fn phase(call: Call, phase: Phase) -> Place {
    Place::Phase { exchange: exchange(call, 1), phase }
}

fn record() -> Place {
    Place::Record { about: OPERATION.into(), nth: 1 }
}

/// A create whose answer is lost, so that there is something to look up.
fn unheard() -> (Place, What) {
    (create(1), What::LoseResponse(Loss::Silence))
}

/// One request, delivered once, under these faults.
fn judged(contract: &str, faults: &[(Place, What)]) -> (Run, Verdict) {
    let catalogue = scenarios::catalogue();
    let scenario = catalogue.scenarios.iter().find(|s| s.name() == "first-delivery").expect("a known story");
    let contract = scenario.contracts().into_iter().find(|c| c.id == contract).expect("a known contract");
    let faults = faults.iter().map(|(at, what)| Fault { at: at.clone(), what: what.clone() });
    let recipe = Recipe {
        case: Case { scenario: "first-delivery".into(), contract: contract.id.clone(), seed: Seed(3) },
        mutant: None,
        tape: FaultTape::new(faults.collect()).expect("a tape"),
        deliveries: None,
        schedule: None,
    };
    let plan = recipe.plan(&**scenario, &contract).expect("a plan");
    let run = sim::world::run_plan(&**scenario, &plan, &Options { places: true, ..Options::default() });
    let verdict = judge(&run, &**scenario).verdict;
    (run, verdict)
}

/// As [`judged`]; every fault strikes once, at its place, and the run holds.
fn held(contract: &str, faults: &[(Place, What)]) -> Run {
    let (run, verdict) = judged(contract, faults);
    assert_eq!(verdict, Verdict::Held, "{contract} {faults:?}: {}", log(&run));
    for (fault, fired) in run.plan.tape.faults().iter().zip(&run.fired) {
        assert!(fired.is_some(), "{contract} {}: {}", fault.what, log(&run));
        assert!(run.visits.iter().any(|visit| visit.place == fault.at), "{} is no place", fault.at);
    }
    let struck = all(&run, |kind| matches!(kind, Kind::Fault { .. })).len();
    assert_eq!(struck, faults.len(), "one event a fault: {}", log(&run));
    run
}

fn log(run: &Run) -> String {
    run.history.events().iter().map(|event| format!("\n{event}")).collect()
}

fn all(run: &Run, wanted: impl Fn(&Kind) -> bool) -> Vec<&Event> {
    run.history.events().iter().filter(|event| wanted(&event.kind)).collect()
}

/// The first event of this sort, with its time in milliseconds.
fn first(run: &Run, wanted: impl Fn(&Kind) -> bool) -> (u32, u64) {
    let event =
        all(run, wanted).into_iter().next().unwrap_or_else(|| panic!("it never happened:{}", log(run)));
    (event.step.0, event.t_ns.millis())
}

fn is_fault(kind: &Kind) -> bool {
    matches!(kind, Kind::Fault { .. })
}

fn is_effect(kind: &Kind) -> bool {
    matches!(kind, Kind::Effect { .. })
}

fn is_hand(deed: Deed) -> impl Fn(&Kind) -> bool {
    move |kind| matches!(kind, Kind::Hand { did, .. } if *did == deed)
}

fn sent(call: Call, nth: u32) -> impl Fn(&Kind) -> bool {
    move |kind| matches!(kind, Kind::Sent { exchange: e, .. } if *e == exchange(call, nth))
}

fn received(call: Call, nth: u32) -> impl Fn(&Kind) -> bool {
    move |kind| matches!(kind, Kind::Received { exchange: e, .. } if *e == exchange(call, nth))
}

/// An answer of the destination that arrived.
fn is_heard(kind: &Kind) -> bool {
    matches!(kind, Kind::Received { exchange, .. } if exchange.call.is_to_destination())
}

fn standing(run: &Run) -> Standing {
    run.belief().and_then(|belief| belief.operation(OPERATION)).expect("it is known").standing
}

/// What a look-up or a create was answered.
fn answer(run: &Run, call: Call, nth: u32) -> Option<(u16, &str)> {
    run.history.events().iter().find_map(|event| match &event.kind {
        Kind::Received { exchange: e, status, summary, .. } if *e == exchange(call, nth) => {
            Some((*status, summary.as_str()))
        }
        _ => None,
    })
}

#[test]
fn a_duplicate_is_the_very_request_again_and_the_contract_says_what_it_does() {
    for contract in ["zendesk_ticket", "desk_unique_ref"] {
        let run = held(contract, &[(create(1), What::Duplicate(500))]);
        assert_eq!(run.made_for, [OPERATION], "{contract}: it was recognised");
        let answered = first(&run, received(Call::Create, 1)).1;
        let again = first(&run, is_fault).1;
        assert!((495..510).contains(&(again - answered)), "{answered} {again}");
        assert_eq!(all(&run, sent(Call::Create, 1)).len(), 1, "the workflow sent it once");
    }
    // Where nothing recognises it, it makes a second record for the same operation: nobody survives that.
    let (run, verdict) = judged("desk_nothing", &[(create(1), What::Duplicate(500))]);
    assert!(matches!(verdict, Verdict::Invalid(_)), "{verdict:?}");
    assert_eq!(run.made_for, [OPERATION, OPERATION]);
    assert_eq!(all(&run, is_effect).len(), 2);
    assert!(all(&run, is_effect)[1].cause == run.fired[0]);
}

#[test]
fn a_success_may_say_nothing_that_helps() {
    for contract in scenarios::access::EVERY {
        for (omission, status) in [(Omission::NoId, 201), (Omission::Garbled, 201), (Omission::Accepted, 202)]
        {
            let run = held(contract, &[(create(1), What::OmitId(omission))]);
            let (heard, words) = answer(&run, Call::Create, 1).expect("it was answered");
            assert_eq!(heard, status, "{contract}");
            assert!(words.contains("without an id"), "{words}");
            assert_eq!(run.ledger.records().len(), 1);
            let (effect, answered) = (first(&run, is_effect).1, first(&run, received(Call::Create, 1)).1);
            if omission == Omission::Accepted {
                assert!((1_500..5_000).contains(&(effect - answered)), "{contract}: {effect} {answered}");
            } else {
                assert!(effect <= answered);
            }
        }
    }
}

#[test]
fn a_record_goes_once_it_is_recorded_and_not_before() {
    let cases = [
        (create(1), What::Undo(1_000), Deed::RolledBack, 1_000),
        (record(), What::DeleteByHand, Deed::Deleted, 0),
    ];
    for (place, what, deed, after_ms) in cases {
        for contract in scenarios::access::EVERY {
            let run = held(contract, &[(place.clone(), what.clone())]);
            assert_eq!(standing(&run), Standing::Completed, "{contract}: {what}");
            assert!(run.ledger.records().is_empty(), "{contract}: {what}");
            let kinds: Vec<_> = run.ledger.effects().iter().map(|e| (e.kind, e.by_hand)).collect();
            assert_eq!(kinds, [(EffectKind::Created, false), (EffectKind::Deleted, true)]);
            assert_eq!(run.made_for, [OPERATION, BY_HAND]);
            let gone = first(&run, is_hand(deed));
            let heard = first(&run, received(Call::Create, 1));
            assert!(gone.0 > heard.0 && gone.1 >= heard.1 + after_ms - 10, "{}", log(&run));
        }
    }
    // Whose answer was lost is recorded by a person, hours later: until then the record stands.
    let run = held("desk_nothing", &[unheard(), (record(), What::DeleteByHand)]);
    let (gone, checked) = (first(&run, is_hand(Deed::Deleted)), first(&run, is_heard));
    assert!(gone.0 > checked.0 && gone.1 >= checked.1, "{}", log(&run));
}

#[test]
fn hands_edit_archive_and_copy_a_record_some_time_after_it_was_made() {
    for contract in scenarios::access::EVERY {
        let hands = [
            (What::EditByHand(1_000), Deed::Edited, 1_000, 1),
            (What::ArchiveByHand(0), Deed::Archived, 0, 1),
            (What::CopyByHand(1_000), Deed::Copied, 1_000, 2),
        ];
        for (what, deed, after_ms, records) in hands {
            for more in [vec![], vec![unheard()]] {
                let faults = [more, vec![(record(), what.clone())]].concat();
                let run = held(contract, &faults);
                assert_eq!(run.ledger.records().len(), records, "{contract}: {what}");
                assert_eq!(run.made_for.iter().filter(|made_for| *made_for == OPERATION).count(), 1);
                let (made, done) = (first(&run, is_effect).1, first(&run, is_hand(deed)).1);
                assert!((after_ms..after_ms + 5).contains(&(done - made)), "{contract}: {what}");
            }
        }
    }
}

/// Each page that is put off moves the match one page further, and none of them loses it.
#[test]
fn a_match_can_be_put_off_more_than_once() {
    let pages = [(find(1), What::SecondPage), (find(2), What::SecondPage), (find(3), What::SecondPage)];
    let run = held("desk_strong_lookup", &[&[unheard()], &pages[..]].concat());
    assert_eq!((standing(&run), run.ledger.records().len()), (Standing::Completed, 1), "{}", log(&run));
    assert_eq!(all(&run, received(Call::Find, 4)).len(), 1, "found on the fourth page: {}", log(&run));
    assert_eq!(
        all(&run, |kind| matches!(kind, Kind::Sent { exchange, .. } if exchange.call == Call::Create)).len(),
        1
    );
}

/// What hands have done shows at the destination.
#[test]
fn what_hands_did_shows_in_look_ups() {
    let faults = |what| [unheard(), (record(), what)];
    // Its look-up does not say whether it sees what is archived, so it does not.
    let archived = held("jira_cloud_issue", &faults(What::ArchiveByHand(0)));
    let mut looks = all(&archived, is_heard);
    looks.retain(|look| look.kind.exchange().is_some_and(|e| e.call == Call::Find && e.about == OPERATION));
    assert!(!looks.is_empty());
    assert!(looks.iter().all(|look| matches!(look.kind, Kind::Received { empty: true, .. })));
    let edited = held("desk_strong_lookup", &faults(What::EditByHand(1_000)));
    assert_ne!(standing(&edited), Standing::Rejected);
    let copied = held("desk_strong_lookup", &faults(What::CopyByHand(1_000)));
    assert_eq!(answer(&copied, Call::Find, 1), Some((200, "T93, T94")), "{}", log(&copied));
    // A unique reference cannot be copied.
    let unique = held(
        "desk_unique_ref",
        &[(create(1), What::OmitId(Omission::NoId)), (record(), What::CopyByHand(0))],
    );
    let copy = unique.ledger.effects().iter().find(|effect| effect.by_hand).expect("it was copied");
    assert_eq!(copy.by.reference, None);
}

#[test]
fn a_partition_loses_what_goes_its_way_for_its_time() {
    for (way, records) in [(Way::There, 0), (Way::Back, 1), (Way::Both, 0)] {
        for contract in scenarios::access::EVERY {
            let run = held(contract, &[(create(1), What::Partition { way, ms: 30_000 })]);
            let (_, struck) = first(&run, is_fault);
            let during = |event: &&Event| event.t_ns.millis() < struck + 30_000;
            let made = all(&run, is_effect).into_iter().filter(during).count();
            assert_eq!(made, records, "{contract} {way:?}: {}", log(&run));
            assert_eq!(all(&run, is_heard).into_iter().filter(during).count(), 0, "{contract} {way:?}");
            let arrived =
                |kind: &Kind| matches!(kind, Kind::Arrived { exchange } if exchange.call.is_to_destination());
            let arrived = all(&run, arrived).into_iter().filter(during).count();
            assert_eq!(arrived == 0, way != Way::Back, "{contract} {way:?}");
        }
    }
    // More than one exchange meets it.
    let run = held("desk_strong_lookup", &[(create(1), What::Partition { way: Way::Back, ms: 60_000 })]);
    let broken = |kind: &Kind| matches!(kind, Kind::Broken { exchange } if exchange.call == Call::Find);
    assert!(!all(&run, broken).is_empty(), "{}", log(&run));
    assert_eq!(run.ledger.records().len(), 1);
}

#[test]
fn a_delay_holds_up_the_request_or_its_answer() {
    for contract in scenarios::access::EVERY {
        // Longer than the caller waits: the request is worked on all the same.
        for ms in [3_000, 30_000] {
            let run = held(contract, &[(phase(Call::Create, Phase::Arrived), What::Delay(ms))]);
            let (sent, effect) = (first(&run, sent(Call::Create, 1)).1, first(&run, is_effect).1);
            assert!(effect >= sent + ms || ms > 10_000 && run.made_for.len() == 1, "{contract} {ms}");
            let run = held(contract, &[(phase(Call::Create, Phase::Applied), What::Delay(ms))]);
            let effect = first(&run, is_effect).1;
            assert!(effect < 1_000, "{contract} {ms}");
            let heard = all(&run, received(Call::Create, 1));
            assert_eq!(
                heard.first().map(|event| event.t_ns.millis() >= effect + ms),
                (ms < 10_000).then_some(true)
            );
        }
    }
    let look = phase(Call::Find, Phase::Arrived);
    let run = held("desk_strong_lookup", &[unheard(), (look, What::Delay(3_000))]);
    let (asked, heard) = (first(&run, sent(Call::Find, 1)).1, first(&run, received(Call::Find, 1)).1);
    assert!(heard >= asked + 3_000);
}

#[test]
fn a_blind_look_up_finds_nothing_not_even_its_control() {
    // After so long a look-up could decide, so that the workflow asks for its control.
    let died = (phase(Call::Create, Phase::Applied), What::Kill(90_000));
    let run = held("desk_strong_lookup", &[died, (find(1), What::Blind(60_000))]);
    assert_eq!(answer(&run, Call::Find, 1), Some((200, "no match")), "{}", log(&run));
    let struck = run.fired.iter().flatten().max().expect("both struck");
    let until = run.history.event(*struck).t_ns.millis() + 60_000;
    let looks = all(&run, |kind| match kind {
        Kind::Received { exchange, .. } => exchange.call == Call::Find,
        _ => false,
    });
    let after = looks.into_iter().filter(|look| look.step > *struck);
    let (blind, seeing): (Vec<_>, Vec<_>) = after.partition(|look| look.t_ns.millis() < until);
    let is_empty = |look: &&Event| matches!(look.kind, Kind::Received { empty: true, .. });
    assert!(blind.iter().all(is_empty), "{}", log(&run));
    assert!(blind.iter().any(|look| look.kind.about() == Some("control")), "{}", log(&run));
    assert!(!seeing.iter().any(is_empty) && !seeing.is_empty(), "{}", log(&run));
    assert_eq!((run.made_for.len(), standing(&run)), (1, Standing::Completed));
}

#[test]
fn a_stale_look_up_shows_what_the_index_held_then() {
    let fresh = held("jira_cloud_issue", &[unheard()]);
    let shown = |run: &Run, nth| answer(run, Call::Find, nth).map(|(_, words)| words.to_owned());
    let nth = (1..).find(|nth| shown(&fresh, *nth).is_none_or(|words| words == "T93"));
    let nth = nth.filter(|nth| shown(&fresh, *nth).is_some()).expect("a look-up found it");
    let stale = held("jira_cloud_issue", &[unheard(), (find(nth), What::Stale(120_000))]);
    assert_eq!(shown(&stale, nth).as_deref(), Some("no match"));
    let as_it_is = held("jira_cloud_issue", &[unheard(), (find(nth), What::Stale(0))]);
    assert_eq!(shown(&as_it_is, nth).as_deref(), Some("T93"));
}

#[test]
fn what_a_look_up_finds_may_stand_on_its_second_page() {
    let run = held("desk_strong_lookup", &[unheard(), (find(1), What::SecondPage)]);
    assert_eq!(answer(&run, Call::Find, 1), Some((200, "no match, more pages")));
    assert_eq!(answer(&run, Call::Find, 2), Some((200, "T93")));
    assert_eq!(standing(&run), Standing::Completed);
    assert_eq!(run.made_for, [OPERATION]);
}

#[test]
fn a_stranger_among_the_matches_is_not_taken_for_ours() {
    let run = held("desk_strong_lookup", &[unheard(), (find(1), What::Foreign)]);
    assert_eq!(answer(&run, Call::Find, 1), Some((200, "T94, T93")));
    assert_eq!(all(&run, is_hand(Deed::Made)).len(), 1);
    assert_eq!(run.made_for, [OPERATION, BY_HAND]);
    let belief = run.belief().and_then(|belief| belief.operation(OPERATION)).expect("it is known");
    assert_ne!(belief.record.as_deref(), Some("T94"));
}

#[test]
fn keys_are_forgotten_or_their_store_is_down() {
    let down = held("zendesk_ticket", &[(create(1), What::KeysDown(60_000))]);
    assert_eq!(answer(&down, Call::Create, 1).map(|(status, _)| status), Some(503));
    let (_, struck) = first(&down, is_fault);
    assert!(first(&down, is_effect).1 >= struck + 60_000, "{}", log(&down));
    assert_eq!(down.made_for, [OPERATION]);
    // A key that is forgotten early protects nothing; this contract promises that it is kept.
    let (forgotten, verdict) = judged("zendesk_ticket", &[unheard(), (create(2), What::ForgetKeys)]);
    assert!(matches!(verdict, Verdict::Invalid(_)), "{verdict:?}");
    assert_eq!(forgotten.made_for, [OPERATION, OPERATION], "{}", log(&forgotten));
    let kept = held("zendesk_ticket", &[unheard()]);
    assert_eq!(kept.made_for, [OPERATION]);
}

#[test]
fn a_connection_is_refused_or_never_established() {
    for contract in scenarios::access::EVERY {
        let run = held(contract, &[(Place::Connection { nth: 1 }, What::Refuse)]);
        assert_eq!(all(&run, |kind| matches!(kind, Kind::Refused { .. })).len(), 1);
        let refused = first(&run, |kind| matches!(kind, Kind::Refused { .. }));
        assert!(first(&run, |kind| sent(Call::Create, 1)(kind)).0 > refused.0);
        let run = held(contract, &[(Place::Connection { nth: 1 }, What::HangConnecting)]);
        let (_, struck) = first(&run, is_fault);
        // The caller's patience ends it.
        assert!(first(&run, |kind| sent(Call::Create, 1)(kind)).1 >= struck + 10_000, "{contract}");
        for run in [run, held(contract, &[unheard()])] {
            let opened = run.visits.iter().filter(|visit| matches!(visit.place, Place::Connection { .. }));
            let nths: Vec<u32> = opened
                .map(|visit| match visit.place {
                    Place::Connection { nth } => nth,
                    _ => 0,
                })
                .collect();
            assert!(nths.len() >= 2 || *contract == "desk_nothing", "{contract}: {nths:?}");
            assert_eq!(nths, (1..=nths.len() as u32).collect::<Vec<_>>());
        }
    }
}

#[test]
fn an_error_after_the_effect_is_the_one_that_the_tape_gives() {
    for contract in scenarios::access::EVERY {
        for status in [409, 429, 500] {
            let (run, verdict) = judged(contract, &[(create(1), What::ErrorAfter(status))]);
            assert_eq!(answer(&run, Call::Create, 1), Some((status, "unavailable")));
            assert!(first(&run, is_effect).0 < first(&run, is_fault).0, "it strikes as the answer leaves");
            // This one proves, by contract, that nothing was done.
            match status {
                429 => assert!(matches!(verdict, Verdict::Invalid(_)), "{contract} {verdict:?}"),
                _ => assert_eq!(verdict, Verdict::Held, "{contract} {status}"),
            }
        }
    }
}

/// A fault on an answer strikes when there is one; a fault on a request before there can be.
#[test]
fn a_fault_stands_in_the_history_where_it_strikes() {
    let after = [
        What::LoseResponse(Loss::Silence),
        What::LoseResponse(Loss::Truncated),
        What::Hang { applied: true },
        What::AnswerSlowly(2_000),
        What::OmitId(Omission::NoId),
        What::Partition { way: Way::Back, ms: 20_000 },
    ];
    for what in after {
        let run = held("desk_unique_ref", &[(create(1), what.clone())]);
        assert!(first(&run, is_effect).0 < first(&run, is_fault).0, "{what}");
    }
    let before = [
        What::LoseRequest(Loss::Silence),
        What::NotApplied(None),
        What::NotApplied(Some(500)),
        What::ApplyLate(11_000),
        What::Hang { applied: false },
        What::KeysDown(1_000),
    ];
    for what in before {
        let contract = if matches!(what, What::KeysDown(_)) { "zendesk_ticket" } else { "desk_unique_ref" };
        let run = held(contract, &[(create(1), what.clone())]);
        assert!(first(&run, is_effect).0 > first(&run, is_fault).0, "{what}");
        let arrived =
            |kind: &Kind| matches!(kind, Kind::Arrived { exchange: e } if *e == exchange(Call::Create, 1));
        assert_eq!(all(&run, arrived).is_empty(), matches!(what, What::LoseRequest(_)), "{what}");
    }
}
