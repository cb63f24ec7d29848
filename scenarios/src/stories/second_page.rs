//! The record that is looked for stands on the second page.

use crate::access::{Access, Draw, once};
use crate::goals;
use crate::places::{on_create, on_find};
use sim::fault::{Fault, Loss, What};
use sim::plan::{Expect, Workload};
use sim::scenario::{Goal, Story};

/// The record that is looked for stands on the second page.
pub const SCENARIO: Access = Access {
    name: "second-page",
    story: Story {
        lines: "The response to R17's request is lost; T93 exists.\n\
                The look-up shows a page of other tickets, and says that there is a second page.\n\
                Who reads one page finds nothing, as often as they look.\n\
                After the horizon \"nothing\" would permit another send.\n\
                So a look-up is all of its pages, or it says nothing.",
        danger: "the end of the first page",
        holds: "one record, found on the second page",
    },
    keep_ended: None,
    upgrades: false,
    contracts: &["desk_strong_lookup", "desk_unique_ref", "jira_cloud_issue"],
    workload: plan,
    faults,
    storms: 500,
    goals: &[Goal {
        name: "the record was found by a look-up",
        reached: |run| goals::completed(run) && goals::found_by_look_up(run),
    }],
};

fn plan(draw: &Draw<'_>) -> Workload {
    once(draw, Expect::Recorded)
}

fn faults(draw: &Draw<'_>) -> Vec<Fault> {
    let _ = draw;
    let lost = on_create(1, What::LoseResponse(Loss::Silence));
    [lost].into_iter().chain((1..=8).map(|nth| on_find(nth, What::SecondPage))).collect()
}
