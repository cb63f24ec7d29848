//! The rows of the acceptance script: how each comes about, and how it must end for each class of contract.

use super::trial::{Setting, Trial, class};
use destinations::{Class, Contract};
use scenarios::access::{ask, assumptions, delivery, delivery_of};
use scenarios::places::{create, on_create, on_find};
use sim::fault::{Call, ExchangeName, Fault, Keep, Loss, Omission, Phase, Place, What};
use sim::plan::{Expect, UNKNOWN_REQUESTER};
use sim::terms::Terms;

/// The classes, in the order of a row's cells.
pub(super) const CLASSES: [Class; 5] =
    [Class::Replay, Class::Converge, Class::LookupDecides, Class::LookupConfirms, Class::Owner];

/// Longer than any look-up is repeated, in milliseconds.
const UNSEEN_MS: u64 = 7_200_000;
/// From the end of the time in which the key may be used, 12 minutes before it lapses, to long after it.
const AWAY_MS: [u64; 4] = [6_600_000, 7_300_000, 10_800_000, 14_400_000];

/// One row.
pub(super) struct Row {
    /// Its number; a letter tells two ways of one row apart.
    pub(super) number: &'static str,
    /// What happens.
    pub(super) name: &'static str,
    /// The exact ways in which it is brought about; each must end the same.
    pub(super) trials: fn(&Setting<'_>) -> Vec<Trial>,
    /// How it must end, for each of [`CLASSES`].
    pub(super) ends: [Cell; 5],
}

/// How a row ends for a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    /// With so many records at the desk, with R17 in this state, and with this case.
    Ends(usize, &'static str, Case),
    /// The row makes no sense for the class.
    NotApplicable,
    /// The product cannot do it yet.
    NotBuilt,
}

/// What a person had to do with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    /// Nothing.
    None,
    /// A case for this reason waits for them.
    Open(&'static str),
    /// They have decided on a case that was opened for this reason.
    Decided(&'static str),
}

impl Row {
    /// How it must end with a contract.
    pub(super) fn cell(&self, contract: &Contract) -> Cell {
        let at = CLASSES.iter().position(|known| *known == class(contract));
        self.ends[at.expect("every class has its cell")]
    }

    /// Its trials with a contract.
    pub(super) fn trials(&self, contract: &Contract) -> Vec<Trial> {
        match self.cell(contract) {
            Cell::Ends(records, words, _) => {
                (self.trials)(&Setting { contract, expect: expect(records, words) })
            }
            Cell::NotApplicable | Cell::NotBuilt => vec![],
        }
    }
}

/// What the invariants are told to expect.
fn expect(records: usize, words: &str) -> Expect {
    match (records, words) {
        (0, "rejected/validation") => Expect::Rejected,
        (0, "rejected/by_destination") => Expect::Refused,
        (0, _) => Expect::NoneOwned,
        (_, "completed/confirmed" | "completed/confirmed_by_human") => Expect::Recorded,
        _ => Expect::OneOwned,
    }
}

const DONE: Cell = Cell::Ends(1, "completed/confirmed", Case::None);
const CHANGED: Cell = Cell::Ends(1, "completed/confirmed", Case::Open("changed_request"));
const INVALID: Cell = Cell::Ends(0, "rejected/validation", Case::None);
const REFUSED: Cell = Cell::Ends(0, "rejected/by_destination", Case::None);
const EXHAUSTED: Cell =
    Cell::Ends(0, "requiring_verification/exception_unsent", Case::Open("retries_exhausted"));

const fn asked(records: usize, reason: &'static str) -> Cell {
    Cell::Ends(records, "requiring_verification/exception", Case::Open(reason))
}

const fn by_hand(reason: &'static str) -> Cell {
    Cell::Ends(1, "completed/confirmed_by_human", Case::Decided(reason))
}

/// The script.
pub(super) const ROWS: &[Row] = &[
    Row { number: "1", name: "first delivery", trials: plainly, ends: [DONE; 5] },
    Row { number: "2", name: "repeated delivery", trials: repeated, ends: [DONE; 5] },
    Row { number: "3", name: "fifty deliveries at one instant", trials: at_once, ends: [DONE; 5] },
    Row {
        number: "4",
        name: "time-out before the effect",
        trials: before_effect,
        ends: [DONE, DONE, DONE, asked(0, "not_found_in_time"), asked(0, "nothing_permitted")],
    },
    Row {
        number: "5",
        name: "time-out after the effect",
        trials: after_effect,
        ends: [DONE, DONE, DONE, DONE, asked(1, "nothing_permitted")],
    },
    Row {
        number: "6",
        name: "crash between intent and send",
        trials: crash_before_send,
        ends: [DONE, DONE, DONE, asked(0, "not_found_in_time"), asked(0, "nothing_permitted")],
    },
    Row {
        number: "7",
        name: "crash between effect and record",
        trials: crash_after_effect,
        ends: [DONE, DONE, DONE, DONE, asked(1, "nothing_permitted")],
    },
    Row {
        number: "8a",
        name: "never valid by the workflow's own rules",
        trials: incomplete,
        ends: [INVALID; 5],
    },
    Row { number: "8b", name: "refused for good by the desk", trials: unknown_requester, ends: [REFUSED; 5] },
    Row {
        number: "9",
        name: "nothing offered, response lost, a person confirms",
        trials: confirmed_by_a_person,
        ends: [
            Cell::NotApplicable,
            Cell::NotApplicable,
            Cell::NotApplicable,
            Cell::NotApplicable,
            by_hand("nothing_permitted"),
        ],
    },
    Row {
        number: "10a",
        name: "away until any key has lapsed, and no look-up shows the record",
        trials: away_and_unseen,
        ends: [
            asked(1, "key_lapses"),
            DONE,
            asked(1, "not_found_in_time"),
            asked(1, "not_found_in_time"),
            asked(1, "nothing_permitted"),
        ],
    },
    Row {
        number: "10b",
        name: "away until any key has lapsed, and a look-up shows the record",
        trials: away,
        ends: [DONE, DONE, DONE, DONE, asked(1, "nothing_permitted")],
    },
    Row {
        number: "10c",
        name: "away until any key has lapsed, and nothing was made",
        trials: away_and_unmade,
        ends: [
            asked(0, "key_lapses"),
            DONE,
            DONE,
            asked(0, "not_found_in_time"),
            asked(0, "nothing_permitted"),
        ],
    },
    Row {
        number: "11",
        name: "desk slower than our patience",
        trials: slow_desk,
        ends: [DONE, DONE, DONE, DONE, asked(1, "nothing_permitted")],
    },
    Row { number: "12", name: "retries exhausted", trials: never_reached, ends: [EXHAUSTED; 5] },
    Row {
        number: "13",
        name: "corrected by hand, then the balance closes",
        trials: corrected,
        ends: [by_hand("ref_missing"); 5],
    },
    Row { number: "14", name: "stop between two systems", trials: |_| vec![], ends: [Cell::NotBuilt; 5] },
    Row { number: "15", name: "changed payload under the same id", trials: changed, ends: [CHANGED; 5] },
];

/// The row of this number.
pub(super) fn row(number: &str) -> &'static Row {
    ROWS.iter().find(|row| row.number == number).expect("the script has this row")
}

fn plainly(setting: &Setting<'_>) -> Vec<Trial> {
    vec![Trial::once(setting, vec![])]
}

/// While the create is under way, right after it, and much later; and to a process that dies of a repeat, so
/// that another one has to know the request.
fn repeated(setting: &Setting<'_>) -> Vec<Trial> {
    let trial = |faults| {
        let ask = ask(0, setting.expect);
        let arrivals = [1, 25, 2_000, 60_000].into_iter().zip(1..);
        let deliveries = arrivals.map(|(at, nth)| delivery(&ask, nth, at)).collect();
        Trial::of(vec![ask], deliveries, faults)
    };
    let exchange = ExchangeName { call: Call::Deliver, about: "R17/3".into(), nth: 1 };
    let dies = Fault { at: Place::Phase { exchange, phase: Phase::Sent }, what: What::Kill(1_000) };
    vec![trial(vec![]), trial(vec![dies])]
}

fn at_once(setting: &Setting<'_>) -> Vec<Trial> {
    let ask = ask(0, setting.expect);
    let deliveries = (1..=50).map(|nth| delivery(&ask, nth, 1)).collect();
    vec![Trial::of(vec![ask], deliveries, vec![])]
}

/// One trial for each fault, which strikes alone.
fn each(setting: &Setting<'_>, faults: impl IntoIterator<Item = Fault>) -> Vec<Trial> {
    with(setting, faults, &[])
}

/// One trial for each fault, which strikes with these others.
fn with(setting: &Setting<'_>, faults: impl IntoIterator<Item = Fault>, others: &[Fault]) -> Vec<Trial> {
    faults.into_iter().map(|fault| Trial::once(setting, [&[fault], others].concat())).collect()
}

fn before_effect(setting: &Setting<'_>) -> Vec<Trial> {
    let losses = [Loss::Silence, Loss::Reset];
    each(setting, losses.map(|loss| on_create(1, What::LoseRequest(loss))))
}

fn after_effect(setting: &Setting<'_>) -> Vec<Trial> {
    let losses = [Loss::Silence, Loss::Reset, Loss::Truncated];
    each(setting, losses.map(|loss| on_create(1, What::LoseResponse(loss))))
}

/// The process is killed, or its machine loses power and all that was not synced.
fn crashes(phase: Phase) -> [Fault; 2] {
    let crash = [What::Kill(1_000), What::PowerCut { down: 1_000, keep: Keep::Nothing }];
    crash.map(|what| Fault { at: Place::Phase { exchange: create(1), phase }, what })
}

fn crash_before_send(setting: &Setting<'_>) -> Vec<Trial> {
    each(setting, crashes(Phase::BeforeSend))
}

fn crash_after_effect(setting: &Setting<'_>) -> Vec<Trial> {
    each(setting, [Phase::Applied, Phase::Answered].into_iter().flat_map(crashes))
}

fn incomplete(setting: &Setting<'_>) -> Vec<Trial> {
    asks_for(setting, &serde_json::json!({"id": "R17", "title": "R17: access to the archive"}))
}

fn unknown_requester(setting: &Setting<'_>) -> Vec<Trial> {
    let title = "R17: access to the archive";
    asks_for(setting, &serde_json::json!({"id": "R17", "title": title, "requester": UNKNOWN_REQUESTER}))
}

/// It is delivered again as well: a final answer stays final.
fn asks_for(setting: &Setting<'_>, request: &serde_json::Value) -> Vec<Trial> {
    let ask = ask(0, setting.expect);
    let deliveries = vec![delivery_of(&ask, 1, 1, request), delivery_of(&ask, 2, 5_000, request)];
    vec![Trial::of(vec![ask], deliveries, vec![])]
}

fn confirmed_by_a_person(setting: &Setting<'_>) -> Vec<Trial> {
    after_effect(setting).into_iter().map(Trial::with_people).collect()
}

/// The machine goes down at this point of the create, and comes back late.
fn away_from(phase: Phase) -> [Fault; 4] {
    AWAY_MS.map(|ms| Fault { at: Place::Phase { exchange: create(1), phase }, what: What::Kill(ms) })
}

fn away(setting: &Setting<'_>) -> Vec<Trial> {
    each(setting, away_from(Phase::Applied))
}

fn away_and_unseen(setting: &Setting<'_>) -> Vec<Trial> {
    // The identity answers a send with the record, and where nothing is offered there is no look-up either.
    let looks = !matches!(class(setting.contract), Class::Converge | Class::Owner);
    let unseen = looks.then(|| on_find(1, What::Blind(UNSEEN_MS)));
    with(setting, away_from(Phase::Applied), unseen.as_slice())
}

fn away_and_unmade(setting: &Setting<'_>) -> Vec<Trial> {
    each(setting, away_from(Phase::BeforeSend))
}

/// From a second after we gave up to the last moment that is promised or attested; and a desk that writes at
/// once and answers when nobody listens any more.
fn slow_desk(setting: &Setting<'_>) -> Vec<Trial> {
    let terms = Terms { contract: setting.contract, assumptions: &assumptions() };
    let latest = terms.latest_commit_ms().expect("a late commit is attested where none is documented");
    let late = [11_000, latest / 2, latest].map(What::ApplyLate);
    each(setting, late.into_iter().chain([What::AnswerSlowly(latest)]).map(|what| on_create(1, what)))
}

fn never_reached(setting: &Setting<'_>) -> Vec<Trial> {
    vec![Trial::once(setting, (1..=5).map(|nth| on_create(nth, What::Refuse)).collect())]
}

/// Three requests; R17's answer names no record and no look-up shows it, so its owner has to.
fn corrected(setting: &Setting<'_>) -> Vec<Trial> {
    let asks: Vec<_> = (0..3).map(|n| ask(n, setting.expect)).collect();
    let deliveries = asks.iter().zip([1, 50, 100]).map(|(ask, at)| delivery(ask, 1, at)).collect();
    let unseen = (class(setting.contract) != Class::Owner).then(|| on_find(1, What::Blind(UNSEEN_MS)));
    let unnamed = on_create(1, What::OmitId(Omission::NoId));
    vec![Trial::of(asks, deliveries, [unnamed].into_iter().chain(unseen).collect()).with_people()]
}

/// The change comes while the create is under way, or when it is done.
fn changed(setting: &Setting<'_>) -> Vec<Trial> {
    let request = serde_json::json!({"id": "R17", "title": "R17: access to the vault", "requester": "c17"});
    let trial = |at| {
        let ask = ask(0, setting.expect);
        let deliveries = vec![delivery(&ask, 1, 1), delivery_of(&ask, 2, at, &request)];
        Trial::of(vec![ask], deliveries, vec![])
    };
    [25, 3_000].map(trial).into()
}
