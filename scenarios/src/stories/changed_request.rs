//! The same request again, with another meaning.

use crate::access::{Access, Draw, EVERY, ask, delivery, delivery_of, workload};
use crate::goals;
use sim::fault::Fault;
use sim::plan::{Expect, Workload};
use sim::scenario::{Goal, Story};

/// The same request again, with another meaning.
pub const SCENARIO: Access = Access {
    name: "changed-request",
    story: Story {
        lines: "R17 arrives and becomes T93.\n\
                R17 arrives again under the same id, but asks for something else.\n\
                It is not a repeat, and it is not a new request: somebody has changed their mind, or an id was used twice.\n\
                Nothing is created for the second meaning, before or after the first has completed.\n\
                A person is asked what was meant.",
        danger: "answering a changed request as if it were the first, or creating a second record for it",
        holds: "one record, with the first meaning; the change is in a person's queue",
    },
    keep_ended: None,
    upgrades: false,
    contracts: EVERY,
    workload: plan,
    faults,
    storms: 500,
    goals: &[Goal { name: "the change was refused and recorded", reached: |run| goals::heard(run, 409) }],
};

fn plan(draw: &Draw<'_>) -> Workload {
    let mut rng = draw.seed.stream("workload");
    let ask = ask(0, Expect::Recorded);
    let changed =
        serde_json::json!({"id": ask.request, "title": "R17: access to the vault", "requester": "c17"});
    let at = rng.within(10..=3_000);
    let deliveries = vec![delivery(&ask, 1, 1), delivery_of(&ask, 2, at, &changed)];
    workload(draw, vec![ask], deliveries)
}

fn faults(draw: &Draw<'_>) -> Vec<Fault> {
    let _ = draw;
    vec![]
}
