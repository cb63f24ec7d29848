//! Identity: whatever differs between two deliveries of one request, the operation and its bytes are the
//! same.

use crate::desk::HelpDesk;
use crate::process::{How, Place, Process};
use crate::{client, process};
use proptest::prelude::*;
use serde_json::{Value, json};
use workflow::store::Operation;
use workflow::{Clock, Timestamp};

/// The operation that a fresh workflow makes of one delivery.
fn taken(desk: &HelpDesk, envelope: &Value, now: i64) -> Operation {
    let place = Place::new();
    let clock = Clock::from_fn(move || Timestamp(now));
    let how = How { works: false, clock, ..How::default() };
    let process = Process::start_as(&place, desk, how).expect("a new store");
    let answer = client::post(process.address, "/deliveries", envelope);
    assert_eq!(answer.status, 202, "{}", answer.body);
    let operation = place.contents().operations.remove(0);
    process.crash();
    operation
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_time_no_attempt_and_no_delivery_id_gets_into_an_operation(
        name in "[a-zA-Z0-9:/%._ü-]{1,12}",
        source in "[a-z]{1,8}", other_source in "[a-z]{1,8}",
        id in "\\PC{1,20}", other_id in "\\PC{1,20}",
        now in 1_i64..4_000_000_000_000, other_now in 1_i64..4_000_000_000_000,
        volatile in "\\PC{0,20}",
        contract in prop::sample::select(vec!["zendesk_ticket", "desk_unique_ref", "desk_nothing"]),
    ) {
        prop_assume!(!id.trim().is_empty() && !other_id.trim().is_empty() && !name.trim().is_empty());
        let desk = HelpDesk::open(contract, &[]);
        let one = json!({"source": source, "delivery_id": id, "request":
            {"id": name, "title": "access", "requester": "c17"}});
        // Another order, another source, other volatile fields, another time.
        let other = json!({"request": {"requester": "c17", "sent_at": volatile, "attempt": other_now, "title": "access",
            "id": name}, "delivery_id": other_id, "source": other_source, "seq": other_now});
        let (one, other) = (taken(&desk, &one, now), taken(&desk, &other, other_now));
        prop_assert_eq!(&one.key, &other.key);
        prop_assert_eq!(&one.wire_key, &other.wire_key);
        prop_assert_eq!(&one.fingerprint, &other.fingerprint);
        prop_assert_eq!(&one.frozen, &other.frozen);
    }
}

/// A key is what it was yesterday: a program that computes it otherwise would make a second ticket for each
/// old request.
#[test]
fn keys_are_what_they_always_were() {
    let desk = HelpDesk::open("zendesk_ticket", &[]);
    let operation = taken(&desk, &process::delivery("d-1", &process::request("R17")), 1);
    let shown = json!({
        "key": operation.key, "wire_key": operation.wire_key, "fingerprint": operation.fingerprint,
        "frozen": operation.frozen,
    });
    insta::assert_json_snapshot!("keys", shown);
}
