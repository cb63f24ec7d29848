//! Many seeds on several threads, folded in the order of the seeds: any number of threads reports the same.

mod pool;
mod tally;

pub use tally::{Exploration, Failure, ScenarioTally};

use crate::catalogue::Catalogue;
use crate::pipeline::Pipeline;
use crate::plan::Case;
use crate::resources::now;
use crate::seeds::{Seeds, Shard};
use crate::watch::LOOK;
use destinations::Contract;
use pool::{Came, Job, Outcome};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// The first so many seeds are run twice and compared.
pub const TWICE: u64 = 20;
/// Results that may wait for a slower seed before them.
const WINDOW: u64 = 4096;

/// A scenario among those that are explored.
#[derive(Clone)]
pub struct Chosen {
    /// Its index in the catalogue.
    pub scenario: usize,
    /// Its name.
    pub name: &'static str,
    /// The contracts that it is run with.
    pub contracts: Vec<Arc<Contract>>,
    /// The invariant that must catch the mutant.
    pub killed_by: Option<&'static str>,
}

/// What to explore.
#[derive(Clone)]
pub struct Request {
    /// The scenarios; each seed draws one of them, and one of its contracts.
    pub chosen: Vec<Chosen>,
    /// The seeds.
    pub seeds: Seeds,
    /// The part of the seeds that is run here.
    pub shard: Shard,
    /// Threads.
    pub jobs: usize,
    /// The known mistake to run with.
    pub mutant: Option<String>,
    /// The fault kinds that may be on a tape; none: all.
    pub kinds: Option<Vec<String>>,
    /// The limit of steps of one run.
    pub steps_max: u32,
    /// Stop after so many distinct failures.
    pub failures_max: Option<usize>,
    /// Start no seed after this.
    pub time: Option<Duration>,
    /// A run that takes longer than this is given up.
    pub run_max: Duration,
}

impl Request {
    /// How many seeds are to be run.
    pub fn total(&self) -> u64 {
        self.shard.len_of(self.seeds.len())
    }
}

