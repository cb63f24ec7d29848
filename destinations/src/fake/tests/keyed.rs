//! Tests of keys: replay, lapse, mismatch, flight, and a store that forgets.

use super::*;
use crate::contract::{
    AfterExpiry, Anchor, Bound, InFlight, KeyFormat, Mismatch, ReplayKind, Saved, Scope, StoreDown,
};

const TWO_HOURS: u64 = 7_200_000;

#[test]
fn a_second_use_is_replayed_and_marked() {
    let mut desk = desk(named("zendesk_ticket").unwrap());
    let first = send(&mut desk, 0, create(&keyed("k1")));
    let second = send(&mut desk, 1_000, create(&keyed("k1")));
    assert_eq!((first.status, second.status, created(&desk)), (201, 201, 1));
    assert_eq!(first.body, second.body);
    assert_eq!(header(&first, "x-idempotency-lookup"), Some("miss"));
    assert_eq!(header(&second, "x-idempotency-lookup"), Some("hit"));
    assert_eq!(send(&mut desk, 2_000, create(&keyed("k2"))).body["ticket"]["id"], json!("T94"));
}

#[test]
fn a_key_lapses_exactly_at_its_retention() {
    for (at, records) in [(TWO_HOURS - 1, 1), (TWO_HOURS, 2)] {
        let mut desk = desk(named("zendesk_ticket").unwrap());
        send(&mut desk, 0, create(&keyed("k1")));
        assert_eq!(send(&mut desk, at, create(&keyed("k1"))).status, 201);
        assert_eq!(created(&desk), records, "at {at}");
    }
}

#[test]
fn the_anchor_says_from_when_the_retention_counts() {
    let records = |anchor: Anchor, at: u64| {
        let mut desk = desk_with_key(|key| key.retention_anchor = anchor);
        send(&mut desk, 0, create(&keyed("k1")));
        send(&mut desk, at, create(&keyed("k1")));
        created(&desk)
    };
    assert_eq!(records(Anchor::FirstCompletion, TWO_HOURS + 99), 1);
    assert_eq!(records(Anchor::FirstCompletion, TWO_HOURS + 100), 2);
    assert_eq!(records(Anchor::ResourceEnd, TWO_HOURS * 9), 1, "the record still exists");
    assert_eq!(records(Anchor::Unknown, TWO_HOURS), 2, "the earliest reading");
    let mut desk = desk_with_key(|key| key.retention_anchor = Anchor::ResourceEnd);
    send(&mut desk, 0, create(&keyed("k1")));
    desk.delete(Millis(1_000), "T93");
    assert_eq!(send(&mut desk, TWO_HOURS, create(&keyed("k1"))).status, 201);
    assert_eq!(created(&desk), 1, "replayed: it ended less than two hours ago");
    send(&mut desk, TWO_HOURS + 1_000, create(&keyed("k1")));
    assert_eq!(created(&desk), 2);
}

#[test]
fn a_commit_after_its_key_lapsed_does_not_answer_for_the_next_use() {
    let busy = InFlight::Error { status: 409, code: None, retry_after: Bound::Unknown };
    let mut desk = desk_with_key(|key| key.in_flight = busy);
    working(desk.begin(Millis(0), create(&keyed("k1")), Duration::from_millis(TWO_HOURS + 100)));
    working(desk.begin(Millis(TWO_HOURS), create(&keyed("k1")), Duration::from_millis(500)));
    let third = at_once(desk.begin(Millis(TWO_HOURS + 200), create(&keyed("k1")), WORK));
    assert_eq!((third.status, created(&desk)), (409, 1), "the second use is still in flight");
    desk.advance(Millis(TWO_HOURS + 500));
    assert_eq!(created(&desk), 2);
    let replayed = at_once(desk.begin(Millis(TWO_HOURS + 600), create(&keyed("k1")), WORK));
    assert_eq!(replayed.body["ticket"]["id"], json!("T94"));
}

