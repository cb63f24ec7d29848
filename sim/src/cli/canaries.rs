//! The canaries: mistakes of the harness and of scenarios, put in on purpose, which `check` must notice.

use super::check::{Finding, finding, first_seeds, request};
use super::{Context, exit};
use crate::canary::{Bug, Canary as Bird, broken_promise};
use crate::catalogue::Catalogue;
use crate::explore::{Chosen, Exploration, Plans, RecipePlans, Search};
use crate::fault::{Call, ExchangeName, Fault, FaultTape, Loss, Place, What};
use crate::pipeline::Pipeline;
use crate::plan::{Case, Recipe};
use crate::resources::now;
use crate::run::Run;
use crate::scenario::Scenario;
use crate::seed::Seed;
use crate::verdict::{Fingerprint, InvariantId, Judgement, Verdict, Violation};
use destinations::Contract;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Seeds that the order of a hash map is looked for in: the first run of a thread always has the same order.
const HASH_MAP_SEEDS: u64 = 12;

/// One canary.
pub(super) struct Canary {
    check: &'static str,
    what: &'static str,
    /// Runs with the mistake; none where there is nothing that it could be put into.
    pub(super) sing: fn(&Context<'_>) -> Option<Exploration>,
    caught: fn(&Exploration) -> bool,
}

/// All of them.
pub(super) const CANARIES: [Canary; 5] = [
    Canary {
        check: "canary invariant",
        what: "an invariant that always fails",
        sing: |cx| first_seeds(cx, Pipeline { judge: always_fails, ..cx.pipeline }, 1),
        caught: |done| done.failures.len() == 1,
    },
    Canary {
        check: "canary clock",
        what: "a run that draws from the real clock",
        sing: |cx| first_seeds(cx, Pipeline { judge: reads_the_clock, ..cx.pipeline }, 1),
        caught: |done| done.differing == 1,
    },
    Canary {
        check: "canary hash-map",
        what: "a run that goes by the order of a hash map",
        sing: hash_map,
        caught: |done| done.differing > 0,
    },
    Canary {
        check: "canary promise",
        what: "a destination that ignores the keys of its contract",
        sing: promise,
        caught: |done| done.failures.iter().any(|failure| failure.invariant.id == "V1"),
    },
    Canary {
        check: "canary drift",
        what: "a fault that never strikes",
        sing: drift,
        caught: |done| done.drifted().iter().sum::<u64>() == 1,
    },
];

impl Canary {
    /// Whether what it did was noticed.
    pub(super) fn finding(&self, done: Option<&Exploration>) -> Finding {
        match done {
            Some(done) if (self.caught)(done) => {
                finding(self.check, exit::HELD, format!("{} was caught", self.what))
            }
            Some(_) => finding(self.check, exit::UNEXPECTED, format!("{} was not caught", self.what)),
            None => finding(self.check, exit::NOTHING, "there is no scenario to run"),
        }
    }
}

const SINGS: InvariantId = InvariantId { id: "C0", name: "canary", says: "this never holds" };

fn always_fails(run: &Run, _: &dyn Scenario) -> Judgement {
    let about = run.plan.case.to_string();
    let message = "the canary sings".to_owned();
    Judgement {
        verdict: Verdict::Violated(vec![Violation { invariant: SINGS, about, blame: vec![], message }]),
        fingerprints: vec![Fingerprint("canary".into())],
        evaluated: vec![],
        goals: vec![],
    }
}

/// Inside a run every clock is the run's own, so the real one is read where a run is judged.
fn reads_the_clock(_: &Run, _: &dyn Scenario) -> Judgement {
    let verdict = Verdict::Undecided(format!("{:?}", now()));
    Judgement { verdict, fingerprints: vec![], evaluated: vec![], goals: vec![] }
}

fn hash_map(cx: &Context<'_>) -> Option<Exploration> {
    let bird = Bird::new(&cx.catalogue, 0, Bug::HashMapOrder)?;
    let catalogue = Arc::new(Catalogue { scenarios: vec![Box::new(bird)], ..Catalogue::default() });
    let request = request(&catalogue, HASH_MAP_SEEDS, 1)?;
    let interrupted = AtomicBool::new(false);
    Some(crate::explore::explore(&catalogue, cx.pipeline, request, &interrupted, &mut |_| {}))
}

fn promise(cx: &Context<'_>) -> Option<Exploration> {
    let bird = broken_promise(&cx.catalogue)?;
    let contract = bird.contracts().into_iter().next()?;
    let lost = What::LoseResponse(Loss::Reset);
    one(cx, bird, &contract, 1, lost)
}

fn drift(cx: &Context<'_>) -> Option<Exploration> {
    let bird = Bird::new(&cx.catalogue, 0, Bug::None)?;
    let contract = bird.contracts().into_iter().next()?;
    one(cx, bird, &contract, 99, What::LoseResponse(Loss::Reset))
}

/// One run of a scenario with one fault: at the n-th create of its first request.
fn one(cx: &Context<'_>, bird: Bird, contract: &Arc<Contract>, nth: u32, what: What) -> Option<Exploration> {
    let asked = bird.workload(contract, Seed(0)).requests.into_iter().next()?;
    let at = Place::Exchange(ExchangeName { call: Call::Create, about: asked.operation, nth });
    let tape = FaultTape::new(vec![Fault { at, what }]).expect("one fault at a place where it can strike");
    let case = Case { scenario: bird.name().into(), contract: contract.id.clone(), seed: Seed(0) };
    let recipe = Recipe { case, mutant: None, tape, deliveries: None, schedule: None };
    let chosen =
        Chosen { scenario: 0, name: bird.name(), contracts: vec![Arc::clone(contract)], killed_by: None };
    let catalogue = Arc::new(Catalogue { scenarios: vec![Box::new(bird)], ..Catalogue::default() });
    let mut request = request(&catalogue, 1, 1)?;
    request.chosen = vec![chosen.clone()];
    let interrupted = AtomicBool::new(false);
    let mut silent = |_: crate::explore::Notice<'_>| {};
    let mut search = Search::new(&catalogue, cx.pipeline, request, &interrupted, &mut silent);
    let plans = RecipePlans {
        strategy: "canary",
        recipes: vec![(0, Arc::clone(contract), recipe)],
        chosen: vec![chosen],
        traced: false,
    };
    // What ended it is in the sums.
    let _ = search.stage(&(Arc::new(plans) as Arc<dyn Plans>), &mut |_| {});
    Some(search.finish())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::report::json::line as json_line;

    /// What each canary says where nothing of it was noticed.
    pub(in crate::cli) fn unnoticed(cx: &Context<'_>) -> Vec<(u8, String)> {
        let harmless = first_seeds(cx, cx.pipeline, 1);
        let harmless = harmless.map(|mut done| {
            done.scenarios.iter_mut().for_each(|scenario| scenario.drifted.fill(0));
            done
        });
        let says = |canary: &Canary| {
            let finding = canary.finding(harmless.as_ref());
            (finding.exit, json_line(&finding))
        };
        CANARIES.iter().map(says).collect()
    }
}
