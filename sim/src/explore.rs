//! Many seeds on several threads, folded in the order of the seeds: any number of threads reports the same.

mod plans;
mod pool;
mod results;
mod tally;

pub use plans::{Plans, RecipePlans, SeedPlans};
pub use pool::{Came, Outcome};
pub use results::{PairTally, Records};
pub use tally::{Exploration, Failure, ScenarioTally};

use crate::catalogue::Catalogue;
use crate::coverage::{Coverage, Mark};
use crate::enumerate::Certificate;
use crate::pipeline::Pipeline;
use crate::plan::Case;
use crate::replay::killed_by;
use crate::resources::now;
use crate::run::Options;
use crate::seeds::{Seeds, Shard};
use crate::terms::Terms;
use crate::watch::{LIMIT, LOOK};
use destinations::{Assumptions, Contract};
use pool::Job;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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

impl Chosen {
    /// A scenario of the catalogue with every contract that it is run with.
    pub fn whole(catalogue: &Catalogue, index: usize, mutant: Option<&str>) -> Self {
        let scenario = &*catalogue.scenarios[index];
        let killed_by = killed_by(scenario, mutant);
        Chosen { scenario: index, name: scenario.name(), contracts: scenario.contracts(), killed_by }
    }

    /// Every scenario of the catalogue.
    pub fn every(catalogue: &Catalogue, mutant: Option<&str>) -> Vec<Self> {
        (0..catalogue.scenarios.len()).map(|index| Chosen::whole(catalogue, index, mutant)).collect()
    }
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
    /// All of these seeds on one thread, to their end, with every kind of fault and no mistake.
    pub fn of(chosen: Vec<Chosen>, seeds: Seeds) -> Self {
        Request {
            chosen,
            seeds,
            shard: Shard::ALL,
            jobs: 1,
            mutant: None,
            kinds: None,
            steps_max: Options::default().steps_max,
            failures_max: None,
            time: None,
            run_max: LIMIT,
        }
    }

    /// Every chosen contract, with the index of its scenario among those chosen.
    pub fn pairs(&self) -> Vec<(usize, Arc<Contract>)> {
        let each = self.chosen.iter().enumerate();
        each.flat_map(|(index, one)| one.contracts.iter().map(move |one| (index, Arc::clone(one)))).collect()
    }

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
    /// A search goes on with this, to so many runs in all.
    Stage {
        /// How the plans are found, and for what.
        what: &'a str,
        /// Runs so far.
        done: u64,
        /// Runs at its end.
        total: u64,
    },
    /// A scenario was enumerated with a contract.
    Enumerated(&'a Certificate),
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
    let mut search = Search::new(catalogue, pipeline, request, interrupted, tell);
    let seeds = SeedPlans::of(search.request());
    // What ended it is in the sums.
    let _ = search.stage(&(Arc::new(seeds) as Arc<dyn Plans>), &mut |_| {});
    search.finish()
}

/// A search in stages: each runs its plans on several threads and folds what came of them in their order.
pub struct Search<'a> {
    catalogue: Arc<Catalogue>,
    pipeline: Pipeline,
    request: Arc<Request>,
    interrupted: &'a AtomicBool,
    tell: &'a mut dyn FnMut(Notice<'_>),
    done: Exploration,
    started: Instant,
}

/// Whether a search goes on after a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Flow {
    /// Every plan of the stage was run.
    On,
    /// Enough is known, the time is over, or somebody ended it.
    Over,
}

impl<'a> Search<'a> {
    /// A search that has run nothing yet.
    pub fn new(
        catalogue: &Arc<Catalogue>,
        pipeline: Pipeline,
        request: Request,
        interrupted: &'a AtomicBool,
        tell: &'a mut dyn FnMut(Notice<'_>),
    ) -> Self {
        assert!(request.jobs > 0 && !request.chosen.is_empty(), "somebody must run something");
        let goals = |chosen: &Chosen| {
            catalogue.scenarios[chosen.scenario].goals().iter().map(|goal| (goal.name, 0)).collect()
        };
        let scenarios =
            request.chosen.iter().map(|chosen| ScenarioTally::new(chosen.name, goals(chosen))).collect();
        let pairs = request.chosen.iter().flat_map(|chosen| {
            let scenario = &*catalogue.scenarios[chosen.scenario];
            chosen.contracts.iter().map(|contract| PairTally::new(scenario, contract))
        });
        let done = Exploration::new(scenarios, pairs.collect(), coverage(catalogue, &request));
        Search {
            catalogue: Arc::clone(catalogue),
            pipeline,
            request: Arc::new(request),
            interrupted,
            tell,
            done,
            started: now(),
        }
    }

    /// What was asked for.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The scenarios that can be run.
    pub fn catalogue(&self) -> &Arc<Catalogue> {
        &self.catalogue
    }

    /// What came of it so far.
    pub fn done(&self) -> &Exploration {
        &self.done
    }

    /// Tells who watches.
    pub fn tell(&mut self, notice: Notice<'_>) {
        (self.tell)(notice);
    }

    /// Faults of which another has shown what they do, at places of the same state: they count as struck.
    pub fn stood_for(&mut self, contract: &str, marks: &BTreeSet<Mark>) {
        let marks: Vec<Mark> = marks.iter().copied().collect();
        self.done.coverage.struck(contract, &marks);
    }

    /// Runs the plans of a stage; `seen` is shown each outcome in the order of the plans.
    pub fn stage(&mut self, plans: &Arc<dyn Plans>, seen: &mut dyn FnMut(&Outcome)) -> Flow {
        let job = Job::new(Arc::clone(&self.catalogue), self.pipeline, &self.request, plans);
        let job = Arc::new(job);
        let done = self.done.runs;
        self.tell(Notice::Stage { what: &plans.about(), done, total: done + plans.len() });
        // A few plans are not worth a thread each.
        for _ in 0..(self.request.jobs as u64).min(plans.len()) {
            pool::start(&job);
        }
        let waiting = BTreeMap::new();
        let mut fold = Fold { search: self, job: &job, waiting, next: 0, total: plans.len() };
        let flow = fold.run(seen);
        job.release();
        flow
    }

    /// The sums.
    pub fn finish(mut self) -> Exploration {
        // What the mutant stands for is told first.
        let named = |failure: &Failure| {
            self.request.chosen.iter().any(|one| one.killed_by == Some(failure.invariant.id))
        };
        self.done.failures.sort_by_key(|failure| !named(failure));
        self.done
    }

    /// Whether the invariant that a mutant is named for was violated, where there is a mutant: other failures
    /// do not end its search.
    fn is_killed(&self) -> bool {
        let mut named = self.request.chosen.iter().filter_map(|one| one.killed_by).peekable();
        named.peek().is_none()
            || named.any(|id| self.done.failures.iter().any(|failure| failure.invariant.id == id))
    }
}

