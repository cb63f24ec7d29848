//! What people can do with a case besides confirming and rejecting it: each act by HTTP, refused where it
//! would be a guess.

use crate::client::{Answer, get};
use crate::desk::{HelpDesk, Outcome};
use crate::process::{How, Place, Process, request, wait_for};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
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
    policy: Policy,
}

impl Case {
    /// R17 at this desk, until its case is open.
    fn open(contract: &str, outcome: Outcome, policy: impl FnOnce(Policy) -> Policy) -> Case {
        let (place, desk) = (Place::new(), HelpDesk::open(contract, &[(1, outcome)]));
        let ahead = Ahead::default();
        let hasty = How { clock: ahead.clock(), ..How::hasty() };
        let policy = policy(hasty.policy.clone());
        let how = How { policy: policy.clone(), ..hasty };
        let process = Process::start_as(&place, &desk, how).expect("a new store");
        process.deliver("d-1", &request("R17"));
        process.until(R17, OWNED);
        Case { place, desk, process, ahead, policy }
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

impl Case {
    /// Another process takes over, which works or only listens.
    fn restarted(self, works: bool) -> Case {
        let Case { place, desk, process, ahead, policy } = self;
        process.crash();
        let how = How { clock: ahead.clock(), works, policy: policy.clone(), ..How::hasty() };
        let process = Process::start_as(&place, &desk, how).expect("the store is there");
        Case { place, desk, process, ahead, policy }
    }

    /// Declared absent long after anything can come, and permitted anew by somebody else.
    fn permitted(&self) {
        self.ahead.by(20 * MINUTE);
        assert_eq!(self.declares("c42").status, 200);
        assert_eq!(self.act("authorise_creation", "c43", json!({})).status, 200);
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
    let case = Case::open("desk_nothing", Outcome::Ignore, |policy| policy).restarted(false);
    assert_eq!(case.act("assign", "c42", json!({"owner": "c77"})).status, 200);
    let deadline = case.process.explain(R17)["exceptions"][0]["deadline"].clone();
    case.permitted();
    assert_eq!(case.process.explain(R17)["authorisation"]["by"], "c43");
    case.ahead.by(16 * MINUTE);
    let case = case.restarted(true);
    let known = case.process.until(R17, ABSENT);
    let last = known["evidence"].as_array().and_then(|all| all.last()).expect("evidence");
    assert_eq!(
        (&last["class"], &last["detail"]),
        (&json!("authorisation_lapsed"), &json!("it was not used in time"))
    );
    let again = &known["exceptions"][0];
    assert_eq!(known["exceptions"].as_array().map(Vec::len), Some(1));
    assert_eq!((&again["reason"], &again["owner"]), (&json!("authorisation_lapsed"), &json!("c77")));
    assert_eq!(again["deadline"], deadline, "a permission puts no deadline off");
    assert_eq!((case.desk.creates(), case.desk.records().len()), (1, 0));
    assert!(case.place.contents().verify().is_ok());
    let offered = offers(&known);
    assert!(!offered.contains("authorise_creation"), "it would be refused: {offered}");
}

/// The answer to a decision is no guess either: it is durable when it is given.
#[test]
fn a_permission_outlives_the_process() {
    let case = Case::open("desk_nothing", Outcome::Ignore, |policy| policy).restarted(false);
    case.permitted();
    let case = case.restarted(true);
    case.process.until(R17, "completed/confirmed");
    assert_eq!((case.desk.creates(), case.desk.records()), (2, vec!["T93".into()]));
}

/// A permission is for one send. That it had no effect proves nothing of the older key, so that nothing is
/// sent again, refused for good, or called withdrawn, but by a person's word.
#[test]
fn a_permitted_send_without_effect_goes_back_to_its_owner() {
    for (outcome, creates) in [(None, 1), (Some(Outcome::Refuse(422)), 2), (Some(Outcome::Refuse(429)), 2)] {
        let case = Case::open("desk_nothing", Outcome::Ignore, |policy| policy).restarted(false);
        case.permitted();
        match outcome {
            Some(outcome) => case.desk.next_create(outcome),
            None => case.desk.refuse_next(1),
        }
        let case = case.restarted(true);
        let known = case.process.until(R17, ABSENT);
        assert_eq!(known["exceptions"][0]["reason"], "creation_failed", "{outcome:?}");
        assert_eq!((case.desk.creates(), case.desk.records().len()), (creates, 0), "{outcome:?}");
        let again = case.refused(409, "authorise_creation", "c43", json!({}));
        assert!(again.contains("is newer than the declaration"), "{again}");
        case.permitted();
        case.process.until(R17, "completed/confirmed");
        let contents = case.place.contents();
        assert_eq!(contents.operations[0].generation, 2, "each word is another key");
        contents.verify().expect("all of it is on record");
    }
}

/// Who declares it absent at their own risk answers for it to the end.
#[test]
fn a_risk_is_on_record_and_not_forgotten() {
    let case = Case::open("desk_nothing", Outcome::WithoutId, |policy| policy);
    case.ahead.by(20 * MINUTE);
    let looked = json!({"how": "every page", "checked_at": case.ahead.now(), "accept_risk": true});
    assert_eq!(case.act("declare_absent", "c42", looked).status, 200);
    let known = case.process.until(R17, ABSENT);
    let last = known["evidence"].as_array().and_then(|all| all.last()).expect("evidence");
    assert_eq!(last["class"], "person_absent_at_risk");
    assert!(
        last["detail"].as_str().is_some_and(|said| said.ends_with("answers for a record that comes later"))
    );
    let refused = case.refused(409, "reject", "c43", json!({}));
    assert!(refused.starts_with("the record may exist"), "{refused}");
    assert_eq!(case.act("reject", "c43", json!({"accept_risk": true})).status, 200);
    case.process.until(R17, "rejected/accepted_risk");
}

/// The record of an older key is the operation's still, whatever key it carries by now.
#[test]
fn a_record_of_an_older_key_can_be_confirmed() {
    let unseen = |policy| Policy { max_checks: 0, ..policy };
    let case = Case::open("jira_cloud_issue", Outcome::Drop, unseen).restarted(false);
    // It is there, and this person has overlooked it.
    let looked = json!({"how": "every page", "checked_at": case.ahead.now(), "accept_risk": true});
    assert_eq!(case.act("declare_absent", "c42", looked).status, 200);
    assert_eq!(case.act("authorise_creation", "c43", json!({})).status, 200);
    case.desk.next_create(Outcome::Ignore);
    let case = case.restarted(true);
    wait_for("the second send", || (case.desk.creates() == 2).then_some(()));
    case.process.until(R17, OWNED);
    let known = case.process.explain(R17);
    assert_ne!(known["attempts"][0]["wire_key"], known["attempts"][1]["wire_key"]);
    let answer = case.act("confirm_found", "c42", json!({"ref": "T93"}));
    assert_eq!(answer.status, 200, "{}", answer.body);
    case.process.until(R17, "completed/confirmed_by_human");
}

/// Who has permitted another record did not know that the request has changed.
#[test]
fn a_changed_request_voids_a_permission_and_a_declaration() {
    let changed = json!({"id": "R17", "title": "R17: access to everything", "requester": "c17"});
    let declared = Case::open("desk_nothing", Outcome::Ignore, |policy| policy);
    declared.ahead.by(20 * MINUTE);
    assert_eq!(declared.declares("c42").status, 200);
    assert_eq!(declared.process.deliver("d-2", &changed).status, 409);
    let newer = declared.refused(409, "authorise_creation", "c43", json!({}));
    assert!(newer.contains("(changed_request) is newer than the declaration"), "{newer}");

    let permitted = Case::open("desk_nothing", Outcome::Ignore, |policy| policy).restarted(false);
    permitted.permitted();
    assert_eq!(permitted.process.deliver("d-2", &changed).status, 409);
    let permitted = permitted.restarted(true);
    let known = permitted.process.until(R17, ABSENT);
    assert_eq!(permitted.desk.creates(), 1, "nothing was sent on it");
    let last = known["evidence"].as_array().and_then(|all| all.last()).expect("evidence");
    assert_eq!(last["detail"], "more became known before it was used");
}

/// What says nothing of the record leaves a permission as it is; who gave it can take it back.
#[test]
fn a_permission_is_taken_back_by_a_word_and_not_by_housekeeping() {
    let case = Case::open("desk_nothing", Outcome::Ignore, |policy| policy).restarted(false);
    let changed = json!({"id": "R17", "title": "R17: access to everything", "requester": "c17"});
    assert_eq!(case.process.deliver("d-2", &changed).status, 409);
    case.permitted();
    assert_eq!(case.act("assign", "c42", json!({"owner": "c77"})).status, 200);
    assert_eq!(case.process.explain(R17)["authorisation"]["by"], "c43");
    assert_eq!(case.act("reject", "c43", json!({})).status, 200);
    let case = case.restarted(true);
    case.process.until(R17, "rejected/withdrawn");
    assert_eq!(case.desk.creates(), 1);
}

/// Two people are two names, however they are written.
#[test]
fn a_second_person_is_another_one() {
    let case = Case::open("desk_nothing", Outcome::Ignore, |policy| policy);
    case.ahead.by(20 * MINUTE);
    assert_eq!(case.declares("c42").status, 200);
    let refused = case.refused(409, "authorise_creation", " c42 ", json!({}));
    assert!(refused.starts_with("c42 declared the record absent"), "{refused}");
}

#[test]
fn cases_change_hands_rest_and_grow() {
    let case = Case::open("desk_nothing", Outcome::Drop, |policy| policy);
    insta::assert_snapshot!("offers_when_in_doubt", offers(&case.process.explain(R17)));
    let seen = case.process.explain(R17)["version"].clone();
    assert_eq!(case.act("assign", "c42", json!({"owner": "c77"})).status, 200);
    let listed = get(case.process.address, "/exceptions").body["exceptions"][0].clone();
    assert_eq!(listed["owner"], "c77");
    let told = |alert: &workflow::store::Alert| alert.kind == "assigned" && alert.owner == "c77";
    assert!(case.place.contents().alerts.iter().any(told), "who is to act hears of it");
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
        .filter(|(_, seen)| seen.class.starts_with("person"))
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
        let alerts = place.contents().alerts.into_iter().filter(|alert| alert.kind == "overdue");
        alerts.map(|alert| format!("{} {}", alert.operation, alert.owner)).collect()
    };
    assert_eq!(overdue(&case.place), Vec::<String>::new());
    case.ahead.by(4 * 60 * MINUTE);
    wait_for("the alert", || (!overdue(&case.place).is_empty()).then_some(()));
    let case = case.restarted(true);
    assert_eq!(
        case.act("confirm_found", "c42", json!({"ref": "T93"})).status,
        200,
        "late is better than never"
    );
    case.process.until(R17, "completed/confirmed_by_human");
    assert_eq!(overdue(&case.place), ["R17:create-ticket:v1 it-duty"]);
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
