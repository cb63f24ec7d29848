//! The desk's store of keys is down.

use crate::access::{Access, Draw, once};
use crate::goals;
use crate::places::on_create;
use sim::fault::{Fault, What};
use sim::plan::{Expect, Workload};
use sim::scenario::{Goal, Story};

/// The desk's store of keys is down.
pub const SCENARIO: Access = Access {
    name: "key-store-down",
    story: Story {
        lines: "R17's request arrives with its key, and the desk cannot look the key up.\n\
                It answers with an error instead of guessing.\n\
                Sending the request without its key would get it through, and would be a gamble.\n\
                The workflow keeps the key and waits.\n\
                When the store of keys is up again, the same key makes T93, once.",
        danger: "the thought of leaving the key out",
        holds: "one record; every send carries the same key",
    },
    keep_ended: None,
    upgrades: false,
    contracts: &["zendesk_ticket"],
    workload: plan,
    faults,
    storms: 500,
    goals: &[Goal {
        name: "completed after the store of keys was down",
        reached: |run| goals::completed(run) && goals::struck(run, "keys-down"),
    }],
};

fn plan(draw: &Draw<'_>) -> Workload {
    once(draw, Expect::Recorded)
}

fn faults(draw: &Draw<'_>) -> Vec<Fault> {
    let down = draw.seed.stream("moment of danger").within(5_000..=500_000);
    vec![on_create(1, What::KeysDown(down))]
}
