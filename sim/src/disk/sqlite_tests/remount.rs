//! A connection kept over an exchange of the machine answers as a fresh one.

use super::*;

/// Databases of one schema: closed, left open by a power cut, in the middle of the WAL, of many sizes.
fn images() -> Vec<DiskImage> {
    let first = with_table();
    let make = |n: i64| {
        let seed = n as u64;
        let machine = Machine::boot(first.clone(), no_hooks(), seed);
        let db = connect(&Process::start(machine.clone())).unwrap();
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, n % 5 == 1).unwrap();
        for k in 0..n * 7 % 23 {
            if k == n % 9 {
                db.execute_batch("pragma wal_checkpoint(truncate)").unwrap();
            }
            db.execute("insert into t values(?1, zeroblob(?2))", [k, 100 + (n * 131 + k * 57) % 4000])
                .unwrap();
        }
        match n % 5 {
            0 | 1 => {
                drop(db);
                machine.cache_image()
            }
            2 => machine.durable_image(),
            3 => machine.crash(&CrashKeep::Prefix(seed)),
            _ => {
                db.execute_batch("begin immediate; delete from t").unwrap();
                machine.crash(&CrashKeep::Mixed { seed, torn: true })
            }
        }
    };
    (0..40).map(make).collect()
}

fn rows(db: &Connection) -> Vec<(i64, usize)> {
    let mut all = db.prepare_cached("select k, b from t order by k").unwrap();
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get::<_, Vec<u8>>(1)?.len()));
    all.query_map([], row).unwrap().collect::<rusqlite::Result<_>>().unwrap()
}

#[test]
fn a_kept_connection_answers_as_a_fresh_one() {
    let images = images();
    let fresh: Vec<_> =
        images.iter().map(|image| rows(&connect(&Process::start(machine(image.clone()))).unwrap())).collect();
    assert!(fresh.iter().any(|rows| rows.len() > 10), "the images differ");
    let process = Process::start(machine(images[0].clone()));
    let kept = connect(&process).unwrap();
    assert_eq!(rows(&kept), fresh[0]);
    for n in 0..1500usize {
        let at = (n * 17 + n / 40) % images.len();
        let mounted = machine(images[at].clone());
        process.remount(mounted.clone());
        assert_eq!(rows(&kept), fresh[at], "image {at}");
        if n % 3 == 0 {
            kept.execute_batch("insert into t values(1000, x'01')").unwrap();
            assert_eq!(rows(&kept).len(), fresh[at].len() + 1);
            let image = mounted.crash(&CrashKeep::Nothing);
            assert_eq!(rows(&connect(&Process::start(machine(image))).unwrap()).len(), fresh[at].len() + 1);
        }
    }
}

#[test]
#[should_panic(expected = "outside transactions")]
fn a_transaction_forbids_the_exchange() {
    let process = Process::start(machine(with_table()));
    let db = connect(&process).unwrap();
    db.execute_batch("begin immediate").unwrap();
    // The connection is not dropped twice while the test panics.
    let _db = std::mem::ManuallyDrop::new(db);
    process.remount(machine(with_table()));
}

/// Each connection of the dead stands on a file of its own, and they cannot both get the next machine's.
#[test]
fn two_connections_of_the_dead_serve_no_later_run() {
    let process = Process::start(machine(with_table()));
    let (one, other) = (connect(&process).unwrap(), connect(&process).unwrap());
    assert_eq!((count(&one), count(&other)), (0, 0));
    process.kill();
    assert!(!process.can_be_remounted());
    process.bury(other);
    assert!(process.can_be_remounted(), "the last one can");
    process.bury(one);
}
