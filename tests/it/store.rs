//! The store on a real file: groups, busy files, a full disk, and a clock that steps back.

use crate::client;
use crate::desk::HelpDesk;
use crate::process::{How, Place, Process, delivery, request, text};
use destinations::contract::KeyFormat;
use rusqlite::Connection;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use workflow::licence::Reason;
use workflow::operation::{Fingerprint, FrozenRequest, OperationKey, WireKey};
use workflow::state::State;
use workflow::store::{
    Accepted, Connections, NewDelivery, NewException, NewOperation, Store, StoreAt, StoreError, open_file,
};
use workflow::{Clock, Timestamp};

/// Runs a test of the store alone on a runtime with two threads.
fn with_runtime<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("the system gives threads").block_on(test)
}

pub(crate) fn at(path: &Path) -> StoreAt {
    StoreAt::file(text(path))
}

/// What is accepted for a request of this name.
fn arrival(name: &str) -> (NewDelivery, NewOperation, NewException) {
    let key = OperationKey::new(None, name, "create-ticket", 1);
    let operation = NewOperation {
        wire_key: WireKey::new(&key, "main", 0, KeyFormat::Any),
        fingerprint: Fingerprint::of(&serde_json::json!({"title": name})).expect("plain data"),
        frozen: FrozenRequest {
            method: "POST".into(),
            target: "/tickets".into(),
            headers: vec![],
            body: "{}".into(),
        },
        state: State::Ready,
        key,
    };
    let delivery = NewDelivery { source: "forms".into(), delivery_id: name.into(), digest: "0".repeat(64) };
    let case = NewException {
        reason: Reason::ChangedRequest,
        owner: "service-desk-lead".into(),
        deadline: Timestamp(1),
        escalate_to: "it-duty".into(),
        facts: String::new(),
        lookup: String::new(),
        key_lapses: None,
    };
    (delivery, operation, case)
}

pub(crate) async fn accept(store: &Store, name: &str) -> Result<Accepted, StoreError> {
    let (delivery, operation, case) = arrival(name);
    store.accept(delivery, operation, move |_| case.clone()).await
}

/// The commits in a write-ahead log: a frame's header holds the size of the database where it ends a
/// transaction.
fn commits(store: &Path) -> usize {
    let mut log = store.as_os_str().to_owned();
    log.push("-wal");
    let log = std::fs::read(PathBuf::from(log)).expect("the log is there while the store is open");
    let page = u32::from_be_bytes(log[8..12].try_into().expect("four bytes")) as usize;
    let salt = &log[16..24];
    let frames = log[32..].chunks_exact(24 + page).take_while(|frame| frame[8..16] == *salt);
    frames.filter(|frame| frame[4..8] != [0; 4]).count()
}

#[test]
fn calls_that_wait_share_a_commit() {
    let place = Place::new();
    with_runtime(async {
        let store = Store::open(&at(&place.store())).expect("a new store");
        let before = commits(&place.store());
        for n in 0..8 {
            accept(&store, &format!("one-{n}")).await.expect("accepted");
        }
        let alone = commits(&place.store()) - before;
        assert_eq!(alone, 8, "a call that nobody waits with has a commit of its own");
        let tasks: Vec<_> = (0..64)
            .map(|n| {
                let store = store.clone();
                tokio::spawn(async move { accept(&store, &format!("many-{n}")).await })
            })
            .collect();
        for task in tasks {
            assert!(matches!(task.await.expect("no panic"), Ok(Accepted::New(_))));
        }
        let together = commits(&place.store()) - before - alone;
        assert!((1..=32).contains(&together), "64 concurrent calls made {together} commits");
    });
    assert_eq!(place.contents().operations.len(), 72, "and each of them is there");
}

