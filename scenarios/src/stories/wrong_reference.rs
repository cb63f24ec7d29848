//! The person who decides points to a wrong record first.

use crate::access::{Access, Draw, once, operation};
use crate::goals;
use crate::places::on_create;
use sim::fault::{Fault, Loss, Place, What};
use sim::plan::{Expect, Workload};
use sim::scenario::{Goal, Story};

/// The person who decides points to a wrong record first.
pub const SCENARIO: Access = Access {
    name: "wrong-reference",
    story: Story {
        lines: "The desk offers nothing, and the response is lost: the owner searches by hand.\n\
                They paste the number of another ticket.\n\
                The engine fetches it, sees that it is not R17's, and refuses.\n\
                They look again and find T93.\n\
                A person's word is a pointer to evidence, not evidence.",
        danger: "a person's slip",
        holds: "R17 is completed with its own record, or not at all",
    },
    keep_ended: None,
    upgrades: false,
    contracts: &["desk_nothing"],
    workload: plan,
    faults,
    storms: 500,
    goals: &[Goal {
        name: "a wrong record was refused, and the right one confirmed",
        reached: |run| goals::confirmed_by_person(run) && goals::struck(run, "wrong-reference"),
    }],
};

fn plan(draw: &Draw<'_>) -> Workload {
    once(draw, Expect::Recorded)
}

fn faults(draw: &Draw<'_>) -> Vec<Fault> {
    let loss = *draw.seed.stream("moment of danger").pick(&[Loss::Silence, Loss::Reset]);
    let slip = Fault { at: Place::Case(operation("R17")), what: What::WrongReference };
    vec![on_create(1, What::LoseResponse(loss)), slip]
}
