//! What can go wrong and where: faults, addressed by meaning, on a tape that is checked when it is made.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Which of the calls between nodes an exchange is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Call {
    /// A source hands a request to the workflow.
    Deliver,
    /// The workflow asks a destination to create (or upsert) a record.
    Create,
    /// The workflow looks a record up by its reference.
    Find,
    /// The workflow reads a record by the destination's own id.
    Fetch,
    /// A person asks or decides.
    Decide,
}

impl Call {
    /// The word for it in stories.
    pub fn word(self) -> &'static str {
        match self {
            Call::Deliver => "delivery",
            Call::Create => "create",
            Call::Find => "look-up",
            Call::Fetch => "fetch",
            Call::Decide => "decision",
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A point in an exchange at which a process can die or pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The connection stands; no byte of the request has left.
    BeforeSend,
    /// The request's bytes have left the caller.
    Sent,
    /// The other side holds the whole request and has done nothing yet.
    Arrived,
    /// The other side has done what it will do; the answer has not left.
    Applied,
    /// The answer's first bytes are at the caller, which has not seen them.
    Answered,
}

/// Before or after a disk sync takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// Nothing of this sync is durable yet.
    Before,
    /// All of it is durable; the caller does not know.
    After,
}

/// Names an exchange by what it means: the n-th call of this kind for this operation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExchangeName {
    /// The kind of call.
    pub call: Call,
    /// What it is about: an operation (`R17:create-ticket:v1`), or a delivery (`R17/d-1`).
    pub about: String,
    /// Counted from 1.
    pub nth: u32,
}

/// Where a fault strikes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// The outcome of one exchange.
    Exchange(ExchangeName),
    /// A point within one exchange.
    Phase {
        /// Which exchange.
        exchange: ExchangeName,
        /// Which point of it.
        phase: Phase,
    },
    /// The n-th sync of the node's n-th boot, both counted from 1.
    Sync {
        /// The boot.
        boot: u32,
        /// The sync of that boot.
        nth: u32,
        /// Before or after it.
        when: When,
    },
}

/// How silence looks to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// Nothing comes, until the caller's own deadline.
    Silence,
    /// The connection breaks.
    Reset,
    /// The answer's head comes, its body never ends.
    Truncated,
}

/// What a power cut leaves of the writes that no sync had covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// None of them.
    Nothing,
    /// All of them.
    Everything,
    /// The oldest few.
    Prefix,
    /// Any mix of sectors.
    Mixed,
    /// Any mix of sectors, some of them torn inside.
    Torn,
}

/// What goes wrong. O1-O11 name the outcomes of one external call.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// O1: refused before a byte is sent.
    Refuse,
    /// O2: the request is lost on its way.
    LoseRequest(Loss),
    /// O3: the destination received it and did nothing; this status, or none, comes back.
    NotApplied(Option<u16>),
    /// O4: applied; the response is lost.
    LoseResponse(Loss),
    /// O5: the caller hears nothing; the effect comes this many milliseconds after the request arrived.
    ApplyLate(u64),
    /// O6: applied, and this error status is reported.
    ErrorAfter(u16),
    /// O8: applied; success is reported without an id.
    OmitId,
    /// O10: applied at once; the answer comes after this many milliseconds.
    AnswerSlowly(u64),
    /// O11: the peer falls silent for ever, after applying the request or without.
    Hang {
        /// Whether the destination wrote the record.
        applied: bool,
    },
    /// The process is killed and starts again after so many milliseconds; the page cache survives.
    Kill(u64),
    /// The machine loses power and comes back after so many milliseconds.
    PowerCut {
        /// Milliseconds until it is up again.
        down: u64,
        /// What is left of unsynced writes.
        keep: Keep,
    },
    /// The process stands still for so many milliseconds.
    Pause(u64),
    /// This sync reports an error.
    SyncError,
    /// Every write from here on meets a full disk, for so many milliseconds.
    DiskFull(u64),
}

impl What {
    /// The kind's name, as `--faults` and the counters print it.
    pub fn kind(&self) -> &'static str {
        match self {
            What::Refuse => "refuse",
            What::LoseRequest(_) => "lose-request",
            What::NotApplied(_) => "not-applied",
            What::LoseResponse(_) => "lose-response",
            What::ApplyLate(_) => "apply-late",
            What::ErrorAfter(_) => "error-after",
            What::OmitId => "omit-id",
            What::AnswerSlowly(_) => "answer-slowly",
            What::Hang { .. } => "hang",
            What::Kill(_) => "kill",
            What::PowerCut { .. } => "power-cut",
            What::Pause(_) => "pause",
            What::SyncError => "sync-error",
            What::DiskFull(_) => "disk-full",
        }
    }

    /// Whether it decides an exchange's outcome; the others strike a process or its disk.
    pub fn is_outcome(&self) -> bool {
        !matches!(
            self,
            What::Kill(_) | What::PowerCut { .. } | What::Pause(_) | What::SyncError | What::DiskFull(_)
        )
    }
}

