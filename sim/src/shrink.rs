//! A failing plan made as small as it can be while it stays the same failure; nothing here looks at a clock.

use crate::fault::{Fault, FaultTape, What};
use crate::menu::milder;
use crate::pipeline::{Pipeline, Ran};
use crate::plan::{Plan, Recipe, RecipeError};
use crate::replay::{Difference, Need, difference, told};
use crate::run::Options;
use crate::scenario::Scenario;
use crate::terms::Terms;
use crate::verdict::{Fingerprint, Judgement, Verdict};
use crate::watch::Watch;
use destinations::{Assumptions, Contract};
use std::ops::Range;

/// The runs that shrinking takes at most where nobody says otherwise.
pub const RUNS_MAX: u32 = 1_000;
/// Spans in milliseconds that are tried in place of a longer one, the shortest first.
const SPANS: [u64; 5] = [0, 100, 1_000, 12_000, 60_000];

/// What plans are run with, again and again.
pub struct Trial<'a> {
    /// Runs and judges.
    pub pipeline: Pipeline,
    /// The scenario.
    pub scenario: &'a dyn Scenario,
    /// The contract.
    pub contract: &'a Contract,
    /// The invariant that must catch the mutant.
    pub killed_by: Option<&'static str>,
    /// How each plan is run.
    pub options: Options,
    /// Notices a run that never ends.
    pub watch: &'a Watch,
}

/// Why a plan gave no verdict at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrialError {
    /// The recipe gives no plan.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// The harness failed.
    #[error("{0}")]
    Harness(String),
}

impl Trial<'_> {
    /// Runs a plan.
    ///
    /// # Errors
    /// When the harness fails.
    pub fn run(&self, plan: &Plan, options: &Options) -> Result<Ran, TrialError> {
        let ran = self.watch.during(0, &plan.case, || self.pipeline.once(self.scenario, plan, options));
        let ran = ran.map_err(TrialError::Harness)?;
        match &ran.judgement.verdict {
            Verdict::Harness(error) => Err(TrialError::Harness(error.clone())),
            _ => Ok(ran),
        }
    }

    /// Runs it on a fresh thread, so that whatever an earlier run left in this one shows.
    ///
    /// # Errors
    /// As [`Trial::run`].
    pub fn run_elsewhere(&self, plan: &Plan, options: &Options) -> Result<Ran, TrialError> {
        std::thread::scope(|scope| scope.spawn(|| self.run(plan, options)).join())
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// The told violation's fingerprint and invariant; none where nothing is violated.
    fn told<'j>(&self, judgement: &'j Judgement) -> Option<(&'j Fingerprint, &'static str)> {
        let index = told(judgement, self.killed_by)?;
        let Verdict::Violated(all) = &judgement.verdict else { return None };
        Some((judgement.fingerprints.get(index)?, all.get(index)?.invariant.name))
    }
}

/// How long shrinking may go on.
#[derive(Clone, Copy)]
pub struct Budget<'a> {
    /// Runs.
    pub runs: u32,
    /// Whether it must end now: time is over, or somebody broke it off.
    pub over: &'a dyn Fn() -> bool,
}

impl Budget<'_> {
    /// Runs alone count, so that the result never depends on a clock.
    pub const RUNS: Budget<'static> = Budget { runs: RUNS_MAX, over: &|| false };
}

/// What a reader of a plan has to take in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Faults on the tape.
    pub faults: usize,
    /// Deliveries.
    pub deliveries: usize,
    /// Operations that they ask for.
    pub operations: usize,
}

impl Size {
    /// The size of a plan.
    pub fn of(plan: &Plan) -> Self {
        let Plan { workload, tape, .. } = plan;
        Size {
            faults: tape.faults().len(),
            deliveries: workload.deliveries.len(),
            operations: workload.requests.len(),
        }
    }
}

