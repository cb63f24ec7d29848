//! The desk forgets the key while the outcome is unknown.

use crate::access::{Access, Draw, once};
use crate::goals;
use crate::places::create;
use sim::fault::{Fault, Phase, Place, What};
use sim::plan::{Expect, Workload};
use sim::scenario::{Goal, Story};

/// The desk forgets the key while the outcome is unknown.
pub const SCENARIO: Access = Access {
    name: "key-lapsed",
    story: Story {
        lines: "The request for R17 is sent, and the workflow's machine is down before it hears anything.\n\
                It comes back after three hours. The desk remembers keys for two.\n\
                The same key now makes a second ticket as readily as a new one would.\n\
                So nothing is sent any more, with any key: a look-up may still confirm T93.\n\
                Where it does not, the owner decides, and is told that the key has lapsed.",
        danger: "the first send after the key was forgotten",
        holds: "never two records; no send after the key may have lapsed",
    },
    keep_ended: None,
    upgrades: false,
    contracts: &["zendesk_ticket"],
    workload: plan,
    faults,
    storms: 500,
    goals: &[
        Goal {
            name: "the key lapsed while the outcome was unknown",
            reached: |run| goals::reason(run, "key_lapses"),
        },
        Goal {
            name: "a look-up confirmed the record after the key had lapsed",
            reached: |run| goals::completed(run) && goals::found_by_look_up(run),
        },
    ],
};

/// Whether the desk wrote before the workflow's machine went down.
fn applied(draw: &Draw<'_>) -> bool {
    draw.seed.stream("applied").chance(500)
}

fn plan(draw: &Draw<'_>) -> Workload {
    once(draw, if applied(draw) { Expect::Recorded } else { Expect::NoneOwned })
}

fn faults(draw: &Draw<'_>) -> Vec<Fault> {
    let mut rng = draw.seed.stream("moment of danger");
    // A request whose sender dies with its first byte on the wire never arrives whole.
    let phase = if applied(draw) { Phase::Applied } else { Phase::Sent };
    let down = rng.within(7_500_000..=14_400_000);
    vec![Fault { at: Place::Phase { exchange: create(1), phase }, what: What::Kill(down) }]
}
