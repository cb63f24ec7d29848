//! Tests of identities: unique references, client ids, conditions and upserts.

use super::*;
use crate::contract::{Atomic, Converge, ConvergeKind, OnConflict, OnMultiMatch};

fn with(change: impl FnOnce(&mut Converge)) -> Desk {
    let mut contract = named("desk_unique_ref").unwrap();
    change(&mut contract.converge[0]);
    desk(contract)
}

fn with_kind(kind: ConvergeKind, on_conflict: OnConflict) -> Desk {
    with(|rule| (rule.kind, rule.on_conflict) = (kind, on_conflict))
}

fn named_by_client(condition: bool) -> Request {
    create(&Ask { client_id: Some("c1"), condition, title: "printer", ..Ask::default() })
}

#[test]
fn a_taken_reference_is_refused_and_names_the_record() {
    let mut desk = desk(named("desk_unique_ref").unwrap());
    send(&mut desk, 0, create(&keyed("k1")));
    let reply = send(&mut desk, 200, create(&keyed("k2")));
    assert_eq!((reply.status, created(&desk)), (409, 1));
    assert_eq!(reply.body["error"]["code"], json!("external_id_taken"));
    assert_eq!(reply.body["error"]["existing_id"], json!("T93"));
    let found = send(&mut desk, 300, Request::Fetch { id: "T93".to_owned() });
    assert_eq!(found.body["ticket"]["marker"], json!("R17"));
    let none = send(&mut desk, 400, create(&Ask { reference: None, ..keyed("k") }));
    assert_eq!(none.status, 201, "without a reference there is nothing to meet");
}

#[test]
fn a_conflict_names_the_record_only_where_declared() {
    let mut desk = with(|rule| rule.conflict_names_existing = None);
    send(&mut desk, 0, create(&keyed("k1")));
    assert!(send(&mut desk, 200, create(&keyed("k2"))).body["error"].get("existing_id").is_none());
}

#[test]
fn atomic_is_checked_at_the_commit_and_sequential_only_before() {
    for (atomic, records) in [(Atomic::Yes, 1), (Atomic::Sequential, 2)] {
        let mut desk = with(|rule| rule.atomic = atomic);
        working(desk.begin(Millis(0), create(&keyed("k1")), WORK));
        working(desk.begin(Millis(0), create(&keyed("k2")), WORK));
        let statuses: Vec<u16> = desk.advance(Millis(100)).iter().map(|(_, reply)| reply.status).collect();
        assert_eq!(created(&desk), records, "{atomic:?}");
        assert_eq!(statuses, [201, if records == 1 { 409 } else { 201 }]);
        let later = at_once(desk.begin(Millis(200), create(&keyed("k3")), WORK));
        assert_eq!(later.status, 409, "{atomic:?} one after another");
    }
    for unsure in [Atomic::IfConfigured, Atomic::Unknown] {
        let mut desk = with(|rule| rule.atomic = unsure);
        send(&mut desk, 0, create(&keyed("k1")));
        send(&mut desk, 200, create(&keyed("k2")));
        assert_eq!(created(&desk), 2, "{unsure:?} is not enforced");
    }
}

#[test]
fn an_identity_on_one_path_is_not_enforced_on_another() {
    let mut desk = with(|rule| rule.only_on = Some("PUT /tickets".to_owned()));
    send(&mut desk, 0, create(&keyed("k1")));
    send(&mut desk, 200, create(&keyed("k2")));
    assert_eq!(created(&desk), 2);
}

#[test]
fn an_existing_record_may_be_returned() {
    let mut desk = with(|rule| rule.on_conflict = OnConflict::ReturnsExisting);
    send(&mut desk, 0, create(&keyed("k1")));
    let reply = send(&mut desk, 200, create(&Ask { title: "scanner", ..keyed("k2") }));
    assert_eq!((reply.status, &reply.body["ticket"]["title"]), (200, &json!("printer")));
    assert_eq!(desk.ledger().effects().len(), 1);
}