/// Why shrinking ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// No single step makes it smaller.
    Smallest,
    /// The runs of its budget are used up.
    Runs,
    /// The time was over, or somebody broke it off.
    Cut,
    /// There was nothing to shrink: the plan holds, or its two first runs differ.
    Nothing,
}

/// A recipe made smaller.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The smaller recipe.
    pub recipe: Recipe,
    /// The failure that it keeps; none where there was none.
    pub fingerprint: Option<Fingerprint>,
    /// For each fault that is left, what comes without it.
    pub needs: Vec<Need>,
    /// Before.
    pub before: Size,
    /// After.
    pub after: Size,
    /// Runs that it took.
    pub runs: u32,
    /// Why it ended.
    pub ended: Ended,
    /// Where the first two runs of the recipe differ; then nothing was shrunk.
    pub difference: Option<Difference>,
}

/// Makes a failing recipe smaller: fewer faults, fewer deliveries, milder faults, a simpler schedule. Each
/// step keeps the fingerprint of the violation that is told, and none leaves what a workflow must survive.
///
/// # Errors
/// When the recipe gives no plan, or the harness fails.
pub fn shrink(trial: &Trial<'_>, recipe: &Recipe, budget: Budget<'_>) -> Result<Shrunk, TrialError> {
    let plan = recipe.plan(trial.scenario, trial.contract)?;
    let first = trial.run(&plan, &trial.options)?;
    let second = trial.run_elsewhere(&plan, &trial.options)?;
    let size = Size::of(&plan);
    let found = trial.told(&first.judgement).map(|(fingerprint, _)| fingerprint.clone());
    let mut shrunk = Shrunk {
        recipe: recipe.clone(),
        fingerprint: found.clone(),
        needs: vec![Need::Untried; size.faults],
        before: size,
        after: size,
        runs: 2,
        ended: Ended::Nothing,
        difference: difference(&first, &second),
    };
    let Some(target) = found.filter(|_| shrunk.difference.is_none()) else { return Ok(shrunk) };
    let mut search = Search::new(trial, recipe, target, budget);
    search.fired = fired(&first);
    shrunk.ended = search.ended(Search::smaller)?;
    shrunk.needs = search.needs()?;
    let plan = search.best.plan(trial.scenario, trial.contract)?;
    shrunk.after = Size::of(&plan);
    shrunk.runs = search.runs;
    shrunk.recipe = search.best;
    assert!(shrunk.after.faults <= size.faults && shrunk.after.deliveries <= size.deliveries);
    Ok(shrunk)
}

/// What comes of a recipe without each of its faults, one at a time; the recipe itself stays.
///
/// # Errors
/// As [`shrink`].
pub fn needs(trial: &Trial<'_>, recipe: &Recipe, target: &Fingerprint) -> Result<Vec<Need>, TrialError> {
    Search::new(trial, recipe, target.clone(), Budget::RUNS).needs()
}

fn fired(ran: &Ran) -> Vec<bool> {
    ran.run.fired.iter().map(Option::is_some).collect()
}

/// What came of a candidate.
#[derive(Clone, Debug)]
enum Tried {
    /// The same failure; these of its faults struck.
    Same(Vec<bool>),
    /// Something else.
    Other(Need),
}

/// Why a search stops on its way.
enum Stop {
    Over(Ended),
    Failed(TrialError),
}

impl From<TrialError> for Stop {
    fn from(error: TrialError) -> Self {
        Stop::Failed(error)
    }
}

/// The smallest recipe so far, and every recipe that was tried.
struct Search<'a, 'b> {
    trial: &'a Trial<'a>,
    assumptions: Assumptions,
    target: Fingerprint,
    budget: Budget<'b>,
    best: Recipe,
    fired: Vec<bool>,
    tried: Vec<(Recipe, Tried)>,
    runs: u32,
}

impl<'a, 'b> Search<'a, 'b> {
    fn new(trial: &'a Trial<'a>, recipe: &Recipe, target: Fingerprint, budget: Budget<'b>) -> Self {
        Search {
            trial,
            assumptions: trial.scenario.assumptions(trial.contract),
            target,
            budget,
            best: recipe.clone(),
            fired: vec![],
            tried: vec![],
            runs: 2,
        }
    }

