//! The kill matrix: how many plans each search needs until it finds each known mistake. Sums only.

pub mod hunt;

use crate::plan::Recipe;
use crate::scenario::Mutant;
use crate::strategies::SEEDS_A_PLAN;
use crate::verdict::InvariantId;
use std::collections::BTreeSet;

/// At least so many of a hundred mutants must be killed by enumeration.
pub const ENUMERATION_BAR: u64 = 90;
/// The unmutated workflow must be clean on so many times the largest budget that a mutant needed.
pub const CLEAN_TIMES: u64 = 10;

/// What came of one search for one mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Came {
    /// Its invariant was violated by the n-th plan, from 1.
    Killed(u64),
    /// No plan of the budget violates it.
    Survived,
    /// The search was ended before it could say.
    Unknown,
}

/// What one strategy did to one mutant.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The strategy.
    pub strategy: &'static str,
    /// The plans that each start may take; none: the strategy has an end of its own, and one start.
    pub budget: Option<u64>,
    /// What came of each start.
    pub starts: Vec<Came>,
    /// The plan of the first start that killed it.
    pub example: Option<Recipe>,
    /// The faults of that plan that are needed, once it is known.
    pub faults: Option<usize>,
    /// Other invariants that its plans violate.
    pub also: BTreeSet<InvariantId>,
}

/// So many plans, or more than there were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Plans {
    /// So many.
    Took(u64),
    /// More than the budget.
    Beyond,
}

impl Cell {
    /// Whether any start killed the mutant.
    pub fn is_killed(&self) -> bool {
        self.starts.iter().any(|came| matches!(came, Came::Killed(_)))
    }

    /// Starts that killed the mutant.
    pub fn kills(&self) -> u64 {
        self.starts.iter().filter(|came| matches!(came, Came::Killed(_))).count() as u64
    }

    /// The plans that half of the starts needed at most; none where no start is known.
    pub fn median(&self) -> Option<Plans> {
        self.rank(50)
    }

    /// The plans that 95 of a hundred starts needed at most; none where no start is known.
    pub fn p95(&self) -> Option<Plans> {
        self.rank(95)
    }

    /// The nearest rank: a figure that some start really had.
    fn rank(&self, percent: usize) -> Option<Plans> {
        let mut known: Vec<Plans> = self.known().collect();
        known.sort_unstable();
        let rank = (known.len() * percent).div_ceil(100);
        known.get(rank.checked_sub(1)?).copied()
    }

    fn known(&self) -> impl Iterator<Item = Plans> {
        self.starts.iter().filter_map(|came| match came {
            Came::Killed(plans) => Some(Plans::Took(*plans)),
            Came::Survived => Some(Plans::Beyond),
            Came::Unknown => None,
        })
    }

    /// The largest number of plans that any start needed; the budget where one of them found nothing. None
    /// where it killed nothing or has no budget.
    fn needed(&self) -> Option<u64> {
        let budget = self.budget.filter(|_| self.is_killed())?;
        let plans = |plans| if let Plans::Took(plans) = plans { plans } else { budget };
        self.known().map(plans).max()
    }
}

/// One mutant and what each strategy did to it.
#[derive(Clone, Debug)]
pub struct Row {
    /// The mutant.
    pub mutant: Mutant,
    /// The strategies, in their order.
    pub cells: Vec<Cell>,
}

impl Row {
    /// Whether any strategy killed it.
    pub fn is_killed(&self) -> bool {
        self.cells.iter().any(Cell::is_killed)
    }

    /// Whether every strategy has had all its plans and none killed it.
    pub fn has_survived(&self) -> bool {
        let all = |cell: &Cell| !cell.starts.is_empty() && cell.starts.iter().all(|c| *c == Came::Survived);
        !self.cells.is_empty() && self.cells.iter().all(all)
    }

    /// The fewest faults that any strategy's plan was shrunk to.
    pub fn faults(&self) -> Option<usize> {
        self.cells.iter().filter_map(|cell| cell.faults).min()
    }

    /// The other invariants that its plans violate.
    pub fn also(&self) -> BTreeSet<InvariantId> {
        self.cells.iter().flat_map(|cell| cell.also.iter().copied()).collect()
    }
}

/// The whole matrix.
#[derive(Clone, Debug)]
pub struct Matrix {
    /// Every mutant that was looked for.
    pub rows: Vec<Row>,
    /// Starts of a random strategy.
    pub starts: u64,
    /// Plans that a start may take.
    pub budget: u64,
    /// Whether these are all the mutants that there are.
    pub is_whole: bool,
    /// Runs, without those of shrinking.
    pub runs: u64,
}

/// The mutant and the strategy that needed the most plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needed {
    /// The plans.
    pub plans: u64,
    /// The mutant.
    pub mutant: &'static str,
    /// The strategy.
    pub strategy: &'static str,
}

impl Matrix {
    /// Mutants that some strategy killed.
    pub fn killed(&self) -> u64 {
        self.rows.iter().filter(|row| row.is_killed()).count() as u64
    }

