//! What `bench` measures: the one-request story with any number of requests, whole and without its parts.

use crate::access::{Access, Draw, EVERY, ask, delivery, workload};
use sim::fault::{Call, ExchangeName, Fault, Keep, Loss, Phase, Place, What};
use sim::plan::{Expect, Workload};
use sim::scenario::{Scenario, Story};

const STORY: Story = Story {
    lines: "Requests arrive one after the other, and each becomes a ticket.\n\
            One response is lost.\n\
            One crash strikes.\n\
            Everything is switched on: HTTP, the store, the invariants, the hash.\n\
            It is measured, not judged.",
    danger: "none of its own",
    holds: "the same as everywhere",
};

/// The whole of it, with so many requests a run.
pub fn full(requests: u32) -> Box<dyn Scenario> {
    let plan = match requests {
        1 => |draw: &Draw<'_>| plan(draw, 1),
        10 => |draw: &Draw<'_>| plan(draw, 10),
        100 => |draw: &Draw<'_>| plan(draw, 100),
        _ => |draw: &Draw<'_>| plan(draw, 1_000),
    };
    Box::new(Access {
        name: "bench",
        story: STORY,
        keep_ended: None,
        upgrades: false,
        contracts: &EVERY[0..1],
        workload: plan,
        faults,
        storms: 0,
        goals: &[],
    })
}

fn plan(draw: &Draw<'_>, requests: u32) -> Workload {
    let mut rng = draw.seed.stream("arrivals");
    let asks: Vec<_> = (0..requests).map(|n| ask(n, Expect::AtMostOne)).collect();
    let deliveries =
        asks.iter().zip(0_u64..).map(|(ask, n)| delivery(ask, 1, n * 20 + rng.within(1..=20))).collect();
    workload(draw, asks, deliveries)
}

/// One lost response and one crash, each at a request of the seed's choice.
fn faults(draw: &Draw<'_>) -> Vec<Fault> {
    let mut rng = draw.seed.stream("faults");
    let create = |nth| ExchangeName { call: Call::Create, about: crate::access::operation("R17"), nth };
    let lost = Fault { at: Place::Exchange(create(1)), what: What::LoseResponse(Loss::Reset) };
    let phase = *rng.pick(&[Phase::BeforeSend, Phase::Sent, Phase::Applied, Phase::Answered]);
    let down = rng.within(10..=200);
    let what = if rng.chance(500) { What::Kill(down) } else { What::PowerCut { down, keep: Keep::Mixed } };
    let crash = Fault { at: Place::Phase { exchange: create(rng.within(1..=2) as u32), phase }, what };
    vec![lost, crash]
}
