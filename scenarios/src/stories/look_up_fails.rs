//! Every look-up fails, and the record is there.

use crate::access::{Access, Draw, once};
use crate::goals;
use crate::places::{on_create, on_find};
use sim::fault::{Fault, Loss, What};
use sim::plan::{Expect, Workload};
use sim::scenario::{Goal, Story};

/// Every look-up fails, and the record is there.
pub const SCENARIO: Access = Access {
    name: "look-up-fails",
    story: Story {
        lines: "The response to R17's request is lost; T93 exists.\n\
                The desk's search is down: each look-up is answered with an error.\n\
                An error is not \"not found\": it says nothing about T93.\n\
                The workflow asks again, a little later each time, as often as its budget allows.\n\
                Then the owner is asked, and finds T93 by hand.",
        danger: "an error that is read as an empty answer",
        holds: "one record; a person confirms it",
    },
    keep_ended: None,
    upgrades: false,
    contracts: &["desk_strong_lookup", "jira_cloud_issue"],
    workload: plan,
    faults,
    storms: 500,
    goals: &[Goal {
        name: "a person owned the case",
        reached: |run| goals::struck(run, "not-applied") && goals::confirmed_by_person(run),
    }],
};

fn plan(draw: &Draw<'_>) -> Workload {
    once(draw, Expect::OneOwned)
}

fn faults(draw: &Draw<'_>) -> Vec<Fault> {
    let mut rng = draw.seed.stream("moment of danger");
    let status = *rng.pick(&[500, 502, 503]);
    let lost = on_create(1, What::LoseResponse(Loss::Silence));
    let fails = (1..=12).map(|nth| on_find(nth, What::NotApplied(Some(status))));
    [lost].into_iter().chain(fails).collect()
}
