//! The faults of a run: checked, sorted, one a place.

use super::place::{Call, Phase, Place, When};
use super::what::What;
use serde::{Deserialize, Serialize};

/// One fault: what goes wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Where.
    pub at: Place,
    /// What.
    pub what: What,
}

/// Why a list of faults is no tape.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TapeError {
    /// Two faults share a place.
    #[error("two faults at one place: {0}")]
    SamePlace(Place),
    /// A place where this kind of fault cannot strike.
    #[error("{kind} cannot strike at: {at}")]
    WrongPlace {
        /// The fault kind.
        kind: &'static str,
        /// The place.
        at: Place,
    },
    /// Counting starts at 1.
    #[error("{0} counts from 1")]
    Zero(Place),
}

impl Fault {
    /// Whether this kind of fault can strike at this place.
    ///
    /// # Errors
    /// [`TapeError::Zero`] or [`TapeError::WrongPlace`].
    pub fn check(&self) -> Result<(), TapeError> {
        if !self.at.counts_from_one() {
            return Err(TapeError::Zero(self.at.clone()));
        }
        if can_strike(&self.at, &self.what) {
            return Ok(());
        }
        Err(TapeError::WrongPlace { kind: self.what.kind(), at: self.at.clone() })
    }
}

/// Which kinds strike where: the one table of it.
fn can_strike(at: &Place, what: &What) -> bool {
    use What as W;
    match at {
        Place::Delivery(_) => matches!(what, W::Redeliver { .. } | W::AtOnce(_) | W::HoldBack(_)),
        Place::Connection { .. } => matches!(what, W::Refuse | W::HangConnecting),
        Place::Exchange(exchange) => outcome_of(exchange.call, what),
        Place::Phase { exchange, phase } => match what {
            W::Delay(_) => {
                let at_destination = matches!(phase, Phase::Arrived | Phase::Applied);
                exchange.call.is_to_destination() && at_destination
                    || !exchange.call.is_to_destination() && *phase == Phase::BeforeSend
            }
            _ => strikes_process(what) || *what == W::ReadError,
        },
        Place::Sync { when, .. } => {
            let before = *when == When::Before;
            strikes_process(what)
                || matches!(what, W::SyncError | W::DiskFull(_) | W::LyingSync) && before
                || matches!(what, W::ReadError | W::BitFlip) && !before
        }
        Place::Record { .. } => {
            matches!(what, W::EditByHand(_) | W::DeleteByHand | W::ArchiveByHand(_) | W::CopyByHand(_))
        }
        Place::Case(_) => {
            matches!(what, W::ActLate(_) | W::WrongReference | W::TwoAtOnce | W::StaleView)
        }
    }
}

/// Whether it strikes a process, wherever that is.
fn strikes_process(what: &What) -> bool {
    use What as W;
    matches!(what, W::Kill(_) | W::PowerCut { .. } | W::Pause(_) | W::ClockStep(_) | W::ClockRate(_))
}

/// Whether it can become of a call of this kind.
fn outcome_of(call: Call, what: &What) -> bool {
    use What as W;
    match what {
        W::LoseRequest(_) | W::LoseResponse(_) => true,
        W::Refuse | W::NotApplied(_) | W::AnswerSlowly(_) | W::Hang { .. } | W::Partition { .. } => {
            call.is_to_destination()
        }
        W::ApplyLate(_)
        | W::ErrorAfter(_)
        | W::Duplicate(_)
        | W::OmitId(_)
        | W::Undo(_)
        | W::ForgetKeys
        | W::KeysDown(_) => call == Call::Create,
        W::Blind(_) | W::Stale(_) | W::SecondPage | W::Foreign => call == Call::Find,
        _ => false,
    }
}

/// The faults of a run: sorted by place, one fault a place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<Fault>", into = "Vec<Fault>")]
pub struct FaultTape(Vec<Fault>);

