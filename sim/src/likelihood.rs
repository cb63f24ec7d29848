//! The moment of no return: everything after a decision is drawn anew, for each decision of a failed run, and
//! the share of these runs that fail in the same way tells which decision settled it.

use crate::fault::{Fault, FaultTape};
use crate::history::Nanos;
use crate::pipeline::{Pipeline, Ran};
use crate::plan::{Case, Plan};
use crate::replay::Answer;
use crate::run::{Options, Reroll, Run, Visit};
use crate::scenario::Scenario;
use crate::seed::Seed;
use crate::terms::Terms;
use crate::verdict::Fingerprint;
use crate::watch::Watch;
use destinations::Contract;

/// Runs for each decision, unless another number is asked for.
pub const RUNS: u32 = 30;
/// Decisions that are looked at; more would take longer than anybody waits.
pub const DECISIONS_MAX: usize = 300;

/// What a run keeps that keeps no decision.
const NOTHING: &str = "nothing is kept, nor the story's own faults";

/// A decision of a run: a boundary that it came by, with or without a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Its place in their order, from 1; 0 stands for a run of which nothing is kept.
    pub n: u32,
    /// When it fell.
    pub at: Nanos,
    /// The number of the fault that struck there, on the told tape.
    pub fault: Option<u32>,
    /// What it was.
    pub words: String,
    /// Of the runs that are equal up to it, how many fail in the same way.
    pub failed: u32,
}

/// How likely a failure was after each decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Likelihood {
    /// Which run.
    pub case: Case,
    /// The known mistake that it was run with.
    pub mutant: Option<String>,
    /// The failure.
    pub fingerprint: Fingerprint,
    /// Runs for each decision.
    pub runs: u32,
    /// The decisions in their order; the first keeps nothing.
    pub decisions: Vec<Decision>,
}

impl Likelihood {
    /// The decision at which the failures rise most, the first of several; none where they never rise.
    pub fn deciding(&self) -> Option<&Decision> {
        let failed: Vec<u32> = self.decisions.iter().map(|decision| decision.failed).collect();
        jump(&failed).map(|index| &self.decisions[index])
    }

    /// The failures before a decision.
    pub fn before(&self, decision: &Decision) -> u32 {
        let index = decision.n.saturating_sub(1) as usize;
        self.decisions.get(index).map_or(0, |before| before.failed)
    }
}

/// Where a curve rises most: the index after the rise.
fn jump(curve: &[u32]) -> Option<usize> {
    let rises = curve.windows(2).enumerate().filter(|(_, pair)| pair[1] > pair[0]);
    // Of equal rises the last is taken, so they come in turned order.
    let most = rises.rev().max_by_key(|(_, pair)| pair[1] - pair[0]);
    most.map(|(index, _)| index + 1)
}

/// Measures a told failure; none where there is no failure.
///
/// # Errors
/// When the harness fails.
pub fn measure(
    pipeline: Pipeline,
    scenario: &dyn Scenario,
    contract: &Contract,
    answer: &Answer,
    runs: u32,
    watch: &Watch,
) -> Result<Option<Likelihood>, String> {
    let Some(fingerprint) = answer.fingerprint() else { return Ok(None) };
    let plan = &answer.ran.run.plan;
    let options = Options { steps_max: answer.question.steps_max, ..Options::default() };
    let one = |plan: &Plan, options: &Options| -> Result<Ran, String> {
        watch.during(0, &plan.case, || pipeline.once(scenario, plan, options))
    };
    let base = one(plan, &Options { places: true, ..options.clone() })?;
    let visits = blamed_visits(&base, fingerprint);
    let mut decisions = vec![];
    for kept in 0..=visits.len() {
        let mut failed = 0;
        for nth in 0..runs {
            let seed = plan.case.seed.stream(&format!("anew/{nth}")).bits();
            let tape = tape_anew(scenario, contract, plan, &visits[..kept], Seed(seed));
            let reroll = Some(Reroll { after_visit: kept as u32, seed });
            let ran = one(&Plan { tape, ..plan.clone() }, &Options { reroll, ..options.clone() })?;
            failed += u32::from(ran.judgement.fingerprints.contains(fingerprint));
        }
        decisions.push(match kept.checked_sub(1) {
            None => Decision { n: 0, at: Nanos(0), fault: None, words: NOTHING.into(), failed },
            Some(last) => decision(kept as u32, &base.run, &visits[last], failed),
        });
    }
    Ok(Some(Likelihood {
        case: plan.case.clone(),
        mutant: plan.mutant.clone(),
        fingerprint: fingerprint.clone(),
        runs,
        decisions,
    }))
}

