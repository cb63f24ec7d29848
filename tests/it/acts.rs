//! What people can do with a case besides confirming and rejecting it: each act by HTTP, refused where it
//! would be a guess.

use crate::client::{Answer, get};
use crate::desk::{HelpDesk, Outcome};
use crate::process::{How, Place, Process, request, wait_for};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use workflow::{Clock, Policy, Timestamp};

const R17: &str = "R17:create-ticket:v1";
const OWNED: &str = "requiring_verification/exception";
const ABSENT: &str = "requiring_verification/declared_absent";
const MINUTE: i64 = 60_000;

/// A wall clock that a test can set ahead.
#[derive(Clone, Default)]
struct Ahead(Arc<AtomicI64>);

impl Ahead {
    fn clock(&self) -> Clock {
        let (system, by) = (Clock::system(), self.0.clone());
        Clock::from_fn(move || Timestamp(system.now().0 + by.load(Ordering::SeqCst)))
    }

    fn by(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }

    fn now(&self) -> i64 {
        self.clock().now().0
    }
}

struct Case {
    place: Place,
    desk: HelpDesk,
    process: Process,
    ahead: Ahead,
}

impl Case {
    /// R17 at this desk, until its case is open.
    fn open(contract: &str, outcome: Outcome, policy: impl FnOnce(Policy) -> Policy) -> Case {
        let (place, desk) = (Place::new(), HelpDesk::open(contract, &[(1, outcome)]));
        let ahead = Ahead::default();
        let hasty = How { clock: ahead.clock(), ..How::hasty() };
        let how = How { policy: policy(hasty.policy.clone()), ..hasty };
        let process = Process::start_as(&place, &desk, how).expect("a new store");
        process.deliver("d-1", &request("R17"));
        process.until(R17, OWNED);
        Case { place, desk, process, ahead }
    }

    fn act(&self, action: &str, by: &str, more: Value) -> Answer {
        let mut body = json!({"by": by, "reason": "R17 still needs its ticket"});
        body.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        self.process.decide(R17, action, &body)
    }

    /// The words of a refusal, with whatever changes between two runs masked.
    fn refused(&self, status: u16, action: &str, by: &str, more: Value) -> String {
        let before = self.place.contents();
        let answer = self.act(action, by, more);
        assert_eq!(answer.status, status, "{}", answer.body);
        assert_eq!(self.place.contents(), before, "a refusal changes nothing");
        mask(answer.body["error"].as_str().expect("words"))
    }

    fn declares(&self, by: &str) -> Answer {
        self.act("declare_absent", by, json!({"how": "every page", "checked_at": self.ahead.now()}))
    }
}

/// Dates become `TIME`.
fn mask(text: &str) -> String {
    let masked = |word: &str| {
        let is_time = word.len() >= 20 && word.as_bytes()[4] == b'-' && word.contains('T');
        if is_time { format!("TIME{}", &word[20..]) } else { word.to_owned() }
    };
    text.split(' ').map(masked).collect::<Vec<_>>().join(" ")
}

