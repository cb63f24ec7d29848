//! The threads of a stage: each takes the next plan, runs it, and hands over a few numbers.

use super::results::{Records, cases, records};
use super::{Chosen, Plans, Request, WINDOW};
use crate::catalogue::Catalogue;
use crate::coverage::Mark;
use crate::fault::{Fault, KINDS};
use crate::history::{Kind, Nanos};
use crate::pipeline::{Pipeline, Ran, caught};
use crate::plan::{Case, Plan, Recipe};
use crate::replay::{Difference, difference, told};
use crate::run::{Options, Run};
use crate::scenario::Scenario;
use crate::verdict::{Fingerprint, InvariantId, Verdict};
use crate::watch::Watch;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Everything that the threads share.
pub(super) struct Job {
    catalogue: Arc<Catalogue>,
    pipeline: Pipeline,
    request: Arc<Request>,
    pub(super) plans: Arc<dyn Plans>,
    pub(super) watch: Watch,
    dispatch: Mutex<Dispatch>,
    folded: AtomicU64,
    results: Mutex<Vec<Outcome>>,
    enough: Condvar,
}

/// So many results are worth waking who waits for them: a wake costs as much as a twentieth of a run.
const BATCH: usize = 16;

/// Which plan is next, and the first that is not to be started.
struct Dispatch {
    next: u64,
    end: u64,
}

/// What came of one plan.
pub struct Outcome {
    /// Its place in the order.
    pub(super) k: u64,
    /// Which run it was.
    pub case: Case,
    /// Index of the scenario among those chosen.
    pub chosen: usize,
    /// The verdict.
    pub came: Came,
    /// The plan written down; of a violation only.
    pub(super) recipe: Option<Recipe>,
    /// Whether the seed alone repeats it.
    pub(super) by_seed: bool,
    /// The run itself, where it is traced.
    pub traced: Option<Box<Run>>,
    /// Hash of its history.
    pub(super) hash: u64,
    /// Faults on the tape and deliveries of the plan: what a reader has to take in.
    pub(super) size: (usize, usize),
    /// Where faults struck.
    pub(super) marks: Vec<Mark>,
    pub(super) fired: [u64; KINDS.len()],
    pub(super) drifted: [u64; KINDS.len()],
    /// The faults of its tape that never struck.
    pub never: Vec<Fault>,
    pub(super) evaluated: Vec<u32>,
    pub(super) goals: Vec<bool>,
    /// What the destination made.
    pub(super) records: Records,
    /// Why people owned cases.
    pub(super) cases: Vec<String>,
    pub(super) events: u64,
    pub(super) elapsed: Nanos,
    /// From calm to quiet.
    pub(super) settled_in: Option<Nanos>,
    /// Whether it was run twice, and where the runs differ.
    pub(super) twice: Option<Option<Difference>>,
}

/// The verdict on one plan.
#[derive(Clone, Debug)]
pub enum Came {
    /// Every invariant held.
    Held,
    /// At least one did not.
    Violated {
        /// The invariants that are violated, worst first, with fingerprints.
        all: Vec<(InvariantId, Fingerprint)>,
        /// Which of them is told.
        told: usize,
    },
    /// A limit was hit.
    Undecided(String),
    /// Nobody could survive the plan.
    Invalid(String),
    /// The harness failed.
    Harness(String),
}

