//! A new version of the code is started in the middle of a request, and taken back.

use crate::access::{Access, Draw, EVERY, ask, delivery, workload};
use crate::goals;
use crate::places::create;
use sim::fault::{Fault, Phase, Place, What};
use sim::plan::{Expect, Workload};
use sim::scenario::{Goal, Story};

/// A new version of the code is started in the middle of a request, and taken back.
pub const SCENARIO: Access = Access {
    name: "upgraded",
    story: Story {
        lines: "R17 is on its way to the desk when the workflow is stopped for an upgrade.\n\
                The next process calls the same step by another version, so its key for R17 is another one.\n\
                The journal that it finds was written by the older code, and R17 is delivered once more.\n\
                The older operation has R17 in hand, or has done it: the newer version begins nothing.\n\
                The same holds when the upgrade is taken back.",
        danger: "a deployment that does everything once more, because the keys have changed",
        holds: "one record, whichever version is running",
    },
    keep_ended: None,
    upgrades: true,
    contracts: EVERY,
    workload: plan,
    faults,
    storms: 500,
    goals: &[Goal {
        name: "the newer version met what the older one had begun",
        reached: |run| goals::sends(run) > 0 && goals::heard_same(run),
    }],
};

fn plan(draw: &Draw<'_>) -> Workload {
    let mut rng = draw.seed.stream("workload");
    let ask = ask(0, Expect::AtMostOne);
    let again = delivery(&ask, rng.within(1..=2) as u32, rng.within(2_000..=600_000));
    let deliveries = vec![delivery(&ask, 1, 1), again];
    workload(draw, vec![ask], deliveries)
}

fn faults(draw: &Draw<'_>) -> Vec<Fault> {
    let mut rng = draw.seed.stream("moment of danger");
    let phase = *rng.pick(&[Phase::BeforeSend, Phase::Sent, Phase::Arrived, Phase::Applied, Phase::Answered]);
    vec![Fault { at: Place::Phase { exchange: create(1), phase }, what: What::Kill(rng.within(100..=1_500)) }]
}
