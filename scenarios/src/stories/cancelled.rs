//! The request is cancelled at the worst moments.

use crate::access::{Access, Draw, EVERY, once};
use crate::goals;
use crate::places::on_create;
use sim::fault::{Fault, Loss, What};
use sim::plan::{Expect, Workload};
use sim::scenario::{Goal, Story};

/// The request is cancelled at the worst moments.
pub const SCENARIO: Access = Access {
    name: "cancelled",
    story: Story {
        lines: "R17 arrives, and whoever had asked for it does not need it any more.\n\
                Before anything was sent it simply ends, and no ticket is made.\n\
                Once it may have reached the desk, a cancellation undoes nothing: R17 is sent no more, and stays in doubt.\n\
                Look-ups go on; what they find is recorded, and who has to undo it is told.\n\
                What nothing can tell goes to a person.",
        danger: "taking what was cancelled for something that never happened, or sending it once more",
        holds: "at most one record, and never one that the workflow denies",
    },
    keep_ended: None,
    upgrades: false,
    contracts: EVERY,
    workload: plan,
    faults,
    storms: 500,
    goals: &[
        Goal {
            name: "it was cancelled in time: nothing was ever sent",
            reached: |run| goals::rejected(run, "rejected/withdrawn") && goals::sends(run) == 0,
        },
        Goal {
            name: "it was proven to have done nothing, and ended",
            reached: |run| goals::rejected(run, "rejected/withdrawn") && goals::sends(run) > 0,
        },
        Goal { name: "it was too late: there is a record", reached: |run| goals::cancelled_too_late(run) },
        Goal { name: "a person has to find out", reached: |run| goals::reason(run, "cancelled") },
    ],
};

/// What becomes of the create.
fn danger(draw: &Draw<'_>) -> What {
    let mut rng = draw.seed.stream("moment of danger");
    let loss = *rng.pick(&[Loss::Silence, Loss::Reset]);
    match rng.within(0..=4) {
        0 => What::LoseRequest(loss),
        1 => What::LoseResponse(loss),
        2 => What::NotApplied(Some(503)),
        3 => What::AnswerSlowly(11_000),
        // Nothing was sent, and it waits for its next try.
        _ => What::Refuse,
    }
}

fn plan(draw: &Draw<'_>) -> Workload {
    let mut rng = draw.seed.stream("cancelling");
    // Before it has arrived, around the send, in the doubt that follows, and much later.
    let spans = [0..=25, 25..=130, 130..=30_000, 30_000..=1_200_000];
    let at = rng.pick(&spans).clone();
    Workload { cancelled_after_ms: Some(rng.within(at)), ..once(draw, Expect::AtMostOne) }
}

fn faults(draw: &Draw<'_>) -> Vec<Fault> {
    vec![on_create(1, danger(draw))]
}
