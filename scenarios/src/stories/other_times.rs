//! The request comes again with another id and other times in it.

use crate::access::{Access, Draw, EVERY, once};
use crate::goals;
use sim::fault::{Fault, Place, Variation, What};
use sim::plan::{Expect, Workload};
use sim::scenario::{Goal, Story};

/// The request comes again with another id and other times in it.
pub const SCENARIO: Access = Access {
    name: "other-times",
    story: Story {
        lines: "R17 is delivered, and the source does not hear the answer in time.\n\
                It delivers R17 again: a new delivery id, a new time of sending, fields in another order.\n\
                None of that changes what is asked for.\n\
                A key made of them would be a new key, and a new ticket.\n\
                The identity is the request's own, so the same operation answers.",
        danger: "what goes into the identity of a request",
        holds: "one record, whatever the delivery looks like",
    },
    keep_ended: None,
    upgrades: false,
    contracts: EVERY,
    workload: plan,
    faults,
    storms: 500,
    goals: &[Goal {
        name: "a delivery with other times in it was answered as the same",
        reached: |run| goals::completed(run) && goals::struck(run, "redeliver"),
    }],
};

fn plan(draw: &Draw<'_>) -> Workload {
    once(draw, Expect::Recorded)
}

fn faults(draw: &Draw<'_>) -> Vec<Fault> {
    let after_ms = draw.seed.stream("moment of danger").within(0..=20_000);
    let what = What::Redeliver { how: Variation::Volatile, after_ms };
    vec![Fault { at: Place::Delivery("R17/1".into()), what }]
}
