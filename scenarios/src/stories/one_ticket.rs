//! An approved request becomes one ticket, whatever goes wrong.

use crate::access::{Access, Draw, EVERY, ask, delivery, workload};
use crate::goals;
use sim::fault::Fault;
use sim::plan::{Expect, Workload};
use sim::scenario::{Goal, Story};

/// An approved request becomes one ticket, whatever goes wrong.
pub const SCENARIO: Access = Access {
    name: "one-ticket",
    story: Story {
        lines: "An approved service request R17 must become exactly one help-desk ticket.\n\
                The desk makes T93, and somewhere between the desk and the workflow's disk the news of it is lost.\n\
                The workflow knows that it sent and that nothing came back; it does not know whether the desk wrote.\n\
                It must not say \"failed\", and it must not send as if nothing had happened.\n\
                It reconciles the same operation, R17:create-ticket:v1, records T93 and completes.",
        danger: "between the desk's commit and the workflow's own",
        holds: "one request never makes two records; each ends recorded, rejected, or in a person's queue",
    },
    keep_ended: None,
    upgrades: false,
    contracts: EVERY,
    workload: plan,
    faults,
    storms: 1_000,
    goals: &[
        Goal {
            name: "recovered after a crash between intent and evidence",
            reached: |run| goals::in_doubt_after_crash(run),
        },
        Goal {
            name: "recovered by sending the same key or reference again",
            reached: |run| goals::resent(run),
        },
        Goal { name: "recovered by a look-up", reached: |run| goals::found_by_look_up(run) },
        Goal { name: "handed over to a person", reached: |run| goals::owned(run) },
        Goal {
            name: "a late commit after a look-up that found nothing",
            reached: |run| goals::late_after_miss(run),
        },
    ],
};

fn plan(draw: &Draw<'_>) -> Workload {
    let mut rng = draw.seed.stream("workload");
    let requests = rng.within(1..=3) as u32;
    let asks: Vec<_> = (0..requests).map(|n| ask(n, Expect::AtMostOne)).collect();
    let mut deliveries = vec![];
    for ask in &asks {
        for nth in 1..=rng.within(1..=2) as u32 {
            deliveries.push(delivery(ask, nth, rng.within(1..=2_000)));
        }
    }
    workload(draw, asks, deliveries)
}

/// It has no moment of its own: every seed is a storm.
fn faults(_: &Draw<'_>) -> Vec<Fault> {
    vec![]
}
