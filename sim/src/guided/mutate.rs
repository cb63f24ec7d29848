//! One change of a plan: a fault more, less, elsewhere or stronger, other deliveries, another tape's half.

use super::Kept;
use crate::fault::{Fault, FaultTape, Place, What};
use crate::menu::{menu, milder};
use crate::plan::Recipe;
use crate::seed::Rng;
use crate::terms::Terms;

/// Faults of a tape: more than this many explain nothing.
const FAULTS_MAX: usize = 6;
/// Draws until a change comes out that can be survived.
const TRIES: u32 = 16;
/// In so many of a thousand plans a second change follows.
const TWO: u64 = 300;

/// What a change is made under.
pub(super) struct Mutation<'a> {
    pub(super) terms: Terms<'a>,
    /// The kinds that may be on a tape; none: all.
    pub(super) kinds: Option<&'a [String]>,
    /// Kept plans of the same scenario and contract.
    pub(super) others: &'a [&'a Kept],
}

impl Mutation<'_> {
    /// A plan that differs from the kept one.
    pub(super) fn of(&self, kept: &Kept, rng: &mut Rng) -> Recipe {
        let mut recipe = kept.recipe.clone();
        let changes = if rng.chance(TWO) { 2 } else { 1 };
        for _ in 0..changes {
            let changed = (0..TRIES).find_map(|_| self.change(kept, &recipe, rng));
            // Where no change comes out, the same plan under another schedule is one.
            recipe = changed.unwrap_or_else(|| Recipe { schedule: Some(rng.bits()), ..recipe });
        }
        recipe
    }

    fn change(&self, kept: &Kept, recipe: &Recipe, rng: &mut Rng) -> Option<Recipe> {
        let tape = &recipe.tape;
        let with_tape = |tape: FaultTape| Recipe { tape, ..recipe.clone() };
        match rng.below(20) {
            0..8 => Some(with_tape(self.checked(tape.with(self.fault(&kept.places, rng)?).ok()?)?)),
            8..10 => Some(with_tape(tape.without(any(tape, rng)?))),
            10..13 => {
                let index = any(tape, rng)?;
                let stronger = self.strength(&tape.faults()[index], rng)?;
                Some(with_tape(self.checked(tape.without(index).with(stronger).ok()?)?))
            }
            13..16 => {
                let index = any(tape, rng)?;
                let moved = Fault { at: place(&kept.places, rng)?, what: tape.faults()[index].what.clone() };
                Some(with_tape(self.checked(tape.without(index).with(moved).ok()?)?))
            }
            16 => Some(Recipe { deliveries: Some(fewer(kept, recipe, rng)?), ..recipe.clone() }),
            17..19 => Some(with_tape(self.checked(self.spliced(tape, rng)?)?)),
            _ => Some(Recipe { schedule: Some(rng.bits()), ..recipe.clone() }),
        }
    }

    fn fault(&self, places: &[Place], rng: &mut Rng) -> Option<Fault> {
        let at = place(places, rng)?;
        let offered = menu(&at, &self.terms);
        let what = (!offered.is_empty()).then(|| rng.pick(&offered).clone())?;
        Some(Fault { at, what })
    }

    /// The same kind at the same place in another strength.
    fn strength(&self, fault: &Fault, rng: &mut Rng) -> Option<Fault> {
        let mut all: Vec<What> = menu(&fault.at, &self.terms);
        all.retain(|what| what.kind() == fault.what.kind());
        all.extend(milder(&fault.what));
        all.retain(|what| *what != fault.what);
        let what = (!all.is_empty()).then(|| rng.pick(&all).clone())?;
        Some(Fault { at: fault.at.clone(), what })
    }

    /// Each fault of two tapes with even odds.
    fn spliced(&self, tape: &FaultTape, rng: &mut Rng) -> Option<FaultTape> {
        let other = (!self.others.is_empty()).then(|| *rng.pick(self.others))?;
        let both = tape.faults().iter().chain(other.recipe.tape.faults());
        let half = both.filter(|_| rng.chance(500)).cloned().collect();
        Some(FaultTape::first_of_each_place(half))
    }

    /// The tape, where it can be survived, is short, and holds nothing that was switched off.
    fn checked(&self, tape: FaultTape) -> Option<FaultTape> {
        let is_on = |fault: &Fault| fault.what.is_on(self.kinds);
        let good = tape.faults().len() <= FAULTS_MAX
            && tape.faults().iter().all(is_on)
            && self.terms.unsurvivable(&tape).is_none();
        good.then_some(tape)
    }
}

/// The index of one of its faults.
fn any(tape: &FaultTape, rng: &mut Rng) -> Option<usize> {
    let len = tape.faults().len() as u64;
    (len > 0).then(|| rng.below(len) as usize)
}

/// A place that was come by: its kind first, because there are more syncs than anything else.
fn place(places: &[Place], rng: &mut Rng) -> Option<Place> {
    let mut kinds: Vec<String> = places.iter().map(Place::kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let kind = (!kinds.is_empty()).then(|| rng.pick(&kinds))?;
    let those: Vec<&Place> = places.iter().filter(|place| place.kind() == *kind).collect();
    Some((*rng.pick(&those)).clone())
}

/// The kept deliveries with one more or one less; never none.
fn fewer(kept: &Kept, recipe: &Recipe, rng: &mut Rng) -> Option<Vec<String>> {
    let now = recipe.deliveries.as_ref().unwrap_or(&kept.deliveries);
    let toggled = (!kept.deliveries.is_empty()).then(|| rng.pick(&kept.deliveries))?;
    let stays = |name: &String| now.contains(name) != (name == toggled);
    let left: Vec<String> = kept.deliveries.iter().filter(|name| stays(name)).cloned().collect();
    (!left.is_empty()).then_some(left)
}
