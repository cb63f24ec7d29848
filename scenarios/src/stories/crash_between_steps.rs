//! The process dies between two steps: intent and send, effect and record, record and answer.

use crate::access::{Access, Draw, EVERY, once};
use crate::goals;
use crate::places::create;
use sim::fault::{Fault, Keep, Phase, Place, What, When};
use sim::plan::{Expect, Workload};
use sim::scenario::{Goal, Story};

/// The process dies between two steps: intent and send, effect and record, record and answer.
pub const SCENARIO: Access = Access {
    name: "crash-between-steps",
    story: Story {
        lines: "Between the durable intent and the first byte, the process dies: was anything sent?\n\
                Or after the desk made T93 and before the workflow wrote it down: does anybody know?\n\
                Or after it was written down and before anybody was told.\n\
                In each case the next process finds an intent without an outcome, or an outcome without an answer.\n\
                An intent without an outcome is in doubt, never ready to be sent.",
        danger: "an intent is durable, its outcome is not",
        holds: "one record where the contract offers any way, else an owned question; never two",
    },
    keep_ended: None,
    upgrades: false,
    contracts: EVERY,
    workload: plan,
    faults,
    storms: 500,
    goals: &[
        Goal { name: "died between intent and send", reached: |run| goals::died_at(run, Phase::BeforeSend) },
        Goal {
            name: "died between effect and record",
            reached: |run| goals::died_at(run, Phase::Applied) || goals::died_at(run, Phase::Answered),
        },
        Goal { name: "died between record and answer", reached: |run| goals::died_at_sync(run) },
        Goal {
            name: "recovered to the recorded ticket",
            reached: |run| goals::completed(run) && goals::in_doubt_after_crash(run),
        },
    ],
};

/// Between which two steps the process dies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    BeforeSend,
    Applied,
    Recorded,
}

fn moment(draw: &Draw<'_>) -> Moment {
    *draw.seed.stream("moment").pick(&[Moment::BeforeSend, Moment::Applied, Moment::Recorded])
}

fn plan(draw: &Draw<'_>) -> Workload {
    let expect = match (moment(draw), draw.contract.id.as_str()) {
        (Moment::BeforeSend, "jira_cloud_issue" | "desk_nothing") => Expect::NoneOwned,
        (Moment::BeforeSend | Moment::Recorded, _) => Expect::Recorded,
        (Moment::Applied, "desk_nothing") => Expect::OneOwned,
        (Moment::Applied, _) => Expect::Recorded,
    };
    once(draw, expect)
}

fn faults(draw: &Draw<'_>) -> Vec<Fault> {
    let mut rng = draw.seed.stream("moment of danger");
    let down = rng.within(20..=20_000);
    let what = if rng.chance(500) {
        What::Kill(down)
    } else {
        What::PowerCut { down, keep: *rng.pick(&[Keep::Nothing, Keep::Prefix, Keep::Mixed, Keep::Torn]) }
    };
    let at = match moment(draw) {
        Moment::BeforeSend => Place::Phase { exchange: create(1), phase: Phase::BeforeSend },
        Moment::Applied => {
            let phase = *rng.pick(&[Phase::Applied, Phase::Answered]);
            Place::Phase { exchange: create(1), phase }
        }
        // The log's header, the opening, the delivery, the intent: the fifth sync of a process is the one of
        // the evidence.
        Moment::Recorded => Place::Sync { boot: 1, nth: 5, when: When::After },
    };
    vec![Fault { at, what }]
}
