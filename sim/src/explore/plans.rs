//! What a stage of a search runs: plans by number, each made on the thread that runs it.

use super::{Chosen, Request, TWICE};
use crate::catalogue::Catalogue;
use crate::pipeline::Pipeline;
use crate::plan::{Case, Plan, Recipe};
use crate::seeds::{Seeds, Shard};
use destinations::Contract;
use std::sync::Arc;

/// A plan that is about to run.
pub struct Made {
    /// Index of the scenario among those chosen.
    pub chosen: usize,
    /// Which run it is.
    pub case: Case,
    /// The plan, or why there is none.
    pub plan: Result<Plan, String>,
}

/// The plans of one stage.
pub trait Plans: Send + Sync {
    /// How they are found, as reports name it: `swarm`.
    fn strategy(&self) -> &'static str;
    /// What they are, for who watches.
    fn about(&self) -> String {
        self.strategy().to_owned()
    }
    /// How many there are.
    fn len(&self) -> u64;
    /// The `k`-th, from 0: the same each time.
    fn make(&self, k: u64, catalogue: &Catalogue, pipeline: &Pipeline) -> Made;
    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// So many of the first are run twice and compared.
    fn twice(&self) -> u64 {
        0
    }
    /// Whether each is what its seed draws, so that the seed alone repeats it.
    fn by_seed(&self) -> bool {
        false
    }
    /// Whether each run's places and states are noted, for searches that learn from them.
    fn traced(&self) -> bool {
        false
    }
}

/// Seeds: each draws a scenario, one of its contracts, a workload and a tape.
pub struct SeedPlans {
    chosen: Vec<Chosen>,
    seeds: Seeds,
    shard: Shard,
    mutant: Option<String>,
    kinds: Option<Vec<String>>,
    twice: u64,
}

impl SeedPlans {
    /// The seeds of a request.
    pub fn of(request: &Request) -> Self {
        let Request { chosen, seeds, shard, mutant, kinds, .. } = request.clone();
        SeedPlans { chosen, seeds, shard, mutant, kinds, twice: TWICE }
    }

    /// The same, none of them run twice: for who compares runs in another way, or not at all.
    pub fn once(self) -> Self {
        SeedPlans { twice: 0, ..self }
    }
}

impl Plans for SeedPlans {
    fn strategy(&self) -> &'static str {
        "swarm"
    }

    fn len(&self) -> u64 {
        self.shard.len_of(self.seeds.len())
    }

    fn make(&self, k: u64, catalogue: &Catalogue, pipeline: &Pipeline) -> Made {
        let seed = self.seeds.at(self.shard.position(k));
        let mut draw = seed.stream("case");
        let index = draw.below(self.chosen.len() as u64) as usize;
        let chosen = &self.chosen[index];
        let contract = draw.pick(&chosen.contracts);
        let case = Case { scenario: chosen.name.to_owned(), contract: contract.id.clone(), seed };
        let scenario = &*catalogue.scenarios[chosen.scenario];
        let mutant = self.mutant.as_deref();
        let plan = (pipeline.draft)(scenario, contract, seed, mutant, self.kinds.as_deref());
        Made { chosen: index, case, plan }
    }

    fn twice(&self) -> u64 {
        self.twice
    }

    fn by_seed(&self) -> bool {
        true
    }
}

/// Recipes that a search has written down.
pub struct RecipePlans {
    /// How they were found.
    pub strategy: &'static str,
    /// Each with the index of its scenario among those chosen, and its contract.
    pub recipes: Vec<(usize, Arc<Contract>, Recipe)>,
    /// The scenarios that were chosen.
    pub chosen: Vec<Chosen>,
    /// Whether runs are traced.
    pub traced: bool,
}

impl Plans for RecipePlans {
    fn strategy(&self) -> &'static str {
        self.strategy
    }

    fn len(&self) -> u64 {
        self.recipes.len() as u64
    }

    fn make(&self, k: u64, catalogue: &Catalogue, _: &Pipeline) -> Made {
        let (index, contract, recipe) = &self.recipes[k as usize];
        let scenario = &*catalogue.scenarios[self.chosen[*index].scenario];
        let plan = recipe.plan(scenario, contract).map_err(|error| error.to_string());
        Made { chosen: *index, case: recipe.case.clone(), plan }
    }

    fn traced(&self) -> bool {
        self.traced
    }
}
