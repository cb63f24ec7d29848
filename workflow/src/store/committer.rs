//! One task that owns the connection and commits everything that waits as one transaction.

use super::StoreError;
use super::connections::Lent;
use super::open::{Opened, classify};
use crate::clock::{Clock, Timestamp};
use crate::mutant::{Mistake, Mutant};
use rusqlite::{Connection, ErrorCode};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Calls that may wait for the committer; more callers wait before they get in.
const QUEUE: usize = 1024;
/// Calls that share one commit.
const GROUP: usize = 256;
/// The pause before a busy file is tried again, and how often it is.
const BUSY_PAUSE: Duration = Duration::from_millis(5);
const BUSY_TRIES: u32 = 2_000;

/// The handle to the committer's task.
pub(super) struct Committer {
    jobs: mpsc::Sender<Box<dyn Job>>,
    time: StoreTime,
}

/// The later of the clock and the high-water mark, which it raises.
#[derive(Clone)]
struct StoreTime {
    clock: Clock,
    high_water: Arc<AtomicI64>,
    mutant: Mutant,
}

impl StoreTime {
    fn now(&self) -> Timestamp {
        let now = self.clock.now();
        Timestamp(self.high_water.fetch_max(now.0, Ordering::Relaxed).max(now.0))
    }
}

/// A call that waits. It may be run more than once: only the run that is committed counts.
trait Job: Send {
    fn writes(&self) -> bool;
    fn run(&mut self, tx: &Connection, now: Timestamp) -> rusqlite::Result<()>;
    fn done(self: Box<Self>, outcome: Result<(), StoreError>);
}

struct Call<T, F> {
    writes: bool,
    work: F,
    value: Option<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T: Send, F: FnMut(&Connection, Timestamp) -> rusqlite::Result<T> + Send> Job for Call<T, F> {
    fn writes(&self) -> bool {
        self.writes
    }

    fn run(&mut self, tx: &Connection, now: Timestamp) -> rusqlite::Result<()> {
        self.value = Some((self.work)(tx, now)?);
        Ok(())
    }

    fn done(self: Box<Self>, outcome: Result<(), StoreError>) {
        let value = self.value;
        let answer = outcome.map(|()| value.expect("a committed call has run"));
        // Whoever asked may have gone; what is committed stays committed.
        let _ = self.reply.send(answer);
    }
}

impl Committer {
    pub(super) fn start(opened: Opened, clock: Clock, mutant: Mutant) -> Committer {
        let (jobs, waiting) = mpsc::channel(QUEUE);
        let high_water = Arc::new(AtomicI64::new(opened.high_water.0));
        let time = StoreTime { clock, high_water, mutant };
        tokio::spawn(commit_groups(opened.connection, waiting, time.clone()));
        Committer { jobs, time }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.time.now()
    }

    /// Runs `work` in a transaction and returns when its commit is durable.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnMut(&Connection, Timestamp) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.run(true, work).await
    }

    /// Runs `work`, which only reads, and returns what it saw at one instant.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        mut work: impl FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.run(false, move |tx, _| work(tx)).await
    }

    async fn run<T: Send + 'static>(
        &self,
        writes: bool,
        work: impl FnMut(&Connection, Timestamp) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let stopped = || StoreError::Unknown("the store has stopped after a failed commit".into());
        self.jobs.send(Box::new(Call { writes, work, value: None, reply })).await.map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }
}

async fn commit_groups(mut connection: Lent, mut waiting: mpsc::Receiver<Box<dyn Job>>, time: StoreTime) {
    while let Some(first) = waiting.recv().await {
        let mut group = vec![first];
        while group.len() < GROUP
            && let Ok(job) = waiting.try_recv()
        {
            group.push(job);
        }
        let mut groups = VecDeque::from([group]);
        let mut tries = 0;
        while let Some(group) = groups.pop_front() {
            let now = time.now();
            let (back, group, outcome) = on_blocking_thread(connection, group, now).await;
            connection = back;
            match outcome {
                Ok(()) => answer(group, &Ok(())),
                Err(Failure::Busy) if tries < BUSY_TRIES => {
                    tries += 1;
                    groups.push_front(group);
                    tokio::time::sleep(BUSY_PAUSE).await;
                }
                Err(Failure::Error(StoreError::Unknown(why)))
                    if time.mutant.is(Mistake::UnknownCommitRetried) =>
                {
                    answer(group, &Err(StoreError::Transient(why)));
                }
                Err(Failure::Error(StoreError::Unknown(_)))
                    if time.mutant.is(Mistake::UnknownCommitStands) =>
                {
                    answer(group, &Ok(()));
                }
                // One call's failure must not fail its neighbours: each runs alone.
                Err(Failure::Error(StoreError::Transient(_))) if group.len() > 1 => {
                    groups.extend(group.into_iter().map(|job| vec![job]));
                }
                Err(failure) => {
                    let error = failure.into_error();
                    answer(group, &Err(error.clone()));
                    if !matches!(error, StoreError::Transient(_)) {
                        // What is durable is not known any more: only a fresh start can tell.
                        groups.into_iter().for_each(|group| answer(group, &Err(error.clone())));
                        return;
                    }
                }
            }
        }
    }
}

fn answer(group: Group, outcome: &Result<(), StoreError>) {
    group.into_iter().for_each(|job| job.done(outcome.clone()));
}

/// Why a group was not committed.
enum Failure {
    /// Another connection writes.
    Busy,
    /// Anything else.
    Error(StoreError),
}

impl Failure {
    fn into_error(self) -> StoreError {
        match self {
            Failure::Busy => StoreError::Transient("another process keeps the store locked".into()),
            Failure::Error(error) => error,
        }
    }
}

type Group = Vec<Box<dyn Job>>;

async fn on_blocking_thread(
    connection: Lent,
    mut group: Group,
    now: Timestamp,
) -> (Lent, Group, Result<(), Failure>) {
    // The simulator runs blocking work in line and calls that deprecated.
    #[cfg_attr(madsim, expect(deprecated, reason = "it runs in line there, which is what is wanted"))]
    let task = tokio::task::spawn_blocking(move || {
        let outcome = commit(&connection, &mut group, now);
        (connection, group, outcome)
    });
    task.await.expect("a store call does not panic")
}

fn commit(db: &Connection, group: &mut Group, now: Timestamp) -> Result<(), Failure> {
    let run = |sql: &str| db.prepare_cached(sql)?.execute([]);
    let writes = group.iter().any(|job| job.writes());
    run(if writes { "begin immediate" } else { "begin" }).map_err(|e| failure(&e, false))?;
    let worked = group.iter_mut().try_for_each(|job| job.run(db, now)).and_then(|()| {
        if writes {
            let sql = "update meta set high_water = ?1 where high_water < ?1";
            db.prepare_cached(sql)?.execute([now.0])?;
        }
        Ok(())
    });
    if let Err(error) = worked {
        roll_back(db);
        return Err(failure(&error, false));
    }
    run("commit").map(|_| ()).map_err(|error| {
        roll_back(db);
        failure(&error, true)
    })
}

/// Some errors have rolled back already; then there is nothing to do.
fn roll_back(db: &Connection) {
    if !db.is_autocommit()
        && let Err(error) = db.execute_batch("rollback")
    {
        tracing::error!(%error, "rollback failed");
    }
}

fn failure(error: &rusqlite::Error, committing: bool) -> Failure {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Failure::Busy,
        _ => Failure::Error(classify(error, committing)),
    }
}
