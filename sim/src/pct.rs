//! Priorities over boundary decisions: at a few drawn places one party is demoted, and everything else goes
//! first.
//!
//! It follows PCT (Burckhardt, Kothari, Musuvathi and Nagarakatte, *A Randomized Scheduler with Probabilistic
//! Guarantees of Finding Bugs*, ASPLOS 2010): of n threads that take k steps together, a bug of depth d, one
//! that d ordering constraints bring about, shows in one run with a probability of at least 1/(n k^(d-1)).
//! Here a party is an exchange, a source or the process, and a step is one of its decisions at a boundary and
//! not an instruction: k is some tens instead of millions. What lies between two boundaries is ordered by the
//! schedule seed, which is drawn anew for each plan. The bound holds only as far as the demotion lasts: a
//! party waits for as long as the terms allow, not until all others are idle; and faults come on top.

use crate::catalogue::Catalogue;
use crate::explore::{Chosen, Plans, Request};
use crate::fault::{Call, Fault, FaultTape, Phase, Place, What};
use crate::menu::menu;
use crate::pipeline::Pipeline;
use crate::plan::{Case, Plan, Recipe};
use crate::run::Options;
use crate::seed::Rng;
use crate::seeds::{Seeds, Shard};
use crate::terms::{Terms, millis};
use destinations::Contract;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// The depths that are tried: orderings that a bug may need beside its faults.
const DEEPEST: u64 = 3;
/// Workloads of each scenario and contract; each is run once to see its decisions.
const WORKLOADS: u64 = 2;
/// How long a demoted party waits: less than a time-out, and longer than each.
const WAITS_MS: [u64; 4] = [1_000, 3_000, 11_000, 60_000];
/// In so many of a thousand plans an ordinary fault strikes too.
const FAULTY: u64 = 600;

/// Plans by priorities: a clean run of each scenario and contract shows the decisions to choose among.
pub struct PctPlans {
    pairs: Vec<(usize, Arc<Contract>)>,
    chosen: Vec<Chosen>,
    seeds: Seeds,
    shard: Shard,
    count: u64,
    mutant: Option<String>,
    kinds: Option<Vec<String>>,
    steps_max: u32,
    /// The decisions of each pair, workload and base tape, as soon as one plan needs them.
    traces: Vec<OnceLock<Result<Trace, String>>>,
}

/// What one run without priorities came by.
struct Trace {
    tape: FaultTape,
    places: Vec<Place>,
}

/// Which plan is made: all that does not depend on a run.
struct Choice {
    pair: usize,
    case: Case,
    /// Whether the scenario's own faults strike in the run that shows the decisions.
    own: bool,
    trace: usize,
}

impl PctPlans {
    /// So many plans over all that a request asks for; a shard makes its share of them.
    pub fn of(request: &Request, count: u64) -> Self {
        let Request { chosen, seeds, shard, mutant, kinds, steps_max, .. } = request.clone();
        let pairs = request.pairs();
        let traces = (0..pairs.len() as u64 * WORKLOADS * 2).map(|_| OnceLock::new()).collect();
        PctPlans { pairs, chosen, seeds, shard, count, mutant, kinds, steps_max, traces }
    }

    /// The numbers of the `k`-th plan.
    fn rng(&self, k: u64) -> Rng {
        let position = self.shard.position(k);
        let (round, seed) = (position / self.seeds.len(), self.seeds.at(position % self.seeds.len()));
        seed.stream(&format!("pct {round}"))
    }

    fn choose(&self, rng: &mut Rng) -> Choice {
        let pair = rng.below(self.pairs.len() as u64);
        let workload = rng.below(WORKLOADS);
        let own = rng.chance(500);
        let seed = self.seeds.at(workload % self.seeds.len());
        let (index, contract) = &self.pairs[pair as usize];
        let scenario = self.chosen[*index].name.to_owned();
        let case = Case { scenario, contract: contract.id.clone(), seed };
        let trace = ((pair * WORKLOADS + workload) * 2 + u64::from(own)) as usize;
        Choice { pair: pair as usize, case, own, trace }
    }

    /// The decisions of the run that the plan changes.
    fn trace(&self, choice: &Choice, catalogue: &Catalogue, pipeline: &Pipeline) -> &Result<Trace, String> {
        self.traces[choice.trace].get_or_init(|| {
            let (index, contract) = &self.pairs[choice.pair];
            let scenario = &*catalogue.scenarios[self.chosen[*index].scenario];
            let mutant = self.mutant.as_deref();
            let mut plan = (pipeline.draft)(scenario, contract, choice.case.seed, mutant, Some(&[]))?;
            if choice.own {
                let own = plan.own.iter().filter(|fault| self.admits(fault)).cloned().collect();
                plan.tape = FaultTape::first_of_each_place(own);
            }
            let options = Options { steps_max: self.steps_max, places: true, ..Options::default() };
            let ran = pipeline.once(scenario, &plan, &options)?;
            let places = ran.run.visits.into_iter().map(|visit| visit.place).collect();
            Ok(Trace { tape: plan.tape, places })
        })
    }

