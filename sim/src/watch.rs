//! A look at the wall clock from outside the runs: a run that never ends is named and not waited for.

use crate::plan::Case;
use crate::resources::now;
use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The longest wall-clock time that one run may take; it should take a millisecond.
pub const LIMIT: Duration = Duration::from_secs(60);
/// How often somebody looks.
pub const LOOK: Duration = Duration::from_millis(200);

/// The runs that go on now, by ticket.
#[derive(Default)]
pub struct Watch(Mutex<BTreeMap<u64, (Case, Instant)>>);

/// A run that took longer than [`LIMIT`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} has taken more than 60 s of wall clock, where a run takes a millisecond; it is given up")]
pub struct Hung(pub Case);

impl Watch {
    /// Does the work under this ticket.
    pub fn during<T>(&self, ticket: u64, case: &Case, work: impl FnOnce() -> T) -> T {
        self.running().insert(ticket, (case.clone(), now()));
        let done = work();
        self.running().remove(&ticket);
        done
    }

    /// The runs that have taken longer than the limit; each is named once.
    pub fn overdue(&self, limit: Duration) -> Vec<(u64, Case)> {
        let mut running = self.running();
        let late: Vec<u64> =
            running.iter().filter(|(_, (_, since))| since.elapsed() > limit).map(|(t, _)| *t).collect();
        late.into_iter().filter_map(|t| running.remove(&t).map(|(case, _)| (t, case))).collect()
    }

    fn running(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, (Case, Instant)>> {
        // A map of tickets has no state that a panic could leave half made.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Does the work on a thread of its own and gives up on it when one of its runs never ends.
///
/// # Errors
/// When a run takes longer than [`LIMIT`]. Its thread is left behind.
///
/// # Panics
/// When the work panics.
pub fn apart<T: Send + 'static>(work: impl FnOnce(&Watch) -> T + Send + 'static) -> Result<T, Hung> {
    apart_within(LIMIT, work)
}

fn apart_within<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce(&Watch) -> T + Send + 'static,
) -> Result<T, Hung> {
    let watch = Arc::new(Watch::default());
    let (sender, receiver) = channel();
    let inside = Arc::clone(&watch);
    let worker = thread::Builder::new()
        .name("told".into())
        // A closed channel means that nobody waits any more.
        .spawn(move || drop(sender.send(work(&inside))))
        .expect("the system gives a thread");
    loop {
        match receiver.recv_timeout(LOOK) {
            Ok(done) => return Ok(done),
            Err(RecvTimeoutError::Timeout) => {
                if let Some((_, case)) = watch.overdue(limit).into_iter().next() {
                    return Err(Hung(case));
                }
            }
            Err(RecvTimeoutError::Disconnected) => match worker.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => unreachable!("the worker sends before it ends"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_overdue_once() {
        let watch = Watch::default();
        let case: Case = "a/b@1".parse().unwrap();
        watch.during(3, &case, || {
            assert_eq!(watch.overdue(LIMIT), []);
            thread::sleep(Duration::from_millis(2));
            assert_eq!(watch.overdue(Duration::from_millis(1)), [(3, case.clone())]);
            assert_eq!(watch.overdue(Duration::from_millis(1)), []);
        });
    }

    #[test]
    fn work_apart_gives_its_result() {
        assert_eq!(apart(|_| 7), Ok(7));
        let case: Case = "a/b@1".parse().unwrap();
        let inside = case.clone();
        let hung = apart_within(Duration::from_millis(1), move |watch| {
            watch.during(0, &inside, || {
                loop {
                    thread::park();
                }
            })
        });
        assert_eq!(hung, Err::<(), Hung>(Hung(case)));
    }
}
