//! Mutation of plans guided by coverage: what reached a new state under a fault is kept and changed further.
//!
//! As in coverage-guided fuzzing, with (what the workflow believes × what the destination holds × fault)
//! tuples in the place of branches. Plans are made in batches from what was kept after the last one, so that
//! any number of threads finds the same.

mod mutate;
mod tuple;

pub use tuple::{Tuple, tuples};

use crate::explore::{Came, Flow, Plans, RecipePlans, Search};
use crate::fault::{FaultTape, Place};
use crate::plan::{Case, Recipe};
use crate::run::Run;
use crate::seed::Seed;
use crate::terms::Terms;
use destinations::{Assumptions, Contract};
use mutate::Mutation;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Plans that are made from one state of the corpus.
const BATCH: u64 = 64;
/// In so many of a thousand draws one of the latest is changed: what was new last leads on.
const LATEST: u64 = 500;

/// A plan that reached something new.
struct Kept {
    chosen: usize,
    contract: Arc<Contract>,
    recipe: Recipe,
    /// The places that its run came by, each once.
    places: Vec<Place>,
    /// The deliveries of its seed.
    deliveries: Vec<String>,
}

/// What a guided search came by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guided {
    /// Runs.
    pub runs: u64,
    /// Plans that were kept.
    pub kept: usize,
    /// The tuples that were reached.
    pub reached: BTreeSet<Tuple>,
}

/// Runs so many plans, each made from one that reached something new; a shard makes its share of them.
pub fn guided(search: &mut Search<'_>, budget: u64) -> (Guided, Flow) {
    let budget = search.request().shard.len_of(budget);
    let mut done = Guided::default();
    let mut corpus: Vec<Kept> = vec![];
    while done.runs < budget {
        let count = BATCH.min(budget - done.runs);
        let batch: Vec<_> = (done.runs..done.runs + count).map(|n| next(search, &corpus, n)).collect();
        let flow = run(search, batch, &mut corpus, &mut done);
        if flow == Flow::Over {
            return (done, flow);
        }
    }
    (done, Flow::On)
}

type Made = (usize, Arc<Contract>, Recipe);

/// Runs a batch and keeps what reached something new.
fn run(search: &mut Search<'_>, batch: Vec<Made>, corpus: &mut Vec<Kept>, done: &mut Guided) -> Flow {
    let plans = RecipePlans {
        strategy: "guided",
        recipes: batch.clone(),
        chosen: search.request().chosen.clone(),
        traced: true,
    };
    let mut batch = batch.into_iter();
    let catalogue = Arc::clone(search.catalogue());
    let chosen = search.request().chosen.clone();
    search.stage(&(Arc::new(plans) as Arc<dyn Plans>), &mut |outcome| {
        let Some((index, contract, recipe)) = batch.next() else { return };
        done.runs += 1;
        let Some(run) = &outcome.traced else { return };
        let scenario = &*catalogue.scenarios[chosen[index].scenario];
        let class = destinations::recovery(&contract, &scenario.assumptions(&contract)).class();
        let before = done.reached.len();
        done.reached.extend(tuples(run, class));
        // What is broken leads to more of the same break.
        if done.reached.len() > before && matches!(outcome.came, Came::Held) {
            done.kept += 1;
            let deliveries = scenario.workload(&contract, recipe.case.seed).deliveries;
            let deliveries = deliveries.into_iter().map(|delivery| delivery.name).collect();
            corpus.push(Kept { chosen: index, contract, recipe, places: places(run), deliveries });
        }
    })
}

/// Each place once, in order.
fn places(run: &Run) -> Vec<Place> {
    let mut seen = BTreeSet::new();
    let first = run.visits.iter().map(|visit| &visit.place).filter(|place| seen.insert(*place));
    first.cloned().collect()
}

/// The `n`-th plan: each scenario and contract as its seed draws it first, then changes of what was kept.
fn next(search: &Search<'_>, corpus: &[Kept], n: u64) -> Made {
    let request = search.request();
    let position = request.shard.position(n);
    let (round, seed) = (position / request.seeds.len(), request.seeds.at(position % request.seeds.len()));
    let pairs = request.pairs();
    if corpus.is_empty() || n < (pairs.len() as u64).min(BATCH) {
        return first(search, &pairs, position, seed);
    }
    let mut rng = seed.stream(&format!("guided {round}"));
    let latest = (corpus.len() as u64).div_ceil(8);
    let from_end = if rng.chance(LATEST) { rng.below(latest) } else { rng.below(corpus.len() as u64) };
    let kept = &corpus[corpus.len() - 1 - from_end as usize];
    let scenario = &*search.catalogue().scenarios[request.chosen[kept.chosen].scenario];
    let assumptions: Assumptions = scenario.assumptions(&kept.contract);
    let terms = Terms { contract: &kept.contract, assumptions: &assumptions };
    let alike = |other: &&Kept| {
        (other.chosen, &other.contract.id) == (kept.chosen, &kept.contract.id) && !std::ptr::eq(*other, kept)
    };
    let others: Vec<&Kept> = corpus.iter().filter(alike).collect();
    let mutation = Mutation { terms, kinds: request.kinds.as_deref(), others: &others };
    (kept.chosen, Arc::clone(&kept.contract), mutation.of(kept, &mut rng))
}

/// What a seed draws, written down.
fn first(search: &Search<'_>, pairs: &[(usize, Arc<Contract>)], position: u64, seed: Seed) -> Made {
    let request = search.request();
    let (index, contract) = &pairs[(position % pairs.len() as u64) as usize];
    let scenario = &*search.catalogue().scenarios[request.chosen[*index].scenario];
    let drawn = scenario.faults(contract, &scenario.workload(contract, seed), seed);
    let mut faults = [drawn.own, drawn.more].concat();
    faults.retain(|fault| fault.what.is_on(request.kinds.as_deref()));
    let recipe = Recipe {
        case: Case { scenario: scenario.name().into(), contract: contract.id.clone(), seed },
        mutant: request.mutant.clone(),
        tape: FaultTape::first_of_each_place(faults),
        deliveries: None,
        schedule: None,
    };
    (*index, Arc::clone(contract), recipe)
}

#[cfg(test)]
mod tests;
