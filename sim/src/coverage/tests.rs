use super::*;
use destinations::{Assumptions, Contract};
use std::time::Duration;

fn assumptions() -> Assumptions {
    Assumptions { assumed_late_commit: Some(Duration::from_secs(90)), ..Assumptions::default() }
}

fn covered(contracts: &[Contract], kinds: Option<&[String]>) -> Coverage {
    let assumptions = assumptions();
    Coverage::of(contracts.iter().map(|contract| Terms { contract, assumptions: &assumptions }), kinds)
}

#[test]
fn every_kind_of_place_and_of_fault_has_its_number() {
    let places = boundaries();
    for (number, place) in places.iter().enumerate() {
        assert_eq!(boundary(place), number, "{place}");
    }
    let kinds: BTreeSet<String> = places.iter().map(Place::kind).collect();
    assert_eq!(kinds.len(), places.len());
    for (what, kind) in mildest().iter().zip(KINDS) {
        assert_eq!(what.kind(), kind);
    }
}

#[test]
fn a_cell_is_missed_until_its_fault_has_struck() {
    let contracts = [destinations::named("zendesk_ticket").unwrap()];
    let mut coverage = covered(&contracts, None);
    let (applicable, hit) = coverage.counts();
    assert!(applicable > 100 && hit == 0);
    let at = Place::Exchange(ExchangeName { call: Call::Create, about: "R18".into(), nth: 3 });
    let fault = Fault { at, what: What::LoseResponse(Loss::Reset) };
    let named = |coverage: &Coverage| {
        coverage.missed().any(|cell| cell.to_string() == "lose-response at create (replay)")
    };
    assert!(named(&coverage));
    coverage.struck("zendesk_ticket", &[Mark::of(&fault)]);
    assert!(!named(&coverage));
    assert_eq!(coverage.counts(), (applicable, 1));
    coverage.struck("zendesk_ticket", &[Mark::of(&fault)]);
    assert_eq!(coverage.counts(), (applicable, 1));
    // What nobody explores fills nothing.
    coverage.struck("desk_nothing", &[Mark::of(&fault)]);
    assert_eq!((coverage.counts().1, coverage.unexpected().count()), (1, 0));
}

/// A list of exclusions that hides a cell which runs do fill would weaken the gate in silence.
#[test]
fn a_cell_that_is_struck_although_it_is_excluded_is_told() {
    let contracts = [destinations::named("desk_nothing").unwrap()];
    let mut coverage = covered(&contracts, None);
    let at = Place::Sync { boot: 1, nth: 1, when: When::After };
    coverage.struck("desk_nothing", &[Mark::of(&Fault { at, what: What::BitFlip })]);
    let told: Vec<String> = coverage.unexpected().map(|cell| cell.to_string()).collect();
    assert_eq!(told, ["bit-flip at after sync (owner)"]);
}

#[test]
fn what_is_switched_off_is_not_asked_for() {
    let contracts = destinations::builtin();
    let some = covered(&contracts, Some(&["kill".to_owned()]));
    assert!(some.missed().all(|cell| cell.mark.fault() == "kill") && some.counts().0 > 20);
    assert_eq!(covered(&contracts, Some(&[])).counts(), (0, 0));
}

/// Everything that enumeration may try is a cell that must be filled, and every cell can be tried.
#[test]
fn what_a_menu_offers_is_applicable() {
    let assumptions = assumptions();
    for contract in destinations::builtin() {
        let terms = Terms { contract: &contract, assumptions: &assumptions };
        for at in boundaries() {
            for what in crate::menu::menu(&at, &terms) {
                let fault = Fault { at: at.clone(), what };
                let why = exclusions::why(Mark::of(&fault), &terms);
                let (kind, none) = (at.kind(), contract.lookup.is_empty());
                let is_absent = kind.contains("arrived") || kind.contains("applied");
                assert!(why.is_none() || is_absent || none && kind.starts_with("look-up"), "{kind}");
            }
        }
    }
}

#[test]
fn the_exclusions_in_words() {
    let (contracts, assumptions) = (destinations::builtin(), assumptions());
    let all: Vec<_> =
        contracts.iter().map(|contract| Terms { contract, assumptions: &assumptions }).collect();
    let lines = exclusions(&all).into_iter().map(|Exclusion { what, why }| format!("{what}: {why}"));
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"));
}
