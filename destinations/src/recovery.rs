//! What a contract permits after a send in doubt: a pure derivation, shared by the engine and by its judge.
//!
//! Nothing here looks at a clock. Ages are measured by the caller on one clock, the store's, and a licence
//! holds only for the instant at which they were measured. Every rule is *monotone*: a contract that knows
//! less permits less (a property test weakens each field of each contract).

mod doubt;
mod guarantee;
mod open;

pub use doubt::{Doubt, Ground, Miss};
pub use open::Open;

use crate::contract::measure::{maybe_span, span};
use crate::contract::{
    Anchor, Atomic, Complete, Consistency, Contract, Converge, ConvergeKind, DedupKey, Grade,
};
use crate::contract::{
    Hole, InFlight, Lookup, LookupBy, Mismatch, OnConflict, Permanence, Retention, RetentionKind,
};
use crate::contract::{Staleness, StoreDown};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// What is taken for granted about the machines between us and a destination; printed with every guarantee.
///
/// Written as text: `max_transit = "30s"`. A run that breaks one of these (a longer pause, a later commit
/// than attested) proves nothing about a workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Assumptions {
    /// Longest time from a byte's leaving us to its arrival; default 30 s.
    #[serde(with = "span")]
    pub max_transit: Duration,
    /// Longest pause of a process between a check and the write that it permits; default 10 s.
    #[serde(with = "span")]
    pub max_pause: Duration,
    /// Furthest two clocks are apart; default 5 min. It counts only where two clocks meet.
    #[serde(with = "span")]
    pub clock_skew: Duration,
    /// Whether two clocks meet at our end: several machines without a shared store clock.
    pub two_clocks: bool,
    /// The longest an abandoned request may still take effect, attested by an operator; it never lets a miss
    /// decide.
    #[serde(with = "maybe_span", skip_serializing_if = "Option::is_none")]
    pub assumed_late_commit: Option<Duration>,
    /// Whether an operator attests that the declared identities hold for two requests at once.
    pub attested_atomic: bool,
    /// The weakest evidence that counts; default [`Grade::Quoted`]: the vendor's own words. What is declared
    /// on weaker evidence counts as unknown, except where it only forbids.
    pub evidence_floor: Grade,
}

impl Default for Assumptions {
    fn default() -> Self {
        Self {
            max_transit: Duration::from_secs(30),
            max_pause: Duration::from_secs(10),
            clock_skew: Duration::from_secs(5 * 60),
            two_clocks: false,
            assumed_late_commit: None,
            attested_atomic: false,
            evidence_floor: Grade::Quoted,
        }
    }
}

/// The best that a contract permits after a send in doubt, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Nothing: one automatic send for life, then a person.
    Owner,
    /// A look-up that finds the record resolves the doubt; one that does not permits nothing.
    LookupConfirms,
    /// A trusted look-up that finds nothing permits one more send.
    LookupDecides,
    /// The same identity may be sent again within its permanence.
    Converge,
    /// The same key and bytes may be sent again before a deadline.
    Replay,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Owner => "owner",
            Self::LookupConfirms => "look-up confirms",
            Self::LookupDecides => "look-up decides",
            Self::Converge => "converge",
            Self::Replay => "replay",
        })
    }
}

/// What a contract permits after a send in doubt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Resending with the same key, where that is safe for a time.
    pub replay: Option<Replay>,
    /// Resending the same identity, where the destination enforces one.
    pub converge: Option<Convergence>,
    /// The best look-up, where there is one.
    pub lookup: Option<LookupRule>,
    /// How long after the last possible send nothing of it can take effect any more, as a person's clock
    /// shows it: late commit, transit, pause and skew. `None`: nobody knows.
    pub settled_after: Option<Duration>,
}

/// For how long the same key and bytes may be sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// How long after the first intent was committed: the retention less the margin. [`Duration::MAX`] = no
    /// end.
    pub safe_for: Duration,
    /// For how long the destination remembers the key; [`Duration::MAX`] = without end.
    pub retention: Duration,
    /// What is kept free at the end: transit, pause and skew, at least a tenth of the retention.
    pub margin: Duration,
    /// How long after the last possible send; zero where a second request in flight is known to be harmless.
    pub wait_between: Duration,
}

/// How the same identity may be sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Convergence {
    /// How the identity is given.
    pub kind: ConvergeKind,
    /// The field that carries it.
    pub field: String,
    /// For how long it stays taken; never unknown.
    pub permanence: Permanence,
    /// How long after the first intent it may be sent: the permanence less the margin. [`Duration::MAX`] = no
    /// end.
    pub safe_for: Duration,
    /// Whether it holds only while nobody else writes the same identity at the same time.
    pub single_writer: bool,
    /// How long after the last possible send; zero unless `single_writer`: a request that lingers is another
    /// writer.
    pub wait_between: Duration,
    /// The field in which our own reference is stored, to prove that a found record is ours.
    pub ownership_field: Option<String>,
    /// Whether a conflict says which record exists.
    pub conflict_names_existing: bool,
    /// Status and code of the conflict, which means *exists*; an empty code is any. `None` where a conflict
    /// is no error, or is not documented.
    pub conflict: Option<(u16, String)>,
    /// Whether a resend overwrites what people edited since, so that the record must be read first.
    pub overwrites_later_edits: bool,
}

