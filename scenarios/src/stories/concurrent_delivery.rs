//! Fifty deliveries of one request at one instant.

use crate::access::{Access, Draw, EVERY, ask, delivery, workload};
use crate::goals;
use sim::fault::Fault;
use sim::plan::{Expect, Workload};
use sim::scenario::{Goal, Story};

/// Fifty deliveries of one request at one instant.
pub const SCENARIO: Access = Access {
    name: "concurrent-delivery",
    story: Story {
        lines: "A retry storm at the source: R17 arrives fifty times at one instant.\n\
                Fifty handlers look whether an operation exists, and none sees one yet.\n\
                Only the store's unique key decides which of them begins it.\n\
                The other forty-nine are acknowledged as repeats.\n\
                The desk must be asked once.",
        danger: "between looking for the operation and making it",
        holds: "one record, one send, fifty recorded deliveries",
    },
    keep_ended: None,
    upgrades: false,
    contracts: EVERY,
    workload: plan,
    faults,
    storms: 500,
    goals: &[Goal {
        name: "fifty deliveries were acknowledged",
        reached: |run| goals::acknowledged(run) >= 50,
    }],
};

fn plan(draw: &Draw<'_>) -> Workload {
    let mut rng = draw.seed.stream("workload");
    let ask = ask(0, Expect::Recorded);
    let at = rng.within(1..=100);
    let deliveries = (1..=50).map(|nth| delivery(&ask, nth, at)).collect();
    workload(draw, vec![ask], deliveries)
}

fn faults(draw: &Draw<'_>) -> Vec<Fault> {
    let _ = draw;
    vec![]
}
