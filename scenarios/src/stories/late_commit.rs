//! The desk is slower than our patience: the record appears after we gave up.

use crate::access::{Access, Draw, EVERY, assumptions, once};
use crate::goals;
use crate::places::on_create;
use sim::fault::{Fault, What};
use sim::plan::{Expect, Workload};
use sim::scenario::{Goal, Story};
use sim::terms::Terms;

/// The desk is slower than our patience: the record appears after we gave up.
pub const SCENARIO: Access = Access {
    name: "late-commit",
    story: Story {
        lines: "The workflow sends, waits its full time, and hears nothing.\n\
                It looks the record up: there is none. Yet.\n\
                Seconds later the desk commits the first request after all.\n\
                Whoever took the empty look-up for an answer has made a second ticket by then.\n\
                Only a bound on late commits, waited out, makes \"not found\" mean anything.",
        danger: "an empty look-up before the desk has committed",
        holds: "one record, although a look-up found nothing before it was there",
    },
    keep_ended: None,
    upgrades: false,
    contracts: EVERY,
    workload: plan,
    faults,
    storms: 500,
    goals: &[
        Goal {
            name: "a late commit after a look-up that found nothing",
            reached: |run| goals::late_after_miss(run),
        },
        Goal {
            name: "a late commit was recorded",
            reached: |run| goals::completed(run) && goals::struck(run, "apply-late"),
        },
    ],
};

fn plan(draw: &Draw<'_>) -> Workload {
    once(draw, if draw.contract.id == "desk_nothing" { Expect::OneOwned } else { Expect::Recorded })
}

fn faults(draw: &Draw<'_>) -> Vec<Fault> {
    let mut rng = draw.seed.stream("moment of danger");
    let terms = Terms { contract: draw.contract, assumptions: &assumptions() };
    let latest = terms.latest_commit_ms().expect("a late commit is attested where none is documented");
    vec![on_create(1, What::ApplyLate(rng.within(11_000..=latest)))]
}