/// What a look-up can decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookupRule {
    /// What is looked for.
    pub by: LookupBy,
    /// How long after the last possible send a miss decides: late commit + staleness + transit, pause and
    /// skew. `None`: a miss never decides.
    pub decides_after: Option<Duration>,
    /// Two passes at least this far apart, where the look-up is eventual; otherwise zero.
    pub lag: Duration,
    /// Whether all matches can be read.
    pub complete: Complete,
}

/// What a contract permits after a send in doubt, under these assumptions.
///
/// The rules are those of *Replay*, *Converge*, *Lookup decides*, *Lookup confirms*, *Owner*, in this order;
/// all need a durable intent with key, reference and exact bytes, one sender, and clients that do not retry
/// by themselves.
pub fn recovery(contract: &Contract, assumptions: &Assumptions) -> Recovery {
    let known = Known { contract, assumptions };
    Recovery {
        replay: known.replay(),
        converge: known.converge(),
        lookup: known.lookup(),
        settled_after: known.late().map(|late| late.saturating_add(known.slack(true))),
    }
}

impl Recovery {
    /// The best of what is permitted.
    pub fn class(&self) -> Class {
        match (&self.replay, &self.converge, &self.lookup) {
            (Some(_), _, _) => Class::Replay,
            (None, Some(_), _) => Class::Converge,
            (None, None, Some(rule)) if rule.decides_after.is_some() => Class::LookupDecides,
            (None, None, Some(_)) => Class::LookupConfirms,
            (None, None, None) => Class::Owner,
        }
    }
}

/// A contract seen through the evidence floor.
struct Known<'a> {
    contract: &'a Contract,
    assumptions: &'a Assumptions,
}

