//! The request is lost on its way: the time-out is true, and nothing was written.

use crate::access::{Access, Draw, EVERY, once};
use crate::goals;
use crate::places::on_create;
use sim::fault::{Fault, Loss, What};
use sim::plan::{Expect, Workload};
use sim::scenario::{Goal, Story};

/// The request is lost on its way: the time-out is true, and nothing was written.
pub const SCENARIO: Access = Access {
    name: "time-out-before-effect",
    story: Story {
        lines: "The workflow sends the request for R17, and it never reaches the desk.\n\
                Nothing comes back. To the workflow this looks exactly like a lost response.\n\
                Where the contract allows it, the same operation is sent again; else a person is asked.\n\
                A look-up that finds nothing decides only where the contract bounds late commits and staleness.\n\
                The desk holds nothing until somebody is sure.",
        danger: "the time-out, which says nothing about the desk",
        holds: "one record where the contract licenses a resend, else none and an owned question",
    },
    keep_ended: None,
    upgrades: false,
    contracts: EVERY,
    workload: plan,
    faults,
    storms: 500,
    goals: &[
        Goal { name: "the lost request was sent again under a licence", reached: |run| goals::resent(run) },
        Goal { name: "a person was asked instead", reached: |run| goals::owned(run) },
    ],
};

fn plan(draw: &Draw<'_>) -> Workload {
    let resends =
        matches!(draw.contract.id.as_str(), "zendesk_ticket" | "desk_unique_ref" | "desk_strong_lookup");
    once(draw, if resends { Expect::Recorded } else { Expect::NoneOwned })
}

fn faults(draw: &Draw<'_>) -> Vec<Fault> {
    let mut rng = draw.seed.stream("moment of danger");
    let loss = *rng.pick(&[Loss::Silence, Loss::Reset]);
    vec![on_create(1, What::LoseRequest(loss))]
}
