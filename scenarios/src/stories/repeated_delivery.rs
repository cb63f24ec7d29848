//! The same request again, under the same delivery id and under others.

use crate::access::{Access, Draw, EVERY, ask, delivery, workload};
use crate::goals;
use sim::fault::Fault;
use sim::plan::{Expect, Workload};
use sim::scenario::{Goal, Story};

/// The same request again, under the same delivery id and under others.
pub const SCENARIO: Access = Access {
    name: "repeated-delivery",
    story: Story {
        lines: "The source did not hear our answer, or somebody pressed the button twice: R17 arrives again.\n\
                Some repeats carry the same delivery id, some a new one; some come while the first is under way.\n\
                All of them ask for the same thing, so all of them are the same operation.\n\
                Each is acknowledged, each is recorded, and none begins anything.\n\
                The desk is asked once.",
        danger: "a repeat that arrives while the first send is under way",
        holds: "one record; every repeat is answered by R17:create-ticket:v1",
    },
    keep_ended: None,
    upgrades: false,
    contracts: EVERY,
    workload: plan,
    faults,
    storms: 500,
    goals: &[
        Goal {
            name: "a repeat arrived after completion",
            reached: |run| goals::repeat_after_completion(run),
        },
        Goal {
            name: "a repeat arrived while the send was under way",
            reached: |run| goals::repeat_during_send(run),
        },
    ],
};

fn plan(draw: &Draw<'_>) -> Workload {
    let mut rng = draw.seed.stream("workload");
    let ask = ask(0, Expect::Recorded);
    let mut deliveries = vec![delivery(&ask, 1, 1)];
    for _ in 0..rng.within(1..=4) {
        // The number is the delivery id: a repeat of 1 is the same delivery, 2 and 3 are new ones.
        let at = if rng.chance(500) { rng.within(1..=100) } else { rng.within(1..=5_000) };
        deliveries.push(delivery(&ask, rng.within(1..=3) as u32, at));
    }
    workload(draw, vec![ask], deliveries)
}

fn faults(draw: &Draw<'_>) -> Vec<Fault> {
    let _ = draw;
    vec![]
}