impl FaultTape {
    /// Checks and sorts.
    ///
    /// # Errors
    /// When two faults share a place, or one stands where its kind cannot strike.
    pub fn new(mut faults: Vec<Fault>) -> Result<Self, TapeError> {
        faults.iter().try_for_each(Fault::check)?;
        faults.sort();
        match faults.windows(2).find(|pair| pair[0].at == pair[1].at) {
            Some(pair) => Err(TapeError::SamePlace(pair[0].at.clone())),
            None => Ok(FaultTape(faults)),
        }
    }

    /// As [`FaultTape::new`], keeping the first of two faults that share a place and leaving out what cannot
    /// strike where it stands.
    pub fn first_of_each_place(faults: Vec<Fault>) -> Self {
        let mut kept: Vec<Fault> = vec![];
        for fault in faults {
            if fault.check().is_ok() && kept.iter().all(|k| k.at != fault.at) {
                kept.push(fault);
            }
        }
        FaultTape::new(kept).expect("places are distinct and were checked")
    }

    /// The faults, in order of their places.
    pub fn faults(&self) -> &[Fault] {
        &self.0
    }

    /// The fault at a place, with its index.
    pub fn at(&self, place: &Place) -> Option<(usize, &What)> {
        let index = self.0.binary_search_by(|fault| fault.at.cmp(place)).ok()?;
        Some((index, &self.0[index].what))
    }

    /// The same tape without fault `index`.
    pub fn without(&self, index: usize) -> Self {
        let mut faults = self.0.clone();
        faults.remove(index);
        FaultTape(faults)
    }

    /// The same tape and one fault more.
    ///
    /// # Errors
    /// As [`FaultTape::new`].
    pub fn with(&self, fault: Fault) -> Result<Self, TapeError> {
        FaultTape::new([self.0.as_slice(), &[fault]].concat())
    }
}

impl TryFrom<Vec<Fault>> for FaultTape {
    type Error = TapeError;
    fn try_from(faults: Vec<Fault>) -> Result<Self, TapeError> {
        FaultTape::new(faults)
    }
}

impl From<FaultTape> for Vec<Fault> {
    fn from(tape: FaultTape) -> Self {
        tape.0
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ExchangeName, KINDS};
    use super::*;

    fn sync(nth: u32, when: When) -> Place {
        Place::Sync { boot: 1, nth, when }
    }

    #[test]
    fn a_tape_is_sorted_and_has_one_fault_a_place() {
        let kill = |nth| Fault { at: sync(nth, When::Before), what: What::Kill(10) };
        let tape = FaultTape::new(vec![kill(3), kill(1), kill(2)]).expect("distinct places");
        let order: Vec<_> = tape.faults().iter().map(|f| f.at.clone()).collect();
        assert_eq!(order, (1..=3).map(|n| sync(n, When::Before)).collect::<Vec<_>>());
        let twice = FaultTape::new(vec![kill(1), kill(1)]);
        assert_eq!(twice, Err(TapeError::SamePlace(sync(1, When::Before))));
    }

    #[test]
    fn a_fault_cannot_stand_where_it_cannot_strike() {
        let outcome_on_disk = Fault { at: sync(1, When::Before), what: What::Refuse };
        assert!(matches!(FaultTape::new(vec![outcome_on_disk]), Err(TapeError::WrongPlace { .. })));
        let zeroth = Fault { at: sync(0, When::Before), what: What::Kill(1) };
        assert!(matches!(FaultTape::new(vec![zeroth]), Err(TapeError::Zero(_))));
        let exchange = ExchangeName { call: Call::Find, about: "R17".into(), nth: 1 };
        let late_look = Fault { at: Place::Exchange(exchange), what: What::ApplyLate(1) };
        assert!(matches!(FaultTape::new(vec![late_look]), Err(TapeError::WrongPlace { .. })));
    }

    #[test]
    fn kinds_are_listed_once() {
        let mut kinds = KINDS.to_vec();
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds.len(), KINDS.len());
        for what in [What::Refuse, What::BitFlip, What::CopyByHand(1), What::Foreign] {
            assert_eq!(KINDS[what.kind_index()], what.kind());
        }
    }
}
