//! The source hangs up while its delivery is being recorded.

use crate::access::{Access, Draw, EVERY, once};
use crate::goals;
use sim::fault::{Fault, Place, What, When};
use sim::plan::{Expect, Workload};
use sim::scenario::{Goal, Story};

/// The source hangs up while its delivery is being recorded.
pub const SCENARIO: Access = Access {
    name: "source-gives-up",
    story: Story {
        lines: "R17 arrives, and the workflow stands still while it writes the delivery down.\n\
                The source waits five seconds and hangs up.\n\
                The delivery is durable by then, and its operation too; nobody was told.\n\
                The source delivers again and hears that the operation is there already.\n\
                Somebody must have begun it all the same.",
        danger: "between the delivery's commit and the engine taking it up, when nobody waits for the answer any more",
        holds: "one record; an operation that is durable is never forgotten",
    },
    keep_ended: None,
    upgrades: false,
    contracts: EVERY,
    workload: plan,
    faults,
    storms: 500,
    goals: &[Goal {
        name: "the first delivery was not answered and the second found its operation",
        reached: |run| goals::completed(run) && goals::unanswered_then_same(run),
    }],
};

fn plan(draw: &Draw<'_>) -> Workload {
    once(draw, Expect::Recorded)
}

fn faults(draw: &Draw<'_>) -> Vec<Fault> {
    let mut rng = draw.seed.stream("moment of danger");
    let at = Place::Sync { boot: 1, nth: 3, when: *rng.pick(&[When::Before, When::After]) };
    vec![Fault { at, what: What::Pause(rng.within(5_500..=6_000)) }]
}
