//! The look-up sees nothing at all, and says "not found".

use crate::access::{Access, Draw, once};
use crate::goals;
use crate::places::{on_create, on_find};
use sim::fault::{Fault, Loss, What};
use sim::plan::{Expect, Workload};
use sim::scenario::{Goal, Story};

/// The look-up sees nothing at all, and says "not found".
pub const SCENARIO: Access = Access {
    name: "blind-look-up",
    story: Story {
        lines: "The response to R17's request is lost; T93 exists.\n\
                The account has lost its permission to search: every look-up is empty, and none is an error.\n\
                The horizon passes, and \"not found\" would permit another send.\n\
                But the control record, which is known to exist, is not found either.\n\
                So the look-up proves nothing, and the owner is asked.",
        danger: "an empty answer that looks like a proof",
        holds: "one record; no send is licensed by a look-up that does not find its control",
    },
    keep_ended: None,
    upgrades: false,
    contracts: &["desk_strong_lookup", "jira_cloud_issue"],
    workload: plan,
    faults,
    storms: 500,
    goals: &[Goal {
        name: "a look-up found nothing while the record was there",
        reached: |run| goals::struck(run, "blind"),
    }],
};

fn plan(draw: &Draw<'_>) -> Workload {
    once(draw, Expect::OneOwned)
}

fn faults(draw: &Draw<'_>) -> Vec<Fault> {
    let blind = draw.seed.stream("moment of danger").within(7_200_000..=14_400_000);
    vec![on_create(1, What::LoseResponse(Loss::Silence)), on_find(1, What::Blind(blind))]
}
