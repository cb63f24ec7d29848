//! Something on the way sends the request a second time.

use crate::access::{Access, Draw, once};
use crate::goals;
use crate::places::on_create;
use sim::fault::{Fault, What};
use sim::plan::{Expect, Workload};
use sim::scenario::{Goal, Story};

/// Something on the way sends the request a second time.
pub const SCENARIO: Access = Access {
    name: "proxy-resends",
    story: Story {
        lines: "The workflow sends R17's request once.\n\
                A proxy in between sends the very same bytes again: it has its own idea of retries.\n\
                The desk sees two requests with one key, or one reference.\n\
                It recognises the second and answers with T93, or says that T93 exists.\n\
                What the workflow counts is its own sends; what the desk holds is one ticket.",
        danger: "the copy that nobody in the workflow knows of",
        holds: "one record, although the request arrived twice",
    },
    keep_ended: None,
    upgrades: false,
    contracts: &["zendesk_ticket", "desk_unique_ref"],
    workload: plan,
    faults,
    storms: 500,
    goals: &[Goal { name: "the request arrived twice", reached: |run| goals::struck(run, "duplicate") }],
};

fn plan(draw: &Draw<'_>) -> Workload {
    once(draw, Expect::Recorded)
}

fn faults(draw: &Draw<'_>) -> Vec<Fault> {
    let after = draw.seed.stream("moment of danger").within(1..=20_000);
    vec![on_create(1, What::Duplicate(after))]
}
