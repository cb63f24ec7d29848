//! Hunting a known mistake: one strategy, one start, until the mistake's own invariant is violated.

use super::{Came, Cell, Matrix, Row};
use crate::catalogue::Catalogue;
use crate::enumerate::{Subject, enumerate};
use crate::explore::{Chosen, Exploration, Failure, Flow, Notice, Plans, Request, Search, SeedPlans};
use crate::pct::PctPlans;
use crate::pipeline::Pipeline;
use crate::plan::{Case, Recipe};
use crate::replay::{Question, tell_found};
use crate::run::Options;
use crate::scenario::Mutant;
use crate::seeds::Seeds;
use crate::shrink::{Budget, Trial};
use crate::verdict::InvariantId;
use crate::watch::apart;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;

/// The seeds of two starts are so far apart, unless the budget is larger.
const APART: u64 = 1_000_000;

/// A way to search for plans.
#[derive(Clone, Copy)]
pub struct Strategy {
    /// Its name, as `--strategy` has it.
    pub name: &'static str,
    /// Whether it draws: another start gives other plans, and only the budget ends it.
    pub draws: bool,
    /// Runs its stages until the search is over.
    pub search: fn(&mut Search<'_>),
}

/// Every strategy, in the order in which they are tried.
pub const STRATEGIES: &[Strategy] = &[
    Strategy { name: "enumerate", draws: false, search: enumerated },
    Strategy { name: "swarm", draws: true, search: swarm },
    Strategy { name: "pct", draws: true, search: pct },
    Strategy { name: "guided", draws: true, search: guided },
];

/// Every single fault of every scenario, then every pair of the catalogue's deep one: as `explore` does it,
/// with what is cheap first.
fn enumerated(search: &mut Search<'_>) {
    let (deep, chosen) = (search.catalogue().deep, search.request().chosen.clone());
    let subjects = (1..=2).flat_map(|depth| {
        let each = chosen.iter().enumerate().filter(move |(_, one)| depth == 1 || one.name == deep);
        each.flat_map(move |(index, one)| {
            one.contracts.iter().map(move |contract| Subject::new(index, contract, depth))
        })
    });
    for subject in subjects {
        // What it certifies is said by `explore`; here only kills count.
        if enumerate(search, &subject).1 == Flow::Over {
            return;
        }
    }
}

fn swarm(search: &mut Search<'_>) {
    let seeds: Arc<dyn Plans> = Arc::new(SeedPlans::of(search.request()).once());
    // What ended it is in the sums.
    let _ = search.stage(&seeds, &mut |_| {});
}

fn pct(search: &mut Search<'_>) {
    let request = search.request();
    let plans: Arc<dyn Plans> = Arc::new(PctPlans::of(request, request.total()));
    let _ = search.stage(&plans, &mut |_| {});
}

fn guided(search: &mut Search<'_>) {
    let budget = search.request().total();
    let _ = crate::guided::guided(search, budget);
}

/// What is hunted, and how.
pub struct Hunt<'a> {
    /// The scenarios.
    pub catalogue: &'a Arc<Catalogue>,
    /// How a run is made and judged.
    pub pipeline: Pipeline,
    /// The mutants, each with the scenarios that run with it.
    pub mutants: Vec<(Mutant, Vec<Chosen>)>,
    /// The strategies.
    pub strategies: Vec<Strategy>,
    /// Starts of a strategy that draws.
    pub starts: u64,
    /// Plans that a start may take.
    pub budget: u64,
    /// Threads.
    pub jobs: usize,
    /// Whether these are all the mutants that there are.
    pub is_whole: bool,
    /// Ends the hunt with what is known.
    pub interrupted: &'a AtomicBool,
}

/// What a hunt brought home.
pub struct Hunted {
    /// The matrix.
    pub matrix: Matrix,
    /// The harness's own failures.
    pub harness: Vec<(Case, String)>,
    /// Kills that did not come again, each with what came instead.
    pub differing: Vec<(Recipe, String)>,
}

/// One search that is to be made: indices into the mutants and the strategies, and which start.
#[derive(Clone, Copy)]
struct Task {
    mutant: usize,
    strategy: usize,
    start: u64,
}

