//! The records against the desk's, both ways: what is seen twice is reported, and closed when it is not seen
//! any more.

use crate::client::{self, get};
use crate::desk::{HelpDesk, Outcome};
use crate::process::{How, Place, Process, request, wait_for};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use workflow::reconcile::ReconcileError;
use workflow::{Clock, Policy, Timestamp, cli};

const R17: &str = "R17:create-ticket:v1";
const R18: &str = "R18:create-ticket:v1";

/// A service whose clock a test can set ahead, so that a second look can come at once.
struct Books {
    place: Place,
    desk: HelpDesk,
    process: Process,
    ahead: Arc<AtomicI64>,
}

impl Books {
    fn open(contract: &str, outcomes: &[(u32, Outcome)], policy: Policy) -> Books {
        let ahead: Arc<AtomicI64> = Arc::default();
        let (system, by) = (Clock::system(), ahead.clone());
        let clock = Clock::from_fn(move || Timestamp(system.now().0 + by.load(Ordering::SeqCst)));
        let (place, desk) = (Place::new(), HelpDesk::open(contract, outcomes));
        let how = How { clock, policy, personal: vec!["requester".into()], ..How::hasty() };
        let process = Process::start_as(&place, &desk, how).expect("a new store");
        Books { place, desk, process, ahead }
    }

    /// Takes R17 and R18 to their records, T93 and T94.
    fn filled() -> Books {
        let books = Books::open("desk_strong_lookup", &[], How::hasty().policy);
        for (delivery, name) in [("d-1", "R17"), ("d-2", "R18")] {
            books.process.deliver(delivery, &request(name));
            books.process.until(&format!("{name}:create-ticket:v1"), "completed/confirmed");
        }
        books
    }

    fn later(&self) {
        self.ahead.fetch_add(60_000, Ordering::SeqCst);
    }

    fn typed(&self, line: &[&str]) -> (u8, String) {
        let (mut out, mut err) = (vec![], vec![]);
        let service = self.process.address.to_string();
        let at = ["--service", service.as_str()];
        let args = ["workflow"].iter().chain(line).chain(&at).map(Into::into);
        let code = cli::run(args, Timestamp(0), &mut out, &mut err);
        let said = String::from_utf8([out, err].concat()).expect("text");
        let masked = said.split_inclusive(' ').map(|word| {
            let is_time = word.len() >= 20 && word.as_bytes()[4] == b'-' && word.contains('T');
            if is_time { "TIME\n" } else { word }
        });
        (code, masked.collect())
    }

    fn statuses(&self) -> Vec<(String, String)> {
        let all = get(self.process.address, "/discrepancies").body;
        let word = |one: &Value, field: &str| one[field].as_str().unwrap_or("?").to_owned();
        let all = all["discrepancies"].as_array().expect("a list").iter();
        all.map(|one| (word(one, "kind"), word(one, "status"))).collect()
    }

    fn alerts(&self) -> Vec<String> {
        self.place.contents().alerts.into_iter().map(|alert| alert.kind).collect()
    }
}

fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(kind, status)| ((*kind).to_owned(), (*status).to_owned())).collect()
}

