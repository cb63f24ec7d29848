//! Bad input at the door: each gets its own answer, and nothing is lost or half written.

use crate::client::{Answer, Connection, exchange, get, operation_path, post, post_bytes, request};
use crate::desk::{HelpDesk, Outcome};
use crate::process::{How, Place, Process, delivery, request as service_request, wait_for};
use destinations::Assumptions;
use serde_json::{Value, json};
use std::net::SocketAddr;
use workflow::store::{Contents, Link};

const R17: &str = "R17:create-ticket:v1";
const NOTHING: Contents = Contents {
    deliveries: vec![],
    operations: vec![],
    attempts: vec![],
    evidence: vec![],
    exceptions: vec![],
    alerts: vec![],
    authorisations: vec![],
    refs: vec![],
    discrepancies: vec![],
    tombstones: vec![],
    purged: vec![],
    head: Link { seq: 0, hash: String::new() },
};

fn open() -> (Place, HelpDesk, Process) {
    let (place, desk) = (Place::new(), HelpDesk::open("desk_nothing", &[]));
    let process = Process::start(&place, &desk);
    (place, desk, process)
}

/// The service still works: an ordinary request is taken and completed.
fn still_works(process: &Process) {
    assert_eq!(process.deliver("well-1", &service_request("well")).status, 202);
    process.until("well:create-ticket:v1", "completed/confirmed");
}

fn lines(answers: &[(&str, Answer)]) -> String {
    answers.iter().map(|(case, answer)| format!("{case}: {}\n", answer.line())).collect()
}

