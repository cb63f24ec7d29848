//! A request that can never be served: rejected once, never repeated.

use crate::access::{Access, Draw, EVERY, ask, delivery_of, workload};
use crate::goals;
use sim::fault::Fault;
use sim::plan::{Expect, UNKNOWN_REQUESTER, Workload};
use sim::scenario::{Goal, Story};

/// A request that can never be served: rejected once, never repeated.
pub const SCENARIO: Access = Access {
    name: "permanent-validation-failure",
    story: Story {
        lines: "R17 arrives without a requester: it never meets the workflow's own rules.\n\
                R18 is complete, but the desk does not know its requester and refuses it with a documented 422.\n\
                Neither will ever succeed, however often it is tried.\n\
                Both are recorded as rejected, with the reason, and the source is told.\n\
                Nothing is sent for R17; R18 is sent once.",
        danger: "taking a final answer for one that is worth another try",
        holds: "no record; both rejected; no second send",
    },
    keep_ended: None,
    upgrades: false,
    contracts: EVERY,
    workload: plan,
    faults,
    storms: 500,
    goals: &[
        Goal {
            name: "refused by the workflow's own rules",
            reached: |run| goals::rejected(run, "rejected/validation"),
        },
        Goal { name: "refused by the desk", reached: |run| goals::rejected(run, "rejected/by_destination") },
    ],
};

fn plan(draw: &Draw<'_>) -> Workload {
    let mut rng = draw.seed.stream("workload");
    let (incomplete, unknown) = (ask(0, Expect::Rejected), ask(1, Expect::Refused));
    let without = serde_json::json!({"id": incomplete.request, "title": "R17: access to the archive"});
    let nobody = serde_json::json!({
        "id": unknown.request, "title": "R18: access to the archive", "requester": UNKNOWN_REQUESTER,
    });
    let deliveries = vec![
        delivery_of(&incomplete, 1, rng.within(1..=500), &without),
        delivery_of(&unknown, 1, rng.within(1..=500), &nobody),
    ];
    let mut workload = workload(draw, vec![incomplete, unknown], deliveries);
    workload.person_after_ms = None;
    workload
}

fn faults(draw: &Draw<'_>) -> Vec<Fault> {
    let _ = draw;
    vec![]
}
