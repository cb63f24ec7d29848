//! Files that are no usable store: each is refused with what to do, and left as it is.

use crate::desk::HelpDesk;
use crate::process::{How, Place, Process, request, text};
use crate::store::{accept, at};
use std::path::{Path, PathBuf};
use workflow::StoreError;
use workflow::store::{Store, open_file};

/// The error with which a process does not start, without the folder's own name.
fn refusal(place: &Place) -> String {
    let desk = HelpDesk::open("desk_nothing", &[]);
    match Process::start_as(place, &desk, How::default()) {
        Ok(_) => panic!("{} was opened", place.store().display()),
        Err(error) => error.to_string().replace(&text(place.folder()), "FOLDER"),
    }
}

/// A store with ten operations in it, closed.
fn filled(place: &Place) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("the system gives a thread");
    runtime.block_on(async {
        let store = Store::open(&at(&place.store())).expect("a new store");
        for n in 0..10 {
            accept(&store, &format!("R{n}")).await.expect("accepted");
        }
    });
    runtime.shutdown_timeout(std::time::Duration::from_secs(10));
    // The last connection that closes empties the log into the file.
    drop(open_file(&text(&place.store())).expect("a connection").execute_batch("pragma wal_checkpoint"));
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).expect("a readable file")
}

#[test]
fn a_place_that_cannot_be_written_is_named_with_what_to_check() {
    let places: [fn(&Path) -> PathBuf; 3] = [
        |folder| folder.join("missing").join("store.db"),
        |folder| folder.join("file").join("store.db"),
        |folder| folder.join("folder"),
    ];
    let mut errors = vec![];
    for place in places {
        let place = Place::with(place);
        std::fs::write(place.folder().join("file"), b"not a folder").expect("a writable folder");
        std::fs::create_dir(place.folder().join("folder")).expect("a writable folder");
        errors.push(refusal(&place));
        assert_eq!(read(&place.folder().join("file")), b"not a folder");
        assert!(!place.folder().join("missing").exists(), "no folder is made on the way");
    }
    insta::assert_snapshot!("unwritable", errors.join("\n"));
}

#[test]
fn a_file_that_is_read_only_is_refused() {
    let place = Place::new();
    filled(&place);
    let mut permissions = std::fs::metadata(place.store()).expect("a file").permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(place.store(), permissions).expect("it is ours");
    if std::fs::OpenOptions::new().write(true).open(place.store()).is_ok() {
        eprintln!("skipped: this user may write to read-only files");
        return;
    }
    assert!(refusal(&place).contains("cannot be opened for writing"));
}

#[test]
fn a_store_of_a_newer_version_is_refused_and_left_alone() {
    let place = Place::new();
    filled(&place);
    open_file(&text(&place.store()))
        .expect("a store")
        .execute_batch("pragma user_version = 99")
        .expect("ours");
    let before = read(&place.store());
    insta::assert_snapshot!("newer", refusal(&place));
    assert_eq!(read(&place.store()), before);
}

#[test]
fn a_store_of_an_older_version_is_refused_and_left_alone() {
    let place = Place::new();
    filled(&place);
    let store = open_file(&text(&place.store())).expect("a store");
    store.execute_batch("pragma user_version = 1").expect("ours");
    drop(store);
    let before = read(&place.store());
    insta::assert_snapshot!("older", refusal(&place));
    assert_eq!(read(&place.store()), before);
}

/// The version before this one had fewer columns; what it wrote is taken over whole, chain and all.
#[test]
fn a_store_of_the_version_before_is_taken_over() {
    let place = Place::new();
    filled(&place);
    let before = place.contents();
    let store = open_file(&text(&place.store())).expect("a store");
    let older = "alter table operation drop column cancelled; alter table discrepancy drop column settled;
                 drop table tombstone; drop table purged;
                 pragma user_version = 2";
    store.execute_batch(older).expect("the layout of that version");
    drop(store);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("the system gives a thread");
    runtime.block_on(async { drop(Store::open(&at(&place.store())).expect("it is taken over")) });
    let after = place.contents();
    assert_eq!((&after.operations, &after.head), (&before.operations, &before.head));
    assert!(after.verify().is_ok());
    let version: i64 = open_file(&text(&place.store()))
        .and_then(|store| store.query_row("pragma user_version", [], |row| row.get(0)))
        .expect("a number");
    assert_eq!(version, workflow::store::SCHEMA_VERSION);
}

