//! Which searches run, and in which order: systematic first, then random.

use crate::enumerate::{Certificate, Subject, enumerate};
use crate::explore::{Exploration, Flow, Notice, Plans, Search, SeedPlans};
use crate::guided::guided;
use crate::pct::PctPlans;
use std::sync::Arc;

/// Seeds for each plan of a search beside them.
pub(crate) const SEEDS_A_PLAN: u64 = 4;

/// A way to find plans. They run in this order, whatever order they are named in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Strategy {
    /// Every single fault and every pair, with a certificate
    Enumerate,
    /// Seeds: each draws its workload and its faults
    Swarm,
    /// Priorities: one party at a time waits until all others have gone on
    Pct,
    /// Plans changed further where they reached a new state
    Guided,
}

impl Strategy {
    /// All of them, in their order.
    pub const ALL: [Strategy; 4] = [Strategy::Enumerate, Strategy::Swarm, Strategy::Pct, Strategy::Guided];
}

/// Which searches are made, and how far.
#[derive(Clone, Debug)]
pub struct Searches {
    /// The strategies.
    pub strategies: Vec<Strategy>,
    /// Faults that an enumeration adds at once, at most.
    pub depth: u32,
    /// Whether somebody chose the scenarios: then each is enumerated to the full depth, else only the
    /// catalogue's [`deep`](crate::catalogue::Catalogue::deep) one is, and the others with single faults.
    pub named: bool,
}

/// What came of the searches.
pub struct Searched {
    /// The sums over all of them.
    pub done: Exploration,
    /// One for each scenario and contract that was enumerated.
    pub certificates: Vec<Certificate>,
}

/// Runs the searches in their order, until they are done or enough is known.
pub fn run(mut search: Search<'_>, searches: &Searches) -> Searched {
    let mut certificates = vec![];
    for strategy in Strategy::ALL.into_iter().filter(|one| searches.strategies.contains(one)) {
        let flow = match strategy {
            Strategy::Enumerate => enumerate_all(&mut search, searches, &mut certificates),
            Strategy::Swarm => {
                let seeds: Arc<dyn Plans> = Arc::new(SeedPlans::of(search.request()));
                search.stage(&seeds, &mut |_| {})
            }
            Strategy::Pct => {
                let plans = PctPlans::of(search.request(), beside(&search));
                search.stage(&(Arc::new(plans) as Arc<dyn Plans>), &mut |_| {})
            }
            Strategy::Guided => {
                let budget = beside(&search);
                guided(&mut search, budget).1
            }
        };
        if flow == Flow::Over {
            break;
        }
    }
    Searched { done: search.finish(), certificates }
}

/// Plans of a random search beside the seeds.
fn beside(search: &Search<'_>) -> u64 {
    search.request().seeds.len().div_ceil(SEEDS_A_PLAN)
}

/// Each scenario with each of its contracts; a shard takes its share of them.
fn enumerate_all(search: &mut Search<'_>, searches: &Searches, certificates: &mut Vec<Certificate>) -> Flow {
    let subjects = subjects(search, searches);
    let shard = search.request().shard;
    for k in 0..shard.len_of(subjects.len() as u64) {
        let (certificate, flow) = enumerate(search, &subjects[shard.position(k) as usize]);
        search.tell(Notice::Enumerated(&certificate));
        certificates.push(certificate);
        if flow == Flow::Over {
            return flow;
        }
    }
    Flow::On
}

fn subjects(search: &Search<'_>, searches: &Searches) -> Vec<Subject> {
    let deep = search.catalogue().deep;
    let depth = |name: &str| if searches.named || name == deep { searches.depth } else { 1 };
    let chosen = search.request().chosen.iter().enumerate();
    let mut subjects: Vec<Subject> = chosen
        .flat_map(|(index, one)| {
            one.contracts.iter().map(move |contract| Subject::new(index, contract, depth(one.name)))
        })
        .collect();
    // The deepest first: what is found there has the shortest story.
    subjects.sort_by_key(|subject| std::cmp::Reverse(subject.depth));
    subjects
}
