//! Nothing reached the desk, and nothing shows it: people look, declare it, and permit another send.

use crate::access::{Access, Draw, once, operation};
use crate::goals;
use crate::places::on_create;
use sim::fault::{Call, ExchangeName, Fault, Loss, Phase, Place, What, When};
use sim::plan::{Expect, Workload};
use sim::scenario::{Goal, Story};

/// The sync that makes the permission durable at a desk without look-ups, where nothing else goes wrong.
const SYNC_OF_THE_PERMISSION: u32 = 8;

/// After the end of any run.
const MUCH_LATER_MS: u64 = 30 * 86_400_000;

/// Nothing reached the desk, and nothing shows it: people look, declare it, and permit another send.
pub const SCENARIO: Access = Access {
    name: "made-anew",
    story: Story {
        lines: "R17's request is lost, or comes so late that its owner looks before the desk has written it.\n\
                No program may send it again here: the owner gets the case and searches the desk by hand.\n\
                Who looks while a ticket can still come is told when it is too late for one, and looks again.\n\
                Who finds nothing after that declares it absent; somebody else permits another ticket, once.\n\
                The engine sends R17 under its next key, and whatever happens to that send is a doubt of its own.",
        danger: "the word of a person who looked too early, or a permission that is used twice",
        holds: "one record, recorded",
    },
    keep_ended: None,
    upgrades: false,
    contracts: &["desk_nothing", "jira_cloud_issue"],
    workload: plan,
    faults,
    storms: 500,
    goals: &[
        Goal {
            name: "another ticket was permitted, made and recorded",
            reached: |run| goals::made_anew(run) && goals::completed(run),
        },
        Goal {
            name: "who looked too early found the ticket later",
            reached: |run| goals::declared_too_early(run) && goals::confirmed_by_person(run),
        },
        Goal {
            name: "the send that a person permitted was in doubt itself",
            reached: |run| goals::made_anew(run) && goals::owned(run),
        },
    ],
};

/// What goes wrong when the permission is durable.
#[derive(PartialEq, Eq)]
enum Then {
    /// Nothing.
    Nothing,
    /// Its process dies, with or without having sent.
    Death,
    /// Its process stands still until the person has hung up.
    Pause,
    /// The desk refuses the connection: the permission is used up, and nothing was sent.
    Refusal,
}

/// What becomes of the first send, and what happens at the permission.
fn danger(draw: &Draw<'_>) -> (What, Then) {
    let mut rng = draw.seed.stream("moment of danger");
    let late = rng.within(60_000..=89_000);
    let lost = *rng.pick(&[Loss::Silence, Loss::Reset]);
    let what = if rng.chance(500) { What::ApplyLate(late) } else { What::LoseRequest(lost) };
    let then = match rng.within(0..=3) {
        0 => Then::Death,
        1 if draw.contract.id == "desk_nothing" => Then::Pause,
        2 => Then::Refusal,
        _ => Then::Nothing,
    };
    (what, then)
}

fn plan(draw: &Draw<'_>) -> Workload {
    let expect = match danger(draw).1 {
        Then::Nothing | Then::Pause => Expect::Recorded,
        // Whether a process that died had sent is a doubt of its own, and a permission is for one send: a
        // person may have to go on.
        Then::Death | Then::Refusal => Expect::AtMostOne,
    };
    let mut workload = once(draw, expect);
    workload.made_anew = true;
    // When all is quiet: what the older key made is its own, too.
    workload.reconciled_after_ms = Some(MUCH_LATER_MS);
    let mut rng = draw.seed.stream("people");
    // Some come at once, some after lunch.
    let after_ms = if rng.chance(500) { 1_000..=60_000 } else { 60_000..=7_200_000 };
    workload.person_after_ms = Some(rng.within(after_ms));
    workload
}

fn faults(draw: &Draw<'_>) -> Vec<Fault> {
    let (what, then) = danger(draw);
    let then = match then {
        Then::Nothing => None,
        Then::Refusal => Some(on_create(2, What::Refuse)),
        Then::Death => Some(Fault { at: decision_answered(2), what: What::Kill(100) }),
        Then::Pause => {
            let at = Place::Sync { boot: 1, nth: SYNC_OF_THE_PERMISSION, when: When::Before };
            Some(Fault { at, what: What::Pause(9_000) })
        }
    };
    [on_create(1, what)].into_iter().chain(then).collect()
}

/// Where the answer to the n-th decision on R17 arrives.
fn decision_answered(nth: u32) -> Place {
    let exchange = ExchangeName { call: Call::Decide, about: operation("R17"), nth };
    Place::Phase { exchange, phase: Phase::Answered }
}
