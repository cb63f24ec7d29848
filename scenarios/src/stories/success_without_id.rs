//! The desk reports success and does not say which record.

use crate::access::{Access, Draw, EVERY, once};
use crate::goals;
use crate::places::on_create;
use sim::fault::{Fault, Omission, What};
use sim::plan::{Expect, Workload};
use sim::scenario::{Goal, Story};

/// The desk reports success and does not say which record.
pub const SCENARIO: Access = Access {
    name: "success-without-id",
    story: Story {
        lines: "The desk makes T93 and answers 201, with a body that names no ticket.\n\
                It is a success that cannot be written down.\n\
                Sending again, to get a better answer, would make a second ticket.\n\
                So nothing is sent again, whatever the contract would permit after silence.\n\
                A look-up finds T93 by its reference; where there is none, a person does.",
        danger: "a success that looks like a reason to try again",
        holds: "one record, made by one send",
    },
    keep_ended: None,
    upgrades: false,
    contracts: EVERY,
    workload: plan,
    faults,
    storms: 500,
    goals: &[
        Goal {
            name: "the record was found without a second send",
            reached: |run| goals::completed(run) && goals::sends(run) == 1 && goals::struck(run, "omit-id"),
        },
        Goal { name: "a person was asked for the record", reached: |run| goals::reason(run, "ref_missing") },
    ],
};

fn plan(draw: &Draw<'_>) -> Workload {
    once(draw, if draw.contract.id == "desk_nothing" { Expect::OneOwned } else { Expect::Recorded })
}

fn faults(draw: &Draw<'_>) -> Vec<Fault> {
    let _ = draw;
    vec![on_create(1, What::OmitId(Omission::NoId))]
}
