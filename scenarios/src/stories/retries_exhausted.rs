//! The desk cannot be reached until the budget is spent.

use crate::access::{Access, Draw, EVERY, once};
use crate::goals;
use crate::places::on_create;
use sim::fault::{Fault, What};
use sim::plan::{Expect, Workload};
use sim::scenario::{Goal, Story};

/// The desk cannot be reached until the budget is spent.
pub const SCENARIO: Access = Access {
    name: "retries-exhausted",
    story: Story {
        lines: "Every connection to the desk is refused; each time it is proven that nothing was sent.\n\
                The workflow tries again, a little later each time, as often as its budget allows.\n\
                A crash in between costs an attempt and never resets the count.\n\
                When the budget is spent it does not loop and does not forget: it opens a case.\n\
                The case has an owner, a deadline and an alert.",
        danger: "the end of the budget",
        holds: "no record; an owned case with its alert; no send beyond the budget",
    },
    keep_ended: None,
    upgrades: false,
    contracts: EVERY,
    workload: plan,
    faults,
    storms: 500,
    goals: &[Goal {
        name: "the budget was spent and a person owns the case",
        reached: |run| goals::reason(run, "retries_exhausted"),
    }],
};

fn plan(draw: &Draw<'_>) -> Workload {
    once(draw, Expect::NoneOwned)
}

fn faults(draw: &Draw<'_>) -> Vec<Fault> {
    let _ = draw;
    // A refused connection takes its place in the count of creates, so every one of the budget is refused.
    (1..=5).map(|nth| on_create(nth, What::Refuse)).collect()
}
