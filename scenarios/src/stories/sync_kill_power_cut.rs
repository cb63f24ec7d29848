//! Killed at the sync of a commit, opened again, then the power fails.

use crate::access::{Access, Draw, EVERY, once};
use crate::goals;
use crate::places::create;
use sim::fault::{Fault, Keep, Phase, Place, What, When};
use sim::plan::{Expect, Workload};
use sim::scenario::{Goal, Story};

/// Killed at the sync of a commit, opened again, then the power fails.
pub const SCENARIO: Access = Access {
    name: "sync-kill-power-cut",
    story: Story {
        lines: "A process is killed while its commit is being synced; the page cache keeps what the disk does not have.\n\
                The next process opens the store and sees the commit, which nothing has made durable.\n\
                It acts on what it saw.\n\
                Then the power fails, and what it saw is gone.\n\
                So a store is checkpointed after it was opened, before anything read from it is believed.",
        danger: "after opening, before the first sync of the new process",
        holds: "whatever was acknowledged or sent is known after the power cut",
    },
    keep_ended: None,
    upgrades: false,
    contracts: EVERY,
    workload: plan,
    faults,
    storms: 500,
    goals: &[Goal {
        name: "killed at a sync, and power lost after the next start",
        reached: |run| goals::struck(run, "kill") && goals::struck(run, "power-cut"),
    }],
};

fn plan(draw: &Draw<'_>) -> Workload {
    once(draw, Expect::AtMostOne)
}

fn faults(draw: &Draw<'_>) -> Vec<Fault> {
    let mut rng = draw.seed.stream("moment of danger");
    let kill = Fault {
        at: Place::Sync { boot: 1, nth: rng.within(2..=5) as u32, when: When::Before },
        what: What::Kill(50),
    };
    let down = rng.within(50..=2_000);
    let keep = *rng.pick(&[Keep::Nothing, Keep::Prefix, Keep::Mixed, Keep::Torn]);
    let cut = What::PowerCut { down, keep };
    let at = if rng.chance(500) {
        let when = *rng.pick(&[When::Before, When::After]);
        Place::Sync { boot: 2, nth: rng.within(1..=4) as u32, when }
    } else {
        let phase = *rng.pick(&[Phase::BeforeSend, Phase::Sent, Phase::Applied, Phase::Answered]);
        Place::Phase { exchange: create(rng.within(1..=2) as u32), phase }
    };
    vec![kill, Fault { at, what: cut }]
}
