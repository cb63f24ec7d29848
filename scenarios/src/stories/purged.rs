//! The request comes again when its records were removed long ago.

use crate::access::{Access, Draw, EVERY, ask, delivery, workload};
use crate::goals;
use sim::fault::Fault;
use sim::plan::{Expect, Workload};
use sim::scenario::{Goal, Story};
use std::time::Duration;

/// How long this workflow keeps what has ended.
const KEPT: Duration = Duration::from_secs(3_600);

/// The request comes again when its records were removed long ago.
pub const SCENARIO: Access = Access {
    name: "purged",
    story: Story {
        lines: "R17 becomes T93, and an hour later the workflow removes what it had recorded of it.\n\
                Much later the source delivers R17 once more: from a backup, a dead-letter queue, or by hand.\n\
                A tombstone is left: the workflow knows R17 and answers that it is the same.\n\
                Nothing is sent, whatever was removed.",
        danger: "forgetting what was done, and doing it once more for a repeat that comes late",
        holds: "one record, however late the repeat",
    },
    keep_ended: Some(KEPT),
    upgrades: false,
    contracts: EVERY,
    workload: plan,
    faults,
    storms: 500,
    goals: &[Goal {
        name: "a repeat came when only the tombstone was left",
        reached: |run| goals::purged(run) && goals::repeat_after_completion(run),
    }],
};

fn plan(draw: &Draw<'_>) -> Workload {
    let mut rng = draw.seed.stream("workload");
    let ask = ask(0, Expect::Recorded);
    let late = rng.within(2 * 3_600_000..=9 * 3_600_000);
    // The same delivery, or the same request in another one.
    let again = delivery(&ask, rng.within(1..=2) as u32, late);
    let deliveries = vec![delivery(&ask, 1, 1), again];
    workload(draw, vec![ask], deliveries)
}

fn faults(draw: &Draw<'_>) -> Vec<Fault> {
    let _ = draw;
    vec![]
}
