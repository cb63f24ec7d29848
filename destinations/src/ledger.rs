//! The truth about a destination: each effect, in order, with the request that made it.

use std::fmt;
use std::time::Duration;

/// An instant in milliseconds since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(pub u64);

impl Millis {
    /// This instant and `wait` later, in whole milliseconds rounded up; stops at the end of time.
    pub fn after(self, wait: Duration) -> Self {
        let millis = wait.as_nanos().div_ceil(1_000_000);
        Self(self.0.saturating_add(u64::try_from(millis).unwrap_or(u64::MAX)))
    }

    /// How long after `earlier` this instant is; zero where it is not.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

/// What an effect did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EffectKind {
    /// A record came to be.
    Created,
    /// A record changed.
    Updated,
    /// A record went, by a person's hand.
    Deleted,
}

/// What is kept of the request that made an effect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestFacts {
    /// Its deduplication key, whether or not the destination honours keys.
    pub key: Option<String>,
    /// Its external reference, whether or not the destination stores one.
    pub reference: Option<String>,
    /// Its body, as text.
    pub body: String,
    /// SHA-256 of its body's bytes, in hexadecimal.
    pub digest: String,
}

/// One effect, in the order in which effects came to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Its number, from 1 without gaps.
    pub n: u32,
    /// When it came to be.
    pub at: Millis,
    /// Id of the record.
    pub record: String,
    /// What it did to the record.
    pub kind: EffectKind,
    /// The request that made it.
    pub by: RequestFacts,
    /// Whether it came later than the ordinary time for a request; a person's effects never do.
    pub late: bool,
    /// Whether no request made it, but a person, or the destination itself.
    pub by_hand: bool,
}

/// Every effect of a destination, append-only.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    effects: Vec<Effect>,
}

impl Ledger {
    /// Every effect so far, oldest first.
    pub fn effects(&self) -> &[Effect] {
        &self.effects
    }

    /// Ids of the records that exist now, in the order in which they came to be.
    pub fn records(&self) -> Vec<&str> {
        let mut records: Vec<&str> = Vec::new();
        for effect in &self.effects {
            match effect.kind {
                EffectKind::Created => records.push(&effect.record),
                EffectKind::Updated => {}
                EffectKind::Deleted => records.retain(|record| *record != effect.record),
            }
        }
        records
    }

    /// Records one more effect.
    ///
    /// # Panics
    /// Where it is older than the last one, creates a record that exists, or touches one that does not: only
    /// a bug can do that.
    #[cfg(any(feature = "fake", test))]
    pub(crate) fn append(
        &mut self,
        at: Millis,
        record: &str,
        kind: EffectKind,
        by: RequestFacts,
        late: bool,
    ) {
        self.add(at, record, kind, by, (late, false));
    }

    /// As [`Ledger::append`], for what no request made.
    #[cfg(any(feature = "fake", test))]
    pub(crate) fn append_by_hand(&mut self, at: Millis, record: &str, kind: EffectKind, facts: RequestFacts) {
        self.add(at, record, kind, facts, (false, true));
    }

    #[cfg(any(feature = "fake", test))]
    fn add(
        &mut self,
        at: Millis,
        record: &str,
        kind: EffectKind,
        by: RequestFacts,
        (late, by_hand): (bool, bool),
    ) {
        let last = self.effects.last().map_or(Millis(0), |effect| effect.at);
        assert!(at >= last, "an effect at {at} follows one at {last}");
        let exists = self.records().contains(&record);
        assert_eq!(exists, kind != EffectKind::Created, "{kind:?} of record {record}, exists: {exists}");
        let n = u32::try_from(self.effects.len() + 1).expect("a run has fewer effects than u32 can count");
        self.effects.push(Effect { n, at, record: record.to_owned(), kind, by, late, by_hand });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn append(ledger: &mut Ledger, at: u64, record: &str, kind: EffectKind) {
        ledger.append(Millis(at), record, kind, RequestFacts::default(), false);
    }

    #[test]
    fn records_are_those_that_exist_now_in_order() {
        let mut ledger = Ledger::default();
        append(&mut ledger, 1, "T1", EffectKind::Created);
        append(&mut ledger, 1, "T2", EffectKind::Created);
        append(&mut ledger, 2, "T1", EffectKind::Updated);
        assert_eq!(ledger.records(), ["T1", "T2"]);
        append(&mut ledger, 3, "T1", EffectKind::Deleted);
        assert_eq!(ledger.records(), ["T2"]);
        let numbers: Vec<u32> = ledger.effects().iter().map(|effect| effect.n).collect();
        assert_eq!(numbers, [1, 2, 3, 4]);
    }

    #[test]
    #[should_panic(expected = "follows one at")]
    fn an_effect_cannot_be_older_than_the_last() {
        let mut ledger = Ledger::default();
        append(&mut ledger, 2, "T1", EffectKind::Created);
        append(&mut ledger, 1, "T2", EffectKind::Created);
    }

    #[test]
    #[should_panic(expected = "exists: true")]
    fn a_record_is_created_once() {
        let mut ledger = Ledger::default();
        append(&mut ledger, 1, "T1", EffectKind::Created);
        append(&mut ledger, 1, "T1", EffectKind::Created);
    }

    #[test]
    #[should_panic(expected = "exists: false")]
    fn only_a_record_that_exists_changes() {
        append(&mut Ledger::default(), 1, "T1", EffectKind::Updated);
    }

    #[test]
    fn instants_round_up_and_stop_at_the_end_of_time() {
        assert_eq!(Millis(5).after(Duration::from_micros(1)), Millis(6));
        assert_eq!(Millis(5).after(Duration::MAX), Millis(u64::MAX));
        assert_eq!(Millis(5).since(Millis(2)), Duration::from_millis(3));
        assert_eq!(Millis(2).since(Millis(5)), Duration::ZERO);
    }
}