    /// Mutants that no strategy killed, though each had its plans.
    pub fn survivors(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.has_survived())
    }

    /// Mutants that this strategy killed; none where it was not run.
    pub fn killed_by(&self, strategy: &str) -> Option<u64> {
        let mut found = None;
        for cell in self.rows.iter().flat_map(|row| &row.cells).filter(|cell| cell.strategy == strategy) {
            *found.get_or_insert(0) += u64::from(cell.is_killed());
        }
        found
    }

    /// Whether enumeration killed as large a share as it must; none where it was not run on all mutants, each
    /// to a kill or to its end.
    pub fn enumeration_suffices(&self) -> Option<bool> {
        let cells = self.rows.iter().flat_map(|row| &row.cells).filter(|cell| cell.strategy == "enumerate");
        let is_known = |cell: &Cell| !cell.starts.contains(&Came::Unknown);
        if !self.is_whole || self.rows.is_empty() || !cells.clone().all(is_known) {
            return None;
        }
        let killed = self.killed_by("enumerate")?;
        Some(killed * 100 >= ENUMERATION_BAR * self.rows.len() as u64)
    }

    /// The largest budget that any mutant needed of a strategy that has no end of its own.
    pub fn needed(&self) -> Option<Needed> {
        let mut most: Option<Needed> = None;
        for row in &self.rows {
            for cell in &row.cells {
                let Some(plans) = cell.needed() else { continue };
                if most.is_none_or(|most| plans > most.plans) {
                    most = Some(Needed { plans, mutant: row.mutant.name, strategy: cell.strategy });
                }
            }
        }
        most
    }
}

/// The command that shows the unmutated workflow clean on so many times what a mutant needed.
pub fn clean_command(needed: Needed) -> String {
    let Needed { plans, strategy, .. } = needed;
    // Beside the seeds the other searches make fewer plans.
    let a_plan = if strategy == "swarm" { 1 } else { SEEDS_A_PLAN };
    let seeds = plans.saturating_mul(CLEAN_TIMES).saturating_mul(a_plan);
    format!("cargo sim explore --strategy {strategy} --seeds 0..{seeds} --keep-going")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn cell(strategy: &'static str, budget: Option<u64>, starts: Vec<Came>) -> Cell {
        Cell { strategy, budget, starts, example: None, faults: None, also: BTreeSet::new() }
    }

    pub(crate) fn row(name: &'static str, cells: Vec<Cell>) -> Row {
        Row { mutant: Mutant { name, killed_by: "V7", mistake: "each attempt has a key of its own" }, cells }
    }

    fn killed(plans: impl IntoIterator<Item = u64>) -> Vec<Came> {
        plans.into_iter().map(Came::Killed).collect()
    }

    #[test]
    fn figures_are_those_of_a_start() {
        let twenty = cell("swarm", Some(2000), killed(1..=20));
        assert_eq!((twenty.median(), twenty.p95()), (Some(Plans::Took(10)), Some(Plans::Took(19))));
        let one = cell("swarm", Some(2000), killed([7]));
        assert_eq!((one.median(), one.p95()), (Some(Plans::Took(7)), Some(Plans::Took(7))));
        let none = cell("swarm", Some(2000), vec![]);
        assert_eq!((none.median(), none.p95()), (None, None));
    }

    #[test]
    fn a_start_that_found_nothing_took_more_than_any() {
        let starts = [killed(1..=10), vec![Came::Survived; 2]].concat();
        let some = cell("swarm", Some(2000), starts);
        assert_eq!((some.median(), some.p95()), (Some(Plans::Took(6)), Some(Plans::Beyond)));
        assert_eq!((some.kills(), some.needed()), (10, Some(2000)));
        let never = cell("swarm", Some(2000), vec![Came::Survived; 3]);
        assert_eq!((never.median(), never.needed()), (Some(Plans::Beyond), None));
        let unknown = cell("swarm", Some(2000), [killed([5]), vec![Came::Unknown; 9]].concat());
        assert_eq!((unknown.p95(), unknown.needed()), (Some(Plans::Took(5)), Some(5)));
    }

    #[test]
    fn a_mutant_survives_when_every_strategy_had_its_plans() {
        let of = |came: Came| row("m", vec![cell("swarm", Some(9), vec![Came::Survived, came])]);
        assert!(of(Came::Survived).has_survived());
        assert!(!of(Came::Killed(3)).has_survived() && of(Came::Killed(3)).is_killed());
        let unknown = of(Came::Unknown);
        assert!(!unknown.has_survived() && !unknown.is_killed(), "an interruption proves nothing");
        assert!(!row("m", vec![]).has_survived());
    }

    #[test]
    fn the_sums_of_a_matrix() {
        let both = |name, first: Came, second: Vec<Came>| {
            row(name, vec![cell("enumerate", None, vec![first]), cell("swarm", Some(2000), second)])
        };
        let mut rows: Vec<Row> =
            ["a", "b", "c", "d", "e", "f", "g", "h"].map(|n| both(n, Came::Killed(9000), killed([4]))).into();
        rows.push(both("deep", Came::Survived, killed([31, 812])));
        let matrix = |rows: &[Row], is_whole| Matrix {
            rows: rows.to_vec(),
            starts: 2,
            budget: 2000,
            is_whole,
            runs: 1,
        };
        let nine = matrix(&rows, true);
        assert_eq!((nine.killed(), nine.killed_by("enumerate"), nine.killed_by("pct")), (9, Some(8), None));
        assert_eq!(nine.enumeration_suffices(), Some(false), "8 of 9 are 88.9 %");
        assert_eq!(nine.needed(), Some(Needed { plans: 812, mutant: "deep", strategy: "swarm" }));
        assert_eq!(
            clean_command(nine.needed().unwrap()),
            "cargo sim explore --strategy swarm --seeds 0..8120 --keep-going"
        );
        assert_eq!(matrix(&rows, false).enumeration_suffices(), None, "a part says nothing of the whole");
        rows.push(both("i", Came::Killed(1), killed([1])));
        assert_eq!(matrix(&rows, true).enumeration_suffices(), Some(true), "9 of 10 are 90 %");
        rows.push(both("lasting", Came::Survived, vec![Came::Survived; 2]));
        let survivors: Vec<_> =
            matrix(&rows, true).survivors().map(|row| row.mutant.name).collect::<Vec<_>>();
        assert_eq!(survivors, ["lasting"]);
    }
}