    fn ended(&mut self, pass: fn(&mut Self) -> Result<(), Stop>) -> Result<Ended, TrialError> {
        match pass(self) {
            Ok(()) => Ok(Ended::Smallest),
            Err(Stop::Over(ended)) => Ok(ended),
            Err(Stop::Failed(error)) => Err(error),
        }
    }

    /// Every way to make it smaller, again until none does: a later step may make an earlier one possible.
    fn smaller(&mut self) -> Result<(), Stop> {
        loop {
            let before = self.best.clone();
            self.drop_unfired()?;
            self.fewer_faults()?;
            self.fewer_deliveries()?;
            self.milder_faults()?;
            self.simpler_schedule()?;
            if self.best == before {
                return Ok(());
            }
        }
    }

    fn drop_unfired(&mut self) -> Result<(), Stop> {
        let faults = self.best.tape.faults().iter();
        let struck: Vec<Fault> =
            faults.zip(&self.fired).filter(|(_, fired)| **fired).map(|(fault, _)| fault.clone()).collect();
        if struck.len() < self.best.tape.faults().len() {
            let tape = FaultTape::new(struck).expect("a part of a tape is a tape");
            self.take(Recipe { tape, ..self.best.clone() })?;
        }
        Ok(())
    }

    fn fewer_faults(&mut self) -> Result<(), Stop> {
        self.leave_out(
            |search| search.best.tape.faults().len(),
            |search, range| {
                let kept = kept(search.best.tape.faults(), range);
                let tape = FaultTape::new(kept).expect("a part of a tape is a tape");
                Some(Recipe { tape, ..search.best.clone() })
            },
        )
    }

    fn fewer_deliveries(&mut self) -> Result<(), Stop> {
        self.leave_out(
            |search| search.deliveries().len(),
            |search, range| {
                let kept = kept(&search.deliveries(), range);
                let deliveries = Some(kept).filter(|kept| !kept.is_empty())?;
                Some(Recipe { deliveries: Some(deliveries), ..search.best.clone() })
            },
        )
    }

