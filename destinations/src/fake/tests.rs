//! Tests of the fakes: each behaviour that a contract can declare, and what holds whatever the interleaving.

mod finding;
mod identities;
mod keyed;
mod sound;
mod wire;

use super::*;
use crate::contract::{Contract, DedupKey, LookupBy, named};
use crate::ledger::{EffectKind, Millis};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::time::Duration;

/// A request with the usual body.
#[derive(Clone, Debug, Default)]
struct Ask {
    key: Option<&'static str>,
    reference: Option<&'static str>,
    client_id: Option<&'static str>,
    condition: bool,
    title: &'static str,
}

fn keyed(key: &'static str) -> Ask {
    Ask { key: Some(key), reference: Some("wf1-a"), title: "printer", ..Ask::default() }
}

fn create(ask: &Ask) -> Request {
    let body = json!({ "title": ask.title, "external_id": ask.reference, "marker": "R17" });
    let raw = body.to_string().into_bytes();
    let own = |text: Option<&str>| text.map(str::to_owned);
    let (key, reference, client_id) = (own(ask.key), own(ask.reference), own(ask.client_id));
    Request::Create { key, reference, client_id, condition: ask.condition, body, raw }
}

fn upsert(reference: &str, title: &str) -> Request {
    let body = json!({ "title": title });
    let raw = body.to_string().into_bytes();
    Request::Upsert { key: None, reference: reference.to_owned(), body, raw }
}

fn desk(contract: Contract) -> Desk {
    Desk::new(contract, DeskOptions::default())
}

/// A desk whose key is changed.
fn desk_with_key(change: impl FnOnce(&mut DedupKey)) -> Desk {
    let mut contract = named("zendesk_ticket").unwrap();
    change(contract.dedup_key.as_mut().unwrap());
    desk(contract)
}

const WORK: Duration = Duration::from_millis(100);

/// Sends a request and waits for its answer; later requests must be sent later.
fn send(desk: &mut Desk, at: u64, request: Request) -> Reply {
    match desk.begin(Millis(at), request, WORK) {
        Begun::Reply(reply) => reply,
        Begun::Working(id) => answer(desk, at + 100, id),
    }
}

fn answer(desk: &mut Desk, at: u64, id: WorkId) -> Reply {
    let replies = desk.advance(Millis(at));
    replies.into_iter().find(|(done, _)| *done == id).map(|(_, reply)| reply).unwrap()
}

fn working(begun: Begun) -> WorkId {
    match begun {
        Begun::Working(id) => id,
        Begun::Reply(reply) => panic!("an answer at once: {reply:?}"),
    }
}

fn at_once(begun: Begun) -> Reply {
    match begun {
        Begun::Reply(reply) => reply,
        Begun::Working(id) => panic!("no answer at once but {id:?}"),
    }
}

fn header<'a>(reply: &'a Reply, name: &str) -> Option<&'a str> {
    reply.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
}

fn created(desk: &Desk) -> usize {
    desk.ledger().effects().iter().filter(|effect| effect.kind == EffectKind::Created).count()
}

#[test]
fn a_create_commits_after_its_time_and_not_before() {
    let mut desk = desk(named("desk_nothing").unwrap());
    let id = working(desk.begin(Millis(50), create(&keyed("k1")), WORK));
    assert_eq!(desk.due(), Some(Millis(150)));
    assert!(desk.advance(Millis(149)).is_empty() && created(&desk) == 0);
    let reply = answer(&mut desk, 150, id);
    assert_eq!((reply.status, &reply.body["ticket"]["id"]), (201, &json!("T93")));
    let effect = &desk.ledger().effects()[0];
    assert_eq!((effect.n, effect.at, effect.record.as_str(), effect.late), (1, Millis(150), "T93", false));
    assert_eq!(effect.by.key.as_deref(), Some("k1"));
    assert_eq!(effect.by.reference.as_deref(), Some("wf1-a"), "the ledger keeps what the desk drops");
    assert!(effect.by.body.contains("printer") && effect.by.digest.len() == 64);
    assert_eq!(desk.due(), None);
}

#[test]
fn a_commit_later_than_usual_is_marked_late_and_happens_all_the_same() {
    let mut desk = desk(named("desk_nothing").unwrap());
    working(desk.begin(Millis(0), create(&keyed("k1")), Duration::from_secs(11)));
    working(desk.begin(Millis(0), create(&keyed("k2")), Duration::from_secs(10)));
    assert_eq!(desk.advance(Millis(11_000)).len(), 2);
    let late: Vec<bool> = desk.ledger().effects().iter().map(|effect| effect.late).collect();
    assert_eq!(late, [false, true]);
}

