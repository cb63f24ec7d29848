//! The desk offers nothing, and the response is lost: only a person can look.

use crate::access::{Access, Draw, once};
use crate::goals;
use crate::places::on_create;
use sim::fault::{Fault, Loss, What};
use sim::plan::{Expect, Workload};
use sim::scenario::{Goal, Story};

/// The desk offers nothing, and the response is lost: only a person can look.
pub const SCENARIO: Access = Access {
    name: "no-guarantee",
    story: Story {
        lines: "The desk has no key, no unique reference and no look-up.\n\
                The response to R17's request is lost. T93 exists, and no program can find it.\n\
                The workflow sends nothing more, for life, and asks its owner at once, with a deadline.\n\
                The owner searches the desk by hand for R17:create-ticket:v1 and finds T93.\n\
                The engine fetches T93, checks that it is R17's, and records it.",
        danger: "every automatic step would be a guess",
        holds: "one record, confirmed by a person",
    },
    keep_ended: None,
    upgrades: false,
    contracts: &["desk_nothing"],
    workload: plan,
    faults,
    storms: 500,
    goals: &[Goal { name: "a person confirmed the record", reached: |run| goals::confirmed_by_person(run) }],
};

fn plan(draw: &Draw<'_>) -> Workload {
    once(draw, Expect::Recorded)
}

fn faults(draw: &Draw<'_>) -> Vec<Fault> {
    let mut rng = draw.seed.stream("moment of danger");
    let loss = *rng.pick(&[Loss::Silence, Loss::Reset, Loss::Truncated]);
    vec![on_create(1, What::LoseResponse(loss))]
}
