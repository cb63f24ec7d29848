//! What goes wrong: every fault kind, its parameters, and its words.

use serde::{Deserialize, Serialize};
use std::fmt;

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

/// How a success fails to say which record it made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Omission {
    /// A well-formed answer without an id.
    NoId,
    /// A body that nobody can read.
    Garbled,
    /// 202: the work is accepted, and a job will do it.
    Accepted,
}

/// Which way of a link carries nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// Requests do not arrive.
    There,
    /// Answers do not come back.
    Back,
    /// Neither.
    Both,
}

/// How a further delivery of a request differs from the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variation {
    /// To the byte the same.
    Same,
    /// Another delivery id.
    NewId,
    /// Another delivery id, and fields that mean nothing differ: times, counters, order.
    Volatile,
    /// Another delivery id, and the request means something else.
    Meaning,
    /// Bytes that nobody can read.
    Poison,
}

/// What goes wrong. O1-O11 name the outcomes of one external call; spans are milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum What {
    /// O1: refused before a byte is sent.
    Refuse,
    /// O2: the request is lost on its way.
    LoseRequest(Loss),
    /// O3: the destination received it and did nothing; this status, or none, comes back.
    NotApplied(#[serde(with = "answered")] Option<u16>),
    /// O4: applied; the response is lost.
    LoseResponse(Loss),
    /// O5: the caller hears nothing; the effect comes this many milliseconds after the request arrived.
    ApplyLate(u64),
    /// O6: applied, and this error status is reported.
    ErrorAfter(u16),
    /// O7: something on the way sends the request again, so many milliseconds after it was answered.
    Duplicate(u64),
    /// O8: success is reported without a readable id.
    OmitId(Omission),
    /// O9: success is reported, and the record is gone so many milliseconds later.
    Undo(u64),
    /// O10: applied at once; the answer comes after this many milliseconds.
    AnswerSlowly(u64),
    /// O11: the peer falls silent for ever, after applying the request or without.
    Hang {
        /// Whether the destination wrote the record.
        applied: bool,
    },
    /// A connection that is never established, and never refused.
    HangConnecting,
    /// From this exchange on, for so many milliseconds, the link to the destination carries nothing one way
    /// or both.
    Partition {
        /// Which way.
        way: Way,
        /// For how long.
        ms: u64,
    },
    /// Everything else goes first: this step of an exchange waits so many milliseconds.
    Delay(u64),
    /// From this look-up on, for so many milliseconds, look-ups find nothing at all: a lost permission, or an
    /// error that is read as "empty".
    Blind(u64),
    /// This look-up answers as its index was so many milliseconds ago.
    Stale(u64),
    /// What this look-up finds stands on its second page.
    SecondPage,
    /// This look-up also shows the record of another operation.
    Foreign,
    /// The destination forgets every key before their time.
    ForgetKeys,
    /// The destination's store of keys is down for so many milliseconds.
    KeysDown(u64),
    /// The request is delivered once more, so many milliseconds after its first time.
    Redeliver {
        /// How it differs.
        how: Variation,
        /// How much later.
        after_ms: u64,
    },
    /// So many copies of the request arrive at one instant.
    AtOnce(u32),
    /// The delivery is held back so many milliseconds, so that others overtake it.
    HoldBack(u64),
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
    /// The process's wall clock is set, by so many milliseconds ahead (or back, where negative).
    ClockStep(i64),
    /// The process's wall clock runs fast by so many millionths (or slow, where negative).
    ClockRate(i64),
    /// This sync reports an error.
    SyncError,
    /// Every write from here on meets a full disk, for so many milliseconds.
    DiskFull(u64),
    /// The next read of the disk fails.
    ReadError,
    /// One bit of what is on the disk flips. No program on one disk survives it.
    BitFlip,
    /// From this sync on the disk claims to have synced and has not. No program on one disk survives it.
    LyingSync,
    /// The person looks at the case so many milliseconds later than planned.
    ActLate(u64),
    /// The person points to a record that is not the operation's, before the right one.
    WrongReference,
    /// Two people decide at once, and differently.
    TwoAtOnce,
    /// The person decides on what they saw before it changed.
    StaleView,
    /// A person edits the record at the destination, so many milliseconds after it was made.
    EditByHand(u64),
    /// A person deletes it, once the workflow has recorded it.
    DeleteByHand,
    /// A person archives it, so many milliseconds after it was made.
    ArchiveByHand(u64),
    /// A person makes a second one like it, so many milliseconds after it was made.
    CopyByHand(u64),
}

