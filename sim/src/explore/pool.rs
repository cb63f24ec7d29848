//! The threads of an exploration: each takes the next seed, runs it, and hands over a few numbers.

use super::{Request, TWICE, WINDOW};
use crate::catalogue::Catalogue;
use crate::fault::KINDS;
use crate::history::{Kind, Nanos};
use crate::pipeline::{Pipeline, Ran};
use crate::plan::{Case, Plan};
use crate::replay::{Difference, difference, told};
use crate::run::Options;
use crate::scenario::Scenario;
use crate::verdict::{Fingerprint, InvariantId, Verdict};
use crate::watch::Watch;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Everything that the threads share.
pub(super) struct Job {
    catalogue: Arc<Catalogue>,
    pipeline: Pipeline,
    pub(super) request: Request,
    pub(super) watch: Watch,
    dispatch: Mutex<Dispatch>,
    folded: AtomicU64,
}

/// Which seed is next, and the first that is not to be started.
struct Dispatch {
    next: u64,
    end: u64,
}

/// What came of one seed.
pub(super) struct Outcome {
    /// Its place in the order.
    pub(super) k: u64,
    pub(super) case: Case,
    /// Index of the scenario among those chosen.
    pub(super) chosen: usize,
    pub(super) came: Came,
    /// Hash of its history.
    pub(super) hash: u64,
    /// Faults on the tape and deliveries of the plan: what a reader has to take in.
    pub(super) size: (usize, usize),
    pub(super) fired: [u64; KINDS.len()],
    pub(super) drifted: [u64; KINDS.len()],
    pub(super) evaluated: Vec<u32>,
    pub(super) goals: Vec<bool>,
    pub(super) events: u64,
    pub(super) elapsed: Nanos,
    /// From calm to quiet.
    pub(super) settled_in: Option<Nanos>,
    /// Whether it was run twice, and where the runs differ.
    pub(super) twice: Option<Option<Difference>>,
}

/// The verdict on one seed.
pub(super) enum Came {
    Held,
    Violated {
        /// The invariants that are violated, worst first, with fingerprints.
        all: Vec<(InvariantId, Fingerprint)>,
        /// Which of them is told.
        told: usize,
    },
    Undecided(String),
    Harness(String),
}

impl Job {
    pub(super) fn new(catalogue: Arc<Catalogue>, pipeline: Pipeline, request: Request) -> Self {
        let dispatch = Mutex::new(Dispatch { next: 0, end: request.total() });
        let folded = AtomicU64::new(0);
        Job { catalogue, pipeline, request, watch: Watch::default(), dispatch, folded }
    }

    /// Ends the handing out; the number of seeds that were handed out.
    pub(super) fn stop(&self) -> u64 {
        let mut dispatch = self.dispatch();
        dispatch.end = dispatch.end.min(dispatch.next);
        dispatch.next
    }

    /// Nobody waits for results any more: every thread ends after its run.
    pub(super) fn release(&self) {
        self.stop();
        self.folded(u64::MAX - WINDOW);
    }

    pub(super) fn handed_out(&self) -> u64 {
        self.dispatch().next
    }

    /// So many results are folded; the threads may go on to a window beyond.
    pub(super) fn folded(&self, runs: u64) {
        self.folded.store(runs, Ordering::Relaxed);
    }

    /// The outcome of a run that never ended.
    pub(super) fn given_up(&self, k: u64, case: Case) -> Outcome {
        let chosen = self.request.chosen.iter().position(|chosen| chosen.name == case.scenario);
        let seconds = self.request.run_max.as_secs();
        let why = format!("it took more than {seconds} s of wall clock");
        Outcome::empty(k, case, chosen.expect("the case is one of those chosen"), Came::Undecided(why))
    }

    fn take(&self) -> Option<u64> {
        let mut dispatch = self.dispatch();
        if dispatch.next >= dispatch.end {
            return None;
        }
        dispatch.next += 1;
        Some(dispatch.next - 1)
    }