/// The whole way of a doubt that no program can end: nobody finds the record, it is declared absent when
/// nothing can come any more, and somebody else permits another one.
#[test]
fn another_record_takes_a_declaration_in_time_and_a_second_person() {
    let case = Case::open("desk_nothing", Outcome::Ignore, |policy| policy);
    let mut refusals = vec![case.refused(409, "authorise_creation", "c42", json!({}))];
    let looked = json!({"how": "every page", "checked_at": case.ahead.now()});
    refusals.push(case.refused(409, "declare_absent", "c42", looked.clone()));
    case.ahead.by(20 * MINUTE);
    refusals.push(case.refused(409, "declare_absent", "c42", looked));
    let early = json!({"how": "every page", "checked_at": case.ahead.now() + 60 * MINUTE});
    refusals.push(case.refused(400, "declare_absent", "c42", early));
    let long_ago = json!({"how": "every page", "checked_at": case.ahead.now() - 61 * MINUTE});
    refusals.push(case.refused(400, "declare_absent", "c42", long_ago));
    assert_eq!(case.declares("c42").status, 200);
    let known = case.process.until(R17, ABSENT);
    insta::assert_snapshot!("offers_when_absent", offers(&known));
    refusals.push(case.refused(409, "authorise_creation", "c42", json!({})));
    refusals.push(case.refused(409, "authorise_resend", "c43", json!({})));
    insta::assert_snapshot!("too_bold", refusals.join("\n"));
    assert_eq!(case.act("authorise_creation", "c43", json!({})).status, 200);
    let known = case.process.until(R17, "completed/confirmed");
    assert_eq!(known["external_ref"], "T93");
    let attempts = known["attempts"].as_array().expect("a list");
    assert_eq!((attempts.len(), attempts[1]["authorisation"].as_i64()), (2, Some(1)));
    assert_ne!(attempts[0]["wire_key"], attempts[1]["wire_key"], "another record has another key");
    assert_eq!(attempts[1]["licence"], "a person permitted this one send");
    assert_eq!((case.desk.records(), case.desk.creates()), (vec!["T93".into()], 2));
    assert!(known["actions"].is_null() && known["exceptions"] == json!([]));
    assert!(case.place.contents().verify().is_ok());
}

