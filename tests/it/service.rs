//! The story of R17 on real sockets and a real file: whatever is lost on the way, one request makes one
//! ticket.

use crate::client::{get, operation_path};
use crate::desk::{HelpDesk, Outcome};
use crate::process::{How, Place, Process, key, request, wait_for};
use destinations::Assumptions;
use serde_json::{Value, json};
use std::time::Duration;

const R17: &str = "R17:create-ticket:v1";
/// What the connector says of a send that it had no time to begin.
const TOO_BUSY: [&str; 2] =
    ["nothing was sent: no answer within ", "nothing was sent: the time for this send passed"];

/// The classes of evidence in order, each with its source. A machine that was too busy to open a connection
/// in time has sent nothing: that is no part of the stories here.
fn evidence(known: &Value) -> Vec<String> {
    let seen = known["evidence"].as_array().expect("a list").iter();
    let seen = seen.filter(|seen| {
        let detail = seen["detail"].as_str().unwrap_or_default();
        !TOO_BUSY.iter().any(|why| detail.starts_with(why))
    });
    seen.filter_map(|seen| Some(format!("{} {}", seen["source"].as_str()?, seen["class"].as_str()?)))
        .collect()
}

fn keys(known: &Value) -> Vec<&str> {
    let attempts = known["attempts"].as_array().expect("a list");
    attempts.iter().map(|attempt| attempt["wire_key"].as_str().expect("a key")).collect()
}

fn start(contract: &str, outcomes: &[(u32, Outcome)]) -> (Place, HelpDesk, Process) {
    let (place, desk) = (Place::new(), HelpDesk::open(contract, outcomes));
    let process = Process::start(&place, &desk);
    (place, desk, process)
}

