//! Requests in progress: which of several commits first.

use super::destination::{Reply, Write};
use crate::ledger::Millis;

/// Names one request in progress; never used twice by one destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkId(pub u64);

/// A request that is validated and has not committed.
#[derive(Clone, Debug)]
pub(super) struct Work {
    pub(super) id: WorkId,
    pub(super) due: Millis,
    pub(super) late: bool,
    pub(super) write: Write,
    /// Requests with the same key that get the same answer.
    pub(super) waiting: Vec<WorkId>,
}

/// Requests in progress and answers that nobody has fetched yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Race {
    next: u64,
    working: Vec<Work>,
    finished: Vec<(WorkId, Reply)>,
}

impl Race {
    pub(super) fn name(&mut self) -> WorkId {
        self.next += 1;
        WorkId(self.next)
    }

    pub(super) fn start(&mut self, write: Write, due: Millis, late: bool) -> WorkId {
        let id = self.name();
        self.working.push(Work { id, due, late, write, waiting: Vec::new() });
        id
    }

    /// Lets one more request wait for the answer of another; `None` where that is not in progress.
    pub(super) fn wait_for(&mut self, first: WorkId) -> Option<WorkId> {
        let place = self.working.iter().position(|work| work.id == first)?;
        let id = self.name();
        self.working[place].waiting.push(id);
        Some(id)
    }

    /// The next instant at which something happens.
    pub(super) fn due(&self, now: Millis) -> Option<Millis> {
        if self.finished.is_empty() { self.working.iter().map(|work| work.due).min() } else { Some(now) }
    }

    /// Takes out the first work due, in the order of time, then of arrival.
    pub(super) fn take_due(&mut self, now: Millis) -> Option<Work> {
        let first =
            self.working.iter().filter(|work| work.due <= now).min_by_key(|work| (work.due, work.id))?.id;
        self.take(first)
    }

    pub(super) fn take(&mut self, id: WorkId) -> Option<Work> {
        let place = self.working.iter().position(|work| work.id == id)?;
        Some(self.working.remove(place))
    }

    /// Keeps an answer until it is fetched.
    pub(super) fn finish(&mut self, id: WorkId, reply: Reply) {
        self.finished.push((id, reply));
    }

    pub(super) fn fetch(&mut self) -> Vec<(WorkId, Reply)> {
        std::mem::take(&mut self.finished)
    }
}
