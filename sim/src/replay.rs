//! One run, told in full: drawn from its seed, run twice and compared, its tape reduced to what is needed.

use crate::fault::{Fault, FaultTape};
use crate::pipeline::{Pipeline, Ran};
use crate::plan::{Case, Plan, Recipe};
use crate::run::Options;
use crate::scenario::Scenario;
use crate::verdict::{Fingerprint, InvariantId, Judgement, Verdict, Violation};
use crate::watch::Watch;
use destinations::Contract;
use std::fmt;

/// The most runs that the reduction of one tape may take.
const TRIES_MAX: u32 = 200;

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
    /// Tell the tape as drawn, without reducing it.
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
        match self.kinds.as_deref() {
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
    /// How many faults the seed had drawn.
    pub drawn: usize,
    /// Runs that the reduction took.
    pub tries: u32,
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
    let case = &question.case;
    let mutant = question.mutant.as_deref();
    let plan = match &question.written {
        Some(written) => written.recipe.plan(scenario, contract).map_err(|error| error.to_string()),
        None => (pipeline.draft)(scenario, contract, case.seed, mutant, question.kinds.as_deref()),
    };
    let plan = plan.map_err(|error| ReplayError::Draft(case.clone(), error))?;
    let tries = Tries {
        pipeline,
        scenario,
        killed_by: killed_by(scenario, mutant),
        options: Options { steps_max: question.steps_max, ..Options::default() },
        watch,
    };
    let drawn = plan.tape.faults().len();
    let mut reduced = if question.all_faults { tries.as_drawn(plan) } else { tries.reduce(plan)? };
    if let Some(n) = question.without {
        let of = reduced.plan.tape.faults().len();
        let index = (n as usize).checked_sub(1).filter(|index| *index < of);
        let index = index.ok_or_else(|| ReplayError::NoFault { case: case.clone(), n, of })?;
        let tape = reduced.plan.tape.without(index);
        reduced = tries.as_drawn(Plan { tape, ..reduced.plan });
    }
    let options = Options { journal: true, ..tries.options.clone() };
    let ran = tries.run(&reduced.plan, &options)?;
    let difference = match question.once {
        true => None,
        false => difference(&ran, &tries.run_elsewhere(&reduced.plan, &options)?),
    };
    let told = told(&ran.judgement, tries.killed_by);
    let faults = told_faults(&ran, reduced.needs);
    Ok(Answer { question: question.clone(), ran, told, faults, drawn, tries: reduced.tries, difference })
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

/// A plan with the faults that its failure needs.
struct Reduced {
    plan: Plan,
    needs: Vec<Need>,
    tries: u32,
}

/// Runs of one case with other tapes.
struct Tries<'a> {
    pipeline: Pipeline,
    scenario: &'a dyn Scenario,
    killed_by: Option<&'static str>,
    options: Options,
    watch: &'a Watch,
}

impl Tries<'_> {
    fn run(&self, plan: &Plan, options: &Options) -> Result<Ran, ReplayError> {
        self.watch
            .during(0, &plan.case, || self.pipeline.once(self.scenario, plan, options))
            .map_err(|error| ReplayError::Harness(plan.case.clone(), error))
    }

    /// On a fresh thread, so that whatever the first run left in this one shows.
    fn run_elsewhere(&self, plan: &Plan, options: &Options) -> Result<Ran, ReplayError> {
        std::thread::scope(|scope| scope.spawn(|| self.run(plan, options)).join())
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn as_drawn(&self, plan: Plan) -> Reduced {
        let needs = vec![Need::Untried; plan.tape.faults().len()];
        Reduced { plan, needs, tries: 0 }
    }

    /// Drops faults as long as the same failure stays: no single fault of the result can be left out.
    fn reduce(&self, plan: Plan) -> Result<Reduced, ReplayError> {
        let first = self.run(&plan, &self.options)?;
        let Some(index) = told(&first.judgement, self.killed_by) else { return Ok(self.as_drawn(plan)) };
        let target = first.judgement.fingerprints[index].clone();
        let mut tries = 0;
        let mut plan = plan;
        let struck: Vec<Fault> = (plan.tape.faults().iter().zip(&first.run.fired))
            .filter(|(_, fired)| fired.is_some())
            .map(|(fault, _)| fault.clone())
            .collect();
        if struck.len() < plan.tape.faults().len() {
            let tape = FaultTape::new(struck).expect("a part of a tape is a tape");
            tries += 1;
            let candidate = Plan { tape, ..plan.clone() };
            if self.without(&candidate, &target)?.is_none() {
                plan = candidate;
            }
        }
        self.drop_each(plan, &target, tries)
    }

    fn drop_each(&self, plan: Plan, target: &Fingerprint, tries: u32) -> Result<Reduced, ReplayError> {
        let mut reduced = Reduced { needs: vec![], plan, tries };
        loop {
            let before = reduced.plan.tape.faults().len();
            reduced.needs.clear();
            while reduced.needs.len() < reduced.plan.tape.faults().len() {
                if reduced.tries >= TRIES_MAX {
                    reduced.needs = vec![Need::Untried; reduced.plan.tape.faults().len()];
                    return Ok(reduced);
                }
                let tape = reduced.plan.tape.without(reduced.needs.len());
                let candidate = Plan { tape, ..reduced.plan.clone() };
                reduced.tries += 1;
                match self.without(&candidate, target)? {
                    None => reduced.plan = candidate,
                    Some(need) => reduced.needs.push(need),
                }
            }
            // Dropping a later fault may have made an earlier one superfluous: go on until nothing changes.
            if reduced.plan.tape.faults().len() == before {
                return Ok(reduced);
            }
        }
    }

    /// What comes of this plan: none when it is the same failure.
    fn without(&self, plan: &Plan, target: &Fingerprint) -> Result<Option<Need>, ReplayError> {
        let ran = self.run(plan, &self.options)?;
        let judgement = &ran.judgement;
        if let Some(index) = told(judgement, self.killed_by) {
            let same = judgement.fingerprints[index] == *target;
            let other = violation(judgement, index).map(|violation| violation.invariant.name.to_owned());
            return Ok(if same { None } else { other.map(Need::Breaks) });
        }
        match &judgement.verdict {
            Verdict::Harness(error) => Err(ReplayError::Harness(plan.case.clone(), error.clone())),
            Verdict::Undecided(_) | Verdict::Invalid(_) => Ok(Some(Need::Undecided)),
            Verdict::Held | Verdict::Violated(_) => Ok(Some(Need::Holds)),
        }
    }
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
