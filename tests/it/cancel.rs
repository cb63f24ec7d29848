//! What is not wanted any more: before anything was sent it ends, after that it is only sent no more.

use crate::client::Answer;
use crate::desk::{HelpDesk, Outcome};
use crate::process::{How, Place, Process, request};
use serde_json::{Value, json};
use std::time::Duration;
use workflow::Policy;

const R17: &str = "R17:create-ticket:v1";

/// R17 at a desk that does this with its first create, taken to this state.
fn taken_to(contract: &str, outcome: Outcome, policy: Policy, state: &str) -> (Place, HelpDesk, Process) {
    let (place, desk) = (Place::new(), HelpDesk::open(contract, &[(1, outcome)]));
    let process = Process::start_as(&place, &desk, How { policy, ..How::hasty() }).expect("a new store");
    process.deliver("d-1", &request("R17"));
    process.until(R17, state);
    (place, desk, process)
}

fn cancel(process: &Process, operation: &str) -> Answer {
    process.decide(operation, "cancel", &json!({"by": "c17", "reason": "it is not needed any more"}))
}

#[test]
fn what_had_no_effect_ends_at_once() {
    let patient = Policy { first_pause: Duration::from_secs(60), ..How::hasty().policy };
    let (place, desk, process) = taken_to("desk_nothing", Outcome::Refuse(429), patient, "validated/backoff");
    assert_eq!(cancel(&process, R17).status, 200);
    let known = process.until(R17, "rejected/withdrawn");
    assert_eq!(
        (&known["cancelled"], &known["facts"]),
        (&json!(true), &json!("It was sent once. It was cancelled; nothing had been applied."),)
    );
    assert_eq!((desk.records(), desk.creates()), (vec![], 1));
    let again = process.deliver("d-2", &request("R17"));
    assert_eq!(again.body["delivery"], "same", "a repeat does not begin it anew");
    assert!(place.contents().verify().is_ok());
}

/// A cancellation proves nothing: the record is there, a person finds it, and is told that it has to go.
#[test]
fn what_may_have_been_applied_stays_in_doubt_and_is_sent_no_more() {
    let policy = How::hasty().policy;
    let owned = "requiring_verification/exception";
    let (place, desk, process) = taken_to("desk_nothing", Outcome::Drop, policy, owned);
    assert_eq!(cancel(&process, R17).status, 200);
    let known = process.until(R17, owned);
    assert_eq!(known["cancelled"], true);
    let actions: Vec<&str> = known["actions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|offer| offer["action"].as_str())
        .collect();
    assert!(!actions.contains(&"cancel") && actions.contains(&"confirm_found"), "{actions:?}");
    let absent =
        json!({"by": "c42", "reason": "r", "how": "every page", "checked_at": 1, "accept_risk": true});
    assert_ne!(process.decide(R17, "declare_absent", &absent).status, 200, "it was not looked at lately");
    for bold in ["authorise_resend", "authorise_creation"] {
        let answer = process.decide(R17, bold, &json!({"by": "c43", "reason": "r"}));
        let why = answer.body["error"].as_str().unwrap_or_default();
        assert!(answer.status == 409 && why.starts_with("it was cancelled"), "{bold}: {}", answer.body);
    }
    let found = json!({"by": "c42", "reason": "found by its marker", "ref": "T93"});
    assert_eq!(process.decide(R17, "confirm_found", &found).status, 200);
    let known = process.until(R17, "completed/confirmed_by_human");
    assert!(known["facts"].as_str().is_some_and(|facts| facts.contains("cancelled too late")), "{known}");
    assert_eq!((desk.records(), desk.creates()), (vec!["T93".into()], 1));
    assert!(place.contents().verify().is_ok());
}

/// A key would allow another send: not any more. A look-up may still find it, and its owner hears of it.
#[test]
fn a_licence_ends_with_the_wish() {
    let slow = Policy { first_pause: Duration::from_millis(700), ..How::hasty().policy };
    let doubt = "requiring_verification/in_doubt";
    let (place, desk, process) = taken_to("desk_strong_lookup", Outcome::Drop, slow, doubt);
    assert_eq!(cancel(&process, R17).status, 200);
    process.until(R17, "completed/confirmed");
    assert_eq!((desk.records(), desk.creates()), (vec!["T93".into()], 1));
    let alerts = place.contents().alerts;
    let told: Vec<(&str, &str)> =
        alerts.iter().map(|alert| (alert.kind.as_str(), alert.owner.as_str())).collect();
    assert_eq!(told, [("cancelled_too_late", "service-desk-lead")]);
}

#[test]
fn it_is_asked_for_as_often_as_it_takes_and_refused_where_there_is_nothing_to_cancel() {
    let policy = How::hasty().policy;
    let (place, _desk, process) =
        taken_to("desk_nothing", Outcome::Drop, policy, "requiring_verification/exception");
    assert_eq!(cancel(&process, "R99:create-ticket:v1").status, 404);
    assert_eq!(cancel(&process, R17).status, 200);
    let before = place.contents();
    assert_eq!(cancel(&process, R17).status, 200, "who did not hear the answer asks again");
    assert_eq!(place.contents(), before, "and leaves no second trace");
    process.deliver("d-2", &request("R18"));
    process.until("R18:create-ticket:v1", "completed/confirmed");
    let late = cancel(&process, "R18:create-ticket:v1");
    let words = "`R18:create-ticket:v1` is completed/confirmed; there is nothing to decide";
    assert_eq!((late.status, &late.body["error"]), (409, &Value::from(words)));
    let unsigned = process.decide(R17, "cancel", &json!({"by": "c17", "reason": " "}));
    assert_eq!(unsigned.status, 400);
}
