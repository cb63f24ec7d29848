//! Tests of look-ups: what they show, and when.

use super::*;
use crate::contract::{Complete, Consistency, LookupBy, Staleness};

fn find(desk: &mut Desk, at: u64, by: LookupBy, value: &str, page: u32) -> Reply {
    at_once(desk.begin(Millis(at), Request::Find { by, value: value.to_owned(), page }, WORK))
}

fn ids(reply: &Reply) -> Vec<&str> {
    reply.body["tickets"].as_array().unwrap().iter().map(|ticket| ticket["id"].as_str().unwrap()).collect()
}

fn by_reference(desk: &mut Desk, at: u64) -> usize {
    let reply = find(desk, at, LookupBy::ExternalRef, "wf1-a", 1);
    ids(&reply).len()
}

fn strong(change: impl FnOnce(&mut crate::contract::Lookup)) -> Desk {
    let mut contract = named("desk_strong_lookup").unwrap();
    change(&mut contract.lookup[0]);
    desk(contract)
}

#[test]
fn a_strong_look_up_sees_a_commit_at_once_and_nothing_before() {
    let mut desk = strong(|_| {});
    working(desk.begin(Millis(0), create(&keyed("k")), WORK));
    assert_eq!(by_reference(&mut desk, 99), 0);
    assert_eq!(by_reference(&mut desk, 100), 1);
    let other = find(&mut desk, 100, LookupBy::ExternalRef, "wf1-b", 1);
    assert_eq!((other.status, ids(&other).len(), &other.body["next_page"]), (200, 0, &Value::Null));
}

#[test]
fn an_eventual_look_up_lags_and_fetching_does_not() {
    let mut seen = Vec::new();
    for seed in 0..20 {
        let options = DeskOptions { seed, lag: Duration::from_secs(60), ..DeskOptions::default() };
        let mut desk = Desk::new(named("zendesk_ticket").unwrap(), options);
        send(&mut desk, 0, create(&keyed("k")));
        assert_eq!(send(&mut desk, 100, Request::Fetch { id: "T93".to_owned() }).status, 200);
        assert_eq!(by_reference(&mut desk, 30_000), 0, "seed {seed}: half of the lag is sure");
        let appears = (301..=601).find(|tenth| by_reference(&mut desk, tenth * 100) == 1);
        seen.push(appears.expect("it appears within the lag"));
    }
    seen.sort_unstable();
    seen.dedup();
    assert!(seen.len() > 10, "the seed draws the lag: {seen:?}");
}

#[test]
fn a_declared_bound_of_staleness_is_kept() {
    let mut desk = strong(|lookup| {
        lookup.consistency = Consistency::Eventual;
        lookup.max_staleness = Staleness::Known(Duration::from_secs(4));
    });
    send(&mut desk, 0, create(&keyed("k")));
    assert_eq!(by_reference(&mut desk, 2_000), 0);
    assert_eq!(by_reference(&mut desk, 4_100), 1);
}

#[test]
fn pages_end() {
    let mut desk = strong(|_| {});
    for n in 0..5 {
        send(&mut desk, n * 200, create(&keyed("k")));
    }
    let pages: Vec<Reply> =
        (1..=4).map(|page| find(&mut desk, 2_000, LookupBy::ExternalRef, "wf1-a", page)).collect();
    assert_eq!(ids(&pages[0]), ["T93", "T94"]);
    assert_eq!(ids(&pages[1]), ["T95", "T96"]);
    assert_eq!(ids(&pages[2]), ["T97"]);
    assert!(ids(&pages[3]).is_empty());
    let next: Vec<&Value> = pages.iter().map(|page| &page.body["next_page"]).collect();
    assert_eq!(next, [&json!(2), &json!(3), &Value::Null, &Value::Null]);
    assert_eq!(find(&mut desk, 2_000, LookupBy::ExternalRef, "wf1-a", 0).status, 400);
    assert_eq!(find(&mut desk, 2_000, LookupBy::ExternalRef, "wf1-a", u32::MAX).status, 200);
}

#[test]
fn a_truncated_look_up_hides_the_rest() {
    let mut desk = strong(|lookup| (lookup.complete, lookup.page_size) = (Complete::Truncated(3), Some(2)));
    for n in 0..5 {
        send(&mut desk, n * 200, create(&keyed("k")));
    }
    assert_eq!(by_reference(&mut desk, 2_000), 2);
    let second = find(&mut desk, 2_000, LookupBy::ExternalRef, "wf1-a", 2);
    assert_eq!((ids(&second), &second.body["next_page"]), (vec!["T95"], &Value::Null));
}

#[test]
fn archived_records_are_seen_only_where_declared() {
    for (sees, found) in [(Some(true), 1), (Some(false), 0), (None, 0)] {
        let mut desk = strong(|lookup| lookup.sees_archived = sees);
        send(&mut desk, 0, create(&keyed("k")));
        desk.archive(Millis(200), "T93");
        assert_eq!(by_reference(&mut desk, 300), found, "{sees:?}");
    }
}

#[test]
fn each_way_of_looking_finds_by_its_own() {
    let found = |by: LookupBy, complete: Complete, value: &str| {
        let mut desk = strong(|lookup| (lookup.by, lookup.complete) = (by, complete));
        send(&mut desk, 0, create(&Ask { client_id: Some("c1"), ..keyed("k1") }));
        ids(&find(&mut desk, 200, by, value, 1)).len()
    };
    assert_eq!(
        (found(LookupBy::Key, Complete::Yes, "k1"), found(LookupBy::Key, Complete::Yes, "k2")),
        (1, 0)
    );
    assert_eq!(found(LookupBy::ClientId, Complete::Yes, "c1"), 1);
    assert_eq!(found(LookupBy::MarkerText, Complete::Yes, "R1"), 1, "a part is enough");
    assert_eq!(found(LookupBy::MarkerText, Complete::Yes, ""), 0);
    assert_eq!(found(LookupBy::MarkerText, Complete::Tokenised, "R1"), 0, "a part is no word");
    assert_eq!(found(LookupBy::MarkerText, Complete::Tokenised, "r17"), 1);
    assert_eq!(found(LookupBy::Scan, Complete::Yes, ""), 1);
}

#[test]
fn a_look_up_that_is_not_declared_does_not_exist() {
    let mut desk = desk(named("desk_nothing").unwrap());
    send(&mut desk, 0, create(&keyed("k")));
    assert_eq!(find(&mut desk, 200, LookupBy::ExternalRef, "wf1-a", 1).status, 404);
    let ticket = send(&mut desk, 300, Request::Fetch { id: "T93".to_owned() });
    assert!(ticket.body["ticket"].get("external_id").is_none(), "it drops the reference");
    assert_eq!(ticket.body["ticket"]["marker"], json!("R17"));
}

#[test]
fn a_sentinel_is_found_from_the_start_and_is_no_effect() {
    let options = DeskOptions { sentinel: Some("sentinel-1".to_owned()), ..DeskOptions::default() };
    for id in ["desk_unique_ref", "zendesk_ticket", "jira_cloud_issue", "desk_strong_lookup"] {
        let mut desk = Desk::new(named(id).unwrap(), options.clone());
        assert_eq!(ids(&find(&mut desk, 0, LookupBy::ExternalRef, "sentinel-1", 1)), ["T0"], "{id}");
        assert!(desk.ledger().effects().is_empty() && desk.ledger().records().is_empty());
        assert!(desk.delete(Millis(1), "T0"));
        assert!(desk.ledger().effects().is_empty(), "{id}");
    }
}