/// Every fault kind, in the order in which they are listed.
pub const KINDS: [&str; 43] = [
    "refuse",
    "lose-request",
    "not-applied",
    "lose-response",
    "apply-late",
    "error-after",
    "duplicate",
    "omit-id",
    "undo",
    "answer-slowly",
    "hang",
    "hang-connecting",
    "partition",
    "delay",
    "blind",
    "stale",
    "second-page",
    "foreign",
    "forget-keys",
    "keys-down",
    "redeliver",
    "change-meaning",
    "poison",
    "at-once",
    "hold-back",
    "kill",
    "power-cut",
    "pause",
    "clock-step",
    "clock-rate",
    "sync-error",
    "disk-full",
    "read-error",
    "bit-flip",
    "lying-sync",
    "act-late",
    "wrong-reference",
    "two-at-once",
    "stale-view",
    "edit-by-hand",
    "delete-by-hand",
    "archive-by-hand",
    "copy-by-hand",
];

impl What {
    /// Whether its kind is switched on; where none is named, all are.
    pub fn is_on(&self, kinds: Option<&[String]>) -> bool {
        kinds.is_none_or(|kinds| kinds.iter().any(|kind| kind == self.kind()))
    }

    /// The kind's name, as `--faults` and the counters print it.
    pub fn kind(&self) -> &'static str {
        match self {
            What::Refuse => "refuse",
            What::LoseRequest(_) => "lose-request",
            What::NotApplied(_) => "not-applied",
            What::LoseResponse(_) => "lose-response",
            What::ApplyLate(_) => "apply-late",
            What::ErrorAfter(_) => "error-after",
            What::Duplicate(_) => "duplicate",
            What::OmitId(_) => "omit-id",
            What::Undo(_) => "undo",
            What::AnswerSlowly(_) => "answer-slowly",
            What::Hang { .. } => "hang",
            What::HangConnecting => "hang-connecting",
            What::Partition { .. } => "partition",
            What::Delay(_) => "delay",
            What::Blind(_) => "blind",
            What::Stale(_) => "stale",
            What::SecondPage => "second-page",
            What::Foreign => "foreign",
            What::ForgetKeys => "forget-keys",
            What::KeysDown(_) => "keys-down",
            What::Redeliver { how: Variation::Meaning, .. } => "change-meaning",
            What::Redeliver { how: Variation::Poison, .. } => "poison",
            What::Redeliver { .. } => "redeliver",
            What::AtOnce(_) => "at-once",
            What::HoldBack(_) => "hold-back",
            What::Kill(_) => "kill",
            What::PowerCut { .. } => "power-cut",
            What::Pause(_) => "pause",
            What::ClockStep(_) => "clock-step",
            What::ClockRate(_) => "clock-rate",
            What::SyncError => "sync-error",
            What::DiskFull(_) => "disk-full",
            What::ReadError => "read-error",
            What::BitFlip => "bit-flip",
            What::LyingSync => "lying-sync",
            What::ActLate(_) => "act-late",
            What::WrongReference => "wrong-reference",
            What::TwoAtOnce => "two-at-once",
            What::StaleView => "stale-view",
            What::EditByHand(_) => "edit-by-hand",
            What::DeleteByHand => "delete-by-hand",
            What::ArchiveByHand(_) => "archive-by-hand",
            What::CopyByHand(_) => "copy-by-hand",
        }
    }

    /// Its kind's place in [`KINDS`].
    ///
    /// # Panics
    /// Never: every kind is listed.
    pub fn kind_index(&self) -> usize {
        let kind = self.kind();
        KINDS.iter().position(|known| *known == kind).expect("every kind is listed")
    }

    /// How long it goes on from where it strikes, in milliseconds: the storm lasts at least as long.
    pub fn lasts_ms(&self) -> u64 {
        match self {
            What::Kill(ms)
            | What::Pause(ms)
            | What::DiskFull(ms)
            | What::ApplyLate(ms)
            | What::AnswerSlowly(ms)
            | What::Duplicate(ms)
            | What::Undo(ms)
            | What::Partition { ms, .. }
            | What::Delay(ms)
            | What::Blind(ms)
            | What::KeysDown(ms)
            | What::HoldBack(ms)
            | What::EditByHand(ms)
            | What::ArchiveByHand(ms)
            | What::CopyByHand(ms)
            | What::Redeliver { after_ms: ms, .. } => *ms,
            What::PowerCut { down, .. } => *down,
            _ => 0,
        }
    }
}

/// A status as it is written down; TOML has no word for none, and no status is 0.
mod answered {
    use serde::{Deserialize as _, Deserializer, Serializer};