    fn admits(&self, fault: &Fault) -> bool {
        fault.what.is_on(self.kinds.as_deref())
    }
}

impl Plans for PctPlans {
    fn strategy(&self) -> &'static str {
        "pct"
    }

    fn len(&self) -> u64 {
        self.shard.len_of(self.count)
    }

    fn case(&self, k: u64) -> (usize, Case) {
        let choice = self.choose(&mut self.rng(k));
        (self.pairs[choice.pair].0, choice.case)
    }

    fn plan(&self, k: u64, catalogue: &Catalogue, pipeline: &Pipeline) -> Result<Plan, String> {
        let mut rng = self.rng(k);
        let choice = self.choose(&mut rng);
        let (chosen, contract) = &self.pairs[choice.pair];
        let scenario = &*catalogue.scenarios[self.chosen[*chosen].scenario];
        let trace = self.trace(&choice, catalogue, pipeline).as_ref().map_err(String::clone)?;
        let assumptions = scenario.assumptions(contract);
        let terms = Terms { contract, assumptions: &assumptions };
        let tape = prioritised(trace, &terms, &|fault| self.admits(fault), &mut rng);
        let recipe = Recipe {
            case: choice.case,
            mutant: self.mutant.clone(),
            tape,
            deliveries: None,
            schedule: Some(rng.bits()),
        };
        recipe.plan(scenario, contract).map_err(|error| error.to_string())
    }
}

/// The tape of a traced run with one to three demotions on it, and at times one ordinary fault.
fn prioritised(
    trace: &Trace,
    terms: &Terms<'_>,
    admits: &dyn Fn(&Fault) -> bool,
    rng: &mut Rng,
) -> FaultTape {
    let steps = steps(&trace.places);
    let depth = rng.within(1..=DEEPEST);
    let mut tape = trace.tape.clone();
    for _ in 0..depth {
        if steps.is_empty() {
            break;
        }
        let what = demotion(steps[rng.below(steps.len() as u64) as usize], terms, depth, rng);
        tape = extended(tape, what, terms, admits);
    }
    if !trace.places.is_empty() && rng.chance(FAULTY) {
        let at = rng.pick(&trace.places).clone();
        let offered = menu(&at, terms);
        if !offered.is_empty() {
            let what = rng.pick(&offered).clone();
            tape = extended(tape, Fault { at, what }, terms, admits);
        }
    }
    tape
}

/// The tape with one fault more, where that can be survived and was not switched off.
fn extended(tape: FaultTape, fault: Fault, terms: &Terms<'_>, admits: &dyn Fn(&Fault) -> bool) -> FaultTape {
    if !admits(&fault) {
        return tape;
    }
    match tape.with(fault) {
        Ok(more) if terms.unsurvivable(&more).is_none() => more,
        _ => tape,
    }
}

/// The places at which somebody can be made to wait, in the order in which they were come by: the steps that
/// PCT counts.
fn steps(places: &[Place]) -> Vec<&Place> {
    let mut seen = BTreeMap::new();
    places.iter().filter(|place| can_wait(place) && seen.insert(*place, ()).is_none()).collect()
}

fn can_wait(place: &Place) -> bool {
    match place {
        Place::Delivery(_) | Place::Sync { .. } | Place::Phase { .. } => true,
        Place::Connection { .. } | Place::Exchange(_) | Place::Record { .. } | Place::Case(_) => false,
    }
}

/// Everything else goes first at this place.
fn demotion(at: &Place, terms: &Terms<'_>, depth: u64, rng: &mut Rng) -> Fault {
    let wait = *rng.pick(&WAITS_MS);
    let what = match at {
        Place::Delivery(_) => What::HoldBack(wait),
        Place::Phase { exchange, phase } if waits_alone(exchange.call, *phase) => {
            // A request that is held up is a late commit.
            let is_create = exchange.call == Call::Create;
            let most = if is_create { terms.latest_commit_ms().unwrap_or(0) } else { u64::MAX };
            What::Delay(wait.min(most))
        }
        // All pauses of a run together stay within what is assumed.
        _ => What::Pause(wait.min(millis(terms.assumptions.max_pause) / depth)),
    };
    Fault { at: at.clone(), what }
}

/// Whether one party of an exchange can be held up here without the process.
fn waits_alone(call: Call, phase: Phase) -> bool {
    match phase {
        Phase::Arrived | Phase::Applied => call.is_to_destination(),
        Phase::BeforeSend => !call.is_to_destination(),
        Phase::Sent | Phase::Answered => false,
    }
}

#[cfg(test)]
mod tests;
