//! Somebody's hands change what the workflow has made, and the records are compared with the desk's.

use crate::access::{Access, Draw, EVERY, once, operation};
use crate::goals;
use sim::belief::Discrepancy;
use sim::fault::{Fault, Place, What};
use sim::plan::{Expect, Workload};
use sim::scenario::{Goal, Story};

/// Somebody's hands change what the workflow has made, and the records are compared with the desk's.
pub const SCENARIO: Access = Access {
    name: "reconciled",
    story: Story {
        lines: "R17 becomes T93, and later somebody deletes it at the desk, edits it, or makes a second one like it.\n\
                No request tells the workflow: what it has recorded was true, and is not any more.\n\
                The records are compared with the desk's, both ways, first in the middle of everything.\n\
                What is only on its way looks like a discrepancy then, and is none: a second look decides.\n\
                What the second look sees again is reported, with its owner; what it does not see is forgotten.",
        danger: "reporting what is only on its way, or overlooking what nobody asked for",
        holds: "each discrepancy is reported, and none that there is not",
    },
    keep_ended: None,
    upgrades: false,
    contracts: EVERY,
    workload: plan,
    faults,
    storms: 500,
    goals: &[
        Goal {
            name: "a record was missing there",
            reached: |run| goals::reported(run, Discrepancy::Missing),
        },
        Goal { name: "a record differed", reached: |run| goals::reported(run, Discrepancy::Differs) },
        Goal { name: "a record was there twice", reached: |run| goals::reported(run, Discrepancy::Double) },
    ],
};

fn danger(draw: &Draw<'_>) -> Option<What> {
    let mut rng = draw.seed.stream("moment of danger");
    match rng.within(0..=3) {
        0 => Some(What::DeleteByHand),
        1 => Some(What::EditByHand(1_000)),
        2 => Some(What::CopyByHand(1_000)),
        _ => None,
    }
}

fn plan(draw: &Draw<'_>) -> Workload {
    let mut rng = draw.seed.stream("reconciling");
    // While it is sent, or in the doubt that may follow.
    let span = rng.pick(&[20..=200, 200..=60_000]).clone();
    Workload { reconciled_after_ms: Some(rng.within(span)), ..once(draw, Expect::Recorded) }
}

fn faults(draw: &Draw<'_>) -> Vec<Fault> {
    let at = Place::Record { about: operation("R17"), nth: 1 };
    danger(draw).map(|what| Fault { at, what }).into_iter().collect()
}