#[test]
fn a_lapsed_key_may_be_rejected() {
    let mut desk = desk_with_key(|key| key.after_expiry = AfterExpiry::Rejected);
    send(&mut desk, 0, create(&keyed("k1")));
    assert_eq!(send(&mut desk, TWO_HOURS, create(&keyed("k1"))).status, 412);
    assert_eq!(created(&desk), 1);
}

#[test]
fn another_body_gets_what_the_contract_says() {
    let second = |mismatch: Mismatch| {
        let mut desk = desk_with_key(|key| key.mismatch = mismatch);
        send(&mut desk, 0, create(&keyed("k1")));
        let other = Ask { title: "scanner", ..keyed("k1") };
        let reply = send(&mut desk, 200, create(&other));
        (reply.status, created(&desk), reply)
    };
    let error = Mismatch::Error { status: 400, code: Some("IdempotentRequestError".to_owned()) };
    let (status, records, reply) = second(error);
    assert_eq!((status, records, &reply.body["error"]["code"]), (400, 1, &json!("IdempotentRequestError")));
    let (status, records, reply) = second(Mismatch::ReplaysOriginal);
    assert_eq!((status, records, &reply.body["ticket"]["title"]), (201, 1, &json!("printer")));
    assert_eq!(second(Mismatch::SilentlyDropped).1, 1);
    for harmful in [Mismatch::Executes, Mismatch::MayExecute, Mismatch::Unknown] {
        assert_eq!(second(harmful.clone()).1, 2, "{harmful:?}");
    }
}

#[test]
fn two_at_once_get_what_the_contract_says() {
    let second = |in_flight: InFlight| {
        let mut desk = desk_with_key(|key| key.in_flight = in_flight);
        working(desk.begin(Millis(0), create(&keyed("k1")), WORK));
        let begun = desk.begin(Millis(0), create(&keyed("k1")), WORK);
        let replies = desk.advance(Millis(100));
        (begun, replies, created(&desk))
    };
    let busy = InFlight::Error {
        status: 409,
        code: Some("busy".to_owned()),
        retry_after: Bound::Known(Duration::from_secs(2)),
    };
    let (begun, _, records) = second(busy);
    let reply = at_once(begun);
    assert_eq!((reply.status, records, header(&reply, "retry-after")), (409, 1, Some("2")));
    assert_eq!(reply.body["error"]["code"], json!("busy"));

    let (begun, replies, records) = second(InFlight::Waits);
    let waited = working(begun);
    assert_eq!((records, replies.len()), (1, 2));
    let reply = &replies.iter().find(|(id, _)| *id == waited).unwrap().1;
    assert_eq!((reply.status, header(reply, "x-idempotency-lookup")), (201, Some("hit")));

    assert_eq!(at_once(second(InFlight::Transient).0).status, 503);
    assert_eq!(at_once(second(InFlight::SecondMayFail).0).status, 409);
    for harmful in [InFlight::ExecutesBoth, InFlight::Unknown] {
        assert_eq!(second(harmful.clone()).2, 2, "{harmful:?}");
    }
}

#[test]
fn a_replay_shows_what_the_contract_says() {
    let replayed = |replay: ReplayKind| {
        let mut contract = named("zendesk_ticket").unwrap();
        contract.dedup_key.as_mut().unwrap().replay = replay;
        let mut desk = desk(contract);
        send(&mut desk, 0, create(&keyed("k1")));
        desk.delete(Millis(200), "T93");
        (send(&mut desk, 300, create(&keyed("k1"))), created(&desk))
    };
    assert_eq!(replayed(ReplayKind::FirstResponse).0.status, 201);
    assert_eq!(replayed(ReplayKind::CurrentState).0.status, 404, "a person deleted it since");
    assert_eq!(replayed(ReplayKind::AckOnly).0.body, json!({ "ok": true }));
    assert_eq!(replayed(ReplayKind::AckOnly).1, 1);
}

