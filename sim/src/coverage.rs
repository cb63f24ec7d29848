//! What was struck where: the cells of boundary × fault × contract class, which of them no run can fill and
//! why, and which none has filled.

use crate::fault::{Call, ExchangeName, Fault, KINDS, Omission, Phase, Place, Variation, Way, What, When};
use crate::fault::{Keep, Loss};
use crate::terms::{SHORTEST_BLINDNESS_MS, Terms};
use destinations::Class;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

mod exclusions;

pub use exclusions::{Exclusion, exclusions};

const CALLS: [Call; 5] = [Call::Deliver, Call::Create, Call::Find, Call::Fetch, Call::Decide];
const PHASES: [Phase; 5] = [Phase::BeforeSend, Phase::Sent, Phase::Arrived, Phase::Applied, Phase::Answered];

/// A fault kind at a kind of boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    boundary: u8,
    fault: u8,
}

impl Mark {
    /// Where a fault stands.
    pub fn of(fault: &Fault) -> Self {
        // Both lists are shorter than 256.
        Mark { boundary: boundary(&fault.at) as u8, fault: fault.what.kind_index() as u8 }
    }

    /// The fault kind.
    pub fn fault(self) -> &'static str {
        KINDS[usize::from(self.fault)]
    }

    /// The kind of boundary, as [`Place::kind`] says it.
    pub fn boundary(self) -> String {
        boundaries()[usize::from(self.boundary)].kind()
    }
}

/// A fault kind at a kind of boundary under contracts that permit as much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// What struck where.
    pub mark: Mark,
    /// What the contract permits after a send in doubt.
    pub class: Class,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {} ({})", self.mark.fault(), self.mark.boundary(), self.class)
    }
}

/// What was struck, and what could have been.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    /// The class of each contract, by its id.
    classes: BTreeMap<String, Class>,
    applicable: BTreeSet<Cell>,
    hit: BTreeSet<Cell>,
    /// What no run can fill, and why.
    pub excluded: Vec<Exclusion>,
}

impl Coverage {
    /// Nothing struck yet, under these terms; `kinds` are the faults that are switched on, all where none is
    /// named.
    pub fn of<'a>(all: impl IntoIterator<Item = Terms<'a>>, kinds: Option<&[String]>) -> Self {
        let mut distinct: Vec<Terms<'a>> = vec![];
        for terms in all {
            if distinct.iter().all(|known| known.contract.id != terms.contract.id) {
                distinct.push(terms);
            }
        }
        let mut coverage = Coverage { excluded: exclusions(&distinct), ..Coverage::default() };
        let on = |mark: &Mark| kinds.is_none_or(|kinds| kinds.iter().any(|on| on == mark.fault()));
        for terms in &distinct {
            let class = terms.recovery().class();
            coverage.classes.insert(terms.contract.id.clone(), class);
            let possible = marks().filter(|mark| exclusions::why(*mark, terms).is_none());
            coverage.applicable.extend(possible.filter(on).map(|mark| Cell { mark, class }));
        }
        coverage
    }

    /// Takes in what struck in one run under a contract.
    pub fn struck(&mut self, contract: &str, marks: &[Mark]) {
        if let Some(class) = self.classes.get(contract) {
            self.hit.extend(marks.iter().map(|mark| Cell { mark: *mark, class: *class }));
        }
    }

    /// Cells that some run must fill, and how many of them were.
    pub fn counts(&self) -> (usize, usize) {
        (self.applicable.len(), self.applicable.intersection(&self.hit).count())
    }

    /// Cells that no run has filled.
    pub fn missed(&self) -> impl Iterator<Item = Cell> {
        self.applicable.difference(&self.hit).copied()
    }

    /// Cells that were filled although they are listed as those that cannot be: the list is wrong.
    pub fn unexpected(&self) -> impl Iterator<Item = Cell> {
        self.hit.difference(&self.applicable).copied()
    }
}

/// One place of each kind, in the order of [`boundary`].
fn boundaries() -> Vec<Place> {
    let exchange = |call| ExchangeName { call, about: "R17".into(), nth: 1 };
    let mut all = vec![Place::Delivery("R17/1".into()), Place::Connection { nth: 1 }];
    all.extend(CALLS.map(|call| Place::Exchange(exchange(call))));
    for call in CALLS {
        all.extend(PHASES.map(|phase| Place::Phase { exchange: exchange(call), phase }));
    }
    all.extend([When::Before, When::After].map(|when| Place::Sync { boot: 1, nth: 1, when }));
    all.push(Place::Record { about: "R17".into(), nth: 1 });
    all.push(Place::Case("R17".into()));
    all
}

/// The number of a place's kind.
fn boundary(place: &Place) -> usize {
    let of_call = |wanted: Call| CALLS.iter().position(|call| *call == wanted).expect("every call is listed");
    let of_phase =
        |wanted: Phase| PHASES.iter().position(|phase| *phase == wanted).expect("every phase is listed");
    let syncs = 2 + CALLS.len() + CALLS.len() * PHASES.len();
    match place {
        Place::Delivery(_) => 0,
        Place::Connection { .. } => 1,
        Place::Exchange(exchange) => 2 + of_call(exchange.call),
        Place::Phase { exchange, phase } => {
            2 + CALLS.len() + of_call(exchange.call) * PHASES.len() + of_phase(*phase)
        }
        Place::Sync { when: When::Before, .. } => syncs,
        Place::Sync { when: When::After, .. } => syncs + 1,
        Place::Record { .. } => syncs + 2,
        Place::Case(_) => syncs + 3,
    }
}

/// Every kind of fault at every kind of boundary.
fn marks() -> impl Iterator<Item = Mark> {
    (0..boundaries().len() as u8)
        .flat_map(|boundary| (0..KINDS.len() as u8).map(move |fault| Mark { boundary, fault }))
}

/// The mildest fault of each kind, in the order of [`KINDS`]: where not even this one can be survived, no
/// other can.
fn mildest() -> [What; KINDS.len()] {
    use What as W;
    let again = |how| W::Redeliver { how, after_ms: 0 };
    [
        W::Refuse,
        W::LoseRequest(Loss::Silence),
        W::NotApplied(None),
        W::LoseResponse(Loss::Silence),
        W::ApplyLate(1),
        W::ErrorAfter(500),
        W::Duplicate(0),
        W::OmitId(Omission::NoId),
        W::Undo(0),
        W::AnswerSlowly(1),
        W::Hang { applied: true },
        W::HangConnecting,
        W::Partition { way: Way::Both, ms: 1 },
        W::Delay(1),
        W::Blind(SHORTEST_BLINDNESS_MS),
        W::Stale(1),
        W::SecondPage,
        W::Foreign,
        W::ForgetKeys,
        W::KeysDown(1),
        again(Variation::Same),
        again(Variation::Meaning),
        again(Variation::Poison),
        W::AtOnce(2),
        W::HoldBack(1),
        W::Kill(1),
        W::PowerCut { down: 1, keep: Keep::Everything },
        W::Pause(1),
        W::ClockStep(1),
        W::ClockRate(1),
        W::SyncError,
        W::DiskFull(1),
        W::ReadError,
        W::BitFlip,
        W::LyingSync,
        W::ActLate(1),
        W::WrongReference,
        W::TwoAtOnce,
        W::StaleView,
        W::EditByHand(0),
        W::DeleteByHand,
        W::ArchiveByHand(0),
        W::CopyByHand(0),
    ]
}

#[cfg(test)]
mod tests;
