//! One run, told in full: drawn from its seed and shrunk, or as it was written down; run twice and compared.

use crate::fault::Fault;
use crate::pipeline::{Pipeline, Ran};
use crate::plan::{Case, Recipe};
use crate::run::Options;
use crate::scenario::Scenario;
use crate::shrink::{Budget, Ended, Shrunk, Size, Trial, TrialError, needs, shrink};
use crate::verdict::{Fingerprint, InvariantId, Judgement, Verdict, Violation};
use crate::watch::Watch;
use destinations::Contract;
use std::fmt;

/// Which run is asked for, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Which run.
    pub case: Case,
    /// The known mistake to run with.
    pub mutant: Option<String>,
    /// The plan as it was written down; none: as its seed draws it.
    pub written: Option<Written>,
    /// The fault kinds that may be on the tape; none: all.
    pub kinds: Option<Vec<String>>,
    /// The limit of steps.
    pub steps_max: u32,
    /// Tell the plan as drawn or written, without trying what it needs.
    pub all_faults: bool,
    /// Leave this fault of the told tape out.
    pub without: Option<u32>,
    /// Run once only, with no comparison.
    pub once: bool,
}

/// A plan that no seed draws.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The plan.
    pub recipe: Recipe,
    /// The file that holds it.
    pub path: String,
}

impl Question {
    /// The plain question about a case.
    pub fn about(case: Case) -> Self {
        let steps_max = Options::default().steps_max;
        Question {
            case,
            mutant: None,
            written: None,
            kinds: None,
            steps_max,
            all_faults: false,
            without: None,
            once: false,
        }
    }
}

/// The command that gives the same answer again.
impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.written {
            None => write!(f, "cargo sim replay {}", self.case)?,
            Some(written) => write!(f, "cargo sim replay {}", written.path)?,
        }
        // A file says itself which mistake it is about.
        if let Some(mutant) = self.mutant.as_ref().filter(|_| self.written.is_none()) {
            write!(f, " --mutant {mutant}")?;
        }
        match self.kinds.as_deref().filter(|_| self.written.is_none()) {
            None => {}
            Some([]) => write!(f, " --faults none")?,
            Some(kinds) => write!(f, " --faults {}", kinds.join(","))?,
        }
        if self.steps_max != Options::default().steps_max {
            write!(f, " --steps-max {}", self.steps_max)?;
        }
        if self.all_faults {
            write!(f, " --all-faults")?;
        }
        if let Some(n) = self.without {
            write!(f, " --without-fault {n}")?;
        }
        Ok(())
    }
}

/// What came of leaving one fault out of a told tape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nobody tried.
    Untried,
    /// Without it the run holds: it is needed.
    Holds,
    /// Without it something else is violated: it is needed for this failure.
    Breaks(String),
    /// Without it a limit is hit.
    Undecided,
    /// Without it the same failure comes: it is not needed.
    Same,
}

impl Need {
    /// Whether it was shown that the same failure does not come without it.
    pub fn is_needed(&self) -> bool {
        matches!(self, Need::Holds | Need::Breaks(_))
    }
}

/// A fault of a told run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToldFault {
    /// Its number on the told tape, from 1.
    pub n: u32,
    /// What, and where.
    pub fault: Fault,
    /// Whether it struck.
    pub fired: bool,
    /// What comes without it.
    pub need: Need,
}

/// The first point at which two runs of one plan differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The step.
    pub step: u32,
    /// The first run's event there.
    pub a: String,
    /// The second run's.
    pub b: String,
}

/// A run, told.
#[derive(Clone, Debug)]
pub struct Answer {
    /// What was asked.
    pub question: Question,
    /// The run, with notes of the workflow's journal.
    pub ran: Ran,
    /// Which of its violations is told; none when it holds.
    pub told: Option<usize>,
    /// The faults of its tape.
    pub faults: Vec<ToldFault>,
    /// The plan that is told, written down.
    pub recipe: Recipe,
    /// What was drawn or written, before it was shrunk.
    pub before: Size,
    /// Runs that shrinking took; none where it was not tried.
    pub tries: u32,
    /// Why shrinking ended.
    pub ended: Ended,
    /// Where a second run differed.
    pub difference: Option<Difference>,
}

impl Answer {
    /// The violation that is told.
    pub fn violation(&self) -> Option<&Violation> {
        violation(&self.ran.judgement, self.told?)
    }

    /// Its fingerprint.
    pub fn fingerprint(&self) -> Option<&Fingerprint> {
        self.ran.judgement.fingerprints.get(self.told?)
    }