/// What must be struck under the contracts that were chosen.
fn coverage(catalogue: &Catalogue, request: &Request) -> Coverage {
    let all: Vec<(&Contract, Assumptions)> = request
        .chosen
        .iter()
        .flat_map(|one| one.contracts.iter().map(|contract| (one.scenario, &**contract)))
        .map(|(scenario, contract)| (contract, catalogue.scenarios[scenario].assumptions(contract)))
        .collect();
    let terms = all.iter().map(|(contract, assumptions)| Terms { contract, assumptions });
    Coverage::of(terms, request.kinds.as_deref())
}

/// The results of a stage so far, and those that wait for an earlier plan.
struct Fold<'s, 'a> {
    search: &'s mut Search<'a>,
    job: &'s Arc<Job>,
    waiting: BTreeMap<u64, Outcome>,
    /// The next plan in order.
    next: u64,
    total: u64,
}

impl Fold<'_, '_> {
    fn run(&mut self, seen: &mut dyn FnMut(&Outcome)) -> Flow {
        // A search of many short stages would never look otherwise.
        self.look();
        let mut looked = now();
        while self.next < self.total {
            for outcome in self.job.results(LOOK) {
                // A late result of a run that was given up is not counted again.
                if outcome.k >= self.next {
                    self.waiting.entry(outcome.k).or_insert(outcome);
                }
            }
            if looked.elapsed() > LOOK {
                looked = now();
                self.look();
            }
            if self.fold_ready(seen) {
                // Whether a stage would have followed is not known here.
                self.search.done.stopped_early = true;
                return Flow::Over;
            }
            self.job.folded(self.next);
        }
        let done = &self.search.done;
        if done.interrupted || done.out_of_time { Flow::Over } else { Flow::On }
    }

    /// Looks at the clock: an interruption, the end of the time, runs that never end.
    fn look(&mut self) {
        let search = &mut *self.search;
        let over = search.request.time.is_some_and(|time| search.started.elapsed() >= time);
        let broken_off = search.interrupted.load(Ordering::Relaxed);
        if over || broken_off {
            search.done.out_of_time |= over && self.total > self.job.handed_out();
            search.done.interrupted |= broken_off;
            // What was started is still counted: the plans that ran are the first ones, without a gap.
            self.total = self.total.min(self.job.stop());
        }
        for (k, case) in self.job.watch.overdue(search.request.run_max) {
            (search.tell)(Notice::Hung(&case));
            search.done.hung = true;
            self.waiting.entry(k).or_insert_with(|| self.job.given_up(k, case));
            // The thread of that run is lost; another takes its place.
            pool::start(self.job);
        }
    }

    /// Folds what is next in order; true when enough failures were found.
    fn fold_ready(&mut self, seen: &mut dyn FnMut(&Outcome)) -> bool {
        while let Some(outcome) = self.waiting.remove(&self.next) {
            let search = &mut *self.search;
            if search.done.runs == 0 {
                (search.tell)(Notice::First(&outcome.case, outcome.came.word()));
            }
            self.next += 1;
            let scenario = search.request.chosen[outcome.chosen].name;
            seen(&outcome);
            let found = search.done.add(outcome, self.job.plans.strategy());
            let (done, failures) = (search.done.runs, search.done.failures.len());
            (search.tell)(Notice::Done { done, failures, scenario });
            if let Some(index) = found {
                (search.tell)(Notice::Found(&search.done.failures[index]));
            }
            let broken = search.done.harness >= tally::HARNESS_MAX;
            let max = search.request.failures_max;
            let enough = max.is_some_and(|max| search.done.failures.len() >= max) && search.is_killed();
            if broken || (found.is_some() && enough) {
                return true;
            }
        }
        false
    }
}

impl Came {
    /// The verdict in a word.
    pub fn word(&self) -> &'static str {
        match self {
            Came::Held => "held",
            Came::Violated { .. } => "violated",
            Came::Undecided(_) => "undecided",
            Came::Invalid(_) => "invalid",
            Came::Harness(_) => "harness error",
        }
    }
}

#[cfg(test)]
mod tests;
