//! What has long ended is removed, and known all the same: a repeat begins nothing, and the chain is whole.

use crate::desk::{HelpDesk, Outcome};
use crate::process::{How, Place, Process, request, text, wait_for};
use serde_json::json;
use std::time::Duration;
use workflow::store::open_file;
use workflow::{Clock, Policy, Timestamp};

const R17: &str = "R17:create-ticket:v1";
const R18: &str = "R18:create-ticket:v1";
const HOUR: Duration = Duration::from_secs(3_600);

/// R17 has ended and was removed two hours later; R18 is a case for a person.
fn purged() -> (Place, HelpDesk, Process) {
    let (place, desk) = (Place::new(), HelpDesk::open("desk_nothing", &[(2, Outcome::Drop)]));
    let process = Process::start(&place, &desk);
    process.deliver("d-1", &request("R17"));
    process.until(R17, "completed/confirmed");
    process.deliver("d-2", &request("R18"));
    process.until(R18, "requiring_verification/exception");
    process.crash();
    let policy = Policy { keep_ended: Some(HOUR), ..How::hasty().policy };
    let clock = Clock::from_fn(|| Timestamp(Clock::system().now().0 + 2 * 3_600_000));
    let process = Process::start_as(&place, &desk, How { policy, clock, ..How::hasty() }).expect("it starts");
    wait_for("the tombstone", || (!place.contents().tombstones.is_empty()).then_some(()));
    (place, desk, process)
}

#[test]
fn a_tombstone_knows_a_repeat_for_ever() {
    let (place, desk, process) = purged();
    let left = place.contents();
    let known: Vec<&str> = left.operations.iter().map(|operation| operation.key.as_str()).collect();
    assert_eq!(known, [R18], "what is open is not removed");
    let stone = &left.tombstones[0];
    assert_eq!((stone.key.as_str(), stone.external_ref.as_deref()), (R17, Some("T93")));
    assert!(left.verify().is_ok() && !left.purged.is_empty());

    let same = process.deliver("d-9", &request("R17"));
    assert_eq!((same.status, &same.body["delivery"]), (202, &json!("same")));
    let mut changed = request("R17");
    changed["title"] = "R17: access to the vault".into();
    let other = process.deliver("d-10", &changed);
    assert_eq!((other.status, &other.body["delivery"]), (409, &json!("changed")));
    let alerts = place.contents().alerts;
    let told = alerts.iter().any(|alert| (&*alert.operation, &*alert.kind) == (R17, "changed_request"));
    assert!(told, "its owner hears of it");
    assert_eq!((desk.creates(), desk.records().len()), (2, 2), "nothing was sent");

    let gone = crate::client::get(process.address, &crate::client::operation_path(R17));
    assert_eq!((gone.status, &gone.body["external_ref"]), (410, &json!("T93")));
    assert!(gone.body["error"].as_str().is_some_and(|why| why.contains("its records were removed on")));
    assert!(place.contents().verify().is_ok());
    process.crash();
}

#[test]
fn whoever_edits_what_is_left_is_found_out() {
    let (place, _desk, process) = purged();
    process.crash();
    let edits = [
        "update tombstone set state = 'rejected/withdrawn'",
        "update tombstone set ref = 'T94'",
        "update tombstone set fingerprint = 'x'",
        "delete from tombstone",
        "delete from purged where seq = 1",
        "update purged set content = 'x' where seq = 2",
        "insert into purged values(99, 'x', 'R17:create-ticket:v1')",
        "insert into purged select seq, hash, 'R18:create-ticket:v1' from evidence; delete from evidence",
        "update purged set operation = 'R18:create-ticket:v1' where seq = 1",
        "delete from external_ref where operation like 'R17%'",
    ];
    let mut told = String::new();
    for edit in edits {
        let store = open_file(&text(&place.store())).expect("a store");
        store.execute_batch("begin").and_then(|()| store.execute_batch(edit)).expect("it is valid");
        let wrong = workflow::store::read_all(&store).expect("readable").verify();
        told += &format!("{edit}\n  {}\n", wrong.expect_err("it is noticed"));
        store.execute_batch("rollback").expect("nothing stays of it");
    }
    assert!(place.contents().verify().is_ok());
    insta::assert_snapshot!("edited_tombstones", told);
}