/// Every fault kind, in the order in which they are listed.
pub const KINDS: [&str; 14] = [
    "refuse",
    "lose-request",
    "not-applied",
    "lose-response",
    "apply-late",
    "error-after",
    "omit-id",
    "answer-slowly",
    "hang",
    "kill",
    "power-cut",
    "pause",
    "sync-error",
    "disk-full",
];

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
    #[error("{kind} cannot strike at {at}")]
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
        for fault in &faults {
            check_place(fault)?;
        }
        faults.sort();
        match faults.windows(2).find(|pair| pair[0].at == pair[1].at) {
            Some(pair) => Err(TapeError::SamePlace(pair[0].at.clone())),
            None => Ok(FaultTape(faults)),
        }
    }

    /// As [`FaultTape::new`], keeping the first of two faults that share a place.
    pub fn first_of_each_place(faults: Vec<Fault>) -> Self {
        let mut kept: Vec<Fault> = vec![];
        for fault in faults {
            if check_place(&fault).is_ok() && kept.iter().all(|k| k.at != fault.at) {
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
}

fn check_place(fault: &Fault) -> Result<(), TapeError> {
    let wrong = || Err(TapeError::WrongPlace { kind: fault.what.kind(), at: fault.at.clone() });
    let zero = || Err(TapeError::Zero(fault.at.clone()));
    let on_disk = matches!(fault.what, What::SyncError | What::DiskFull(_));
    match &fault.at {
        Place::Exchange(name) if name.nth == 0 => zero(),
        Place::Exchange(_) if !fault.what.is_outcome() => wrong(),
        Place::Phase { exchange, .. } if exchange.nth == 0 => zero(),
        Place::Phase { .. } if fault.what.is_outcome() || on_disk => wrong(),
        Place::Sync { boot, nth, .. } if *boot == 0 || *nth == 0 => zero(),
        Place::Sync { .. } if fault.what.is_outcome() => wrong(),
        Place::Sync { when: When::After, .. } if on_disk => wrong(),
        _ => Ok(()),
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

fn ordinal(n: u32) -> String {
    let suffix = match (n % 100, n % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{n}{suffix}")
}

impl fmt::Display for ExchangeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} of {}", ordinal(self.nth), self.call, self.about)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Exchange(name) => write!(f, "{name}"),
            Place::Phase { exchange, phase } => {
                let at = match phase {
                    Phase::BeforeSend => "before sending",
                    Phase::Sent => "after sending",
                    Phase::Arrived => "on arrival",
                    Phase::Applied => "after it was applied",
                    Phase::Answered => "as the answer arrives",
                };
                write!(f, "{at}, {exchange}")
            }
            Place::Sync { boot, nth, when } => {
                let side = if *when == When::Before { "before" } else { "after" };
                write!(f, "{side} the {} disk sync of boot {boot}", ordinal(*nth))
            }
        }
    }
}

/// Milliseconds as people write them.
fn span(ms: u64) -> humantime::FormattedDuration {
    humantime::format_duration(std::time::Duration::from_millis(ms))
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = |loss: &Loss| match loss {
            Loss::Silence => "silence",
            Loss::Reset => "the connection breaks",
            Loss::Truncated => "the body is cut off",
        };
        match self {
            What::Refuse => write!(f, "connection refused, nothing sent"),
            What::LoseRequest(loss) => write!(f, "request lost ({})", how(loss)),
            What::NotApplied(Some(status)) => write!(f, "received, not applied, answered {status}"),
            What::NotApplied(None) => write!(f, "received, not applied, no answer"),
            What::LoseResponse(loss) => write!(f, "response lost ({})", how(loss)),
            What::ApplyLate(ms) => write!(f, "no answer, applied {} late", span(*ms)),
            What::ErrorAfter(status) => write!(f, "applied, answered {status}"),
            What::OmitId => write!(f, "applied, answered without an id"),
            What::AnswerSlowly(ms) => write!(f, "answered {} late", span(*ms)),
            What::Hang { applied: true } => write!(f, "applied, then silence for ever"),
            What::Hang { applied: false } => write!(f, "silence for ever, nothing applied"),
            What::Kill(ms) => write!(f, "process killed, back after {}", span(*ms)),
            What::PowerCut { down, keep } => {
                let left = match keep {
                    Keep::Nothing => "unsynced writes lost",
                    Keep::Everything => "unsynced writes kept",
                    Keep::Prefix => "the oldest unsynced writes kept",
                    Keep::Mixed => "some unsynced sectors kept",
                    Keep::Torn => "some unsynced sectors kept, some torn",
                };
                write!(f, "power cut, {left}, back after {}", span(*down))
            }
            What::Pause(ms) => write!(f, "process paused for {}", span(*ms)),
            What::SyncError => write!(f, "disk sync fails"),
            What::DiskFull(ms) => write!(f, "disk full for {}", span(*ms)),
        }
    }
}

#[cfg(test)]
mod tests {
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
    }

    #[test]
    fn kinds_are_complete() {
        for kind in [What::Refuse, What::OmitId, What::SyncError, What::DiskFull(1), What::Pause(1)] {
            assert!(KINDS.contains(&kind.kind()));
        }
    }
}
