//! What happened in a run: typed events in order, hashed as they come.

use crate::fault::ExchangeName;
use serde::Serialize;
use sha2::Digest as _;
use siphasher::sip::SipHasher13;
use std::fmt;
use std::hash::{Hash, Hasher as _};

/// The workflow's node.
pub(crate) const WORKFLOW: &str = "workflow";

/// Simulated nanoseconds since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Whole milliseconds.
    pub fn millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// This instant and so many milliseconds later.
    pub fn after_ms(self, ms: u64) -> Nanos {
        Nanos(self.0.saturating_add(ms.saturating_mul(1_000_000)))
    }
}

/// The index of an event in its history, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Step(pub u32);

/// Something that happened, at a node, at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Event {
    /// Its place in the order.
    pub step: Step,
    /// When.
    pub t_ns: Nanos,
    /// Where.
    pub node: &'static str,
    /// What.
    #[serde(flatten)]
    pub kind: Kind,
    /// The event that led to it, where one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Step>,
}

/// What an event is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Kind {
    /// A process starts.
    Started {
        /// Its n-th start.
        boot: u32,
    },
    /// A sync made writes durable.
    Synced {
        /// The boot.
        boot: u32,
        /// The sync of that boot.
        nth: u32,
    },
    /// The process died; the page cache survives.
    Killed,
    /// The machine lost power.
    PowerCut,
    /// The process stands still.
    Paused,
    /// It goes on.
    Resumed,
    /// A connection was refused; nothing was sent.
    Refused {
        /// The node that was called.
        to: &'static str,
    },
    /// The first byte of a request left its caller.
    Sent {
        /// The exchange.
        #[serde(flatten)]
        exchange: ExchangeName,
        /// The node that is called.
        to: &'static str,
        /// The idempotency key or reference that it carries.
        key: Option<String>,
        /// SHA-256 of its body, hexadecimal.
        digest: String,
        /// One line of what it asks.
        summary: String,
    },
    /// The whole request is at the other side.
    Arrived {
        /// The exchange.
        #[serde(flatten)]
        exchange: ExchangeName,
    },
    /// The destination's truth changed.
    Effect {
        /// The operation that the request was made for, whatever reference it carries.
        about: String,
        /// The record.
        record: String,
        /// The key or reference it came with.
        key: Option<String>,
        /// Whether the caller's deadline had passed.
        late: bool,
    },
    /// Something happened to a record at the destination that no request asked for.
    Hand {
        /// The operation that the record was made for, or looks like.
        about: String,
        /// The record.
        record: String,
        /// What happened.
        did: Deed,
    },
    /// The other side answers.
    Answered {
        /// The exchange.
        #[serde(flatten)]
        exchange: ExchangeName,
        /// The HTTP status.
        status: u16,
        /// One line of what the answer says.
        summary: String,
    },
    /// The answer reached the caller.
    Received {
        /// The exchange.
        #[serde(flatten)]
        exchange: ExchangeName,
        /// The HTTP status.
        status: u16,
        /// One line of what the answer says.
        summary: String,
        /// The record that it names, if it names one.
        record: Option<String>,
        /// For a look-up: no match, and no further page. For a delivery: not the last word on it.
        empty: bool,
    },
    /// The caller gave up, or its connection broke.
    Broken {
        /// The exchange.
        #[serde(flatten)]
        exchange: ExchangeName,
    },
    /// A fault of the tape struck.
    Fault {
        /// Its number on the tape, from 1.
        n: u32,
        /// Its kind.
        what: &'static str,
        /// In words.
        words: String,
    },
    /// The workflow's durable state said this (only in a run that is told in full).
    Journal {
        /// The operation.
        about: String,
        /// What is now durable.
        words: String,
    },
    /// A person acted.
    Person {
        /// The operation.
        about: String,
        /// What they want.
        act: Act,
        /// The same in words.
        words: String,
    },
    /// No more faults from here: everything is up and reachable.
    Calm,
    /// Everything has settled; late effects may still come.
    Quiet,
    /// The end of the run.
    End {
        /// Records in each destination.
        records: u32,
    },
}

/// What a person wants with an operation that is theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Act {
    /// This record is it.
    Confirm,
    /// It shall not be done.
    Reject,
    /// There is no record, and none will come.
    DeclareAbsent,
    /// Another record shall be made.
    AuthoriseCreation,
    /// It is not wanted any more.
    Cancel,
    /// The records shall be compared with the destination's.
    Reconcile,
}

impl Act {
    /// Whether the operation ends by it.
    pub fn ends(self) -> bool {
        matches!(self, Act::Confirm | Act::Reject)
    }
}

/// What happens to a record without a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Deed {
    /// A person changed its title.
    Edited,
    /// A person archived it.
    Archived,
    /// A person deleted it.
    Deleted,
    /// The destination took it back.
    RolledBack,
    /// A person made it, like another one.
    Copied,
    /// A person made it, for a matter of their own.
    Made,
}