/// The balance closes; a record goes and another is made twice; the second look tells it; a correction at the
/// desk closes it, and what stays is settled by a person.
#[test]
fn what_two_looks_see_is_told_until_a_look_does_not_see_it() {
    let books = Books::filled();
    let mut told = vec![books.typed(&["reconcile"])];
    assert_eq!(told[0].0, 0, "{}", told[0].1);
    books.desk.by_hand("T93", true);
    let copy = books.desk.by_hand("T94", false).expect("there is T94");
    told.push(books.typed(&["reconcile"]));
    assert_eq!(books.statuses(), pairs(&[("duplicate_there", "seen"), ("missing_there", "seen")]));
    assert_eq!(books.alerts(), Vec::<String>::new(), "a single look alarms nobody");
    books.later();
    told.push(books.typed(&["reconcile"]));
    assert_eq!(books.statuses(), pairs(&[("duplicate_there", "open"), ("missing_there", "open")]));
    assert_eq!(books.alerts(), ["missing_there", "duplicate_there"]);
    books.later();
    assert_eq!(books.typed(&["reconcile"]).0, 1);
    assert_eq!(books.alerts().len(), 2, "nobody is told twice");

    // Somebody corrects one of the two at the desk, and explains the other.
    books.desk.by_hand(&copy, true);
    let id = told[2].1.lines().find(|line| line.contains("missing_there (")).expect("it is told");
    let id = id.split(' ').next().expect("an id").to_owned();
    let signed = ["--by", "c42", "--reason", "the requester has left"];
    told.push(books.typed(&[&["settle", &id, "--as", "explained"], &signed[..]].concat()));
    told.push(books.typed(&["reconcile"]));
    assert_eq!(books.statuses(), pairs(&[("duplicate_there", "corrected"), ("missing_there", "explained")]));
    told.push(books.typed(&[&["settle", "0000000000000000", "--as", "accepted"], &signed[..]].concat()));
    let all: Vec<String> = told.iter().map(|(code, said)| format!("exit {code}\n{said}")).collect();
    let all = all.join("\n").replace(&id, "MISSING");
    insta::assert_snapshot!("reconciled", masked_ids(&all));
    let known = books.process.explain(R17);
    let trace = known["evidence"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
    assert_eq!((&trace["class"], &trace["source"]), (&json!("person_housekeeping"), &json!("c42")));
    assert!(books.place.contents().verify().is_ok(), "what was said of it is in the chain");
    assert_eq!(books.process.explain(R18)["detail"], "completed/confirmed");
}

/// What is declared personal is nobody's explanation: it would stand in the chain for ever.
#[test]
fn what_is_said_of_a_discrepancy_keeps_no_personal_value() {
    let books = Books::filled();
    let requester = request("R17")["requester"].as_str().expect("a text").to_owned();
    books.desk.by_hand("T93", true);
    books.typed(&["reconcile"]);
    books.later();
    let (_, told) = books.typed(&["reconcile"]);
    let id =
        told.lines().find(|line| line.contains("missing_there (")).and_then(|line| line.split(' ').next());
    let reason = format!("{requester} has left, says not-a-secret");
    let settle = ["settle", id.expect("an id"), "--as", "accepted", "--by", &requester, "--reason", &reason];
    assert_eq!(books.typed(&settle).0, 0);
    let left = books.place.contents();
    let said = left.discrepancies[0].settled.as_deref().expect("it is settled");
    assert_eq!(said, "[personal]: [personal] has left, says [secret]");
    let traced = left.evidence.last().map(|(_, row)| format!("{row:?}")).expect("its row");
    let kept = left.evidence.iter().any(|(_, row)| format!("{row:?}").contains(&requester));
    assert!(!kept && !traced.contains("not-a-secret"), "{traced}");
}

/// Two at once would take one moment for two looks; and a page in a browser must not be able to ask.
#[test]
fn one_reconciliation_at_a_time_and_only_who_asks_in_json() {
    let books = Books::filled();
    let engine = &books.process.engine;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("the system gives a thread");
    let (one, other) = runtime.block_on(async { tokio::join!(engine.reconcile(), engine.reconcile()) });
    assert!(one.is_ok());
    assert_eq!(other, Err(ReconcileError::UnderWay));
    let form = client::request("POST", "/reconcile", Some("text/plain"), b"");
    assert_eq!(client::exchange(books.process.address, &form).status, 415);
}

/// Sixteen hexadecimal digits are an id.
fn masked_ids(text: &str) -> String {
    let is_id = |word: &str| word.len() == 16 && word.bytes().all(|b| b.is_ascii_hexdigit());
    let lines = text.lines().map(|line| {
        let words = line.split(' ').map(|word| if is_id(word) { "ID" } else { word });
        words.collect::<Vec<_>>().join(" ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The engine has looked in vain, and the record is there: it is the one with the reference.
fn ends_with_its_record(declared: bool) {
    let policy = Policy { max_checks: 1, ..How::hasty().policy };
    let books = Books::open("jira_cloud_issue", &[(1, Outcome::Hang)], policy);
    books.process.deliver("d-1", &request("R17"));
    wait_for("the create", || (books.desk.creates() == 1).then_some(()));
    // The one look-up that the policy allows meets nobody.
    books.desk.refuse_next(1);
    wait_for("the look-up that failed", || {
        let known = books.process.explain(R17);
        known["evidence"].as_array()?.iter().any(|seen| seen["class"] == "lookup_failed").then_some(())
    });
    books.ahead.fetch_add(3_600_000, Ordering::SeqCst);
    // Whatever comes makes the engine look at its clock.
    books.process.deliver("d-2", &request("R18"));
    books.process.until(R17, "requiring_verification/exception");
    if declared {
        let checked = Clock::system().now().0 + books.ahead.load(Ordering::SeqCst);
        let word =
            json!({"by": "c42", "reason": "r", "how": "a page", "checked_at": checked, "accept_risk": true});
        assert_eq!(books.process.decide(R17, "declare_absent", &word).status, 200);
    }
    let (_, told) = books.typed(&["reconcile"]);
    let known = books.process.until(R17, "completed/confirmed");
    assert_eq!(known["external_ref"], "T93");
    let source = known["evidence"].as_array().and_then(|all| all.last()).map(|last| last["source"].clone());
    assert_eq!(source, Some(json!("reconciliation")));
    assert_eq!(books.typed(&["reconcile"]).0, 0, "{told}");
}

#[test]
fn a_doubt_with_one_record_of_its_own_ends_with_it() {
    ends_with_its_record(false);
}

/// Somebody has overlooked it, and nobody has had another one made yet.
#[test]
fn what_was_declared_absent_and_is_there_ends_with_it() {
    ends_with_its_record(true);
}

/// A refusal was taken for a proof, and the record is there: nothing is sent any more, and it is not
/// withdrawn either.
#[test]
fn a_record_that_should_not_be_there_stops_the_next_send() {
    let patient = Policy { first_pause: std::time::Duration::from_secs(60), ..How::hasty().policy };
    let books = Books::open("desk_strong_lookup", &[(1, Outcome::ErrorAfter(429))], patient);
    books.process.deliver("d-1", &request("R17"));
    books.process.until(R17, "validated/backoff");
    assert_eq!(books.typed(&["reconcile"]).0, 1);
    let known = books.process.until(R17, "requiring_verification/exception_unsent");
    assert_eq!(known["exceptions"][0]["reason"], "conflict");
    let decide = |act: &str| books.process.decide(R17, act, &json!({"by": "c42", "reason": "r"}));
    for act in ["authorise_resend", "reject"] {
        assert_eq!(decide(act).status, 409, "{act}");
    }
    assert_eq!(decide("cancel").status, 200);
    assert_eq!(books.process.explain(R17)["detail"], "requiring_verification/exception_unsent");
    let found = json!({"by": "c42", "reason": "it is there", "ref": "T93"});
    assert_eq!(books.process.decide(R17, "confirm_found", &found).status, 200);
    assert_eq!((books.desk.creates(), books.desk.records()), (1, vec!["T93".into()]));
    assert!(books.alerts().contains(&"cancelled_too_late".to_owned()), "somebody has to undo it");
    assert!(books.place.contents().verify().is_ok());
}

#[test]
fn what_cannot_be_read_closes_nothing_and_bad_input_is_told() {
    let Books { place, desk, process, .. } = Books::filled();
    drop(desk);
    let address = process.address;
    let report = client::post(address, "/reconcile", &json!({})).body;
    assert_eq!((&report["balance"]["completed"], &report["balance"]["unread"]), (&json!(2), &json!(2)));
    assert_eq!(report["unread"].as_array().map(Vec::len), Some(2));
    assert_eq!(report["discrepancies"], json!([]));
    assert_eq!(get(address, "/reconcile").status, 405);
    let said = |id: &str, body: Value| {
        let answer = client::post(address, &format!("/discrepancies/{id}/explain"), &body);
        (answer.status, answer.body["error"].as_str().unwrap_or_default().to_owned())
    };
    let bad = [
        said("0", json!({"by": "c42", "reason": "r"})),
        said("0", json!({"by": "c42", "reason": " "})),
        said("0", json!({"by": "c42"})),
        said("0", json!({"by": "c42", "reason": "r", "ref": "T93"})),
        said("0", json!({"by": "c42", "reason": "r", "version": 3})),
        said("0", json!([])),
    ];
    insta::assert_snapshot!("settled_badly", format!("{bad:#?}"));
    assert!(place.contents().discrepancies.is_empty());
}