    #[expect(clippy::ref_option, reason = "serde hands over a reference to the field")]
    pub(super) fn serialize<S: Serializer>(status: &Option<u16>, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u16(status.unwrap_or(0))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u16>, D::Error> {
        u16::deserialize(from).map(|status| (status != 0).then_some(status))
    }
}

/// Milliseconds as people write them.
fn span(ms: u64) -> humantime::FormattedDuration {
    humantime::format_duration(std::time::Duration::from_millis(ms))
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Loss::Silence => "silence",
            Loss::Reset => "the connection breaks",
            Loss::Truncated => "the body is cut off",
        })
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::Refuse => write!(f, "connection refused, nothing sent"),
            What::LoseRequest(loss) => write!(f, "request lost ({loss})"),
            What::NotApplied(Some(status)) => write!(f, "received, not applied, answered {status}"),
            What::NotApplied(None) => write!(f, "received, not applied, no answer"),
            What::LoseResponse(loss) => write!(f, "response lost ({loss})"),
            What::ApplyLate(ms) => write!(f, "no answer, applied {} late", span(*ms)),
            What::ErrorAfter(status) => write!(f, "applied, answered {status}"),
            What::Duplicate(ms) => write!(f, "sent again on the way, {} later", span(*ms)),
            What::OmitId(Omission::NoId) => write!(f, "applied, answered without an id"),
            What::OmitId(Omission::Garbled) => write!(f, "applied, answered with an unreadable body"),
            What::OmitId(Omission::Accepted) => write!(f, "accepted with 202, applied by a job"),
            What::Undo(ms) => write!(f, "reported, and undone {} later", span(*ms)),
            What::AnswerSlowly(ms) => write!(f, "answered {} late", span(*ms)),
            What::Hang { applied: true } => write!(f, "applied, then silence for ever"),
            What::Hang { applied: false } => write!(f, "silence for ever, nothing applied"),
            What::HangConnecting => write!(f, "the connection is never established"),
            What::Partition { way, ms } => {
                let lost = match way {
                    Way::There => "requests do not arrive",
                    Way::Back => "answers do not come back",
                    Way::Both => "nothing passes",
                };
                write!(f, "partition for {}: {lost}", span(*ms))
            }
            What::Delay(ms) => write!(f, "held up for {}", span(*ms)),
            What::Blind(ms) => write!(f, "look-ups find nothing for {}", span(*ms)),
            What::Stale(ms) => write!(f, "answered from an index {} old", span(*ms)),
            What::SecondPage => write!(f, "the match stands on the second page"),
            What::Foreign => write!(f, "another operation's record is among the matches"),
            What::ForgetKeys => write!(f, "every key is forgotten early"),
            What::KeysDown(ms) => write!(f, "the store of keys is down for {}", span(*ms)),
            What::Redeliver { how, after_ms } => {
                let how = match how {
                    Variation::Same => "delivered again",
                    Variation::NewId => "delivered again with another id",
                    Variation::Volatile => "delivered again with other times in it",
                    Variation::Meaning => "delivered again with another meaning",
                    Variation::Poison => "delivered again as bytes that nobody can read",
                };
                write!(f, "{how}, {} later", span(*after_ms))
            }
            What::AtOnce(copies) => write!(f, "{copies} copies at one instant"),
            What::HoldBack(ms) => write!(f, "held back for {}", span(*ms)),
            _ => self.fmt_process(f),
        }
    }
}

impl What {
    /// The words for what strikes a process, its disk, its clock, or comes from a person.
    fn fmt_process(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
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
            What::ClockStep(ms) if *ms < 0 => write!(f, "clock set back by {}", span(ms.unsigned_abs())),
            What::ClockStep(ms) => write!(f, "clock set ahead by {}", span(ms.unsigned_abs())),
            What::ClockRate(ppm) if *ppm < 0 => write!(f, "clock slow by {} ppm", ppm.unsigned_abs()),
            What::ClockRate(ppm) => write!(f, "clock fast by {ppm} ppm"),
            What::SyncError => write!(f, "disk sync fails"),
            What::DiskFull(ms) => write!(f, "disk full for {}", span(*ms)),
            What::ReadError => write!(f, "disk read fails"),
            What::BitFlip => write!(f, "a bit on the disk flips"),
            What::LyingSync => write!(f, "syncs are claimed and not done"),
            What::ActLate(ms) => write!(f, "looks {} later", span(*ms)),
            What::WrongReference => write!(f, "points to a wrong record first"),
            What::TwoAtOnce => write!(f, "two people decide at once"),
            What::StaleView => write!(f, "decides on what has changed since"),
            What::EditByHand(ms) => write!(f, "edited by hand {} later", span(*ms)),
            What::DeleteByHand => write!(f, "deleted by hand once it is recorded"),
            What::ArchiveByHand(ms) => write!(f, "archived by hand {} later", span(*ms)),
            What::CopyByHand(ms) => write!(f, "made a second time by hand {} later", span(*ms)),
            _ => unreachable!("the words of outcomes are written above"),
        }
    }
}