impl Deed {
    /// Whether the record is gone.
    pub fn ends_record(self) -> bool {
        matches!(self, Deed::Deleted | Deed::RolledBack)
    }

    fn words(self) -> &'static str {
        match self {
            Deed::Edited => "edited by hand",
            Deed::Archived => "archived by hand",
            Deed::Deleted => "deleted by hand",
            Deed::RolledBack => "rolled back by the destination",
            Deed::Copied => "made by hand as a copy",
            Deed::Made => "made by hand for another matter",
        }
    }
}

impl Kind {
    /// The exchange it belongs to.
    pub fn exchange(&self) -> Option<&ExchangeName> {
        match self {
            Kind::Sent { exchange, .. }
            | Kind::Arrived { exchange }
            | Kind::Answered { exchange, .. }
            | Kind::Received { exchange, .. }
            | Kind::Broken { exchange } => Some(exchange),
            _ => None,
        }
    }

    /// The operation or delivery it is about.
    pub fn about(&self) -> Option<&str> {
        match self {
            Kind::Effect { about, .. }
            | Kind::Hand { about, .. }
            | Kind::Journal { about, .. }
            | Kind::Person { about, .. } => Some(about),
            _ => self.exchange().map(|e| e.about.as_str()),
        }
    }
}

/// SHA-256 of bytes, hexadecimal.
pub fn digest(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(&sha2::Sha256::digest(bytes))
}

/// The events of a run and their running hash.
#[derive(Clone, Debug, Default)]
pub struct History {
    events: Vec<Event>,
    hasher: SipHasher13,
    writes: u64,
}

impl History {
    /// Adds an event. A [`Kind::Journal`] note is kept out of the hash, because only some runs take notes.
    pub fn add(&mut self, t_ns: Nanos, node: &'static str, kind: Kind, cause: Option<Step>) -> Step {
        assert!(self.events.last().is_none_or(|last| last.t_ns <= t_ns), "time runs backwards");
        if !matches!(kind, Kind::Journal { .. }) {
            (t_ns, node, &kind).hash(&mut self.hasher);
        }
        let step = Step(self.events.len() as u32 + 1);
        self.events.push(Event { step, t_ns, node, kind, cause });
        step
    }

    /// Takes a disk write into the hash: where and how much, never the bytes.
    pub fn wrote(&mut self, offset: u64, len: u32) {
        self.writes += 1;
        self.hasher.write_u64(offset);
        self.hasher.write_u32(len);
    }

    /// The events in order.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The event at a step.
    pub fn event(&self, step: Step) -> &Event {
        &self.events[step.0 as usize - 1]
    }

    /// The hash of everything so far.
    pub fn hash(&self) -> u64 {
        self.hasher.finish()
    }

    /// The number of disk writes.
    pub fn writes(&self) -> u64 {
        self.writes
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.t_ns.0 as f64 / 1e9;
        write!(f, "{:>4} {seconds:>10.3} s  {:<10} ", self.step.0, self.node)?;
        self.kind.fmt(f)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Started { boot } => write!(f, "started (boot {boot})"),
            Kind::Synced { boot, nth } => write!(f, "disk sync {nth} of boot {boot}"),
            Kind::Killed => write!(f, "killed"),
            Kind::PowerCut => write!(f, "power cut"),
            Kind::Paused => write!(f, "paused"),
            Kind::Resumed => write!(f, "goes on"),
            Kind::Refused { to } => write!(f, "connection to {to} refused, nothing sent"),
            Kind::Sent { exchange, to, summary, .. } => write!(f, "-> {to}: {summary} ({exchange})"),
            Kind::Arrived { exchange } => write!(f, "received the {exchange}"),
            Kind::Effect { about, record, late, .. } => {
                write!(f, "{record} made for {about}{}", if *late { ", late" } else { "" })
            }
            Kind::Hand { about, record, did } => write!(f, "{record} {} ({about})", did.words()),
            Kind::Answered { exchange, status, summary } => {
                write!(f, "answers {status} {summary} ({exchange})")
            }
            Kind::Received { exchange, status, summary, .. } => {
                write!(f, "<- {status} {summary} ({exchange})")
            }
            Kind::Broken { exchange } => write!(f, "no answer ({exchange})"),
            Kind::Fault { n, words, .. } => write!(f, "fault {n}: {words}"),
            Kind::Journal { about, words } => write!(f, "journal: {about} {words}"),
            Kind::Person { about, words, .. } => write!(f, "person: {words} ({about})"),
            Kind::Calm => write!(f, "calm: no faults from here, everything is up"),
            Kind::Quiet => write!(f, "quiet: everything has settled"),
            Kind::End { records } => write!(f, "end, {records} records"),
        }
    }
}
