//! What is due and when: in memory, rebuilt from the store at each start.

use crate::clock::Timestamp;
use crate::operation::OperationKey;
use crate::store::{Operation, Store};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// The longest sleep between two looks at the clock: a wall clock that jumps ahead is noticed by then.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Inner {
    due: BTreeSet<(Timestamp, OperationKey)>,
    fresh: BTreeMap<OperationKey, Box<Operation>>,
    in_hand: usize,
}

/// The operations that have not ended and that no person owns.
pub(crate) struct Agenda {
    inner: Mutex<Inner>,
    changed: Notify,
    max_open: usize,
}

impl Agenda {
    pub(crate) fn new(max_open: usize) -> Agenda {
        Agenda { inner: Mutex::default(), changed: Notify::new(), max_open }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // No code that holds the lock can panic half way.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether no further operation should be begun.
    pub(crate) fn is_full(&self) -> bool {
        let inner = self.lock();
        inner.due.len() + inner.in_hand >= self.max_open
    }

    /// Puts an operation on the agenda; with what was just stored of it, where that is at hand.
    pub(crate) fn put(&self, due: Timestamp, key: OperationKey, fresh: Option<Box<Operation>>) {
        let mut inner = self.lock();
        if let Some(fresh) = fresh {
            inner.fresh.insert(key.clone(), fresh);
        }
        inner.due.insert((due, key));
        drop(inner);
        self.changed.notify_one();
    }

    /// Waits for the next operation that is due and takes it in hand.
    pub(crate) async fn take(&self, store: &Store) -> (OperationKey, Option<Box<Operation>>) {
        loop {
            let sleep = {
                let mut inner = self.lock();
                let now = store.now();
                match inner.due.first().map(|(due, _)| *due) {
                    Some(due) if due <= now => {
                        let (_, key) = inner.due.pop_first().expect("the first was just seen");
                        inner.in_hand += 1;
                        let fresh = inner.fresh.remove(&key);
                        return (key, fresh);
                    }
                    Some(due) => Some(due.remaining_at(now).min(LONGEST_SLEEP)),
                    None => None,
                }
            };
            match sleep {
                None => self.changed.notified().await,
                Some(sleep) => {
                    tokio::select! {
                        biased;
                        () = self.changed.notified() => {}
                        () = tokio::time::sleep(sleep) => {}
                    }
                }
            }
        }
    }

    /// Gives an operation back that was in hand: to be taken again when it is due, or for good.
    pub(crate) fn give_back(&self, key: OperationKey, due: Option<Timestamp>) {
        let mut inner = self.lock();
        inner.in_hand = inner.in_hand.saturating_sub(1);
        if let Some(due) = due {
            inner.due.insert((due, key));
            drop(inner);
            self.changed.notify_one();
        }
    }
}