#[test]
fn a_create_without_what_is_required_or_by_the_refused_does_nothing() {
    let options = DeskOptions { refused_requesters: vec!["mallory".to_owned()], ..DeskOptions::default() };
    let mut desk = Desk::new(named("desk_nothing").unwrap(), options);
    let with = |body: Value| {
        let raw = body.to_string().into_bytes();
        Request::Create { key: None, reference: None, client_id: None, condition: false, body, raw }
    };
    for (body, status) in [
        (json!({ "name": "x" }), 422),
        (json!({ "title": "" }), 422),
        (json!({ "title": null }), 422),
        (json!({ "title": "x", "requester": "mallory" }), 422),
        (json!(["title"]), 400),
    ] {
        let reply = at_once(desk.begin(Millis(0), with(body.clone()), WORK));
        assert_eq!((reply.status, &reply.body["error"]["code"]), (status, &json!("validation")), "{body}");
        assert!(desk.contract().not_executed(reply.status, reply.body.to_string().as_bytes()), "{body}");
    }
    assert!(desk.due().is_none() && desk.ledger().effects().is_empty());
    assert_eq!(send(&mut desk, 1, with(json!({ "title": "x", "requester": "alice" }))).status, 201);
}

#[test]
fn commits_go_by_time_and_then_by_arrival() {
    let mut desk = desk(named("desk_nothing").unwrap());
    let slow = working(desk.begin(Millis(0), create(&keyed("a")), Duration::from_millis(300)));
    let quick = working(desk.begin(Millis(100), create(&keyed("b")), WORK));
    let also = working(desk.begin(Millis(200), create(&keyed("c")), WORK));
    let order: Vec<WorkId> = desk.advance(Millis(300)).into_iter().map(|(id, _)| id).collect();
    assert_eq!(order, [quick, slow, also]);
    let keys: Vec<_> = desk.ledger().effects().iter().map(|effect| effect.by.key.clone().unwrap()).collect();
    assert_eq!(keys, ["b", "a", "c"]);
}

#[test]
fn one_look_at_the_clock_commits_by_time_too() {
    let mut desk = desk(named("desk_nothing").unwrap());
    let slow = working(desk.begin(Millis(0), create(&keyed("a")), Duration::from_millis(300)));
    let quick = working(desk.begin(Millis(0), create(&keyed("b")), WORK));
    let order: Vec<WorkId> = desk.advance(Millis(1_000)).into_iter().map(|(id, _)| id).collect();
    assert_eq!(order, [quick, slow]);
    let times: Vec<Millis> = desk.ledger().effects().iter().map(|effect| effect.at).collect();
    assert_eq!(times, [Millis(100), Millis(300)]);
}

#[test]
#[should_panic(expected = "time went back")]
fn time_never_goes_back() {
    let mut desk = desk(named("desk_nothing").unwrap());
    desk.advance(Millis(2));
    desk.advance(Millis(1));
}

#[test]
fn a_person_deletes_and_archives() {
    let mut desk = desk(named("desk_unique_ref").unwrap());
    send(&mut desk, 0, create(&keyed("k")));
    assert!(desk.archive(Millis(200), "T93") && !desk.archive(Millis(200), "T94"));
    assert!(desk.delete(Millis(300), "T93") && !desk.delete(Millis(300), "T93"));
    assert_eq!(desk.ledger().effects()[1].kind, EffectKind::Deleted);
    assert!(desk.ledger().records().is_empty());
    assert_eq!(send(&mut desk, 400, Request::Fetch { id: "T93".to_owned() }).status, 404);
    let again = send(&mut desk, 500, create(&keyed("k")));
    assert_eq!(again.body["ticket"]["id"], json!("T94"), "the reference is free again");
}

#[test]
fn a_person_edits_copies_and_makes_and_no_request_is_blamed_for_it() {
    for (contract, has_reference) in [("jira_cloud_issue", true), ("desk_unique_ref", false)] {
        let mut desk = desk(named(contract).unwrap());
        send(&mut desk, 0, create(&keyed("k")));
        assert!(desk.edit(Millis(200), "T93", "title", json!("other")));
        assert!(!desk.edit(Millis(200), "T94", "title", json!("other")));
        assert_eq!(desk.copy(Millis(300), "T93").as_deref(), Some("T94"));
        assert_eq!(desk.copy(Millis(300), "T1"), None);
        assert_eq!(desk.make(Millis(400), "mine", "mine-1"), "T95");
        let (original, copy) = (desk.ticket("T93").unwrap(), desk.ticket("T94").unwrap());
        assert_eq!((&copy["title"], &copy["marker"]), (&json!("other"), &original["marker"]), "{contract}");
        assert_eq!(copy["external_id"] == original["external_id"], has_reference, "{contract}");
        let by_hand: Vec<bool> = desk.ledger().effects().iter().map(|effect| effect.by_hand).collect();
        assert_eq!(by_hand, [false, true, true, true], "{contract}");
        assert_eq!(desk.ledger().records(), ["T93", "T94", "T95"]);
    }
}

