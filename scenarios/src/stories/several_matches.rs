//! The look-up shows a record that belongs to another operation.

use crate::access::{Access, Draw, once};
use crate::goals;
use crate::places::{on_create, on_find};
use sim::fault::{Fault, Loss, What};
use sim::plan::{Expect, Workload};
use sim::scenario::{Goal, Story};

/// The look-up shows a record that belongs to another operation.
pub const SCENARIO: Access = Access {
    name: "several-matches",
    story: Story {
        lines: "The response to R17's request is lost; T93 exists, and the look-up finds it.\n\
                It also shows a ticket that is somebody else's.\n\
                Taking the first match would complete R17 with a ticket that is not its own.\n\
                A match is ours only by its reference or its marker, and there must be one.\n\
                Where records contradict each other, the owner is asked.",
        danger: "a match that is not ours",
        holds: "R17 is never completed with another operation's record",
    },
    keep_ended: None,
    upgrades: false,
    contracts: &["desk_strong_lookup", "zendesk_ticket", "jira_cloud_issue"],
    workload: plan,
    faults,
    storms: 500,
    goals: &[Goal {
        name: "another operation's record was among the matches",
        reached: |run| goals::struck(run, "foreign"),
    }],
};

fn plan(draw: &Draw<'_>) -> Workload {
    once(draw, Expect::OneOwned)
}

fn faults(draw: &Draw<'_>) -> Vec<Fault> {
    let _ = draw;
    let lost = on_create(1, What::LoseResponse(Loss::Silence));
    [lost].into_iter().chain((1..=4).map(|nth| on_find(nth, What::Foreign))).collect()
}