/// What came of one task.
struct Brought {
    came: Came,
    example: Option<Recipe>,
    also: BTreeSet<InvariantId>,
    runs: u64,
    harness: Vec<(Case, String)>,
}

/// How far a hunt is.
#[derive(Clone, Copy, Debug)]
pub struct Far {
    /// Searches that are done.
    pub done: u64,
    /// Searches that killed their mutant.
    pub kills: usize,
    /// The mutant of the last one.
    pub mutant: &'static str,
}

impl Hunt<'_> {
    /// Makes every search, then shrinks the first kill of each cell. Any number of threads brings the same.
    pub fn run(&self, tell: &mut dyn FnMut(Far)) -> Hunted {
        assert!(self.jobs > 0 && self.budget > 0, "somebody must run something");
        let tasks = self.tasks();
        let mut brought: Vec<Option<Brought>> = tasks.iter().map(|_| None).collect();
        let mut far = Far { done: 0, kills: 0, mutant: "" };
        self.each(tasks.len(), |index| self.one(tasks[index]), &mut |index, one: Brought| {
            far.done += 1;
            far.kills += usize::from(matches!(one.came, Came::Killed(_)));
            far.mutant = self.mutants[tasks[index].mutant].0.name;
            tell(far);
            brought[index] = Some(one);
        });
        let mut hunted = self.sums(&tasks, brought);
        self.shrink(&mut hunted);
        hunted
    }

    /// How many searches it makes.
    pub fn total(&self) -> u64 {
        self.tasks().len() as u64
    }

    /// Every first start before any second one: who interrupts knows a little of each mutant.
    fn tasks(&self) -> Vec<Task> {
        let mut tasks = vec![];
        for start in 0..self.starts {
            for mutant in 0..self.mutants.len() {
                let each = self.strategies.iter().enumerate();
                let again = each.filter(|(_, strategy)| start == 0 || strategy.draws);
                tasks.extend(again.map(|(strategy, _)| Task { mutant, strategy, start }));
            }
        }
        tasks
    }

    /// Does the work with each index on several threads; what comes is handed over on this one.
    fn each<T: Send>(&self, count: usize, work: impl Fn(usize) -> T + Sync, take: &mut dyn FnMut(usize, T)) {
        let (sender, receiver) = channel();
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.min(count) {
                let (sender, next, work) = (sender.clone(), &next, &work);
                scope.spawn(move || {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        if index >= count || self.interrupted.load(Ordering::Relaxed) {
                            return;
                        }
                        if sender.send((index, work(index))).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            for (index, one) in receiver {
                take(index, one);
            }
        });
    }

    fn one(&self, task: Task) -> Brought {
        let (mutant, chosen) = &self.mutants[task.mutant];
        let first = task.start * self.budget.max(APART);
        let seeds = Seeds::range(first..first + self.budget);
        let request = Request {
            mutant: Some(mutant.name.to_owned()),
            // Only a failure of its own invariant ends the search of a mutant.
            failures_max: Some(1),
            ..Request::of(chosen.clone(), seeds)
        };
        let mut silent = |_: Notice<'_>| {};
        let mut search = Search::new(self.catalogue, self.pipeline, request, self.interrupted, &mut silent);
        (self.strategies[task.strategy].search)(&mut search);
        brought(mutant, search.finish())
    }

    fn sums(&self, tasks: &[Task], brought: Vec<Option<Brought>>) -> Hunted {
        let cell = |strategy: &Strategy| Cell {
            strategy: strategy.name,
            budget: strategy.draws.then_some(self.budget),
            starts: vec![],
            example: None,
            faults: None,
            also: BTreeSet::new(),
        };
        let row = |(mutant, _): &(Mutant, Vec<Chosen>)| Row {
            mutant: *mutant,
            cells: self.strategies.iter().map(cell).collect(),
        };
        let mut matrix = Matrix {
            rows: self.mutants.iter().map(row).collect(),
            starts: self.starts,
            budget: self.budget,
            is_whole: self.is_whole,
            runs: 0,
        };
        let mut harness = vec![];
        for (task, one) in tasks.iter().zip(brought) {
            let cell = &mut matrix.rows[task.mutant].cells[task.strategy];
            let Some(one) = one else {
                cell.starts.push(Came::Unknown);
                continue;
            };
            cell.starts.push(one.came);
            cell.example = cell.example.take().or(one.example);
            cell.also.extend(one.also);
            matrix.runs += one.runs;
            harness.extend(one.harness);
        }
        Hunted { matrix, harness, differing: vec![] }
    }

    /// Reduces the example of each cell to the faults that it needs, and sees that it comes again.
    fn shrink(&self, hunted: &mut Hunted) {
        let rows = &hunted.matrix.rows;
        let cells =
            rows.iter().enumerate().flat_map(|(row, of)| of.cells.iter().map(move |cell| (row, cell)));
        let wanted: Vec<(usize, &'static str, Recipe)> =
            cells.filter_map(|(row, cell)| Some((row, cell.strategy, cell.example.clone()?))).collect();
        let mut shrunk = vec![];
        let work = |index: usize| {
            let (row, _, recipe) = &wanted[index];
            self.needed_faults(&self.mutants[*row], recipe)
        };
        self.each(wanted.len(), work, &mut |index, came| shrunk.push((index, came)));
        // In their order, whichever thread was first.
        shrunk.sort_by_key(|(index, _)| *index);
        for (index, came) in shrunk {
            let (row, strategy, recipe) = &wanted[index];
            match came {
                Ok(Ok(faults)) => {
                    let mut cells = hunted.matrix.rows[*row].cells.iter_mut();
                    let cell = cells.find(|cell| cell.strategy == *strategy);
                    cell.expect("its row has it").faults = Some(faults);
                }
                Ok(Err(instead)) => hunted.differing.push((recipe.clone(), instead)),
                Err(error) => hunted.harness.push((recipe.case.clone(), error)),
            }
        }
    }

    /// The number of faults that a kill is shrunk to; or what came in place of the kill.
    fn needed_faults(
        &self,
        (mutant, chosen): &(Mutant, Vec<Chosen>),
        recipe: &Recipe,
    ) -> Result<Result<usize, String>, String> {
        let one = chosen.iter().find(|one| one.name == recipe.case.scenario).expect("it was chosen");
        let contract = one.contracts.iter().find(|contract| contract.id == recipe.case.contract);
        let contract = contract.expect("its contract was chosen");
        let name = mutant.name.to_owned();
        let question = Question { mutant: Some(name), ..Question::about(recipe.case.clone()) };
        let (catalogue, pipeline) = (Arc::clone(self.catalogue), self.pipeline);
        let (scenario, contract, found) = (one.scenario, Arc::clone(contract), recipe.clone());
        let killed_by = Some(mutant.killed_by);
        let answer = apart(move |watch| {
            let scenario = &*catalogue.scenarios[scenario];
            let options = Options::default();
            let trial = Trial { pipeline, scenario, contract: &contract, killed_by, options, watch };
            tell_found(&trial, &found, &question, false, Some(Budget::RUNS))
        });
        let answer = match answer {
            Ok(answer) => answer.map_err(|error| error.to_string())?,
            Err(hung) => return Err(hung.to_string()),
        };
        if let Some(difference) = answer.difference {
            return Ok(Err(format!("at step {}: {} / {}", difference.step, difference.a, difference.b)));
        }
        match answer.violation() {
            Some(violation) if violation.invariant.id == mutant.killed_by => Ok(Ok(answer.faults.len())),
            Some(violation) => Ok(Err(violation.message.clone())),
            None => Ok(Err("it holds".into())),
        }
    }
}

fn brought(mutant: &Mutant, done: Exploration) -> Brought {
    let is_named = |failure: &&Failure| failure.invariant.id == mutant.killed_by;
    let killed = done.failures.iter().find(is_named);
    let came = match killed {
        Some(failure) => Came::Killed(failure.after_runs),
        // Where somebody ended it or the harness failed, nothing is shown.
        None if done.interrupted || done.harness > 0 => Came::Unknown,
        None => Came::Survived,
    };
    let told = done.failures.iter().map(|failure| failure.invariant);
    let beside = done.failures.iter().flat_map(|failure| failure.also.iter().copied());
    Brought {
        came,
        example: killed.map(|failure| failure.example.clone()),
        also: told.chain(beside).filter(|id| id.id != mutant.killed_by).collect(),
        runs: done.runs,
        harness: done.harness_examples,
    }
}
