//! What a stage of a search runs: plans by number, each made on the thread that runs it.

use super::{Chosen, Request, TWICE};
use crate::catalogue::Catalogue;
use crate::pipeline::Pipeline;
use crate::plan::{Case, Plan, Recipe};
use crate::seed::Seed;
use crate::seeds::{Seeds, Shard};
use destinations::Contract;
use std::sync::Arc;

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
    /// Which run the `k`-th is, from 0: the same each time; with the index of its scenario among those
    /// chosen.
    fn case(&self, k: u64) -> (usize, Case);
    /// The `k`-th plan: the same each time. Making it may take runs.
    ///
    /// # Errors
    /// When there is no such plan.
    fn plan(&self, k: u64, catalogue: &Catalogue, pipeline: &Pipeline) -> Result<Plan, String>;
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

    /// What the `k`-th seed draws: the index of a scenario, and one of its contracts.
    fn draw(&self, k: u64) -> (Seed, usize, &Arc<Contract>) {
        let seed = self.seeds.at(self.shard.position(k));
        let mut draw = seed.stream("case");
        let index = draw.below(self.chosen.len() as u64) as usize;
        (seed, index, draw.pick(&self.chosen[index].contracts))
    }
}

impl Plans for SeedPlans {
    fn strategy(&self) -> &'static str {
        "swarm"
    }

    fn len(&self) -> u64 {
        self.shard.len_of(self.seeds.len())
    }

    fn case(&self, k: u64) -> (usize, Case) {
        let (seed, index, contract) = self.draw(k);
        let scenario = self.chosen[index].name.to_owned();
        (index, Case { scenario, contract: contract.id.clone(), seed })
    }

    fn plan(&self, k: u64, catalogue: &Catalogue, pipeline: &Pipeline) -> Result<Plan, String> {
        let (seed, index, contract) = self.draw(k);
        let scenario = &*catalogue.scenarios[self.chosen[index].scenario];
        (pipeline.draft)(scenario, contract, seed, self.mutant.as_deref(), self.kinds.as_deref())
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

    fn case(&self, k: u64) -> (usize, Case) {
        let (index, _, recipe) = &self.recipes[k as usize];
        (*index, recipe.case.clone())
    }

    fn plan(&self, k: u64, catalogue: &Catalogue, _: &Pipeline) -> Result<Plan, String> {
        let (index, contract, recipe) = &self.recipes[k as usize];
        let scenario = &*catalogue.scenarios[self.chosen[*index].scenario];
        recipe.plan(scenario, contract).map_err(|error| error.to_string())
    }

    fn traced(&self) -> bool {
        self.traced
    }
}
