//! The real SQLite on the simulated disk: what it promises about power cuts, locks and errors holds there.

use super::process::PROCESSES;
use super::*;
use crate::vfs::{self, Process};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

mod memory;
mod remount;

fn connect(process: &Process) -> rusqlite::Result<Connection> {
    vfs::register();
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(process.uri("db"), flags)?;
    db.busy_timeout(Duration::ZERO)?;
    Ok(db)
}

fn machine(image: DiskImage) -> Arc<Machine> {
    Machine::boot(image, no_hooks(), 1)
}

/// A disk with the table `t` in WAL mode.
fn with_table() -> DiskImage {
    let machine = machine(DiskImage::empty());
    let db = connect(&Process::start(machine.clone())).unwrap();
    db.execute_batch(
        "pragma page_size=1024; pragma journal_mode=wal; create table t(k integer primary key, b)",
    )
    .unwrap();
    drop(db);
    machine.cache_image()
}

fn count(db: &Connection) -> i64 {
    db.query_row("select count(*) from t", [], |row| row.get(0)).unwrap()
}

fn integrity(db: &Connection) -> String {
    db.query_row("pragma integrity_check", [], |row| row.get(0)).unwrap()
}

fn code(result: rusqlite::Result<()>) -> ErrorCode {
    result.expect_err("the call fails").sqlite_error_code().expect("an error of SQLite")
}

/// Strikes at the n-th side of a sync.
#[derive(Default)]
struct Strike {
    reached: AtomicUsize,
    at: AtomicUsize,
    lie: AtomicBool,
    fail: AtomicBool,
    full: AtomicBool,
    /// Killed instead of cutting the power.
    victim: Mutex<Option<Arc<Process>>>,
}

impl Strike {
    fn at(at: usize) -> Arc<Strike> {
        Arc::new(Strike { at: AtomicUsize::new(at), ..Strike::default() })
    }

    fn never() -> Arc<Strike> {
        Self::at(usize::MAX)
    }
}

impl DiskHooks for Strike {
    fn sync(&self, machine: &Machine, _: &str, _: Side) {
        if self.reached.fetch_add(1, Relaxed) != self.at.load(Relaxed) {
            return;
        }
        match self.victim.lock().unwrap().take() {
            Some(process) => process.kill(),
            None => machine.power_off(),
        }
    }

    fn sync_lies(&self, _: &str) -> bool {
        self.lie.load(Relaxed)
    }

    fn sync_error(&self, _: &str) -> bool {
        self.fail.swap(false, Relaxed)
    }

    fn full(&self, _: &str, _: u32) -> bool {
        self.full.load(Relaxed)
    }
}

/// The last row whose commit was tried, and the last one whose commit succeeded.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    tried: i64,
    acknowledged: i64,
}

/// Creates the table if need be and adds rows up to `rows`.
fn work(process: &Process, synchronous: &str, rows: i64, progress: &mut Progress) -> rusqlite::Result<()> {
    let db = connect(process)?;
    db.execute_batch(&format!(
        "pragma page_size=1024; pragma journal_mode=wal; pragma synchronous={synchronous};
         pragma wal_autocheckpoint=12; pragma wal_checkpoint(passive);
         create table if not exists t(k integer primary key, b)"
    ))?;
    let next: i64 = db.query_row("select coalesce(max(k), 0) + 1 from t", [], |row| row.get(0))?;
    for row in next..=rows {
        progress.tried = row;
        db.execute("insert into t values(?1, zeroblob(?1 * 300))", [row])?;
        progress.acknowledged = row;
    }
    Ok(())
}

/// What is on a disk: the number of rows, which are 1 to this, if the database is sound.
fn look(image: DiskImage) -> Result<i64, String> {
    let look = || -> rusqlite::Result<(String, i64)> {
        let db = connect(&Process::start(machine(image)))?;
        let integrity = db.query_row("pragma integrity_check", [], |row| row.get(0))?;
        let tables: i64 = db.query_row("select count(*) from sqlite_schema", [], |row| row.get(0))?;
        let rows = "select count(*) from t where k between 1 and (select count(*) from t)";
        let found = if tables == 0 { 0 } else { db.query_row(rows, [], |row| row.get(0))? };
        Ok((integrity, found))
    };
    match look().map_err(|error| error.to_string())? {
        (integrity, found) if integrity == "ok" => Ok(found),
        (integrity, _) => Err(integrity),
    }
}