impl Known<'_> {
    /// Whether a field is declared on evidence that counts.
    fn graded(&self, path: &str) -> bool {
        self.contract.grade(path) >= self.assumptions.evidence_floor
    }

    /// A declared value, or its type's unknown where the evidence does not count.
    fn value<T: Default>(&self, path: &str, declared: T) -> T {
        if self.graded(path) { declared } else { T::default() }
    }

    /// Transit, pause and, where two clocks meet, skew: what may pass between a check and its effect.
    fn slack(&self, two_clocks: bool) -> Duration {
        let declared = self.contract.time.clock_skew_margin.known().unwrap_or_default();
        let skew = self.assumptions.clock_skew.max(declared);
        let apart = if two_clocks || self.assumptions.two_clocks { skew } else { Duration::ZERO };
        self.assumptions.max_transit.saturating_add(self.assumptions.max_pause).saturating_add(apart)
    }

    /// How long an abandoned request may still take effect, as documented.
    fn documented_late_commit(&self) -> Option<Duration> {
        self.value("time.late_commit_bound", self.contract.time.late_commit_bound).known()
    }

    /// How long after a send the next may follow where two at once do harm. Of two upper bounds, documented
    /// and attested, both hold, so the smaller counts; with neither there is no such time.
    fn apart(&self) -> Option<Duration> {
        Some(self.late()?.saturating_add(self.slack(false)))
    }

    /// The smaller of the bounds within which an abandoned request takes effect, if ever.
    fn late(&self) -> Option<Duration> {
        let bounds = [self.documented_late_commit(), self.assumptions.assumed_late_commit];
        bounds.into_iter().flatten().min()
    }

    /// Margin at the end of a period that starts with the first request: at least a tenth of it.
    fn margin(&self, period: Duration, two_clocks: bool) -> Option<Duration> {
        let tenth = if period == Duration::MAX { Duration::ZERO } else { period / 10 };
        let margin = self.slack(two_clocks).max(tenth);
        (margin < period / 2).then_some(margin)
    }

    fn replay(&self) -> Option<Replay> {
        let key = self.contract.dedup_key.as_ref().filter(|_| self.graded("dedup_key"))?;
        let firm = matches!(
            self.value("dedup_key.retention_kind", key.retention_kind),
            RetentionKind::Minimum | RetentionKind::Fixed
        );
        if !firm || breaks(key) {
            return None;
        }
        let retention = match self.value("dedup_key.retention", key.retention) {
            Retention::For(retention) => retention,
            Retention::Forever => Duration::MAX,
            Retention::Unknown => return None,
        };
        // The earliest reading of every anchor but the client's own timestamp is the first send.
        let anchor = self.value("dedup_key.retention_anchor", key.retention_anchor);
        let two_clocks = matches!(anchor, Anchor::ClientTimestamp | Anchor::Unknown);
        let margin = self.margin(retention, two_clocks)?;
        let wait_between = match self.value("dedup_key.in_flight", key.in_flight.clone()) {
            InFlight::Unknown | InFlight::ExecutesBoth => self.apart()?,
            InFlight::Error { .. } | InFlight::Waits | InFlight::Transient | InFlight::SecondMayFail => {
                Duration::ZERO
            }
        };
        let safe_for = if retention == Duration::MAX { Duration::MAX } else { retention - margin };
        Some(Replay { safe_for, retention, margin, wait_between })
    }

    /// The identity that permits most: no single writer before one, then the longest permanence, then the
    /// first.
    fn converge(&self) -> Option<Convergence> {
        let usable = self.contract.converge.iter().filter_map(|identity| self.convergence(identity));
        usable.reduce(|best, next| {
            let better = (!next.single_writer, next.safe_for) > (!best.single_writer, best.safe_for);
            if better { next } else { best }
        })
    }

    fn convergence(&self, identity: &Converge) -> Option<Convergence> {
        let path = |field: &str| format!("converge.{}.{field}", identity.kind.word());
        let attested = self.assumptions.attested_atomic;
        let atomic = self.value(&path("atomic"), identity.atomic);
        let single_writer = match atomic {
            _ if !self.graded(&path("kind")) => return None,
            _ if attested => false,
            Atomic::Yes if identity.only_on.is_none() => false,
            Atomic::Sequential if identity.only_on.is_none() => true,
            Atomic::Yes | Atomic::Sequential | Atomic::IfConfigured | Atomic::Unknown => return None,
        };
        let permanence = self.value(&path("permanence"), identity.permanence);
        let safe_for = match permanence {
            Permanence::WhileRecordExists => Duration::MAX,
            Permanence::For(period) => period - self.margin(period, false)?,
            Permanence::Unknown => return None,
        };
        let wait_between = if single_writer { self.apart()? } else { Duration::ZERO };
        let conflict = match &identity.on_conflict {
            OnConflict::Error { status, code } => Some((*status, code.clone().unwrap_or_default())),
            OnConflict::UpdatesExisting | OnConflict::ReturnsExisting | OnConflict::Unknown => None,
        };
        let upsert = identity.kind == ConvergeKind::Upsert;
        Some(Convergence {
            kind: identity.kind,
            field: identity.field.clone(),
            permanence,
            safe_for,
            single_writer,
            wait_between,
            ownership_field: identity.ownership_field.clone(),
            conflict_names_existing: identity.conflict_names_existing == Some(true),
            conflict,
            overwrites_later_edits: identity.overwrites_later_edits.unwrap_or(upsert),
        })
    }

    /// The look-up that decides soonest, else the first that can confirm.
    fn lookup(&self) -> Option<LookupRule> {
        let rules = self.contract.lookup.iter().map(|lookup| self.rule(lookup));
        let soonest = |rule: &LookupRule| (rule.decides_after.is_none(), rule.decides_after);
        rules.reduce(|best, next| if soonest(&next) < soonest(&best) { next } else { best })
    }

    /// Any look-up confirms, however weak its evidence: a hit carries our reference and is checked.
    fn rule(&self, lookup: &Lookup) -> LookupRule {
        let path = |field: &str| format!("lookup.{}.{field}", lookup.by.word());
        let consistency = self.value(&path("consistency"), lookup.consistency);
        let bound = self.value(&path("max_staleness"), lookup.max_staleness);
        let staleness = match (consistency, bound) {
            (Consistency::ReadYourWrites, _) => Some(Duration::ZERO),
            (Consistency::Eventual, Staleness::Known(most)) => Some(most),
            (Consistency::Eventual, Staleness::None | Staleness::Unknown) | (Consistency::Unknown, _) => None,
        };
        let complete = self.value(&path("complete"), lookup.complete);
        let sees_all = complete == Complete::Yes
            && self.value(&path("sees_archived"), lookup.sees_archived) == Some(true);
        let decides_after = self
            .documented_late_commit()
            .zip(staleness)
            .filter(|_| sees_all)
            .map(|(late, stale)| late.saturating_add(stale).saturating_add(self.slack(false)));
        let typical = lookup.typical_staleness.known().unwrap_or_default();
        let lag = match consistency {
            Consistency::ReadYourWrites => Duration::ZERO,
            Consistency::Eventual | Consistency::Unknown => staleness.unwrap_or(typical),
        };
        LookupRule { by: lookup.by, decides_after, lag, complete }
    }
}

/// Whether something is known of a key that breaks it, on whatever evidence.
fn breaks(key: &DedupKey) -> bool {
    matches!(key.mismatch, Mismatch::Executes | Mismatch::MayExecute)
        || key.store_down == StoreDown::FailOpen
        || key.retention_kind == RetentionKind::BestEffort
        || key.holes.contains(&Hole::Budget)
}

#[cfg(test)]
mod tests;
