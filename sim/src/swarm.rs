//! Random faults of a seed: each seed switches many kinds off and weighs the rest differently.
//!
//! A few kinds that meet find more than a little of all (swarm testing: Groce et al., ISSTA 2012). Every
//! fault can be survived under the terms of the run, alone and with the others.

mod place;
mod strength;

use crate::fault::{Fault, FaultTape, KINDS};
use crate::plan::Workload;
use crate::seed::{Rng, Seed};
use crate::terms::Terms;

/// Draws for one fault before it is given up: many kinds cannot strike under the terms of a run.
const TRIES: u32 = 12;
/// In so many of a thousand seeds more than the usual number of faults is drawn.
const MANY: u64 = 60;

/// The faults that a seed adds to a scenario's own: one to four, seldom up to six.
pub fn faults(terms: &Terms<'_>, workload: &Workload, own: &[Fault], seed: Seed) -> Vec<Fault> {
    if workload.requests.is_empty() || workload.deliveries.is_empty() {
        return vec![];
    }
    let mut rng = seed.stream("storm");
    let mix = Mix::draw(&mut rng);
    let count = if rng.chance(MANY) { rng.within(5..=6) } else { rng.within(1..=4) };
    let mut draw = Draw { rng, terms, workload };
    let mut all = own.to_vec();
    for _ in 0..count {
        let more = (0..TRIES).find_map(|_| draw.fault(&mix).filter(|fault| fits(terms, &all, fault)));
        all.extend(more);
    }
    all.split_off(own.len())
}

/// Whether a tape stays one that can be survived when it gets one fault more.
fn fits(terms: &Terms<'_>, all: &[Fault], fault: &Fault) -> bool {
    let tape = FaultTape::new([all, std::slice::from_ref(fault)].concat());
    tape.is_ok_and(|tape| terms.unsurvivable(&tape).is_none())
}

/// How likely each kind is in one seed, in the order of [`KINDS`].
struct Mix([u64; KINDS.len()]);

impl Mix {
    fn draw(rng: &mut Rng) -> Self {
        let off = *rng.pick(&[250, 500, 800]);
        Mix(KINDS.map(|_| {
            let (is_off, power) = (rng.chance(off), rng.below(5));
            if is_off { 0 } else { 1 << power }
        }))
    }

    fn kind(&self, rng: &mut Rng) -> Option<&'static str> {
        let sum = self.0.iter().sum();
        if sum == 0 {
            return None;
        }
        let mut left = rng.below(sum);
        KINDS.into_iter().zip(self.0).find_map(|(kind, weight)| {
            if left < weight {
                return Some(kind);
            }
            left -= weight;
            None
        })
    }
}

/// What faults are drawn from.
struct Draw<'a> {
    rng: Rng,
    terms: &'a Terms<'a>,
    workload: &'a Workload,
}

impl Draw<'_> {
    fn fault(&mut self, mix: &Mix) -> Option<Fault> {
        let kind = mix.kind(&mut self.rng)?;
        let what = self.what(kind)?;
        let at = self.place(&what);
        let fault = Fault { at, what };
        fault.check().is_ok().then_some(fault)
    }
}

#[cfg(test)]
mod tests;