#[test]
fn an_answer_that_comes_back_completes_the_operation() {
    let (_place, desk, process) = start("desk_nothing", &[]);
    let answer = process.deliver("d-1", &request("R17"));
    insta::assert_snapshot!(answer.line(), @r#"202 {"delivery":"new","operation":"R17:create-ticket:v1"}"#);
    let known = process.until(R17, "completed/confirmed");
    assert_eq!(known["external_ref"], "T93");
    assert_eq!(known["facts"], "It was sent once. The destination confirmed the record.");
    assert_eq!(evidence(&known), ["create confirmed"]);
    assert_eq!((desk.records(), desk.creates()), (vec!["T93".into()], 1));
    let sent = String::from_utf8(desk.bodies().remove(0)).expect("JSON");
    assert!(sent.contains(R17), "people can see whose ticket it is: {sent}");
}

/// What follows a loss, contract by contract: a second send with the same key or reference, or a look-up.
#[test]
fn a_lost_response_is_reconciled_as_the_contract_allows() {
    std::thread::scope(|all| {
        for (contract, creates, finds) in [
            ("zendesk_ticket", 2, false),
            ("desk_unique_ref", 2, false),
            ("desk_strong_lookup", 1, true),
            ("jira_cloud_issue", 1, true),
        ] {
            all.spawn(move || {
                for loss in [Outcome::Drop, Outcome::Reset, Outcome::Hang, Outcome::ErrorAfter(500)] {
                    a_lost_response(contract, loss, creates, finds);
                }
            });
        }
    });
}

fn a_lost_response(contract: &str, loss: Outcome, creates: u32, finds: bool) {
    let (place, desk) = (Place::new(), HelpDesk::open(contract, &[(1, loss)]));
    // A second send waits until the first cannot be on its way any more.
    let process = Process::start_as(&place, &desk, How::hasty()).expect("a new store");
    process.deliver("d-1", &request("R17"));
    let known = process.until(R17, "completed/confirmed");
    assert_eq!(known["external_ref"], "T93", "{contract} {loss:?}");
    assert_eq!(evidence(&known)[0], "create unknown", "{contract} {loss:?}: never called a failure");
    assert_eq!(desk.records(), ["T93"], "{contract} {loss:?}");
    assert_eq!((desk.creates(), desk.finds() > 0), (creates, finds), "{contract} {loss:?}");
    let keys = keys(&known);
    assert!(keys.iter().all(|key| *key == keys[0]), "{contract} {loss:?}: {keys:?}");
    let bodies = desk.bodies();
    assert!(bodies.iter().all(|body| *body == bodies[0]), "{contract} {loss:?}");
    process.crash();
}

#[test]
fn a_repeat_under_another_delivery_id_answers_the_same_operation() {
    let (place, desk, process) = start("desk_nothing", &[]);
    process.deliver("d-1", &request("R17"));
    process.until(R17, "completed/confirmed");
    assert_eq!(process.deliver("d-1", &request("R17")).body["delivery"], "same");
    assert_eq!(place.contents().deliveries.len(), 1, "the very same delivery is on record once");
    let mut again = request("R17");
    again["sent_at"] = "2030-01-01".into();
    for id in ["d-1", "d-2", "d-3"] {
        let answer = process.deliver(id, &again);
        insta::allow_duplicates! {
            insta::assert_snapshot!(answer.line(), @r#"202 {"delivery":"same","operation":"R17:create-ticket:v1"}"#);
        }
    }
    let contents = place.contents();
    // The first id came twice, with other bytes: both are on record.
    assert_eq!((contents.deliveries.len(), contents.operations.len(), contents.attempts.len()), (4, 1, 1));
    assert_eq!((desk.records(), desk.creates()), (vec!["T93".into()], 1));
}

/// The process dies after the desk has written and before the workflow knows; the next one reads the same
/// file.
#[test]
fn a_process_that_died_between_intent_and_evidence_recovers_to_in_doubt() {
    for (contract, creates) in
        [("zendesk_ticket", 2), ("desk_unique_ref", 2), ("desk_strong_lookup", 1), ("jira_cloud_issue", 1)]
    {
        let (place, desk) = (Place::new(), HelpDesk::open(contract, &[(1, Outcome::Hang)]));
        // So patient that it still waits when it dies.
        let process = Process::start(&place, &desk);
        process.deliver("d-1", &request("R17"));
        wait_for("the desk's commit", || (desk.records() == ["T93"]).then_some(()));
        process.crash();
        let left = place.contents();
        assert_eq!(left.operations[0].state.as_str(), "processing/sent", "{contract}");
        assert_eq!((left.attempts.len(), left.operations[0].sends), (1, 1), "{contract}");
        let process = Process::start_as(&place, &desk, How::hasty()).expect("the store is there");
        let known = process.until(R17, "completed/confirmed");
        assert_eq!(evidence(&known)[0], "recovery unknown", "{contract}");
        assert_eq!(known["external_ref"], "T93", "{contract}");
        assert_eq!((desk.records(), desk.creates()), (vec!["T93".into()], creates), "{contract}");
        process.crash();
    }
}

#[test]
fn a_process_that_died_before_the_desk_wrote_sends_the_same_bytes_again() {
    let (place, desk) = (Place::new(), HelpDesk::open("desk_unique_ref", &[(1, Outcome::Ignore)]));
    let process = Process::start(&place, &desk);
    process.deliver("d-1", &request("R17"));
    wait_for("the request at the desk", || (desk.creates() == 1).then_some(()));
    process.crash();
    assert_eq!(desk.records(), Vec::<String>::new());
    let process = Process::start(&place, &desk);
    process.until(R17, "completed/confirmed");
    assert_eq!((desk.records(), desk.creates()), (vec!["T93".into()], 2));
    assert_eq!(desk.bodies()[0], desk.bodies()[1]);
}

#[test]
fn what_was_acknowledged_and_never_sent_is_sent_by_the_next_process() {
    let (place, desk) = (Place::new(), HelpDesk::open("desk_nothing", &[]));
    let idle = How { works: false, ..How::default() };
    let process = Process::start_as(&place, &desk, idle).expect("a new store");
    assert_eq!(process.deliver("d-1", &request("R17")).status, 202);
    assert_eq!(process.explain(R17)["next_action"], "send");
    process.crash();
    assert_eq!(desk.creates(), 0);
    let process = Process::start(&place, &desk);
    process.until(R17, "completed/confirmed");
    assert_eq!((desk.records(), desk.creates()), (vec!["T93".into()], 1));
}

#[test]
fn a_success_without_an_id_is_never_sent_again() {
    let (_place, desk, process) = start("desk_strong_lookup", &[(1, Outcome::WithoutId)]);
    process.deliver("d-1", &request("R17"));
    let known = process.until(R17, "completed/confirmed");
    assert_eq!(evidence(&known), ["create confirmed_without_ref", "look-up confirmed"]);
    assert_eq!((desk.records(), desk.creates()), (vec!["T93".into()], 1));

    let (_place, desk, process) = start("desk_nothing", &[(1, Outcome::WithoutId)]);
    process.deliver("d-1", &request("R17"));
    let known = process.until(R17, "requiring_verification/exception");
    assert_eq!(known["exceptions"][0]["reason"], "ref_missing");
    assert_eq!((desk.records(), desk.creates()), (vec!["T93".into()], 1));
}

#[test]
fn a_refusal_ends_the_operation_without_a_record() {
    let (_place, desk, process) = start("desk_unique_ref", &[(1, Outcome::Refuse(422))]);
    process.deliver("d-1", &request("R17"));
    let known = process.until(R17, "rejected/by_destination");
    assert_eq!(known["evidence"][0]["detail"], "422 validation");
    assert_eq!((desk.records(), desk.creates()), (Vec::<String>::new(), 1));
    assert_eq!(process.deliver("d-2", &request("R17")).status, 202);
    assert_eq!(desk.creates(), 1, "a repeat does not revive it");
}

#[test]
fn a_refused_connection_proves_that_nothing_was_sent() {
    let (place, desk) = (Place::new(), HelpDesk::open("desk_nothing", &[]));
    desk.refuse_next(2);
    let process = Process::start(&place, &desk);
    process.deliver("d-1", &request("R17"));
    let known = process.until(R17, "completed/confirmed");
    assert_eq!(evidence(&known), ["create not_applied", "create not_applied", "create confirmed"]);
    assert_eq!((desk.records(), desk.creates()), (vec!["T93".into()], 1));
}

#[test]
fn a_budget_that_is_spent_ends_with_a_person_and_an_alert() {
    let (place, desk) = (Place::new(), HelpDesk::open("desk_nothing", &[]));
    desk.refuse_next(100);
    let process = Process::start(&place, &desk);
    process.deliver("d-1", &request("R17"));
    let known = process.until(R17, "requiring_verification/exception_unsent");
    assert_eq!(known["exceptions"][0]["reason"], "retries_exhausted");
    assert_eq!(keys(&known).len(), 5);
    let alerts = place.contents().alerts;
    assert_eq!(alerts.len(), 1);
    let alert = &alerts[0];
    assert_eq!(
        (&*alert.operation, &*alert.kind, &*alert.owner),
        (R17, "retries_exhausted", "service-desk-lead")
    );
    assert_eq!(desk.creates(), 0);
}

/// The desk commits after the workflow has given up waiting and has looked in vain.
#[test]
fn a_late_commit_is_found_and_makes_no_second_record() {
    let late = Outcome::ApplyLate(Duration::from_millis(1_500));
    let (place, desk) = (Place::new(), HelpDesk::open("desk_strong_lookup", &[(1, late)]));
    let hasty = How::hasty();
    // Long before this a miss would decide; the record is there much sooner.
    let assumed_late_commit = Some(Duration::from_secs(20));
    let assumptions = Assumptions { assumed_late_commit, ..hasty.assumptions.clone() };
    let process = Process::start_as(&place, &desk, How { assumptions, ..hasty }).expect("a new store");
    process.deliver("d-1", &request("R17"));
    let known = process.until(R17, "completed/confirmed");
    assert_eq!(known["external_ref"], "T93");
    assert_eq!((desk.records(), desk.creates()), (vec!["T93".into()], 1));
}

/// The desk repeats the whole request in its error, and a person quotes it: the records keep neither the
/// credentials nor what is declared personal, but for the request that is sent itself.
#[test]
fn credentials_and_personal_fields_are_sent_and_told_to_nobody() {
    let (place, desk) = (Place::new(), HelpDesk::open("desk_nothing", &[(1, Outcome::Echo)]));
    let how = How { personal: vec!["requester".into()], ..How::default() };
    let process = Process::start_as(&place, &desk, how).expect("a new store");
    let person = "ada.example";
    let request = json!({"id": "R17", "title": "R17: access to the archive", "requester": person});
    process.deliver("d-1", &request);
    let known = process.until(R17, "requiring_verification/exception");
    let told = known["evidence"][0]["detail"].as_str().expect("words");
    assert!(told.starts_with("500 \"[secret] {"), "{told}");
    assert!(told.contains("[personal]"), "the fake repeated it: {told}");
    assert!(desk.bodies().iter().all(|body| String::from_utf8_lossy(body).contains(person)), "it is sent");
    let body = json!({"by": "c42", "reason": "ada.example needs it, says not-a-secret", "kind": "call", "note": person});
    assert_eq!(process.decide(R17, "add_evidence", &body).status, 200);
    let now = workflow::Clock::system().now();
    let looked =
        json!({"by": person, "reason": "gone", "how": "all of it", "checked_at": now, "accept_risk": true});
    assert_eq!(process.decide(R17, "declare_absent", &looked).status, 200);
    let alone = process.decide(R17, "authorise_creation", &json!({"by": person, "reason": "needed"}));
    assert_eq!(alone.status, 409, "the same person, whatever the records call them: {}", alone.body);
    let all = process.explain(R17).to_string();
    assert!(!all.contains(person) && !all.contains("not-a-secret"), "{all}");
    process.crash();
    let mut contents = place.contents();
    for operation in &mut contents.operations {
        assert!(operation.frozen.body.contains(person), "without it nothing could be sent again");
        operation.frozen.body.clear();
    }
    assert!(!format!("{contents:?}").contains(person));
    for file in std::fs::read_dir(place.folder()).expect("a folder") {
        let bytes = std::fs::read(file.expect("a file").path()).expect("readable");
        assert!(!bytes.windows(12).any(|window| window == b"not-a-secret"));
    }
}

#[test]
fn many_requests_become_as_many_tickets() {
    let lost: Vec<(u32, Outcome)> = (1..=40).step_by(3).map(|n| (n, Outcome::Drop)).collect();
    let (place, desk, process) = start("desk_unique_ref", &lost);
    for n in 0..20 {
        assert_eq!(process.deliver(&format!("d-{n}"), &request(&format!("R{n}"))).status, 202);
    }
    for n in 0..20 {
        process.until(&key(&format!("R{n}")), "completed/confirmed");
    }
    let refs = place.contents().operations.into_iter().filter_map(|op| op.external_ref);
    let mut refs: Vec<String> = refs.collect();
    let mut records = desk.records();
    refs.sort();
    records.sort();
    assert_eq!((refs.len(), refs), (20, records));
}

#[test]
fn an_operation_that_is_not_there_is_not_found() {
    let (_place, _desk, process) = start("desk_nothing", &[]);
    let answer = get(process.address, &operation_path(R17));
    insta::assert_snapshot!(answer.line(), @r#"404 {"error":"there is no operation `R17:create-ticket:v1`"}"#);
}