/// What cannot be attributed to a source and a delivery is refused, and never called recorded.
#[test]
fn what_names_no_delivery_is_refused_and_not_recorded() {
    let (place, desk, process) = open();
    let post = |body: &str| post_bytes(process.address, "/deliveries", body.as_bytes());
    let long = "x".repeat(201);
    let answers = [
        ("empty", post("")),
        ("half", post(r#"{"source": "forms", "delivery"#)),
        ("no object", post(r#"["forms"]"#)),
        ("two values", post("{} {}")),
        ("not UTF-8", post_bytes(process.address, "/deliveries", b"{\"source\": \"\xff\"}")),
        ("nested", post(&"[".repeat(1_000))),
        ("lone surrogate", post(r#"{"source": "\ud800"}"#)),
        ("no source", post(r#"{"delivery_id": "d-1", "request": {"id": "R17"}}"#)),
        ("no delivery id", post(r#"{"source": "forms", "request": {"id": "R17"}}"#)),
        ("blank source", post(r#"{"source": " ", "delivery_id": "d-1", "request": {}}"#)),
        ("a number", post(r#"{"source": "forms", "delivery_id": 7, "request": {}}"#)),
        ("too long", post(&format!(r#"{{"source": "forms", "delivery_id": "{long}", "request": {{}}}}"#))),
    ];
    insta::assert_snapshot!("unrecorded", lines(&answers));
    assert_eq!(place.contents(), NOTHING);
    still_works(&process);
    assert_eq!(desk.creates(), 1);
}

/// What names its delivery is on record, with the reason, and nothing is ever sent for it.
#[test]
fn what_names_its_delivery_is_refused_and_recorded() {
    let (place, desk, process) = open();
    let deliver = |n: u32, request: Value| process.deliver(&format!("d-{n}"), &request);
    let without_request = json!({"source": "forms", "delivery_id": "d-0"});
    let answers = [
        ("no request", post(process.address, "/deliveries", &without_request)),
        ("no object", deliver(1, json!("R17"))),
        ("no id", deliver(2, json!({"title": "access"}))),
        ("id is a number", deliver(3, json!({"id": 17, "title": "access", "requester": "c17"}))),
        ("id is blank", deliver(4, json!({"id": " ", "title": "access", "requester": "c17"}))),
        ("id too long", deliver(5, json!({"id": "x".repeat(201), "title": "access", "requester": "c17"}))),
    ];
    insta::assert_snapshot!("recorded", lines(&answers));
    let contents = place.contents();
    let kept: Vec<String> = contents.deliveries.iter().map(|d| d.delivery_id.clone()).collect();
    assert_eq!(kept, ["d-0", "d-1", "d-2", "d-3", "d-4", "d-5"]);
    assert!(contents.deliveries.iter().all(|d| d.operation.is_none() && d.outcome.starts_with("refused: ")));
    assert_eq!(contents.head.seq, 6, "each refusal is a row of the chain");
    assert_eq!(Contents { deliveries: vec![], head: NOTHING.head, ..contents }, NOTHING);
    assert_eq!(deliver(1, json!("R17")).body, answers[1].1.body, "a repeat hears the same");
    assert_eq!(place.contents().deliveries.len(), 6, "and is on record once");
    assert_eq!(deliver(1, json!("R18")).status, 400);
    assert_eq!(place.contents().deliveries.len(), 7, "other bytes under a known id are on record too");
    still_works(&process);
    assert_eq!(desk.creates(), 1);
}

#[test]
fn a_missing_field_rejects_the_operation_before_anything_is_sent() {
    let (place, desk, process) = open();
    let incomplete = json!({"id": "R17", "title": "R17: access"});
    let first = process.deliver("d-1", &incomplete);
    insta::assert_snapshot!(first.line(), @r#"400 {"error":"`request.requester` is required and must not be empty","operation":"R17:create-ticket:v1","recorded":true}"#);
    assert_eq!(process.explain(R17)["detail"], "rejected/validation");
    assert_eq!(process.deliver("d-2", &incomplete), first, "a repeat hears the same");
    still_works(&process);
    let contents = place.contents();
    assert_eq!((contents.operations.len(), contents.deliveries.len()), (2, 3));
    assert!(contents.attempts.iter().all(|(operation, _)| operation != R17));
    assert_eq!(desk.records(), ["T93"]);
}

#[test]
fn what_is_not_a_delivery_at_all_has_its_own_status() {
    let (place, _desk, process) = open();
    let body = delivery("d-1", &service_request("R17")).to_string();
    let ask = |method: &str, path: &str, kind: Option<&str>| {
        exchange(process.address, &request(method, path, kind, body.as_bytes()))
    };
    let json = Some("application/json");
    let big = delivery("d-1", &json!({"id": "R17", "title": "x".repeat(5_000), "requester": "c17"}));
    let answers = [
        ("too big", post(process.address, "/deliveries", &big)),
        ("no type", ask("POST", "/deliveries", None)),
        ("a form", ask("POST", "/deliveries", Some("application/x-www-form-urlencoded"))),
        ("nearly JSON", ask("POST", "/deliveries", Some("application/json-seq"))),
        ("GET deliveries", ask("GET", "/deliveries", json)),
        ("DELETE operation", ask("DELETE", "/operations/R17%3Acreate-ticket%3Av1", json)),
        ("GET decision", ask("GET", "/operations/R17%3Acreate-ticket%3Av1/reject", json)),
        ("POST exceptions", ask("POST", "/exceptions", json)),
        ("unknown", ask("POST", "/delivery", json)),
        ("deeper", ask("POST", "/deliveries/", json)),
        ("root", ask("GET", "/", json)),
        ("unknown action", ask("POST", "/operations/R17%3Acreate-ticket%3Av1/approve", json)),
        ("key not UTF-8", ask("GET", "/operations/%ff", json)),
    ];
    insta::assert_snapshot!("elsewhere", lines(&answers));
    assert_eq!(place.contents(), NOTHING);
    let spelt = ask("POST", "/deliveries?x=1", Some("Application/JSON; charset=utf-8"));
    assert_eq!(spelt.status, 202, "the type's case and parameters do not matter");
    let exact = delivery("d-2", &json!({"id": "R18", "title": "", "requester": "c17"})).to_string();
    let title = "x".repeat(4096 - exact.len());
    let exact = delivery("d-2", &json!({"id": "R18", "title": title, "requester": "c17"}));
    assert_eq!(exact.to_string().len(), 4096);
    assert_eq!(post(process.address, "/deliveries", &exact).status, 202, "the limit itself is allowed");
}

#[test]
fn a_body_in_pieces_is_read_whole_and_limited_too() {
    let (place, _desk, process) = open();
    let head = "POST /deliveries HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                transfer-encoding: chunked\r\n\r\n";
    let chunked = |parts: &[&str]| {
        let chunks: String = parts.iter().map(|part| format!("{:x}\r\n{part}\r\n", part.len())).collect();
        exchange(process.address, format!("{head}{chunks}0\r\n\r\n").as_bytes())
    };
    let big = "x".repeat(1_500);
    assert_eq!(chunked(&[r#"{"source": ""#, &big, &big, &big, r#""}"#]).status, 413);
    assert_eq!(place.contents(), NOTHING);
    let body = delivery("d-1", &service_request("R17")).to_string();
    let (one, other) = body.split_at(20);
    assert_eq!(chunked(&[one, other]).status, 202);
}

/// The same name with another meaning: a person decides, the desk is not asked a second time.
#[test]
fn a_changed_request_goes_to_a_person_and_never_to_the_desk() {
    let (place, desk, process) = open();
    process.deliver("d-1", &service_request("R17"));
    process.until(R17, "completed/confirmed");
    let changed = json!({"id": "R17", "title": "R17: access to everything", "requester": "c17"});
    let answer = process.deliver("d-2", &changed);
    insta::assert_snapshot!(answer.line(), @r#"409 {"delivery":"changed","error":"this request was delivered before with another meaning; a person decides","operation":"R17:create-ticket:v1","recorded":true}"#);
    assert_eq!(process.deliver("d-2", &changed), answer);
    let contents = place.contents();
    assert_eq!((contents.exceptions.len(), contents.alerts.len(), contents.deliveries.len()), (1, 1, 2));
    assert_eq!(contents.exceptions[0].reason, "changed_request");
    let version = &process.explain(R17)["version"];
    let reject = json!({"by": "c42", "reason": "a mistake at the source", "version": version});
    assert_eq!(process.decide(R17, "reject", &reject).status, 200);
    let known = process.explain(R17);
    assert_eq!((&known["detail"], &known["external_ref"]), (&json!("completed/confirmed"), &json!("T93")));
    assert_eq!(get(process.address, "/exceptions").body, json!({"exceptions": []}));
    assert_eq!((desk.records(), desk.creates()), (vec!["T93".into()], 1));
}

/// Some sources name a delivery after its request, so that the changed one comes under the old id.
#[test]
fn a_changed_request_under_the_same_delivery_id_goes_to_a_person_too() {
    let (place, desk, process) = open();
    process.deliver("R17", &service_request("R17"));
    process.until(R17, "completed/confirmed");
    let changed = json!({"id": "R17", "title": "R17: access to everything", "requester": "c17"});
    for _ in 0..2 {
        assert_eq!(process.deliver("R17", &changed).status, 409);
        let contents = place.contents();
        assert_eq!((contents.exceptions.len(), contents.alerts.len()), (1, 1), "who was told has a case");
    }
    assert_eq!(desk.records(), ["T93"]);
}

/// An id that a source uses twice hides neither of the two deliveries.
#[test]
fn two_requests_under_one_delivery_id_are_two_deliveries() {
    let (place, desk, process) = open();
    for name in ["R17", "R18", "R17"] {
        assert_eq!(process.deliver("d-1", &service_request(name)).status, 202);
    }
    process.until(R17, "completed/confirmed");
    process.until("R18:create-ticket:v1", "completed/confirmed");
    let mut kept: Vec<_> = place.contents().deliveries.into_iter().filter_map(|d| d.operation).collect();
    kept.sort();
    assert_eq!(kept, [R17, "R18:create-ticket:v1"]);
    assert_eq!(desk.records().len(), 2);
}

/// Two cases about one operation are decided one by one.
#[test]
fn a_decision_on_the_record_leaves_the_changed_request_to_its_owner() {
    let place = Place::new();
    let desk = HelpDesk::open("desk_nothing", &[(1, Outcome::Drop)]);
    let process = Process::start(&place, &desk);
    process.deliver("d-1", &service_request("R17"));
    process.until(R17, "requiring_verification/exception");
    let changed = json!({"id": "R17", "title": "R17: access to everything", "requester": "c17"});
    assert_eq!(process.deliver("d-2", &changed).status, 409);
    let version = &process.explain(R17)["version"];
    let found = json!({"by": "c42", "reason": "found by its marker", "ref": "T93", "version": version});
    assert_eq!(process.decide(R17, "confirm_found", &found).status, 200);
    let reasons: Vec<_> = place.contents().exceptions.into_iter().map(|case| case.reason).collect();
    assert_eq!(reasons, ["changed_request"]);
}

#[test]
fn a_changed_request_while_the_first_is_in_doubt_changes_nothing_of_it() {
    let place = Place::new();
    let desk = HelpDesk::open("desk_strong_lookup", &[(1, Outcome::Ignore)]);
    let hasty = How::hasty();
    // A miss decides long after the end of this test.
    let assumed_late_commit = Some(std::time::Duration::from_secs(60));
    let assumptions = Assumptions { assumed_late_commit, ..hasty.assumptions.clone() };
    let process = Process::start_as(&place, &desk, How { assumptions, ..hasty }).expect("a new store");
    process.deliver("d-1", &service_request("R17"));
    wait_for("doubt", || (process.explain(R17)["detail"] == "requiring_verification/in_doubt").then_some(()));
    let changed = json!({"id": "R17", "title": "R17: access to everything", "requester": "c17"});
    assert_eq!(process.deliver("d-2", &changed).status, 409);
    let known = process.explain(R17);
    assert_eq!(known["detail"], "requiring_verification/in_doubt");
    assert_eq!(known["exceptions"][0]["reason"], "changed_request");
    let checks = place.contents().operations[0].checks;
    wait_for("a further look-up", || (place.contents().operations[0].checks > checks).then_some(()));
    assert_eq!((desk.records().len(), desk.creates()), (0, 1), "a miss decides nothing yet");
}

/// Whatever a request is called, its operation is found again under the key that was answered.
#[test]
fn strange_names_make_the_round_trip() {
    let (place, _desk, process) = open();
    let long = "\u{1f4dc}".repeat(200);
    let names = [
        "a/b",
        "a%2Fb",
        "a:b",
        "R17:create-ticket:v1",
        "%",
        "..",
        "?#&",
        "\u{0}",
        "ü\u{301}",
        " x ",
        "\"'\\",
        &long,
    ];
    for (n, name) in names.iter().enumerate() {
        let answer = process.deliver(&format!("d-{n}\u{0}/%:"), &service_request(name));
        assert_eq!(answer.status, 202, "{name:?}: {}", answer.body);
        let key = answer.body["operation"].as_str().expect("a key").to_owned();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "%:-._~".contains(c);
        assert!(key.chars().all(is_plain) && key.matches(':').count() == 2, "{name:?}: {key}");
        let known = process.until(&key, "completed/confirmed");
        assert_eq!(known["operation"], key.as_str());
    }
    let contents = place.contents();
    assert_eq!((contents.operations.len(), contents.deliveries.len()), (names.len(), names.len()));
    assert!(contents.deliveries.iter().all(|d| d.delivery_id.ends_with("\u{0}/%:")));
    let twice = process.deliver("d-0\u{0}/%:", &service_request("a/b"));
    assert_eq!(twice.body["delivery"], "same");
}

#[test]
fn a_slow_client_is_served_and_half_a_request_is_nothing() {
    let (place, _desk, process) = open();
    let bytes = request(
        "POST",
        "/deliveries",
        Some("application/json"),
        delivery("d-1", &service_request("R17")).to_string().as_bytes(),
    );
    for cut in [1, 40, bytes.len() / 2, bytes.len() - 1] {
        let mut half = Connection::open(process.address);
        half.send(&bytes[..cut]);
    }
    let mut waiting = Connection::open(process.address);
    waiting.send(&bytes[..bytes.len() - 1]);
    still_works(&process);
    assert_eq!(place.contents().operations.len(), 1, "what did not arrive whole is not there");
    waiting.send(&bytes[bytes.len() - 1..]);
    assert_eq!(waiting.answer().map(|answer| answer.status), Some(202));
    let mut slow = Connection::open(process.address);
    for byte in request("GET", &operation_path(R17), None, b"") {
        slow.send(&[byte]);
    }
    assert_eq!(slow.answer().map(|answer| answer.status), Some(200));
}

/// The one place of a service is not held for ever by a client that never finishes.
#[test]
fn a_body_that_never_comes_is_given_up() {
    let (place, desk) = (Place::new(), HelpDesk::open("desk_nothing", &[]));
    let usual = How::default();
    let body_timeout = std::time::Duration::from_millis(200);
    let policy = workflow::Policy { body_timeout, max_connections: 1, ..usual.policy.clone() };
    let process = Process::start_as(&place, &desk, How { policy, ..usual }).expect("a new store");
    let mut stuck = Connection::open(process.address);
    stuck.send(&request("POST", "/deliveries", Some("application/json"), &[b'{'; 100])[..150]);
    let answer = stuck.answer().expect("an answer");
    insta::assert_snapshot!(answer.line(), @r#"408 {"error":"the body did not come within 200ms"}"#);
    assert_eq!(place.contents(), NOTHING);
    drop(stuck);
    assert_eq!(process.deliver("d-1", &service_request("R17")).status, 202);
}

#[test]
fn several_requests_share_one_connection() {
    let (_place, _desk, process) = open();
    let mut connection = Connection::open(process.address);
    let post = |n: u32| {
        let body = delivery(&format!("d-{n}"), &service_request("R17")).to_string();
        request("POST", "/deliveries", Some("application/json"), body.as_bytes())
    };
    connection.send(&post(1));
    assert_eq!(connection.answer().expect("an answer").body["delivery"], "new");
    connection.send(&request("POST", "/deliveries", Some("application/json"), b"{"));
    assert_eq!(connection.answer().expect("an answer").status, 400, "a bad one does not end it");
    // Two requests in one write are answered in their order.
    connection.send(&[post(2), request("GET", "/nowhere", None, b"")].concat());
    assert_eq!(connection.answer().expect("an answer").body["delivery"], "same");
    assert_eq!(connection.answer().expect("an answer").status, 404);
}

/// A retry storm at the source: the store's unique key decides, once.
#[test]
fn two_hundred_deliveries_at_once_are_one_operation_and_one_ticket() {
    let (place, desk, process) = open();
    let address = process.address;
    let deliver = |address: SocketAddr, n: usize| {
        let body = delivery(&format!("d-{}", n % 100), &service_request("R17"));
        let answer = post(address, "/deliveries", &body);
        assert_eq!(answer.status, 202, "{}", answer.body);
        answer.body["delivery"] == "new"
    };
    let begun: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..20)
            .map(|t| scope.spawn(move || (0..10).filter(|n| deliver(address, t * 10 + n)).count()))
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    });
    process.until(R17, "completed/confirmed");
    let contents = place.contents();
    assert_eq!((begun, contents.operations.len(), contents.attempts.len()), (1, 1, 1));
    assert_eq!(contents.deliveries.len(), 100, "each delivery is on record once");
    assert_eq!((desk.records(), desk.creates()), (vec!["T93".into()], 1));
}

#[test]
fn a_service_with_too_much_open_refuses_without_taking_anything() {
    let (place, desk) = (Place::new(), HelpDesk::open("desk_nothing", &[]));
    let usual = How::default();
    let policy = workflow::Policy { max_open: 2, ..usual.policy.clone() };
    let how = How { policy, works: false, ..usual };
    let process = Process::start_as(&place, &desk, how).expect("a new store");
    for n in 1..=2 {
        assert_eq!(process.deliver(&format!("d-{n}"), &service_request(&format!("R{n}"))).status, 202);
    }
    let answer = process.deliver("d-3", &service_request("R3"));
    insta::assert_snapshot!(answer.line(), @r#"503 {"error":"too many operations have not ended"}"#);
    let contents = place.contents();
    assert_eq!((contents.operations.len(), contents.deliveries.len()), (2, 2));
}
