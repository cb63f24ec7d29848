//! A newer version of a step, and a request that the older one has in hand.

use crate::desk::{HelpDesk, Outcome};
use crate::process::{How, Place, Process, request};
use serde_json::json;

const OLDER: &str = "R17:create-ticket:v1";
const NEWER: &str = "R17:create-ticket:v2";

/// The older version takes R17 to this state; then the newer one runs.
fn upgraded(outcome: Outcome, state: &str) -> (Place, HelpDesk, Process) {
    let (place, desk) = (Place::new(), HelpDesk::open("desk_nothing", &[(1, outcome)]));
    let process = Process::start(&place, &desk);
    process.deliver("d-1", &request("R17"));
    process.until(OLDER, state);
    process.crash();
    let newer = How { version: 2, ..How::default() };
    let process = Process::start_as(&place, &desk, newer).expect("it starts");
    (place, desk, process)
}

#[test]
fn what_the_older_version_has_in_hand_is_not_begun_anew() {
    let (place, desk, process) = upgraded(Outcome::Drop, "requiring_verification/exception");
    for delivery in ["d-1", "d-2"] {
        let again = process.deliver(delivery, &request("R17"));
        assert_eq!((again.status, &again.body["delivery"]), (202, &json!("same")));
        assert_eq!(again.body["operation"], OLDER, "it says who serves the request");
    }
    let mut changed = request("R17");
    changed["title"] = "R17: access to the vault".into();
    let other = process.deliver("d-3", &changed);
    assert_eq!((other.status, &other.body["operation"]), (409, &json!(OLDER)));
    let cases = process.explain(OLDER)["exceptions"].clone();
    let asked = cases.as_array().into_iter().flatten().find(|case| case["reason"] == "changed_request");
    let lookup = asked.and_then(|case| case["lookup"].as_str()).expect("a case");
    assert!(lookup.contains(OLDER) && !lookup.contains(":v2"), "by the key that was sent: {lookup}");
    let found = json!({"by": "c42", "reason": "found by its marker", "ref": "T93"});
    assert_eq!(process.decide(OLDER, "confirm_found", &found).status, 200);
    process.until(OLDER, "completed/confirmed_by_human");
    assert_eq!(
        process.deliver("d-4", &request("R17")).body["delivery"],
        "same",
        "it is done, for any version"
    );
    assert_eq!((desk.creates(), desk.records().len()), (1, 1));
    let contents = place.contents();
    assert!(contents.operations.iter().all(|operation| operation.key.as_str() != NEWER));
    assert!(contents.verify().is_ok());
    // Another request is the newer version's own.
    process.deliver("d-5", &request("R18"));
    process.until("R18:create-ticket:v2", "completed/confirmed");
}

/// What was turned down for good is no reason not to begin: that may be what the newer version mends.
#[test]
fn what_was_rejected_may_begin_by_the_newer_version() {
    let (place, desk, process) = upgraded(Outcome::Refuse(422), "rejected/by_destination");
    // To the byte what had come before.
    let again = process.deliver("d-1", &request("R17"));
    assert_eq!((again.status, &again.body["delivery"]), (202, &json!("new")));
    process.until(NEWER, "completed/confirmed");
    assert_eq!((desk.creates(), desk.records().len()), (2, 1));
    assert!(place.contents().verify().is_ok());
}

/// What a person withdrew, or answers for, is not begun anew by a repeat.
#[test]
fn what_a_person_ended_stays_ended_for_every_version() {
    let (place, desk) = (Place::new(), HelpDesk::open("desk_nothing", &[(1, Outcome::Drop)]));
    let process = Process::start(&place, &desk);
    process.deliver("d-1", &request("R17"));
    process.until(OLDER, "requiring_verification/exception");
    let word = json!({"by": "c42", "reason": "not wanted", "accept_risk": true});
    assert_eq!(process.decide(OLDER, "reject", &word).status, 200);
    process.crash();
    let process = Process::start_as(&place, &desk, How { version: 2, ..How::default() }).expect("it starts");
    let again = process.deliver("d-2", &request("R17"));
    assert_eq!((&again.body["delivery"], &again.body["operation"]), (&json!("same"), &json!(OLDER)));
    assert_eq!((desk.creates(), desk.records().len()), (1, 1));
}
