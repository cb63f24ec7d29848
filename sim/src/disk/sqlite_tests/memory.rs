//! Any number of runs leaves nothing behind.

use super::*;

const CYCLES: u64 = 20_000;

#[test]
fn opening_crashing_and_closing_leaves_nothing() {
    let image = with_table();
    for n in 0..CYCLES {
        let machine = Machine::boot(image.clone(), no_hooks(), n);
        let process = Process::start(machine.clone());
        let db = connect(&process).unwrap();
        db.execute_batch("insert into t values(1, 1)").unwrap();
        match n % 3 {
            0 => {}
            1 => process.kill(),
            _ => drop(machine.crash(&CrashKeep::Mixed { seed: n, torn: true })),
        }
        drop(db);
        // The database file has the shared memory, and a forgotten handle would keep the process.
        let file = machine.directory().current["db"].clone();
        let left = (Arc::downgrade(&machine), Arc::downgrade(&process), Arc::downgrade(&file));
        drop((machine, process, file));
        let gone = left.0.strong_count() + left.1.strong_count() + left.2.strong_count() == 0;
        assert!(gone, "something of cycle {n} is left");
    }
    assert!(PROCESSES.with_borrow(BTreeMap::is_empty), "the registry is empty");
}

/// The places that were written, in order.
#[derive(Default)]
struct Places(Mutex<Vec<(String, u64, u32)>>);

impl DiskHooks for Places {
    fn wrote(&self, file: &str, offset: u64, len: u32) {
        self.0.lock().unwrap().push((file.to_owned(), offset, len));
    }
}

#[test]
fn runs_on_several_threads_do_not_meet() {
    let run = || {
        let places = Arc::new(Places::default());
        let mut image = DiskImage::empty();
        for boot in 0..2u64 {
            let machine = Machine::boot(image, places.clone(), boot);
            vfs::seed_randomness(boot, 0);
            work(&Process::start(machine.clone()), "full", 6 + boot as i64, &mut Progress::default())
                .unwrap();
            image = machine.crash(&CrashKeep::Mixed { seed: boot, torn: true });
        }
        let places = places.0.lock().unwrap().clone();
        (places, look(image))
    };
    let alone = run();
    assert_eq!((alone.0.len() > 50, &alone.1), (true, &Ok(7)));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..30).for_each(|_| assert!(run() == alone)));
        }
    });
}