    fn dispatch(&self) -> std::sync::MutexGuard<'_, Dispatch> {
        self.dispatch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory must not grow while one seed is slow: nobody runs further ahead than the window.
    fn wait_for_window(&self, k: u64) {
        while k >= self.folded.load(Ordering::Relaxed) + WINDOW && k < self.dispatch().end {
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn one(&self, k: u64) -> Outcome {
        let request = &self.request;
        let seed = request.seeds.at(request.shard.position(k));
        let mut draw = seed.stream("case");
        let index = draw.below(request.chosen.len() as u64) as usize;
        let chosen = &request.chosen[index];
        let contract = draw.pick(&chosen.contracts);
        let case = Case { scenario: chosen.name.to_owned(), contract: contract.id.clone(), seed };
        let scenario = &*self.catalogue.scenarios[chosen.scenario];
        let mutant = request.mutant.as_deref();
        let plan = (self.pipeline.draft)(scenario, contract, seed, mutant, request.kinds.as_deref());
        let plan = match plan {
            Ok(plan) => plan,
            Err(error) => return Outcome::empty(k, case, index, Came::Harness(error)),
        };
        let options = Options { steps_max: request.steps_max, ..Options::default() };
        self.watch.during(k, &case, || match self.pipeline.once(scenario, &plan, &options) {
            Ok(ran) => {
                let twice = (k < TWICE).then(|| self.again(scenario, &plan, &options, &ran));
                Outcome::of(k, index, chosen.killed_by, ran, twice)
            }
            Err(error) => Outcome::empty(k, case.clone(), index, Came::Harness(error)),
        })
    }

    /// Where a second run differs. It runs on a fresh thread, so that what the first one left here shows.
    fn again(
        &self,
        scenario: &dyn Scenario,
        plan: &Plan,
        options: &Options,
        ran: &Ran,
    ) -> Option<Difference> {
        let second =
            thread::scope(|scope| scope.spawn(|| self.pipeline.once(scenario, plan, options)).join());
        match second {
            Ok(Ok(second)) => difference(ran, &second),
            Ok(Err(error)) => Some(Difference { step: 0, a: "a whole run".into(), b: error }),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl Outcome {
    /// The outcome of a seed that gave no run.
    fn empty(k: u64, case: Case, chosen: usize, came: Came) -> Self {
        Outcome {
            k,
            case,
            chosen,
            came,
            hash: 0,
            size: (0, 0),
            fired: [0; KINDS.len()],
            drifted: [0; KINDS.len()],
            evaluated: vec![],
            goals: vec![],
            events: 0,
            elapsed: Nanos(0),
            settled_in: None,
            twice: None,
        }
    }

    fn of(
        k: u64,
        chosen: usize,
        killed_by: Option<&str>,
        ran: Ran,
        twice: Option<Option<Difference>>,
    ) -> Self {
        let Ran { run, judgement } = ran;
        let told = told(&judgement, killed_by);
        let came = match (judgement.verdict, told) {
            (Verdict::Violated(all), Some(told)) => {
                let ids = all.iter().map(|violation| violation.invariant);
                Came::Violated { all: ids.zip(judgement.fingerprints).collect(), told }
            }
            (Verdict::Held | Verdict::Violated(_), _) => Came::Held,
            (Verdict::Undecided(why), _) => Came::Undecided(why),
            (Verdict::Harness(error), _) => Came::Harness(error),
        };
        let (mut fired, mut drifted) = ([0; KINDS.len()], [0; KINDS.len()]);
        for (fault, struck) in run.plan.tape.faults().iter().zip(&run.fired) {
            let kind = KINDS.iter().position(|kind| *kind == fault.what.kind());
            let kind = kind.expect("every kind is listed");
            if struck.is_some() { fired[kind] += 1 } else { drifted[kind] += 1 }
        }
        let time_of = |wanted: Kind| run.history.events().iter().find(|e| e.kind == wanted).map(|e| e.t_ns.0);
        let settled_in = (time_of(Kind::Calm).zip(time_of(Kind::Quiet)))
            .map(|(calm, quiet)| Nanos(quiet.saturating_sub(calm)));
        Outcome {
            k,
            chosen,
            came,
            hash: run.history.hash(),
            size: (run.plan.tape.faults().len(), run.plan.workload.deliveries.len()),
            fired,
            drifted,
            evaluated: judgement.evaluated,
            goals: judgement.goals,
            events: run.history.events().len() as u64,
            elapsed: run.elapsed,
            settled_in,
            twice,
            case: run.plan.case,
        }
    }
}

/// Starts one more thread.
pub(super) fn start(job: &Arc<Job>, results: SyncSender<Outcome>) {
    let job = Arc::clone(job);
    let worker = move || {
        while let Some(k) = job.take() {
            job.wait_for_window(k);
            // A closed channel means that enough is known.
            if results.send(job.one(k)).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("explore".into()).spawn(worker).expect("the system gives a thread");
}
