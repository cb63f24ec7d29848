//! The point of a run after which other draws are used.

use crate::run::Reroll;
use crate::seed::Seed;
use std::sync::atomic::{AtomicU32, Ordering};

/// Random numbers that are skipped at most: what follows is as good as another stream.
const SKIP_MAX: u64 = 4096;

/// Counts the boundaries that a run comes by, and turns to other draws after one of them.
pub(crate) struct Rerolling {
    reroll: Option<Reroll>,
    visits: AtomicU32,
}

impl Rerolling {
    pub(crate) fn new(reroll: Option<Reroll>) -> Self {
        let new = Rerolling { reroll, visits: AtomicU32::new(0) };
        new.turn_after(0);
        new
    }

    /// The run comes by a boundary; what the tape has for it is still as it was.
    pub(crate) fn came_by(&self) {
        let visits = self.visits.fetch_add(1, Ordering::Relaxed) + 1;
        self.turn_after(visits);
    }

    /// The seed that draws come from now in place of the plan's.
    pub(crate) fn seed(&self) -> Option<Seed> {
        let visits = self.visits.load(Ordering::Relaxed);
        self.reroll.filter(|reroll| visits >= reroll.after_visit).map(|reroll| Seed(reroll.seed))
    }

    /// The simulator's own stream cannot be seeded again, so it is moved on.
    fn turn_after(&self, visits: u32) {
        if let Some(reroll) = self.reroll.filter(|reroll| reroll.after_visit == visits) {
            let skip = Seed(reroll.seed).stream("skip").within(1..=SKIP_MAX);
            for _ in 0..skip {
                let _: u64 = madsim::rand::random();
            }
        }
    }
}