/// What happens during an exploration.
#[derive(Clone, Debug)]
pub enum Notice<'a> {
    /// The first run is done.
    First(&'a Case, &'static str),
    /// So many are done.
    Done {
        /// Runs so far.
        done: u64,
        /// Distinct failures so far.
        failures: usize,
        /// The scenario of the last one.
        scenario: &'static str,
    },
    /// A failure that was not seen before.
    Found(&'a Failure),
    /// A run that never ends; it counts as undecided.
    Hung(&'a Case),
}

/// Runs the seeds; `interrupted` ends it early with what was run.
///
/// # Panics
/// When the system gives no thread.
pub fn explore(
    catalogue: &Arc<Catalogue>,
    pipeline: Pipeline,
    request: Request,
    interrupted: &AtomicBool,
    tell: &mut dyn FnMut(Notice<'_>),
) -> Exploration {
    assert!(request.jobs > 0 && !request.chosen.is_empty(), "somebody must run something");
    let goals = |chosen: &Chosen| {
        catalogue.scenarios[chosen.scenario].goals().iter().map(|goal| (goal.name, 0)).collect()
    };
    let scenarios =
        request.chosen.iter().map(|chosen| ScenarioTally::new(chosen.name, goals(chosen))).collect();
    let mut fold = Fold {
        done: Exploration::new(scenarios),
        waiting: BTreeMap::new(),
        total: request.total(),
        started: now(),
    };
    let (sender, receiver) = sync_channel(256);
    let jobs = request.jobs;
    let job = Arc::new(Job::new(Arc::clone(catalogue), pipeline, request));
    for _ in 0..jobs {
        pool::start(&job, sender.clone());
    }
    fold.run(&job, &sender, &receiver, interrupted, tell);
    job.release();
    // What the mutant stands for is told first.
    let named =
        |failure: &Failure| job.request.chosen.iter().any(|one| one.killed_by == Some(failure.invariant.id));
    fold.done.failures.sort_by_key(|failure| !named(failure));
    fold.done
}

/// The results so far, and those that wait for an earlier seed.
struct Fold {
    done: Exploration,
    waiting: BTreeMap<u64, Outcome>,
    total: u64,
    started: Instant,
}

impl Fold {
    fn run(
        &mut self,
        job: &Arc<Job>,
        sender: &SyncSender<Outcome>,
        receiver: &Receiver<Outcome>,
        interrupted: &AtomicBool,
        tell: &mut dyn FnMut(Notice<'_>),
    ) {
        let mut looked = now();
        while self.done.runs < self.total {
            match receiver.recv_timeout(LOOK) {
                // A late result of a run that was given up is not counted again.
                Ok(outcome) if outcome.k >= self.done.runs => {
                    self.waiting.entry(outcome.k).or_insert(outcome);
                }
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => unreachable!("this thread holds a sender"),
            }
            if looked.elapsed() > LOOK {
                looked = now();
                self.look(job, sender, interrupted, tell);
            }
            if self.fold_ready(job, tell) {
                self.done.stopped_early = self.done.runs < self.total;
                return;
            }
            job.folded(self.done.runs);
        }
    }

    /// Looks at the clock: an interruption, the end of the time, runs that never end.
    fn look(
        &mut self,
        job: &Arc<Job>,
        sender: &SyncSender<Outcome>,
        interrupted: &AtomicBool,
        tell: &mut dyn FnMut(Notice<'_>),
    ) {
        let over = job.request.time.is_some_and(|time| self.started.elapsed() >= time);
        let broken_off = interrupted.load(Ordering::Relaxed);
        if over || broken_off {
            self.done.out_of_time |= over && self.total > job.handed_out();
            self.done.interrupted |= broken_off;
            // What was started is still counted: the seeds that ran are the first ones, without a gap.
            self.total = self.total.min(job.stop());
        }
        for (k, case) in job.watch.overdue(job.request.run_max) {
            tell(Notice::Hung(&case));
            self.done.hung = true;
            self.waiting.entry(k).or_insert_with(|| job.given_up(k, case));
            // The thread of that run is lost; another takes its place.
            pool::start(job, sender.clone());
        }
    }

    /// Whether the invariant that a mutant is named for was violated, where there is a mutant: other failures
    /// do not end its search.
    fn is_killed(&self, request: &Request) -> bool {
        let mut named = request.chosen.iter().filter_map(|one| one.killed_by).peekable();
        named.peek().is_none()
            || named.any(|id| self.done.failures.iter().any(|failure| failure.invariant.id == id))
    }

    /// Folds what is next in order; true when enough failures were found.
    fn fold_ready(&mut self, job: &Job, tell: &mut dyn FnMut(Notice<'_>)) -> bool {
        while let Some(outcome) = self.waiting.remove(&self.done.runs) {
            if self.done.runs == 0 {
                tell(Notice::First(&outcome.case, outcome.came.word()));
            }
            let scenario = job.request.chosen[outcome.chosen].name;
            let found = self.done.add(outcome);
            tell(Notice::Done { done: self.done.runs, failures: self.done.failures.len(), scenario });
            if let Some(index) = found {
                tell(Notice::Found(&self.done.failures[index]));
            }
            let broken = self.done.harness >= tally::HARNESS_MAX;
            let enough = job.request.failures_max.is_some_and(|max| self.done.failures.len() >= max)
                && self.is_killed(&job.request);
            if broken || (found.is_some() && enough) {
                return true;
            }
        }
        false
    }
}

impl Came {
    fn word(&self) -> &'static str {
        match self {
            Came::Held => "held",
            Came::Violated { .. } => "violated",
            Came::Undecided(_) => "undecided",
            Came::Harness(_) => "harness error",
        }
    }
}

#[cfg(test)]
mod tests;