/// The boundaries up to the last step that is blamed: after it the failure is there.
fn blamed_visits(base: &Ran, fingerprint: &Fingerprint) -> Vec<Visit> {
    let index = base.judgement.fingerprints.iter().position(|one| one == fingerprint);
    let blamed = match (&base.judgement.verdict, index) {
        (crate::verdict::Verdict::Violated(all), Some(index)) => all[index].blame.iter().max().copied(),
        _ => None,
    };
    let visits = &base.run.visits;
    let end = blamed.map_or(visits.len(), |last| visits.partition_point(|visit| visit.step <= last));
    visits[..end.min(DECISIONS_MAX)].to_vec()
}

/// The faults of the kept decisions, and others in place of the rest: those that another seed draws.
fn tape_anew(
    scenario: &dyn Scenario,
    contract: &Contract,
    plan: &Plan,
    kept: &[Visit],
    seed: Seed,
) -> FaultTape {
    let is_kept = |fault: &Fault| kept.iter().any(|visit| visit.place == fault.at);
    let mut faults: Vec<Fault> = plan.tape.faults().iter().filter(|fault| is_kept(fault)).cloned().collect();
    let assumptions = scenario.assumptions(contract);
    let terms = Terms { contract, assumptions: &assumptions };
    let drawn = scenario.faults(contract, &plan.workload, seed).more;
    for fault in drawn.into_iter().filter(|fault| !is_kept(fault)) {
        faults.push(fault);
        // What nobody could survive would say nothing about this failure.
        let fits = FaultTape::new(faults.clone()).is_ok_and(|tape| terms.unsurvivable(&tape).is_none());
        if !fits {
            faults.pop();
        }
    }
    FaultTape::first_of_each_place(faults)
}

fn decision(n: u32, base: &Run, visit: &Visit, failed: u32) -> Decision {
    let events = base.history.events();
    let at = visit.step.0.checked_sub(1).map_or(Nanos(0), |index| events[index as usize].t_ns);
    let struck = base.plan.tape.at(&visit.place).filter(|(index, _)| base.fired[*index].is_some());
    let (fault, words) = match struck {
        Some((index, what)) => (Some(index as u32 + 1), format!("{what} ({})", visit.place)),
        None => (None, visit.place.to_string()),
    };
    Decision { n, at, fault, words, failed }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::fixture::{MUTANT, Toy, pipeline};
    use crate::replay::{Question, replay};

    pub(crate) fn measured(seed: u64) -> Option<Likelihood> {
        let scenario = Toy("one-ticket");
        let contract = scenario.contracts().remove(0);
        let case: Case = format!("one-ticket/zendesk_ticket@{seed}").parse().expect("a case");
        let question = Question { mutant: Some(MUTANT.into()), ..Question::about(case) };
        let watch = Watch::default();
        let answer = replay(pipeline(), &scenario, &contract, &question, &watch).expect("an answer");
        measure(pipeline(), &scenario, &contract, &answer, RUNS, &watch).expect("no harness error")
    }

    #[test]
    fn the_jump_is_the_largest_rise_and_the_first_of_equals() {
        assert_eq!(jump(&[0, 1, 9, 9, 30]), Some(4));
        assert_eq!(jump(&[0, 10, 20, 30]), Some(1));
        assert_eq!(jump(&[5, 3, 9, 2]), Some(2));
        assert_eq!(jump(&[30, 30, 29]), None);
        assert_eq!(jump(&[7]), None);
        assert_eq!(jump(&[]), None);
    }

    #[test]
    fn the_fault_after_which_it_always_fails_decides() {
        let measured = measured(0).expect("it fails");
        let failed: Vec<u32> = measured.decisions.iter().map(|decision| decision.failed).collect();
        assert!(failed[0] < RUNS / 2 && failed.last() == Some(&RUNS), "{failed:?}");
        let deciding = measured.deciding().expect("it rises");
        assert_eq!((deciding.fault, deciding.n), (Some(2), 2), "{deciding:?}");
        assert!(measured.before(deciding) < deciding.failed);
        assert_eq!(measured, self::measured(0).expect("it fails again"));
    }

    #[test]
    fn a_run_that_holds_has_no_moment_of_no_return() {
        assert_eq!(measured(1), None);
    }
}
