//! The desk names no record, and its search shows none: a person finds it.

use crate::access::{Access, Draw, once};
use crate::goals;
use crate::places::{on_create, on_find};
use sim::fault::{Fault, Omission, What};
use sim::plan::{Expect, Workload};
use sim::scenario::{Goal, Story};

/// How long the desk's search shows nothing: longer than the workflow looks, in milliseconds.
const UNSEEN_MS: u64 = 7_200_000;

/// The desk names no record, and its search shows none: a person finds it.
pub const SCENARIO: Access = Access {
    name: "found-by-hand",
    story: Story {
        lines: "The desk makes T93 and answers 201, with a body that names no ticket.\n\
                Its search is out of order: it shows nothing, not even what is known to be there.\n\
                The workflow looks as often as its budget allows, sends nothing again, and opens a case.\n\
                The owner walks through the desk's own pages and points to T93.\n\
                The engine fetches it, sees that it is R17's, and records it.",
        danger: "the end of the look-ups, with a record that nobody has seen",
        holds: "one record, made by one send, confirmed by a person",
    },
    keep_ended: None,
    upgrades: false,
    contracts: &["zendesk_ticket", "desk_unique_ref"],
    workload: plan,
    faults,
    storms: 500,
    goals: &[Goal {
        name: "a person pointed to the record, and it was fetched",
        reached: |run| goals::confirmed_by_person(run) && goals::sends(run) == 1,
    }],
};

fn plan(draw: &Draw<'_>) -> Workload {
    once(draw, Expect::Recorded)
}

fn faults(draw: &Draw<'_>) -> Vec<Fault> {
    let _ = draw;
    vec![on_create(1, What::OmitId(Omission::NoId)), on_find(1, What::Blind(UNSEEN_MS))]
}