#[test]
fn an_upsert_creates_and_then_updates_when_it_commits() {
    for atomic in [Atomic::Yes, Atomic::Sequential] {
        let mut desk = with(|rule| {
            (rule.kind, rule.on_conflict, rule.atomic) =
                (ConvergeKind::Upsert, OnConflict::UpdatesExisting, atomic);
        });
        assert_eq!(send(&mut desk, 0, upsert("wf1-a", "one")).status, 201);
        let second = working(desk.begin(Millis(200), upsert("wf1-a", "two"), WORK));
        assert_eq!(desk.ledger().effects().len(), 1, "not before its time");
        let reply = answer(&mut desk, 300, second);
        assert_eq!((reply.status, &reply.body["ticket"]["title"]), (200, &json!("two")));
        let kinds: Vec<EffectKind> = desk.ledger().effects().iter().map(|effect| effect.kind).collect();
        assert_eq!(kinds, [EffectKind::Created, EffectKind::Updated]);
        working(desk.begin(Millis(400), upsert("wf1-b", "x"), WORK));
        working(desk.begin(Millis(400), upsert("wf1-b", "y"), WORK));
        desk.advance(Millis(500));
        assert_eq!(created(&desk), if atomic == Atomic::Yes { 2 } else { 3 }, "{atomic:?} at once");
    }
}

#[test]
fn several_matches_get_what_the_contract_says() {
    let third = |on_multi_match: OnMultiMatch| {
        let mut desk = with(|rule| {
            (rule.kind, rule.on_conflict) = (ConvergeKind::Upsert, OnConflict::UpdatesExisting);
            rule.on_multi_match = on_multi_match;
        });
        send(&mut desk, 0, create(&keyed("k1")));
        send(&mut desk, 200, create(&keyed("k2")));
        assert_eq!(created(&desk), 2, "a plain create does not ask");
        (send(&mut desk, 400, upsert("wf1-a", "new")).status, desk.ledger().effects().len())
    };
    assert_eq!(third(OnMultiMatch::Error { status: 300 }), (300, 2));
    assert_eq!(third(OnMultiMatch::First), (200, 3));
    assert_eq!(third(OnMultiMatch::Unknown), (409, 2));
}

#[test]
fn a_client_id_is_taken_once() {
    let mut desk = with_kind(ConvergeKind::ClientId, OnConflict::Error { status: 400, code: None });
    assert_eq!(send(&mut desk, 0, named_by_client(false)).status, 201);
    assert_eq!(send(&mut desk, 200, named_by_client(false)).status, 400);
    assert_eq!(created(&desk), 1);
}

#[test]
fn a_condition_protects_and_without_it_the_record_is_overwritten() {
    let error = OnConflict::Error { status: 412, code: Some("exists".to_owned()) };
    let mut desk = with_kind(ConvergeKind::ConditionalCreate, error);
    working(desk.begin(Millis(0), named_by_client(true), WORK));
    working(desk.begin(Millis(0), named_by_client(true), WORK));
    let statuses: Vec<u16> = desk.advance(Millis(100)).iter().map(|(_, reply)| reply.status).collect();
    assert_eq!((statuses, created(&desk)), (vec![201, 412], 1));
    assert_eq!(send(&mut desk, 200, named_by_client(true)).status, 412);
    assert_eq!(send(&mut desk, 300, named_by_client(false)).status, 200);
    assert_eq!(desk.ledger().effects()[1].kind, EffectKind::Updated);
}

#[test]
fn an_identity_is_free_at_the_end_of_its_permanence() {
    let hour = crate::contract::Permanence::For(Duration::from_secs(3_600));
    for (at, status) in [(3_599_999, 409), (3_600_000, 201)] {
        let mut desk = with(|rule| rule.permanence = hour);
        send(&mut desk, 0, create(&keyed("k1")));
        assert_eq!(send(&mut desk, at, create(&keyed("k2"))).status, status, "at {at}");
    }
}
