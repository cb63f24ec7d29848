//! A commit fails, and nobody can say whether it is durable.

use crate::access::{Access, Draw, EVERY, once};
use crate::goals;
use sim::fault::{Fault, Place, What, When};
use sim::plan::{Expect, Workload};
use sim::scenario::{Goal, Story};

/// A commit fails, and nobody can say whether it is durable.
pub const SCENARIO: Access = Access {
    name: "failed-commit",
    story: Story {
        lines: "The disk reports an error at the sync of a commit.\n\
                The pages may be on the disk or not, and no later sync will tell.\n\
                To go on as if it were durable is to send what a crash forgets.\n\
                To go on as if it were not is to send twice.\n\
                So the process stops, and the next one reads what is there and makes it durable first.",
        danger: "the step after a failed commit",
        holds: "nothing is sent on an intent that was not confirmed; at most one record",
    },
    keep_ended: None,
    upgrades: false,
    contracts: EVERY,
    workload: plan,
    faults,
    storms: 500,
    goals: &[Goal {
        name: "a sync failed and the request was still recorded",
        reached: |run| goals::completed(run) && goals::struck(run, "sync-error"),
    }],
};

fn plan(draw: &Draw<'_>) -> Workload {
    once(draw, Expect::AtMostOne)
}

fn faults(draw: &Draw<'_>) -> Vec<Fault> {
    let nth = draw.seed.stream("moment of danger").within(2..=6) as u32;
    vec![Fault { at: Place::Sync { boot: 1, nth, when: When::Before }, what: What::SyncError }]
}