    /// The deliveries of the smallest recipe so far, each name once.
    fn deliveries(&self) -> Vec<String> {
        let all = self.best.deliveries.clone().unwrap_or_else(|| {
            let workload = self.trial.scenario.workload(self.trial.contract, self.best.case.seed);
            workload.deliveries.into_iter().map(|delivery| delivery.name).collect()
        });
        let mut names: Vec<String> = vec![];
        for name in all {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    fn milder_faults(&mut self) -> Result<(), Stop> {
        let mut index = 0;
        while let Some(fault) = self.best.tape.faults().get(index).cloned() {
            let mut changed = false;
            for what in milder(&fault.what).into_iter().chain(shorter(&fault.what)) {
                let tape = self.best.tape.without(index).with(Fault { at: fault.at.clone(), what });
                // A milder kind may not be one that can strike here.
                let Ok(tape) = tape else { continue };
                if self.take(Recipe { tape, ..self.best.clone() })? {
                    changed = true;
                    break;
                }
            }
            // A milder fault may have a milder one still.
            index += usize::from(!changed);
        }
        Ok(())
    }

    fn simpler_schedule(&mut self) -> Result<(), Stop> {
        if self.best.schedule != Some(0) {
            self.take(Recipe { schedule: Some(0), ..self.best.clone() })?;
        }
        Ok(())
    }

    /// Leaves out ever smaller ranges of parts: all at once, halves, quarters, and each alone.
    fn leave_out(
        &mut self,
        parts: impl Fn(&Self) -> usize,
        without: impl Fn(&Self, Range<usize>) -> Option<Recipe>,
    ) -> Result<(), Stop> {
        let mut size = parts(self);
        while size > 0 {
            let mut from = 0;
            while from < parts(self) {
                let to = (from + size).min(parts(self));
                let candidate = without(self, from..to);
                let taken = candidate.map_or(Ok(false), |candidate| self.take(candidate))?;
                from = if taken { from } else { to };
            }
            size /= 2;
        }
        Ok(())
    }

    /// What comes without each fault of the smallest recipe; where the budget is used up, nobody knows.
    fn needs(&mut self) -> Result<Vec<Need>, TrialError> {
        let mut needs = vec![];
        for index in 0..self.best.tape.faults().len() {
            let tape = self.best.tape.without(index);
            let need = match self.of(&Recipe { tape, ..self.best.clone() }) {
                Ok(Tried::Same(_)) => Need::Same,
                Err(Stop::Over(_)) => Need::Untried,
                Ok(Tried::Other(need)) => need,
                Err(Stop::Failed(error)) => return Err(error),
            };
            needs.push(need);
        }
        Ok(needs)
    }

    /// Goes on with the candidate when it is the same failure.
    fn take(&mut self, candidate: Recipe) -> Result<bool, Stop> {
        match self.of(&candidate)? {
            Tried::Same(fired) => {
                (self.best, self.fired) = (candidate, fired);
                Ok(true)
            }
            Tried::Other(_) => Ok(false),
        }
    }

    /// What comes of a recipe; each is run once.
    fn of(&mut self, recipe: &Recipe) -> Result<Tried, Stop> {
        if let Some((_, tried)) = self.tried.iter().find(|(known, _)| known == recipe) {
            return Ok(tried.clone());
        }
        let terms = Terms { contract: self.trial.contract, assumptions: &self.assumptions };
        let tried = match terms.unsurvivable(&recipe.tape) {
            Some(_) => Tried::Other(Need::Undecided),
            None => self.run(recipe)?,
        };
        self.tried.push((recipe.clone(), tried.clone()));
        Ok(tried)
    }

    fn run(&mut self, recipe: &Recipe) -> Result<Tried, Stop> {
        if self.runs >= self.budget.runs {
            return Err(Stop::Over(Ended::Runs));
        }
        if (self.budget.over)() {
            return Err(Stop::Over(Ended::Cut));
        }
        self.runs += 1;
        let plan = recipe.plan(self.trial.scenario, self.trial.contract).map_err(TrialError::from)?;
        let ran = self.trial.run(&plan, &self.trial.options)?;
        Ok(match (self.trial.told(&ran.judgement), &ran.judgement.verdict) {
            (Some((fingerprint, _)), _) if *fingerprint == self.target => Tried::Same(fired(&ran)),
            (Some((_, name)), _) => Tried::Other(Need::Breaks(name.to_owned())),
            (None, Verdict::Held | Verdict::Violated(_)) => Tried::Other(Need::Holds),
            (None, _) => Tried::Other(Need::Undecided),
        })
    }
}

/// All parts but those in the range.
fn kept<T: Clone>(parts: &[T], without: Range<usize>) -> Vec<T> {
    [&parts[..without.start], &parts[without.end..]].concat()
}

/// The same fault over a shorter span, where [`milder`] has none.
fn shorter(what: &What) -> Vec<What> {
    let spans = |make: fn(u64) -> What, ms: u64| -> Vec<What> {
        SPANS.into_iter().filter(|less| *less < ms).map(make).collect()
    };
    match what {
        What::Duplicate(ms) => spans(What::Duplicate, *ms),
        What::Undo(ms) => spans(What::Undo, *ms),
        What::Blind(ms) => spans(What::Blind, *ms),
        What::Stale(ms) => spans(What::Stale, *ms),
        What::ActLate(ms) => spans(What::ActLate, *ms),
        What::EditByHand(ms) => spans(What::EditByHand, *ms),
        What::ArchiveByHand(ms) => spans(What::ArchiveByHand, *ms),
        What::CopyByHand(ms) => spans(What::CopyByHand, *ms),
        _ => vec![],
    }
}

#[cfg(test)]
mod tests;
