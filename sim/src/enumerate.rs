//! Every single fault, then every pair (and triple) for which a scenario has room, and a certificate of it.
//!
//! A clean run yields the places at which a fault can strike; each place has a menu. The second fault is
//! chosen in the *faulted* run, so that recovery is covered too. What would only repeat is skipped and
//! counted.

mod apart;
mod certificate;
mod earlier;
mod marks;
mod names;
mod tapes;
mod walk;

pub use certificate::{Bounds, Certificate};

use crate::explore::{Flow, Outcome, Plans, Search};
use crate::fault::{FaultTape, Place, What};
use crate::plan::{Case, Recipe};
use crate::resources::{cpu_seconds, now};
use crate::scenario::Scenario;
use crate::seed::Seed;
use crate::terms::Terms;
use certificate::{Counts, Findings};
use destinations::Contract;
use std::collections::BTreeMap;
use std::sync::Arc;
use tapes::Tapes;
use walk::{Addition, Walk};

/// The faults that are tried at a place.
pub type Menu = fn(&Place, &Terms<'_>) -> Vec<What>;

/// The most faults that are added at once.
pub const DEPTH_MAX: u32 = 3;
/// What the faults are chosen from, in words.
const STRENGTHS: &str = "first fault in every strength of the menu, later ones in one of each kind (two of \
    deaths, short and long, and of clocks, back and ahead); a timer is met at what it wakes";

/// What is enumerated, and how far.
#[derive(Clone)]
pub struct Subject {
    /// Index of the scenario among those chosen.
    pub chosen: usize,
    /// The contract.
    pub contract: Arc<Contract>,
    /// Faults that are added at once, at most: 1 to [`DEPTH_MAX`].
    pub depth: u32,
    /// The seed that workload, pace and schedule are drawn from.
    pub seed: Seed,
    /// Which faults are tried at a place.
    pub menu: Menu,
    /// Whether what leads to the same state is left out.
    pub skips: bool,
}

impl Subject {
    /// A scenario with a contract, as it is usually enumerated.
    pub fn new(chosen: usize, contract: &Arc<Contract>, depth: u32) -> Self {
        assert!((1..=DEPTH_MAX).contains(&depth), "one to three faults are added");
        Subject {
            chosen,
            contract: Arc::clone(contract),
            depth,
            seed: Seed(0),
            menu: crate::menu::menu,
            skips: true,
        }
    }
}

/// Runs every plan of a subject within its depth.
pub fn enumerate(search: &mut Search<'_>, subject: &Subject) -> (Certificate, Flow) {
    let started = (now(), cpu_seconds());
    let catalogue = Arc::clone(search.catalogue());
    let request = search.request().clone();
    let index = request.chosen[subject.chosen].scenario;
    let scenario = &*catalogue.scenarios[index];
    let contract = &subject.contract;
    let base = base(scenario, subject, request.mutant.as_deref(), request.kinds.as_deref());
    let assumptions = scenario.assumptions(contract);
    let terms = Terms { contract, assumptions: &assumptions };
    let mut walk = Walk::new(terms, subject.menu, request.kinds.as_deref());
    walk.skips = subject.skips;
    let mut counts = Counts::default();
    let mut clean = (BTreeMap::new(), String::new());
    let mut level = vec![Addition::default()];
    let (mut flow, mut missing) = (Flow::On, 0);
    for depth in 0..=subject.depth {
        let traced = depth < subject.depth;
        let tapes = Tapes {
            chosen: (subject.chosen, index),
            contract: Arc::clone(contract),
            base: base.clone(),
            alphabet: walk.alphabet.clone(),
            added: level,
            traced,
            twice: u64::from(depth == 0),
        };
        let tapes = Arc::new(tapes);
        let (mut next, mut k, mut untraced) = (vec![], 0, 0);
        flow = search.stage(&(Arc::clone(&tapes) as Arc<dyn Plans>), &mut |outcome| {
            let added = &tapes.added[k];
            k += 1;
            counts.add(added, outcome, never(&tapes, added, outcome));
            let Some(run) = &outcome.traced else {
                untraced += usize::from(traced);
                return;
            };
            if depth == 0 {
                let menu = serde_json::to_string(&walk.menu_of(run)).expect("faults can be written as JSON");
                clean = (walk::boundaries(run), certificate::digest(&menu));
            }
            next.extend(walk.beyond(run, &added.faults));
        });
        // What lies beyond a run that was given up is not known.
        missing = tapes.added.len() - k + untraced;
        // What goes on from a pair goes on from both of its faults: only pairs that end here are left out.
        let ends_here = (depth + 1, subject.depth) == (2, 2);
        level = if ends_here { walk.without_apart(next) } else { next };
        if flow == Flow::Over || missing > 0 {
            missing += if traced { level.len() } else { 0 };
            break;
        }
    }
    search.stood_for(&contract.id, &walk.stood_for);
    let findings = Findings {
        boundaries: clean.0,
        menu_digest: clean.1,
        skipped: walk.skipped,
        incomplete: (missing > 0).then(|| why_over(search)),
        wall_s: started.0.elapsed().as_secs_f64(),
        cpu_s: cpu_seconds().zip(started.1).map(|(after, before)| after - before),
    };
    let bounds = Bounds {
        seed: subject.seed,
        steps_max: request.steps_max,
        kinds: request.kinds,
        strengths: STRENGTHS,
    };
    let digests = (contract.digest(), certificate::scenario_digest(scenario, contract, &base));
    (Certificate::new(&base, digests, subject.depth, bounds, counts, findings), flow)
}

/// The plan without an added fault: what the seed draws, under the scenario's own faults and no storm.
fn base(
    scenario: &dyn Scenario,
    subject: &Subject,
    mutant: Option<&str>,
    kinds: Option<&[String]>,
) -> Recipe {
    let Subject { contract, seed, .. } = subject;
    let workload = scenario.workload(contract, *seed);
    let mut own = scenario.faults(contract, &workload, *seed).own;
    own.retain(|fault| fault.what.is_on(kinds));
    Recipe {
        case: Case { scenario: scenario.name().into(), contract: contract.id.clone(), seed: *seed },
        mutant: mutant.map(str::to_owned),
        tape: FaultTape::first_of_each_place(own),
        deliveries: None,
        schedule: None,
    }
}

/// The added faults that never struck, in words.
fn never<'a>(
    tapes: &'a Tapes,
    added: &'a Addition,
    outcome: &'a Outcome,
) -> impl Iterator<Item = String> + 'a {
    let added = added.faults.iter().map(|number| tapes.alphabet.fault(*number));
    added.filter(|fault| outcome.never.contains(fault)).map(|fault| format!("{} ({})", fault.what, fault.at))
}

/// Why a stage was not run to its end.
fn why_over(search: &Search<'_>) -> String {
    let done = search.done();
    let why = if done.interrupted {
        "interrupted"
    } else if done.out_of_time {
        "the time was over"
    } else if done.harness > 0 {
        "the harness failed too often"
    } else {
        "enough failures were found"
    };
    why.to_owned()
}

#[cfg(test)]
mod tests;
