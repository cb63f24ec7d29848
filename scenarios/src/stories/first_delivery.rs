//! The first delivery of a request, with nothing in its way.

use crate::access::{Access, Draw, EVERY, once};
use crate::goals;
use sim::fault::Fault;
use sim::plan::{Expect, Workload};
use sim::scenario::{Goal, Story};

/// The first delivery of a request, with nothing in its way.
pub const SCENARIO: Access = Access {
    name: "first-delivery",
    story: Story {
        lines: "R17 arrives for the first time: no operation is recorded for it.\n\
                The workflow records the delivery and the operation before it answers 202.\n\
                It records the intent, sends once, and the desk answers with T93.\n\
                It records T93 and is done.\n\
                This is the run that every other scenario breaks in one place.",
        danger: "none: what fails here fails everywhere",
        holds: "one record, recorded by the workflow, made by one send",
    },
    keep_ended: None,
    upgrades: false,
    contracts: EVERY,
    workload: plan,
    faults,
    storms: 500,
    goals: &[Goal {
        name: "completed with the first send",
        reached: |run| goals::completed(run) && goals::sends(run) == 1,
    }],
};

fn plan(draw: &Draw<'_>) -> Workload {
    once(draw, Expect::Recorded)
}

fn faults(draw: &Draw<'_>) -> Vec<Fault> {
    let _ = draw;
    vec![]
}