#[test]
fn an_index_of_some_time_ago_shows_what_it_showed_then() {
    let mut desk = desk(named("desk_strong_lookup").unwrap());
    let made = send(&mut desk, 1_000, create(&keyed("k")));
    let reference = made.body["ticket"]["external_id"].as_str().unwrap().to_owned();
    assert!(desk.archive(Millis(5_000), "T93"));
    let mut shown = |ago: u64| {
        let ago = Duration::from_millis(ago);
        let page = desk.find_as_it_was(Millis(6_000), LookupBy::ExternalRef, &reference, 1, ago);
        page.body["tickets"].as_array().unwrap().len()
    };
    // It came to be at 1,100.
    assert_eq!((shown(0), shown(4_900), shown(4_901), shown(60_000)), (1, 1, 0, 0));
}

#[test]
fn an_abandoned_request_has_no_effect() {
    let mut desk = desk_with_key(|key| key.in_flight = crate::contract::InFlight::Waits);
    let first = working(desk.begin(Millis(0), create(&keyed("k1")), WORK));
    let waiting = working(desk.begin(Millis(10), create(&keyed("k1")), WORK));
    assert!(desk.abandon(first) && !desk.abandon(first));
    assert_eq!(answer(&mut desk, 10, waiting).status, 503);
    assert_eq!(desk.due(), None);
    assert_eq!(send(&mut desk, 20, create(&keyed("k1"))).status, 201, "the key is free again");
    assert_eq!(created(&desk), 1);
}

#[test]
fn an_error_may_hide_an_effect() {
    for executed in [true, false] {
        let mut desk = desk(named("desk_nothing").unwrap());
        desk.fail_next(500, executed);
        assert_eq!(send(&mut desk, 0, create(&keyed("k"))).status, 500);
        assert_eq!(created(&desk), usize::from(executed));
        assert_eq!(send(&mut desk, 200, create(&keyed("k"))).status, 201, "only the next one fails");
    }
}

/// One step of an interleaving: how long after the last, which key or reference, how long it takes.
type Step = (u64, bool, u64);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((0u64..400, any::<bool>(), 0u64..900), 1..40)
}

fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) }
}

/// Runs the steps to the end and says how many records each of the two names has.
fn run(desk: &mut Desk, steps: &[Step]) -> [usize; 2] {
    let mut now = 0;
    for (wait, other, takes) in steps {
        now += wait;
        let name = if *other { "b" } else { "a" };
        let ask = Ask { key: Some(name), reference: Some(name), title: "x", ..Ask::default() };
        desk.begin(Millis(now), create(&ask), Duration::from_millis(*takes));
    }
    desk.advance(Millis(now + 1_000));
    assert_eq!(desk.due(), None);
    ["a", "b"].map(|name| {
        let by = |effect: &&crate::ledger::Effect| effect.by.key.as_deref() == Some(name);
        desk.ledger().effects().iter().filter(by).count()
    })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_key_that_is_honoured_in_flight_makes_one_record(steps in steps(), kind in 0usize..4) {
        let kinds = crate::contract::InFlight::Error {
            status: 409, code: None, retry_after: crate::contract::Bound::Unknown,
        };
        let in_flight = [
            kinds,
            crate::contract::InFlight::Waits,
            crate::contract::InFlight::Transient,
            crate::contract::InFlight::SecondMayFail,
        ][kind].clone();
        let mut desk = desk_with_key(|key| key.in_flight = in_flight);
        for count in run(&mut desk, &steps) {
            prop_assert!(count <= 1, "{count} records for one key");
        }
    }

    #[test]
    fn an_atomic_reference_makes_one_record(steps in steps()) {
        let mut desk = desk(named("desk_unique_ref").unwrap());
        for count in run(&mut desk, &steps) {
            prop_assert!(count <= 1, "{count} records for one reference");
        }
    }

    #[test]
    fn the_same_steps_give_the_same_ledger(steps in steps(), seed in any::<u64>()) {
        let again = || {
            let options = DeskOptions { seed, ..DeskOptions::default() };
            let mut desk = Desk::new(named("zendesk_ticket").unwrap(), options);
            run(&mut desk, &steps);
            desk.ledger().effects().to_vec()
        };
        prop_assert_eq!(again(), again());
    }
}

#[test]
fn where_nothing_protects_an_interleaving_makes_two() {
    let steps = [(0, false, 500), (10, false, 500)];
    assert_eq!(run(&mut desk(named("zendesk_ticket").unwrap()), &steps), [2, 0], "in flight is unknown");
    assert_eq!(run(&mut desk(named("desk_strong_lookup").unwrap()), &steps), [2, 0]);
    assert_eq!(run(&mut desk(named("desk_nothing").unwrap()), &steps), [2, 0]);
}
