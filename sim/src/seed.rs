//! A seed, and the keyed random streams that every decision of a run is drawn from.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng};
use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher13;
use std::fmt;
use std::hash::Hasher as _;
use std::ops::RangeInclusive;

/// The number from which one whole run follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seed(pub u64);

impl Seed {
    /// The stream of draws with this name. A further draw from one stream moves no other stream.
    pub fn stream(self, name: &str) -> Rng {
        let mut hasher = SipHasher13::new();
        hasher.write(name.as_bytes());
        let mut rng = ChaCha8Rng::seed_from_u64(self.0);
        rng.set_stream(hasher.finish());
        Rng(rng)
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Draws from one named stream.
pub struct Rng(ChaCha8Rng);

impl Rng {
    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `end`.
    ///
    /// # Panics
    /// When `end` is zero.
    pub fn below(&mut self, end: u64) -> u64 {
        assert!(end > 0, "a draw needs at least one outcome");
        // Multiply-shift: the bias is below 2^-32 for every range that a plan draws from.
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }

    /// A number in `range`, both ends included.
    pub fn within(&mut self, range: RangeInclusive<u64>) -> u64 {
        let (low, high) = (*range.start(), *range.end());
        assert!(low <= high, "an empty range has nothing to draw");
        low + self.below(high - low + 1)
    }

    /// True in `per_mille` of a thousand draws.
    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    /// One of `items`.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_repeatable_and_apart() {
        let draws = |name: &str| {
            let mut rng = Seed(7).stream(name);
            (0..4).map(|_| rng.bits()).collect::<Vec<_>>()
        };
        assert_eq!(draws("faults"), draws("faults"));
        assert_ne!(draws("faults"), draws("latency"));
    }

    #[test]
    fn draws_stay_in_their_range_and_reach_both_ends() {
        let mut rng = Seed(1).stream("range");
        let drawn: Vec<u64> = (0..500).map(|_| rng.within(3..=5)).collect();
        assert!(drawn.iter().all(|n| (3..=5).contains(n)));
        assert!(drawn.contains(&3) && drawn.contains(&5));
    }
}