fn offers(known: &Value) -> String {
    let actions = known["actions"].as_array().expect("a list").iter();
    let line = |offer: &Value| {
        let bound = |name: &str| offer[name].as_i64().map(|_| format!(" ({name})")).unwrap_or_default();
        let (action, words) = (offer["action"].as_str(), offer["consequence"].as_str());
        format!(
            "{}{}{}: {}",
            action.expect("a word"),
            bound("earliest"),
            bound("latest"),
            words.expect("words")
        )
    };
    actions.map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_same_send_is_permitted_only_where_the_contract_permits_it() {
    let none = Case::open("desk_nothing", Outcome::Drop, |policy| policy);
    let refused = none.refused(409, "authorise_resend", "c42", json!({}));
    insta::assert_snapshot!(refused, @"the contract does not permit the same send again at this moment: it could make a second record");

    let once = |policy| Policy { max_sends: 1, max_checks: 0, ..policy };
    let keyed = Case::open("zendesk_ticket", Outcome::Drop, once);
    let known = keyed.process.explain(R17);
    assert_eq!(known["exceptions"][0]["reason"], "retries_exhausted");
    // Until the first send cannot be on its way any more.
    let answer = wait_for("the contract's leave", || {
        Some(keyed.act("authorise_resend", "c42", json!({}))).filter(|answer| answer.status == 200)
    });
    assert_eq!(answer.body["decision"], "authorise_resend");
    let known = keyed.process.until(R17, "completed/confirmed");
    let attempts = known["attempts"].as_array().expect("a list");
    assert_eq!(attempts.len(), 2);
    assert_eq!(attempts[0]["wire_key"], attempts[1]["wire_key"]);
    assert_eq!((keyed.desk.records(), keyed.desk.creates()), (vec!["T93".into()], 2));
}

#[test]
fn what_had_no_effect_is_sent_once_more_when_a_person_says_so() {
    let (place, desk) = (Place::new(), HelpDesk::open("desk_nothing", &[]));
    desk.refuse_next(5);
    let process = Process::start(&place, &desk);
    process.deliver("d-1", &request("R17"));
    let known = process.until(R17, "requiring_verification/exception_unsent");
    insta::assert_snapshot!("offers_when_unsent", offers(&known));
    let body = json!({"by": "c42", "reason": "the desk is back", "version": known["version"]});
    assert_eq!(process.decide(R17, "authorise_resend", &body).status, 200);
    process.until(R17, "completed/confirmed");
    assert_eq!((desk.records(), desk.creates()), (vec!["T93".into()], 1));
    assert_eq!(process.decide(R17, "authorise_resend", &body).status, 409, "once");
}

#[test]
fn a_permission_that_is_not_used_in_time_permits_nothing() {
    let case = Case::open("desk_nothing", Outcome::Ignore, |policy| policy);
    case.ahead.by(20 * MINUTE);
    let Case { place, desk, process, ahead } = case;
    process.crash();
    let idle = How { clock: ahead.clock(), works: false, ..How::hasty() };
    let process = Process::start_as(&place, &desk, idle).expect("the store is there");
    let say = |action: &str, by: &str| {
        let body = json!({"by": by, "reason": "needed"});
        let mut looked = body.clone();
        looked["how"] = "every page".into();
        looked["checked_at"] = ahead.now().into();
        process.decide(R17, action, if action == "declare_absent" { &looked } else { &body }).status
    };
    assert_eq!((say("declare_absent", "c42"), say("authorise_creation", "c43")), (200, 200));
    assert_eq!(process.explain(R17)["authorisation"]["by"], "c43");
    process.crash();
    ahead.by(16 * MINUTE);
    let how = How { clock: ahead.clock(), ..How::hasty() };
    let process = Process::start_as(&place, &desk, how).expect("the store is there");
    let known = process.until(R17, ABSENT);
    let last = known["evidence"].as_array().and_then(|all| all.last()).expect("evidence");
    assert_eq!(
        (&last["class"], &last["detail"]),
        (&json!("authorisation_lapsed"), &json!("it was not used in time"))
    );
    assert_eq!(known["exceptions"].as_array().map(Vec::len), Some(1), "with a deadline of its own");
    assert_eq!(known["exceptions"][0]["reason"], "authorisation_lapsed");
    assert_eq!((desk.creates(), desk.records().len()), (1, 0));
    assert!(place.contents().verify().is_ok());
}

#[test]
fn cases_change_hands_rest_and_grow() {
    let case = Case::open("desk_nothing", Outcome::Drop, |policy| policy);
    insta::assert_snapshot!("offers_when_in_doubt", offers(&case.process.explain(R17)));
    let seen = case.process.explain(R17)["version"].clone();
    assert_eq!(case.act("assign", "c42", json!({"owner": "c77"})).status, 200);
    let listed = get(case.process.address, "/exceptions").body["exceptions"][0].clone();
    assert_eq!(listed["owner"], "c77");
    let told = (R17.to_owned(), "assigned".to_owned(), "c77".to_owned());
    assert!(case.place.contents().alerts.contains(&told), "who is to act hears of it");
    let deadline = listed["deadline"].as_i64().expect("a time");
    let mut refusals = vec![
        case.refused(400, "snooze", "c77", json!({"until": deadline + 1})),
        case.refused(400, "snooze", "c77", json!({"until": 5})),
        case.refused(400, "snooze", "c77", json!({})),
        case.refused(400, "assign", "c77", json!({"owner": " "})),
        case.refused(400, "assign", "c77", json!({"owner": "c78", "ref": "T93"})),
        case.refused(400, "add_evidence", "c77", json!({"kind": "call"})),
        case.refused(400, "add_evidence", "c77", json!({"kind": "call", "note": "x".repeat(2_001)})),
        case.refused(400, "declare_absent", "c77", json!({"checked_at": 5})),
        case.refused(400, "declare_absent", "c77", json!({"how": "every page"})),
        case.refused(400, "authorise_creation", "c77", json!({"how": "every page"})),
    ];
    assert_eq!(case.act("snooze", "c77", json!({"until": deadline - 1})).status, 200);
    let listed = get(case.process.address, "/exceptions").body["exceptions"][0].clone();
    assert_eq!(listed["snoozed_until"], json!(deadline - 1));
    let note = json!({"kind": "call", "note": "the desk says that it is T93"});
    assert_eq!(case.act("add_evidence", "c77", note.clone()).status, 200);
    let stale = case.act("confirm_found", "c42", json!({"ref": "T93", "version": seen}));
    assert_eq!(stale.status, 409);
    refusals.push(stale.body["error"].as_str().expect("words").to_owned());
    insta::assert_snapshot!("badly_put", refusals.join("\n"));
    case.ahead.by(20 * MINUTE);
    assert_eq!(case.declares("c42").status, 200);
    assert_eq!(case.act("assign", "c42", json!({"owner": "c43"})).status, 200, "says nothing of the record");
    assert_eq!(case.act("add_evidence", "c77", note).status, 200);
    let newer = case.refused(409, "authorise_creation", "c43", json!({}));
    assert!(newer.contains("is newer than the declaration"), "{newer}");
    assert_eq!(case.act("confirm_found", "c43", json!({"ref": "T93"})).status, 200, "it may be found still");
    let acts: Vec<String> = case
        .place
        .contents()
        .evidence
        .iter()
        .filter(|(_, seen)| seen.class == "person")
        .map(|(_, seen)| mask(&format!("{} {}: {} -> {}", seen.source, seen.detail, seen.before, seen.after)))
        .collect();
    insta::assert_snapshot!("traced", acts.join("\n"));
}

/// A case that nobody has decided in time is told to whoever was named for that, once, also by the next
/// process.
#[test]
fn a_missed_deadline_is_told_once() {
    let case = Case::open("desk_nothing", Outcome::Drop, |policy| policy);
    let overdue = |place: &Place| -> Vec<String> {
        let alerts = place.contents().alerts.into_iter();
        alerts
            .filter(|(_, kind, _)| kind == "overdue")
            .map(|(about, _, to)| format!("{about} {to}"))
            .collect()
    };
    assert_eq!(overdue(&case.place), Vec::<String>::new());
    case.ahead.by(4 * 60 * MINUTE);
    wait_for("the alert", || (!overdue(&case.place).is_empty()).then_some(()));
    let Case { place, desk, process, ahead } = case;
    process.crash();
    let how = How { clock: ahead.clock(), ..How::hasty() };
    let process = Process::start_as(&place, &desk, how).expect("the store is there");
    let found = json!({"by": "c42", "reason": "found by its marker", "ref": "T93"});
    assert_eq!(process.decide(R17, "confirm_found", &found).status, 200, "late is better than never");
    process.until(R17, "completed/confirmed_by_human");
    assert_eq!(overdue(&place), ["R17:create-ticket:v1 it-duty"]);
}

/// A success without an id says that there was a record.
#[test]
fn what_was_reported_as_made_is_not_declared_absent_without_a_risk() {
    let case = Case::open("desk_nothing", Outcome::WithoutId, |policy| policy);
    case.ahead.by(20 * MINUTE);
    let looked = json!({"how": "every page", "checked_at": case.ahead.now()});
    let refused = case.refused(409, "declare_absent", "c42", looked);
    insta::assert_snapshot!(refused, @"the destination reported success: there was a record. Find it and confirm it, or declare it absent with `accept_risk`");
    let looked = json!({"how": "every page", "checked_at": case.ahead.now(), "accept_risk": true});
    assert_eq!(case.act("declare_absent", "c42", looked).status, 200);
}

/// The answer to a decision is no guess either: it is durable when it is given.
#[test]
fn a_permission_outlives_the_process() {
    let case = Case::open("desk_nothing", Outcome::Ignore, |policy| policy);
    case.ahead.by(20 * MINUTE);
    let Case { place, desk, process, ahead } = case;
    process.crash();
    let idle = How { clock: ahead.clock(), works: false, ..How::hasty() };
    let process = Process::start_as(&place, &desk, idle).expect("the store is there");
    let looked = json!({"by": "c42", "reason": "gone", "how": "every page", "checked_at": ahead.now()});
    assert_eq!(process.decide(R17, "declare_absent", &looked).status, 200);
    let permits = json!({"by": "c43", "reason": "needed"});
    assert_eq!(process.decide(R17, "authorise_creation", &permits).status, 200);
    process.crash();
    let how = How { clock: ahead.clock(), ..How::hasty() };
    let process = Process::start_as(&place, &desk, how).expect("the store is there");
    process.until(R17, "completed/confirmed");
    assert_eq!((desk.creates(), desk.records()), (2, vec!["T93".into()]));
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(desk.creates(), 2, "it is used up");
}
