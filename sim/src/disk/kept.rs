//! Connections that outlive a run: preparing statements and reading the schema is half of what a run costs.
//!
//! Each belongs to a simulated process. When a later run starts a process on this thread, the kept one gets
//! the new machine's files beneath it, and whoever opens the store gets the connection back with its prepared
//! statements.

use super::process::{Process, lookup};
use super::{DiskImage, Machine, no_hooks};
use rusqlite::Connection;
use std::cell::RefCell;
use std::sync::Arc;

/// Kept connections a thread: one for the service, one for whoever reads beside it, and some to spare.
const MOST: usize = 4;

struct Kept {
    process: Arc<Process>,
    connection: Connection,
}

thread_local! {
    static IDLE: RefCell<Vec<Kept>> = const { RefCell::new(vec![]) };
    /// Mounted for a process that has started and not opened its store yet.
    static WAITING: RefCell<Vec<Kept>> = const { RefCell::new(vec![]) };
}

impl Process {
    /// Starts a process on `machine`, on a kept connection's files where there is one.
    pub fn start_kept(machine: Arc<Machine>) -> Arc<Process> {
        // A process that died before it opened its store has left its connection untouched.
        WAITING.with_borrow_mut(|waiting| {
            waiting.drain(..).for_each(|kept| put_back(kept.process, kept.connection))
        });
        let idle = IDLE.with_borrow_mut(|idle| {
            idle.retain(|kept| kept.process.can_be_remounted());
            idle.pop()
        });
        let Some(kept) = idle else { return Process::start(machine) };
        kept.process.remount(machine);
        let process = kept.process.clone();
        WAITING.with_borrow_mut(|waiting| waiting.push(kept));
        process
    }
}

/// The kept connection to the store at `uri`, if this thread has one.
pub fn kept(uri: &str) -> Option<Connection> {
    WAITING.with_borrow_mut(|waiting| {
        let at = waiting.iter().position(|kept| uri.contains(&kept.process.path("")))?;
        Some(waiting.swap_remove(at).connection)
    })
}

/// Keeps a connection to the store at `uri` for later runs of this thread, if it is fit for that.
pub fn keep(uri: &str, connection: Connection) {
    if let Some(process) = lookup(uri) {
        put_back(process, connection);
    }
}

fn put_back(process: Arc<Process>, connection: Connection) {
    if connection.is_autocommit() && process.can_be_kept() {
        // It lets go of the machine that it was on, and nothing is written should the thread end now and drop
        // it.
        let nowhere = Machine::boot(DiskImage::empty(), no_hooks(), 0);
        process.remount(nowhere.clone());
        nowhere.power_off();
        // A thread that ends has dropped the others already.
        let _ = IDLE.try_with(|idle| {
            let mut idle = idle.borrow_mut();
            if idle.len() < MOST {
                idle.push(Kept { process, connection });
            }
        });
    }
}