    /// The other invariants that the run violates.
    pub fn also(&self) -> Vec<InvariantId> {
        let Verdict::Violated(all) = &self.ran.judgement.verdict else { return vec![] };
        let mut also: Vec<InvariantId> = all.iter().map(|violation| violation.invariant).collect();
        also.sort();
        also.dedup();
        also.retain(|id| Some(id.id) != self.violation().map(|told| told.invariant.id));
        also
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// The seed gives no plan.
    #[error("no plan can be drawn for {0}: {1}")]
    Draft(Case, String),
    /// The harness failed.
    #[error("the harness failed in {0}: {1}")]
    Harness(Case, String),
    /// The fault to leave out is not on the tape.
    #[error("there is no fault {n} to leave out: {case} has {of}")]
    NoFault {
        /// The case.
        case: Case,
        /// The number that was asked for.
        n: u32,
        /// How many there are.
        of: usize,
    },
}

/// The violation that a story is about: that of the invariant which must kill the mutant, else the worst.
pub fn told(judgement: &Judgement, killed_by: Option<&str>) -> Option<usize> {
    let Verdict::Violated(all) = &judgement.verdict else { return None };
    let killer = all.iter().position(|violation| Some(violation.invariant.id) == killed_by);
    killer.or(if all.is_empty() { None } else { Some(0) })
}

/// The invariant that must catch a mutant of this scenario.
pub fn killed_by(scenario: &dyn Scenario, mutant: Option<&str>) -> Option<&'static str> {
    let mutant = mutant?;
    scenario.mutants().into_iter().find(|known| known.name == mutant).map(|known| known.killed_by)
}

fn violation(judgement: &Judgement, index: usize) -> Option<&Violation> {
    match &judgement.verdict {
        Verdict::Violated(all) => all.get(index),
        _ => None,
    }
}

/// Runs the case and tells it. The same question always has the same answer, byte for byte.
///
/// # Errors
/// When no plan can be drawn, the harness fails, or the fault to leave out is not there.
pub fn replay(
    pipeline: Pipeline,
    scenario: &dyn Scenario,
    contract: &Contract,
    question: &Question,
    watch: &Watch,
) -> Result<Answer, ReplayError> {
    let killed_by = killed_by(scenario, question.mutant.as_deref());
    let options = Options { steps_max: question.steps_max, ..Options::default() };
    replay_on(&Trial { pipeline, scenario, contract, killed_by, options, watch }, question, Budget::RUNS)
}

/// As [`replay`], with what plans are run with, and a budget for shrinking.
///
/// # Errors
/// As [`replay`].
pub fn replay_on(trial: &Trial<'_>, question: &Question, budget: Budget<'_>) -> Result<Answer, ReplayError> {
    let failed = |error| ReplayError::of(&question.case, error);
    let recipe = recipe(trial, question)?;
    let mut shrunk = match (&question.written, question.all_faults) {
        (_, true) => as_it_is(trial, &recipe).map_err(failed)?,
        (Some(_), false) => tried(trial, &recipe).map_err(failed)?,
        (None, false) => shrink(trial, &recipe, budget).map_err(failed)?,
    };
    if let Some(n) = question.without {
        let of = shrunk.recipe.tape.faults().len();
        let index = (n as usize).checked_sub(1).filter(|index| *index < of);
        let case = question.case.clone();
        let index = index.ok_or(ReplayError::NoFault { case, n, of })?;
        shrunk.recipe.tape = shrunk.recipe.tape.without(index);
        shrunk.needs = vec![Need::Untried; of - 1];
    }
    tell(trial, question, shrunk)
}

/// Tells a failure that a search found, shrunk within the budget; without one, as it was found. Where the
/// seed alone repeats it, the seed is the answer's question, else the recipe is, and whoever keeps it says
/// where.
///
/// # Errors
/// As [`replay`].
pub fn tell_found(
    trial: &Trial<'_>,
    found: &Recipe,
    question: &Question,
    by_seed: bool,
    budget: Option<Budget<'_>>,
) -> Result<Answer, ReplayError> {
    let shrunk = match budget {
        Some(budget) => shrink(trial, found, budget),
        None => as_it_is(trial, found),
    };
    let shrunk = shrunk.map_err(|error| ReplayError::of(&question.case, error))?;
    // What a clock cut short, the seed alone would not repeat.
    let mut question = question.clone();
    if by_seed && shrunk.ended != Ended::Cut {
        question.all_faults = budget.is_none();
    } else {
        question.written = Some(Written { recipe: shrunk.recipe.clone(), path: String::new() });
        question.kinds = None;
    }
    tell(trial, &question, shrunk)
}

/// Shrinks what is asked for, a seed's plan or a written one; whoever keeps the result says where.
///
/// # Errors
/// As [`replay`].
pub fn shrink_asked(
    trial: &Trial<'_>,
    question: &Question,
    budget: Budget<'_>,
) -> Result<Answer, ReplayError> {
    tell_found(trial, &recipe(trial, question)?, question, false, Some(budget))
}