#[test]
fn a_database_of_another_program_is_refused_and_left_alone() {
    for version in [0, 1, 7] {
        let place = Place::new();
        let other = open_file(&text(&place.store())).expect("a new file");
        let made = format!(
            "create table note(words text); insert into note values('kept'); pragma user_version = {version}"
        );
        other.execute_batch(&made).expect("a new database");
        drop(other);
        let before = read(&place.store());
        let error = refusal(&place);
        assert!(error.contains("database of something else"), "version {version}: {error}");
        assert!(error.contains("help: name another file"), "version {version}: {error}");
        assert_eq!(read(&place.store()), before, "version {version}");
    }
}

#[test]
fn what_is_no_database_is_refused_with_what_to_do() {
    let place = Place::new();
    let words = "These are the minutes of a meeting. ".repeat(100);
    std::fs::write(place.store(), &words).expect("a writable folder");
    insta::assert_snapshot!("no_database", refusal(&place));
    assert_eq!(read(&place.store()), words.as_bytes());
}

#[test]
fn a_file_that_was_cut_off_is_refused_with_what_to_do() {
    for keep in [3, 2, 1] {
        let place = Place::new();
        filled(&place);
        let whole = read(&place.store());
        let cut = &whole[..whole.len() * keep / 4];
        std::fs::write(place.store(), cut).expect("it is ours");
        let error = refusal(&place);
        assert!(error.starts_with("the store file is damaged: FOLDER/store.db: "), "{keep}/4: {error}");
        assert!(error.contains("help: keep the file, restore the last backup"), "{keep}/4: {error}");
        assert_eq!(read(&place.store()), cut, "{keep}/4");
    }
}

/// Each page in turn is overwritten. Where opening meets it the process does not start; where only a later
/// call does, that call is refused. Nothing is ever acknowledged that the damaged file cannot hold.
#[test]
fn damage_in_any_page_is_met_with_an_error_and_never_with_a_wrong_answer() {
    let pages = {
        let place = Place::new();
        filled(&place);
        read(&place.store()).len() / 4096
    };
    let mut refused = 0;
    for page in 0..pages {
        let place = Place::new();
        filled(&place);
        let mut bytes = read(&place.store());
        for byte in &mut bytes[page * 4096 + 100 * usize::from(page == 0)..(page + 1) * 4096] {
            *byte ^= 0x5a;
        }
        std::fs::write(place.store(), &bytes).expect("it is ours");
        let desk = HelpDesk::open("desk_nothing", &[]);
        let how = How { works: false, ..How::default() };
        match Process::start_as(&place, &desk, how) {
            Err(error) => {
                assert!(matches!(error, StoreError::Corrupt(_)), "page {page}: {error:?}");
                refused += 1;
            }
            Ok(process) => {
                let answer = process.deliver("d-1", &request("R99"));
                let body = answer.body.to_string();
                assert!(answer.status == 202 || body.contains("damaged"), "page {page}: {body}");
            }
        }
    }
    assert!(refused > 0 && pages > 5, "{refused} of {pages}");
}

#[test]
fn an_empty_file_becomes_a_store_and_opens_again() {
    let place = Place::new();
    std::fs::write(place.store(), b"").expect("a writable folder");
    filled(&place);
    for _ in 0..3 {
        let process = Process::start_as(
            &place,
            &HelpDesk::open("desk_nothing", &[]),
            How { works: false, ..How::default() },
        );
        assert_eq!(
            process.expect("our own store").explain("R3:create-ticket:v1")["detail"],
            "validated/ready"
        );
        assert_eq!(place.contents().operations.len(), 10);
    }
}