/// Boots for each of `cuts` (a boundary of that boot), works until the power is cut there or the work is
/// done, and looks at the disk. Gives what was lost or broken, if anything, and the number of boundaries.
fn cut(synchronous: &str, lie: bool, cuts: &[usize], keep: CrashKeep) -> (Result<(), String>, usize) {
    let mut image = DiskImage::empty();
    let mut progress = Progress::default();
    let mut boundaries = 0;
    for (boot, at) in cuts.iter().enumerate() {
        let strike = Strike::at(*at);
        strike.lie.store(lie, Relaxed);
        let machine = Machine::boot(image, strike.clone(), boot as u64);
        let worked = work(&Process::start(machine.clone()), synchronous, 6 + boot as i64, &mut progress);
        assert!(worked.is_ok() || machine.is_dead(), "{worked:?}");
        boundaries = boundaries.max(strike.reached.load(Relaxed));
        image = machine.crash(&keep);
        match look(image.clone()) {
            Err(error) => return (Err(error), boundaries),
            Ok(found) if found < progress.acknowledged || found > progress.tried => {
                return (Err(format!("{found} rows: {progress:?}")), boundaries);
            }
            Ok(found) => progress = Progress { tried: found, acknowledged: found },
        }
    }
    (Ok(()), boundaries)
}

fn keeps(seed: u64) -> [CrashKeep; 5] {
    [
        CrashKeep::Nothing,
        CrashKeep::Everything,
        CrashKeep::Prefix(seed),
        CrashKeep::Mixed { seed, torn: false },
        CrashKeep::Mixed { seed, torn: true },
    ]
}

#[test]
fn no_power_cut_loses_an_acknowledged_commit() {
    let (all, boundaries) = cut("full", false, &[usize::MAX, usize::MAX], CrashKeep::Everything);
    assert_eq!(all, Ok(()));
    assert!(boundaries > 20, "{boundaries} boundaries");
    for at in 0..boundaries {
        for (n, keep) in (0..4).flat_map(|seed| keeps(seed * 100 + at as u64)).enumerate() {
            let again = (at * 7 + n * 3) % boundaries;
            let (got, _) = cut("full", false, &[at, again, usize::MAX], keep);
            assert_eq!(got, Ok(()), "boundaries {at} and {again}, {keep:?}");
        }
    }
}

#[test]
fn the_crash_bites_where_sqlite_promises_less() {
    let cuts = (0..16).flat_map(|at| keeps(at as u64).map(|keep| cut("normal", false, &[at], keep).0));
    let bad: Vec<String> = cuts.filter_map(Result::err).collect();
    assert!(!bad.is_empty(), "synchronous=normal must lose an acknowledged commit somewhere");
    assert!(bad.iter().all(|bad| bad.contains("rows")), "but the database stays sound: {bad:?}");
}

#[test]
fn the_crash_bites_where_the_disk_lies() {
    let cuts = (0..30).flat_map(|at| keeps(at as u64).map(|keep| cut("full", true, &[at], keep).0));
    let bad: Vec<String> = cuts.filter_map(Result::err).collect();
    assert!(bad.iter().any(|bad| bad.contains("rows")), "it must lose an acknowledged commit somewhere");
    assert!(bad.iter().any(|bad| !bad.contains("rows")), "and break the database somewhere");
}

#[test]
fn two_connections_of_one_process_share_a_file() {
    let process = Process::start(machine(with_table()));
    let (writer, reader) = (connect(&process).unwrap(), connect(&process).unwrap());
    writer.execute_batch("begin immediate; insert into t values(1, 'one')").unwrap();
    assert_eq!(count(&reader), 0, "not committed yet");
    assert_eq!(code(reader.execute_batch("begin immediate")), ErrorCode::DatabaseBusy);
    reader.execute_batch("begin").unwrap();
    assert_eq!(count(&reader), 0);
    writer.execute_batch("commit").unwrap();
    assert_eq!(count(&reader), 0, "the snapshot stays");
    let stale = reader.execute_batch("insert into t values(2, 'two')").unwrap_err();
    let extended = stale.sqlite_error().map(|error| error.extended_code);
    assert_eq!(extended, Some(rusqlite::ffi::SQLITE_BUSY_SNAPSHOT));
    reader.execute_batch("rollback; begin immediate; insert into t values(2, 'two'); commit").unwrap();
    assert_eq!((count(&writer), count(&reader)), (2, 2));
    drop(writer);
    assert_eq!(count(&reader), 2, "the last connection has the WAL still");
    drop(reader);
    assert_eq!(
        process.machine().cache_image().files().collect::<Vec<_>>(),
        ["db"],
        "checkpointed at the end"
    );
}