#[test]
fn a_busy_file_is_waited_for() {
    let place = Place::new();
    with_runtime(async {
        let store = Store::open(&at(&place.store())).expect("a new store");
        let other = open_file(&text(&place.store())).expect("a second connection");
        other.execute_batch("begin immediate").expect("nobody else writes");
        let waiting = tokio::spawn({
            let store = store.clone();
            async move { accept(&store, "R17").await }
        });
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!waiting.is_finished(), "it cannot have been written");
        other.execute_batch("commit").expect("it was begun");
        assert!(matches!(waiting.await.expect("no panic"), Ok(Accepted::New(_))));
    });
    assert_eq!(place.contents().operations.len(), 1);
}

#[test]
fn two_stores_on_one_file_lose_nothing_of_each_other() {
    let place = Place::new();
    with_runtime(async {
        let stores = [
            Store::open(&at(&place.store())).expect("a new store"),
            Store::open(&at(&place.store())).expect("the same file"),
        ];
        let tasks: Vec<_> = (0..100)
            .map(|n| {
                let store = stores[n % 2].clone();
                tokio::spawn(async move { accept(&store, &format!("R{}", n / 2)).await })
            })
            .collect();
        let mut new = 0;
        for task in tasks {
            match task.await.expect("no panic").expect("a busy file is waited for") {
                Accepted::New(_) => new += 1,
                Accepted::Same { .. } => {}
                Accepted::Changed { .. } => panic!("nothing was changed"),
            }
        }
        assert_eq!(new, 50, "each operation begins once, whichever store it came to");
    });
    assert_eq!(place.contents().operations.len(), 50);
}

/// A connection whose file cannot grow beyond what it has.
fn cannot_grow(path: &str) -> rusqlite::Result<Connection> {
    let db = open_file(path)?;
    let pages: i64 = db.query_row("pragma page_count", [], |row| row.get(0))?;
    if pages > 0 {
        db.query_row(&format!("pragma max_page_count = {pages}"), [], |_| Ok(()))?;
    }
    Ok(db)
}

