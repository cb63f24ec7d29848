//! A delivery that nobody can read arrives beside a good one.

use crate::access::{Access, Draw, EVERY, once};
use crate::goals;
use sim::fault::{Fault, Place, Variation, What};
use sim::plan::{Expect, Workload};
use sim::scenario::{Goal, Story};

/// A delivery that nobody can read arrives beside a good one.
pub const SCENARIO: Access = Access {
    name: "poison-delivery",
    story: Story {
        lines: "R17 is delivered, and then bytes arrive that are no request at all.\n\
                They come again and again, for the source does not know better.\n\
                Whoever reads them must not fall over: R17 is on its way.\n\
                They are refused, each time, and nothing is recorded as taken.\n\
                R17 becomes T93 as if nothing had happened.",
        danger: "the reader of the delivery",
        holds: "one record; the poison is refused and harms nobody",
    },
    keep_ended: None,
    upgrades: false,
    contracts: EVERY,
    workload: plan,
    faults,
    storms: 500,
    goals: &[Goal {
        name: "the poison was delivered and the request recorded",
        reached: |run| goals::completed(run) && goals::struck(run, "poison"),
    }],
};

fn plan(draw: &Draw<'_>) -> Workload {
    once(draw, Expect::Recorded)
}

fn faults(draw: &Draw<'_>) -> Vec<Fault> {
    let after_ms = draw.seed.stream("moment of danger").within(0..=2_000);
    let what = What::Redeliver { how: Variation::Poison, after_ms };
    vec![Fault { at: Place::Delivery("R17/1".into()), what }]
}
