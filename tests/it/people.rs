//! What people can and cannot decide, by HTTP: each decision is checked, signed, and taken once.

use crate::client::{Answer, get};
use crate::desk::{HelpDesk, Outcome};
use crate::process::{Place, Process, key, request};
use serde_json::{Value, json};
use std::sync::Barrier;

const R17: &str = "R17:create-ticket:v1";
const OWNED: &str = "requiring_verification/exception";

/// R17's response is lost at a desk that offers nothing, so that only a person can go on; R18 completes with
/// T94.
fn asked() -> (Place, HelpDesk, Process) {
    let (place, desk) = (Place::new(), HelpDesk::open("desk_nothing", &[(1, Outcome::Drop)]));
    let process = Process::start(&place, &desk);
    process.deliver("d-1", &request("R17"));
    process.until(R17, OWNED);
    process.deliver("d-2", &request("R18"));
    process.until(&key("R18"), "completed/confirmed");
    (place, desk, process)
}

fn found(external_ref: &str, version: &Value) -> Value {
    json!({"by": "c42", "reason": "found by its marker", "ref": external_ref, "version": version})
}

#[test]
fn a_case_has_an_owner_a_deadline_and_the_look_up_to_do_by_hand() {
    let (_place, _desk, process) = asked();
    let cases = get(process.address, "/exceptions").body;
    let case = &cases["exceptions"][0];
    assert_eq!(cases["exceptions"].as_array().map(Vec::len), Some(1));
    assert_eq!((&case["operation"], &case["owner"]), (&json!(R17), &json!("service-desk-lead")));
    assert_eq!((&case["reason"], &case["escalate_to"]), (&json!("nothing_permitted"), &json!("it-duty")));
    let (opened, deadline) = (case["opened"].as_i64(), case["deadline"].as_i64());
    let span = deadline.zip(opened).map(|(deadline, opened)| deadline - opened).expect("numbers");
    assert!((4 * 3_600_000 - 1_000..=4 * 3_600_000).contains(&span), "four hours, not {span} ms");
    insta::assert_snapshot!(case["lookup"].as_str().expect("words"), @r#"search for "R17:create-ticket:v1" in account main"#);
}

/// Every wrong decision is refused by its own answer and changes nothing; the right one completes.
#[test]
fn only_the_right_record_can_be_confirmed() {
    let (place, desk, process) = asked();
    let version = process.explain(R17)["version"].clone();
    let before = place.contents();
    let stale = json!(version.as_u64().expect("a number") - 1);
    let confirm = |body: &Value| process.decide(R17, "confirm_found", body);
    let refused: Vec<Answer> = vec![
        confirm(&found("T1", &version)),
        confirm(&found("T94", &version)),
        confirm(&found("T93/../T94", &version)),
        confirm(&found("", &version)),
        confirm(&found("T93", &stale)),
        confirm(&json!({"by": "c42", "ref": "T93"})),
        confirm(&json!({"by": "c42", "reason": " ", "ref": "T93"})),
        confirm(&json!({"by": "", "reason": "found", "ref": "T93"})),
        confirm(&json!({"by": "c42", "reason": "found"})),
        confirm(&json!({"by": "c42", "reason": "found", "ref": "T93", "force": true})),
        confirm(&json!([])),
        process.decide("R99:create-ticket:v1", "confirm_found", &found("T93", &json!(null))),
        process.decide(&key("R18"), "confirm_found", &found("T94", &json!(null))),
    ];
    let lines: Vec<String> = refused.iter().map(Answer::line).collect();
    insta::assert_snapshot!("wrong_confirmations", lines.join("\n"));
    assert_eq!(place.contents(), before, "a refused decision changes nothing");

    let right = confirm(&found("T93", &version));
    insta::assert_snapshot!(right.line(), @r#"200 {"decision":"confirm_found","operation":"R17:create-ticket:v1"}"#);
    let known = process.until(R17, "completed/confirmed_by_human");
    assert_eq!(known["external_ref"], "T93");
    let seen = &known["evidence"].as_array().expect("a list").last().expect("evidence")["source"];
    assert_eq!(seen, "c42", "who decided is recorded");
    assert_eq!(get(process.address, "/exceptions").body, json!({"exceptions": []}));
    assert_eq!(confirm(&found("T93", &json!(null))).status, 409, "it is decided once");
    assert_eq!((desk.records(), desk.creates()), (vec!["T93".into(), "T94".into()], 2));
}

#[test]
fn a_record_that_may_exist_is_not_rejected_without_accepting_the_risk() {
    let (_place, desk, process) = asked();
    let version = process.explain(R17)["version"].clone();
    let reject = |risk: bool| json!({"by": "c42", "reason": "not needed any more", "accept_risk": risk, "version": version});
    let answer = process.decide(R17, "reject", &reject(false));
    assert_eq!(answer.status, 409);
    insta::assert_snapshot!(answer.body["error"].as_str().expect("words"), @"the record may exist: find it and confirm it, or reject with `accept_risk` and answer for a record nobody knows of");
    process.until(R17, OWNED);
    assert_eq!(process.decide(R17, "reject", &reject(true)).status, 200);
    process.until(R17, "rejected/accepted_risk");
    assert_eq!(desk.creates(), 2);
}

#[test]
fn what_was_never_sent_is_withdrawn_without_a_risk() {
    let (place, desk) = (Place::new(), HelpDesk::open("desk_nothing", &[]));
    desk.refuse_next(100);
    let process = Process::start(&place, &desk);
    process.deliver("d-1", &request("R17"));
    let known = process.until(R17, "requiring_verification/exception_unsent");
    let body = json!({"by": "c42", "reason": "not needed any more", "version": known["version"]});
    assert_eq!(process.decide(R17, "reject", &body).status, 200);
    process.until(R17, "rejected/withdrawn");
    assert_eq!(desk.creates(), 0);
}

#[test]
fn a_desk_that_cannot_be_asked_decides_nothing() {
    let (place, desk, process) = asked();
    let before = place.contents();
    desk.refuse_next(1);
    let answer = process.decide(R17, "confirm_found", &found("T93", &json!(null)));
    assert_eq!(answer.status, 422);
    assert!(answer.body["error"].as_str().is_some_and(|why| why.contains("nothing was decided")));
    assert_eq!(place.contents(), before);
}

/// Eight people decide at one instant, half of them this way and half of them that way: one decision stands.
#[test]
fn of_several_people_at_once_one_wins() {
    for round in 0..5 {
        let (place, _desk, process) = asked();
        let version = process.explain(R17)["version"].clone();
        let start = Barrier::new(8);
        let answers: Vec<(usize, u16)> = std::thread::scope(|scope| {
            let (start, process, version) = (&start, &process, &version);
            let decide = move |n: usize| {
                start.wait();
                let reject = json!({"by": "c43", "reason": "no", "accept_risk": true, "version": version});
                match n % 2 {
                    0 => process.decide(R17, "confirm_found", &found("T93", version)).status,
                    _ => process.decide(R17, "reject", &reject).status,
                }
            };
            let people: Vec<_> = (0..8).map(|n| scope.spawn(move || (n, decide(n)))).collect();
            people.into_iter().map(|person| person.join().expect("no panic")).collect()
        });
        let won: Vec<usize> = answers.iter().filter(|(_, status)| *status == 200).map(|(n, _)| *n).collect();
        assert_eq!(won.len(), 1, "round {round}: {answers:?}");
        assert!(answers.iter().all(|(_, status)| [200, 409].contains(status)), "{answers:?}");
        let contents = place.contents();
        let operation = contents.operations.iter().find(|op| op.key.as_str() == R17).expect("R17");
        let (state, linked) = match won[0] % 2 {
            0 => ("completed/confirmed_by_human", Some("T93")),
            _ => ("rejected/accepted_risk", None),
        };
        assert_eq!((operation.state.as_str(), operation.external_ref.as_deref()), (state, linked));
        let signed = contents.evidence.iter().filter(|(_, seen)| seen.class == "person").count();
        assert_eq!(signed, 1, "one decision is recorded");
    }
}