impl Job {
    pub(super) fn new(
        catalogue: Arc<Catalogue>,
        pipeline: Pipeline,
        request: &Arc<Request>,
        plans: &Arc<dyn Plans>,
    ) -> Self {
        Job {
            catalogue,
            pipeline,
            request: Arc::clone(request),
            plans: Arc::clone(plans),
            watch: Watch::default(),
            dispatch: Mutex::new(Dispatch { next: 0, end: plans.len() }),
            folded: AtomicU64::new(0),
            results: Mutex::default(),
            enough: Condvar::new(),
        }
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

    /// Hands a result over.
    fn push(&self, outcome: Outcome) {
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        results.push(outcome);
        if self.is_enough(&results) {
            self.enough.notify_one();
        }
    }

    /// Whether there is no reason to wait for more: a batch is full, or only what was started is to come.
    fn is_enough(&self, results: &[Outcome]) -> bool {
        let is_last = || {
            let dispatch = self.dispatch();
            dispatch.next >= dispatch.end
        };
        results.len() >= BATCH || !results.is_empty() && is_last()
    }

    /// The results since the last time, as soon as there are enough of them, or after a time.
    pub(super) fn results(&self, patience: Duration) -> Vec<Outcome> {
        let results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = |results: &mut Vec<Outcome>| !self.is_enough(results);
        let waited = self.enough.wait_timeout_while(results, patience, waits);
        let (mut results, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut results)
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
        let (index, case) = self.plans.case(k);
        // Making a plan may take runs too, and asks the scenario: it can spin and panic like one.
        let done = self.watch.during(k, &case, || {
            let plan = caught(|| self.plans.plan(k, &self.catalogue, &self.pipeline));
            let plan = plan.map_err(|panic| panic.to_string()).and_then(|plan| plan)?;
            self.run(k, index, &plan)
        });
        done.unwrap_or_else(|error| Outcome::empty(k, case, index, Came::Harness(error)))
    }

    fn run(&self, k: u64, index: usize, plan: &Plan) -> Result<Outcome, String> {
        let chosen = &self.request.chosen[index];
        let scenario = &*self.catalogue.scenarios[chosen.scenario];
        let traced = self.plans.traced();
        let steps_max = self.request.steps_max;
        let options = Options { steps_max, journal: traced, places: traced, ..Options::default() };
        let ran = self.pipeline.once(scenario, plan, &options)?;
        let twice = (k < self.plans.twice()).then(|| self.again(scenario, plan, &options, &ran));
        let is_violated = matches!(ran.judgement.verdict, Verdict::Violated(_));
        let recipe = is_violated.then(|| self.recipe(scenario, chosen, plan)).flatten();
        let outcome = Outcome::of(k, index, chosen.killed_by, ran, traced);
        Ok(Outcome { recipe, by_seed: self.plans.by_seed(), twice, ..outcome })
    }

    /// The plan written down.
    fn recipe(&self, scenario: &dyn Scenario, chosen: &Chosen, plan: &Plan) -> Option<Recipe> {
        let contract = chosen.contracts.iter().find(|contract| contract.id == plan.case.contract)?;
        Some(Recipe::of(plan, &scenario.workload(contract, plan.case.seed)))
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
    /// The hash of its history; 0 where there was no run.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The outcome of a plan that gave no run.
    fn empty(k: u64, case: Case, chosen: usize, came: Came) -> Self {
        Outcome {
            k,
            case,
            chosen,
            came,
            recipe: None,
            by_seed: false,
            traced: None,
            hash: 0,
            size: (0, 0),
            marks: vec![],
            fired: [0; KINDS.len()],
            drifted: [0; KINDS.len()],
            never: vec![],
            evaluated: vec![],
            goals: vec![],
            records: Records::default(),
            cases: vec![],
            events: 0,
            elapsed: Nanos(0),
            settled_in: None,
            twice: None,
        }
    }

    fn of(k: u64, chosen: usize, killed_by: Option<&str>, ran: Ran, traced: bool) -> Self {
        let Ran { run, judgement } = ran;
        let told = told(&judgement, killed_by);
        let came = match (judgement.verdict, told) {
            (Verdict::Violated(all), Some(told)) => {
                let ids = all.iter().map(|violation| violation.invariant);
                Came::Violated { all: ids.zip(judgement.fingerprints).collect(), told }
            }
            (Verdict::Held | Verdict::Violated(_), _) => Came::Held,
            (Verdict::Undecided(why), _) => Came::Undecided(why),
            (Verdict::Invalid(why), _) => Came::Invalid(why),
            (Verdict::Harness(error), _) => Came::Harness(error),
        };
        let (mut fired, mut drifted, mut never) = ([0; KINDS.len()], [0; KINDS.len()], vec![]);
        for (fault, struck) in run.plan.tape.faults().iter().zip(&run.fired) {
            let kind = fault.what.kind_index();
            if struck.is_some() {
                fired[kind] += 1;
            } else {
                drifted[kind] += 1;
                never.push(fault.clone());
            }
        }
        let struck = run.plan.tape.faults().iter().zip(&run.fired).filter(|(_, struck)| struck.is_some());
        let marks = struck.map(|(fault, _)| Mark::of(fault)).collect();
        let time_of = |wanted: Kind| run.history.events().iter().find(|e| e.kind == wanted).map(|e| e.t_ns.0);
        let settled_in = (time_of(Kind::Calm).zip(time_of(Kind::Quiet)))
            .map(|(calm, quiet)| Nanos(quiet.saturating_sub(calm)));
        Outcome {
            k,
            chosen,
            came,
            hash: run.history.hash(),
            size: (run.plan.tape.faults().len(), run.plan.workload.deliveries.len()),
            marks,
            fired,
            drifted,
            never,
            evaluated: judgement.evaluated,
            goals: judgement.goals,
            records: records(&run),
            cases: cases(&run),
            events: run.history.events().len() as u64,
            elapsed: run.elapsed,
            settled_in,
            twice: None,
            recipe: None,
            by_seed: false,
            case: run.plan.case.clone(),
            traced: traced.then(|| Box::new(run)),
        }
    }
}

/// Starts one more thread.
pub(super) fn start(job: &Arc<Job>) {
    let job = Arc::clone(job);
    let worker = move || {
        while let Some(k) = job.take() {
            job.wait_for_window(k);
            job.push(job.one(k));
        }
    };
    thread::Builder::new().name("explore".into()).spawn(worker).expect("the system gives a thread");
}
