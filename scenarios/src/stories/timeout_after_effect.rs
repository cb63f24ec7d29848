//! The desk writes, and the response is lost: the story that everything here is about.

use crate::access::{Access, Draw, EVERY, once};
use crate::goals;
use crate::places::on_create;
use sim::fault::{Fault, Loss, What};
use sim::plan::{Expect, Workload};
use sim::scenario::{Goal, Story};

/// The desk writes, and the response is lost: the story that everything here is about.
pub const SCENARIO: Access = Access {
    name: "time-out-after-effect",
    story: Story {
        lines: "The workflow sends the request for R17; the desk makes T93.\n\
                The response is lost: by silence, by a broken connection, or in the middle of its body.\n\
                The workflow knows that it sent and that nothing came back.\n\
                It reconciles R17:create-ticket:v1 by its key, its reference, or a look-up.\n\
                It records T93 and completes; where the desk offers nothing, its owner finds T93.",
        danger: "after the desk's commit, before the workflow's own",
        holds: "one record; recorded by the workflow where the contract offers any way",
    },
    keep_ended: None,
    upgrades: false,
    contracts: EVERY,
    workload: plan,
    faults,
    storms: 500,
    goals: &[
        Goal {
            name: "T93 was recorded after its response was lost",
            reached: |run| goals::completed(run) && goals::struck(run, "lose-response"),
        },
        Goal { name: "found by a look-up", reached: |run| goals::found_by_look_up(run) },
        Goal { name: "answered again by the same key or reference", reached: |run| goals::resent(run) },
    ],
};

fn plan(draw: &Draw<'_>) -> Workload {
    once(draw, if draw.contract.id == "desk_nothing" { Expect::OneOwned } else { Expect::Recorded })
}

fn faults(draw: &Draw<'_>) -> Vec<Fault> {
    let mut rng = draw.seed.stream("moment of danger");
    let loss = *rng.pick(&[Loss::Silence, Loss::Reset, Loss::Truncated]);
    vec![on_create(1, What::LoseResponse(loss))]
}