#[test]
fn a_kill_takes_two_connections_that_both_hold_locks() {
    let process = Process::start(machine(with_table()));
    let (writer, reader) = (connect(&process).unwrap(), connect(&process).unwrap());
    reader.execute_batch("begin").unwrap();
    assert_eq!(count(&reader), 0);
    writer.execute_batch("begin immediate; insert into t values(1, 'one')").unwrap();
    process.kill();
    process.bury((writer, reader));
    let next = connect(&Process::start(process.machine())).unwrap();
    next.execute_batch("begin immediate; insert into t values(2, 'two'); commit").unwrap();
    assert_eq!(count(&next), 1, "no lock of the dead is left, and nothing that was not committed");
}

#[test]
fn a_checkpoint_leaves_a_reader_its_snapshot() {
    let process = Process::start(machine(with_table()));
    let (writer, reader) = (connect(&process).unwrap(), connect(&process).unwrap());
    writer.execute_batch("insert into t values(1, zeroblob(3000))").unwrap();
    reader.execute_batch("begin").unwrap();
    assert_eq!(count(&reader), 1);
    writer.execute_batch("insert into t values(2, zeroblob(3000))").unwrap();
    let checkpoint = |mode: &str| {
        let sql = format!("pragma wal_checkpoint({mode})");
        writer.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    assert_eq!((checkpoint("passive"), checkpoint("truncate")), (0, 1), "the reader is in the way");
    writer.execute_batch("insert into t values(3, zeroblob(3000))").unwrap();
    assert_eq!(count(&reader), 1, "the snapshot stays");
    reader.execute_batch("commit").unwrap();
    assert_eq!((count(&reader), checkpoint("truncate")), (3, 0));
}

#[test]
fn a_kill_releases_the_locks_and_keeps_the_page_cache() {
    let machine = machine(with_table());
    let (old, new) = (Process::start(machine.clone()), Process::start(machine.clone()));
    let (db, other) = (connect(&old).unwrap(), connect(&new).unwrap());
    db.execute_batch("insert into t values(1, 1); begin immediate; insert into t values(2, 2)").unwrap();
    assert_eq!(code(other.execute_batch("begin immediate")), ErrorCode::DatabaseBusy);
    old.kill();
    assert!(old.is_dead() && !new.is_dead() && !machine.is_dead());
    other.execute_batch("begin immediate").unwrap();
    assert_eq!(count(&other), 1);
    assert_eq!(code(db.execute_batch("commit")), ErrorCode::SystemIoFailure);
    assert_eq!(code(connect(&old).map(drop)), ErrorCode::CannotOpen);
    other.execute_batch("insert into t values(3, 3); commit").unwrap();
    old.bury(db);
    assert_eq!((count(&other), integrity(&other).as_str()), (2, "ok"));
}

/// Opens a transaction in `db` that has changed the WAL index.
fn write_much(db: &Connection, first: i64) {
    let rows = "with recursive c(i) as (select 0 union all select i + 1 from c where i < 59)";
    db.execute_batch("pragma cache_size=3; pragma cache_spill=1; begin immediate").unwrap();
    db.execute(&format!("{rows} insert into t select ?1 + i, zeroblob(900) from c"), [first]).unwrap();
}

#[test]
fn the_late_drop_of_a_dead_process_harms_nobody() {
    // The next process comes after the kill: it has memory of its own.
    let alone = machine(with_table());
    let old = Process::start(alone.clone());
    let late = connect(&old).unwrap();
    late.execute_batch("insert into t values(0, 0)").unwrap();
    write_much(&late, 1000);
    old.kill();
    let db = connect(&Process::start(alone)).unwrap();
    write_much(&db, 1);
    drop(late);
    db.execute_batch("commit").unwrap();
    assert_eq!((count(&db), integrity(&db).as_str()), (61, "ok"));

    // The other process had the file open before: it needs the burial.
    let unharmed = |bury: bool| {
        let shared = machine(with_table());
        let (old, new) = (Process::start(shared.clone()), Process::start(shared));
        let (late, db) = (connect(&old).unwrap(), connect(&new).unwrap());
        late.execute_batch("insert into t values(0, 0)").unwrap();
        assert_eq!(count(&db), 1);
        write_much(&late, 1000);
        old.kill();
        write_much(&db, 1);
        if bury {
            old.bury(late)
        } else {
            drop(late)
        }
        let committed = db.execute_batch("commit").is_ok();
        let other = connect(&new).unwrap();
        let found = other.query_row("select count(*) from t", [], |row| row.get(0));
        committed && found == Ok(61)
    };
    assert!(unharmed(true));
    assert!(!unharmed(false), "the hazard is real");
}

#[test]
fn a_commit_seen_after_a_kill_is_lost_by_a_power_cut_unless_checkpointed() {
    let seen_and_left = |cure: bool| {
        let strike = Strike::never();
        let machine = Machine::boot(with_table(), strike.clone(), 1);
        let process = Process::start(machine.clone());
        let db = connect(&process).unwrap();
        db.execute_batch("insert into t values(1, 1)").unwrap();
        *strike.victim.lock().unwrap() = Some(process);
        strike.at.store(strike.reached.load(Relaxed), Relaxed);
        assert_eq!(code(db.execute_batch("insert into t values(2, 2)")), ErrorCode::SystemIoFailure);
        drop(db);
        let db = connect(&Process::start(machine.clone())).unwrap();
        let cure = if cure { "pragma wal_checkpoint(passive)" } else { "" };
        db.execute_batch(cure).unwrap();
        let seen = count(&db);
        let image = machine.crash(&CrashKeep::Nothing);
        drop(db);
        let db = connect(&Process::start(super::sqlite_tests::machine(image))).unwrap();
        (seen, count(&db))
    };
    assert_eq!(seen_and_left(false), (2, 1), "the hazard");
    assert_eq!(seen_and_left(true), (2, 2), "the cure");
}

#[test]
fn disk_errors_reach_the_caller_and_leave_nothing() {
    let strike = Strike::never();
    let machine = Machine::boot(with_table(), strike.clone(), 1);
    let db = connect(&Process::start(machine.clone())).unwrap();
    db.execute_batch("insert into t values(1, zeroblob(5000))").unwrap();

    strike.fail.store(true, Relaxed);
    let failed = db.execute_batch("insert into t values(2, zeroblob(5000))").unwrap_err();
    let extended = failed.sqlite_error().map(|error| error.extended_code);
    assert_eq!(extended, Some(rusqlite::ffi::SQLITE_IOERR_FSYNC));
    assert!(db.is_autocommit() && count(&db) == 1, "rolled back");

    strike.full.store(true, Relaxed);
    assert_eq!(code(db.execute_batch("insert into t values(3, zeroblob(5000))")), ErrorCode::DiskFull);
    assert!(db.is_autocommit() && count(&db) == 1, "rolled back");
    strike.full.store(false, Relaxed);

    db.execute_batch("insert into t values(4, zeroblob(5000))").unwrap();
    let image = machine.crash(&CrashKeep::Nothing);
    let db = connect(&Process::start(super::sqlite_tests::machine(image))).unwrap();
    let rows: String = db.query_row("select group_concat(k) from t", [], |row| row.get(0)).unwrap();
    assert_eq!((rows.as_str(), integrity(&db).as_str()), ("1,4", "ok"));
}

#[test]
fn large_statements_find_room_for_temporary_files() {
    let db = connect(&Process::start(machine(with_table()))).unwrap();
    db.execute_batch("pragma temp_store=file; pragma cache_size=5").unwrap();
    let sorted = "with recursive c(i) as (select 1 union all select i + 1 from c where i < 5000)
         select max(n) from (select row_number() over (order by hex(i) || hex(zeroblob(400))) n from c)";
    assert_eq!(db.query_row(sorted, [], |row| row.get::<_, i64>(0)), Ok(5000));
}

#[test]
fn time_and_randomness_come_from_the_run() {
    let db = connect(&Process::start(machine(with_table()))).unwrap();
    let read = |sql: &str| db.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
    vfs::seed_randomness(5, 1_000_000_123);
    assert_eq!(read("select strftime('%Y-%m-%d %H:%M:%f', 'now')"), "1970-01-12 13:46:40.123");
    vfs::set_clock(|| 2_000);
    assert_eq!(read("select datetime('now')"), "1970-01-01 00:00:02");
    // Other tests seed and use the same generator at the same time: once in a thousand is enough.
    let draw = |seed| {
        vfs::seed_randomness(seed, 0);
        read("select hex(randomblob(16))")
    };
    assert!((0..1000).any(|seed| draw(seed) == draw(seed)), "a seed is a sequence");
    assert!((0..1000).any(|seed| draw(seed) != draw(seed + 1)), "another seed is another one");
}