/// A disk without room: the source hears 503 and nothing is on record; with room again, the same delivery is
/// taken.
#[test]
fn a_full_disk_refuses_and_goes_on_when_there_is_room_again() {
    let (place, desk) = (Place::new(), HelpDesk::open("desk_nothing", &[]));
    drop(with_runtime(async { Store::open(&at(&place.store())).expect("a new store") }));
    let filler = open_file(&text(&place.store())).expect("a connection");
    filler
        .execute_batch("create table filler(bytes blob); insert into filler values(zeroblob(400000))")
        .expect("there is room");
    let connections = Connections::new(cannot_grow, |_, connection| drop(connection));
    let how = How { connections, ..How::default() };
    let process = Process::start_as(&place, &desk, how).expect("it opens without growing");
    let long = "x".repeat(2_500);
    let big = |n: u32| serde_json::json!({"id": format!("R{n}"), "title": long, "requester": "c17"});
    let (mut taken, mut refused) = (vec![], None);
    for n in 1..200 {
        let answer = process.deliver(&format!("d-{n}"), &big(n));
        match answer.status {
            202 => taken.push(n),
            503 => {
                refused = Some((n, answer));
                break;
            }
            other => panic!("{other}: {}", answer.body),
        }
    }
    let (n, answer) = refused.expect("the disk is full at some time");
    insta::assert_snapshot!(answer.line(), @r#"503 {"error":"the store is unavailable at the moment and nothing was written: database or disk is full"}"#);
    let known = place.contents();
    let held = |name: String| known.deliveries.iter().any(|d| d.delivery_id == name);
    assert!(taken.iter().all(|n| held(format!("d-{n}"))), "what was acknowledged is there");
    assert!(!held(format!("d-{n}")), "what was refused is not");
    assert_eq!(known.operations.len(), taken.len());

    filler.execute_batch("delete from filler").expect("there is room for that");
    let answer = process.deliver(&format!("d-{n}"), &big(n));
    assert_eq!((answer.status, &answer.body["delivery"]), (202, &"new".into()), "the same process goes on");
    for n in taken.into_iter().chain([n]) {
        process.until(&format!("R{n}:create-ticket:v1"), "completed/confirmed");
    }
    assert_eq!(desk.records().len(), place.contents().operations.len());
}

/// While evidence cannot be written it is kept: the answer that came back is not asked for again.
#[test]
fn evidence_outlives_a_store_that_is_locked_for_a_while() {
    let (place, desk) = (Place::new(), HelpDesk::open("desk_nothing", &[]));
    let process = Process::start(&place, &desk);
    let other = open_file(&text(&place.store())).expect("a second connection");
    process.deliver("d-1", &request("R17"));
    while other.execute_batch("begin immediate").is_err() {}
    std::thread::sleep(Duration::from_millis(100));
    other.execute_batch("commit").expect("it was begun");
    process.until("R17:create-ticket:v1", "completed/confirmed");
    assert_eq!((desk.records().len(), desk.creates()), (1, 1));
}

#[test]
fn a_clock_that_steps_back_does_not_take_time_back() {
    let place = Place::new();
    let wall = Arc::new(AtomicI64::new(1_700_000_000_000));
    let hand = wall.clone();
    let clock = Clock::from_fn(move || Timestamp(hand.load(Ordering::SeqCst)));
    let store_at = StoreAt { clock, ..at(&place.store()) };
    with_runtime(async {
        let store = Store::open(&store_at).expect("a new store");
        wall.store(1_700_000_100_000, Ordering::SeqCst);
        accept(&store, "R17").await.expect("accepted");
        let seen = store.now();
        assert!(seen >= Timestamp(1_700_000_100_000));
        wall.store(1_600_000_000_000, Ordering::SeqCst);
        assert!(store.now() >= seen, "in the same process");
        accept(&store, "R18").await.expect("accepted");
    });
    with_runtime(async {
        let store = Store::open(&store_at).expect("the same store");
        assert!(store.now() >= Timestamp(1_700_000_100_000), "nor in the next one: {}", store.now());
        wall.store(1_700_000_200_000, Ordering::SeqCst);
        assert_eq!(store.now(), Timestamp(1_700_000_200_000), "it goes on when the clock does");
    });
    let db = open_file(&text(&place.store())).expect("a connection");
    let received: Vec<i64> = db
        .prepare("select received from delivery order by delivery_id")
        .and_then(|mut query| query.query_map([], |row| row.get(0))?.collect())
        .expect("a readable store");
    assert!(received[0] <= received[1], "{received:?}");
}

/// Settings that durability rests on, as the connections of the store have them.
#[test]
fn the_store_is_a_log_that_is_synced_at_each_commit() {
    let place = Place::new();
    drop(with_runtime(async { Store::open(&at(&place.store())).expect("a new store") }));
    let db = open_file(&text(&place.store())).expect("a connection");
    let mode: String = db.query_row("pragma journal_mode", [], |row| row.get(0)).expect("a mode");
    let synchronous: i64 = db.query_row("pragma synchronous", [], |row| row.get(0)).expect("a number");
    assert_eq!((mode.as_str(), synchronous), ("wal", 2), "2 is FULL");
    let check: String = db.query_row("pragma integrity_check", [], |row| row.get(0)).expect("a check");
    assert_eq!(check, "ok");
}

#[test]
fn each_delivery_is_durable_before_it_is_acknowledged() {
    let (place, desk) = (Place::new(), HelpDesk::open("desk_nothing", &[]));
    let process = Process::start_as(&place, &desk, How { works: false, ..How::default() }).expect("new");
    for n in 1..=5 {
        let before = commits(&place.store());
        let body = delivery(&format!("d-{n}"), &request(&format!("R{n}")));
        assert_eq!(client::post(process.address, "/deliveries", &body).status, 202);
        assert_eq!(commits(&place.store()), before + 1, "one commit, and it is in the log");
        assert_eq!(place.contents().deliveries.len(), n);
    }
}