/// The plan that is asked for, written down.
fn recipe(trial: &Trial<'_>, question: &Question) -> Result<Recipe, ReplayError> {
    if let Some(written) = &question.written {
        return Ok(written.recipe.clone());
    }
    let (case, mutant) = (&question.case, question.mutant.as_deref());
    let drawn =
        (trial.pipeline.draft)(trial.scenario, trial.contract, case.seed, mutant, question.kinds.as_deref());
    let plan = drawn.map_err(|error| ReplayError::Draft(case.clone(), error))?;
    Ok(Recipe::of(&plan, &trial.scenario.workload(trial.contract, case.seed)))
}

fn as_it_is(trial: &Trial<'_>, recipe: &Recipe) -> Result<Shrunk, TrialError> {
    let size = Size::of(&recipe.plan(trial.scenario, trial.contract)?);
    Ok(Shrunk {
        recipe: recipe.clone(),
        fingerprint: None,
        needs: vec![Need::Untried; size.faults],
        before: size,
        after: size,
        runs: 0,
        ended: Ended::Nothing,
        difference: None,
    })
}

/// A plan that was written down is told as it stands there, with what comes without each of its faults.
fn tried(trial: &Trial<'_>, recipe: &Recipe) -> Result<Shrunk, TrialError> {
    let mut shrunk = as_it_is(trial, recipe)?;
    let ran = trial.run(&recipe.plan(trial.scenario, trial.contract)?, &trial.options)?;
    if let Some(index) = told(&ran.judgement, trial.killed_by) {
        shrunk.needs = needs(trial, recipe, &ran.judgement.fingerprints[index])?;
    }
    Ok(shrunk)
}

/// Runs the plan with notes of the workflow's journal, and once more to compare.
fn tell(trial: &Trial<'_>, question: &Question, shrunk: Shrunk) -> Result<Answer, ReplayError> {
    let failed = |error| ReplayError::of(&question.case, error);
    let options = Options { journal: true, ..trial.options.clone() };
    let plan = shrunk.recipe.plan(trial.scenario, trial.contract);
    let plan = plan.map_err(|error| failed(error.into()))?;
    let ran = trial.run(&plan, &options).map_err(failed)?;
    let again = match question.once {
        true => None,
        false => difference(&ran, &trial.run_elsewhere(&plan, &options).map_err(failed)?),
    };
    Ok(Answer {
        question: question.clone(),
        told: told(&ran.judgement, trial.killed_by),
        faults: told_faults(&ran, shrunk.needs),
        recipe: shrunk.recipe,
        before: shrunk.before,
        tries: shrunk.runs,
        ended: shrunk.ended,
        difference: shrunk.difference.or(again),
        ran,
    })
}

impl ReplayError {
    fn of(case: &Case, error: TrialError) -> Self {
        match error {
            TrialError::Recipe(error) => ReplayError::Draft(case.clone(), error.to_string()),
            TrialError::Harness(error) => ReplayError::Harness(case.clone(), error),
        }
    }
}

fn told_faults(ran: &Ran, needs: Vec<Need>) -> Vec<ToldFault> {
    let tape = ran.run.plan.tape.faults();
    assert_eq!(tape.len(), needs.len(), "each fault of the told tape was tried or not");
    let fired = |index: usize| ran.run.fired.get(index).is_some_and(Option::is_some);
    let each = tape.iter().zip(needs).enumerate();
    each.map(|(index, (fault, need))| ToldFault {
        n: index as u32 + 1,
        fault: fault.clone(),
        fired: fired(index),
        need,
    })
    .collect()
}

/// Where two runs of one plan differ: in an event, in how they ended, or in their disk writes.
pub fn difference(a: &Ran, b: &Ran) -> Option<Difference> {
    let (left, right) = (a.run.history.events(), b.run.history.events());
    let at = (0..left.len().max(right.len())).find(|index| left.get(*index) != right.get(*index));
    let ends = |ran: &Ran| {
        format!(
            "{:?} after {} disk writes: {:?}",
            ran.run.end,
            ran.run.history.writes(),
            ran.judgement.verdict
        )
    };
    if let Some(index) = at {
        let shown = |events: &[crate::history::Event]| match events.get(index) {
            Some(event) => event.to_string().trim_start().to_owned(),
            None => "the run has ended".to_owned(),
        };
        return Some(Difference { step: index as u32 + 1, a: shown(left), b: shown(right) });
    }
    if ends(a) != ends(b) || a.run.history.hash() != b.run.history.hash() {
        let step = left.len() as u32 + 1;
        let hashed = |ran: &Ran| format!("{}; hash {:016x}", ends(ran), ran.run.history.hash());
        return Some(Difference { step, a: hashed(a), b: hashed(b) });
    }
    None
}

#[cfg(test)]
mod tests;