#[test]
fn a_saved_error_is_replayed_and_another_is_not() {
    let twice = |saved: Vec<Saved>, executed: bool| {
        let mut desk = desk_with_key(|key| key.saved = saved);
        desk.fail_next(500, executed);
        send(&mut desk, 0, create(&keyed("k1")));
        (send(&mut desk, 200, create(&keyed("k1"))).status, created(&desk))
    };
    let all = vec![Saved::Success, Saved::ClientError, Saved::ServerError];
    assert_eq!(twice(all.clone(), true), (500, 1), "still unknown, and one effect");
    assert_eq!(twice(all, false), (500, 0));
    assert_eq!(twice(vec![Saved::Success], true), (200, 1), "the record is there, and shown");
    assert_eq!(twice(vec![Saved::Success], false), (201, 1), "nothing was there, so it is made");
}

#[test]
fn a_failure_may_burn_the_key() {
    let mut desk = desk_with_key(|key| key.burnt_by_failure = Some(true));
    desk.fail_next(500, false);
    send(&mut desk, 0, create(&keyed("k1")));
    assert_eq!(send(&mut desk, 200, create(&keyed("k1"))).status, 500);
    assert_eq!(created(&desk), 0);
}

#[test]
fn a_key_must_be_well_formed() {
    let status = |format: KeyFormat, key: &'static str| {
        let mut desk = desk_with_key(|declared| {
            declared.format = format;
            declared.max_len = Some(36);
        });
        send(&mut desk, 0, create(&keyed(key))).status
    };
    assert_eq!(status(KeyFormat::Any, "any text"), 201);
    assert_eq!(status(KeyFormat::Any, ""), 400);
    assert_eq!(status(KeyFormat::Any, "0123456789012345678901234567890123456"), 400, "37 characters");
    assert_eq!(status(KeyFormat::Ascii, "schlüssel"), 400);
    assert_eq!(status(KeyFormat::SfString, "\"abc\""), 201);
    assert_eq!(status(KeyFormat::SfString, "abc"), 400);
    assert_eq!(status(KeyFormat::Uuid4, "f81d4fae-7dec-41d0-a765-00a0c91e6bf6"), 201);
    assert_eq!(status(KeyFormat::Uuid4, "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"), 400, "version 1");
}

#[test]
fn another_scope_is_another_key() {
    let mut desk = desk_with_key(|key| key.scope = vec![Scope::Account, Scope::Endpoint]);
    send(&mut desk, 0, create(&keyed("k1")));
    desk.set_scope("other account");
    send(&mut desk, 200, create(&keyed("k1")));
    assert_eq!(created(&desk), 2);
    desk.set_scope("");
    send(&mut desk, 400, create(&keyed("k1")));
    assert_eq!(created(&desk), 2, "the first scope still knows it");
    let Request::Create { key, reference, body, raw, .. } = create(&keyed("k1")) else { unreachable!() };
    send(&mut desk, 600, Request::Upsert { key, reference: reference.unwrap(), body, raw });
    assert_eq!(created(&desk), 3, "another endpoint");
}

#[test]
fn lost_keys_protect_nothing() {
    let mut desk = desk(named("zendesk_ticket").unwrap());
    send(&mut desk, 0, create(&keyed("k1")));
    desk.lose_keys();
    send(&mut desk, 200, create(&keyed("k1")));
    assert_eq!(created(&desk), 2);
}

#[test]
fn a_store_of_keys_that_is_down_fails_closed_or_open() {
    let down = |store_down: StoreDown| {
        let mut desk = desk_with_key(|key| key.store_down = store_down);
        send(&mut desk, 0, create(&keyed("k1")));
        desk.set_keys_down(true);
        let status = send(&mut desk, 200, create(&keyed("k1"))).status;
        desk.set_keys_down(false);
        assert_eq!(send(&mut desk, 400, create(&keyed("k1"))).status, 201);
        (status, created(&desk))
    };
    assert_eq!(down(StoreDown::FailClosed { status: 503 }), (503, 1));
    assert_eq!(down(StoreDown::FailOpen), (201, 2));
}
