//! Where a fault strikes: a place is named by what happens there, never by an index into a random stream.

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

    /// Whether the destination answers it.
    pub fn is_to_destination(self) -> bool {
        matches!(self, Call::Create | Call::Find | Call::Fetch)
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
    /// What it is about: an operation (`R17:create-ticket:v1`), or a delivery (`R17/1`).
    pub about: String,
    /// Counted from 1.
    pub nth: u32,
}

/// Where a fault strikes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Place {
    /// A request as the source hands it over, by its name (`R17/1`).
    Delivery(String),
    /// The n-th connection that the workflow opens to its destination, from 1.
    Connection {
        /// Counted over the whole run.
        nth: u32,
    },
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
    /// The n-th record that was made for an operation, from 1: what hands at the destination can reach.
    Record {
        /// The operation.
        about: String,
        /// Counted from 1.
        nth: u32,
    },
    /// A person turns to an operation that is theirs.
    Case(String),
}

impl Place {
    /// Whether the counting of this place starts at 1, as it must.
    pub(super) fn counts_from_one(&self) -> bool {
        match self {
            Place::Delivery(_) | Place::Case(_) => true,
            Place::Connection { nth } | Place::Record { nth, .. } => *nth > 0,
            Place::Exchange(exchange) | Place::Phase { exchange, .. } => exchange.nth > 0,
            Place::Sync { boot, nth, .. } => *boot > 0 && *nth > 0,
        }
    }

    /// The exchange that it is a point of.
    pub fn exchange(&self) -> Option<&ExchangeName> {
        match self {
            Place::Exchange(exchange) | Place::Phase { exchange, .. } => Some(exchange),
            _ => None,
        }
    }

    /// Whether it belongs to a delivery, and not to an operation.
    pub fn is_of_delivery(&self) -> bool {
        match self {
            Place::Delivery(_) => true,
            _ => self.exchange().is_some_and(|exchange| exchange.call == Call::Deliver),
        }
    }

    /// The operation or delivery that it belongs to; none where it is the whole process's.
    pub fn about(&self) -> Option<&str> {
        match self {
            Place::Exchange(exchange) | Place::Phase { exchange, .. } => Some(&exchange.about),
            Place::Delivery(about) | Place::Record { about, .. } | Place::Case(about) => Some(about),
            Place::Connection { .. } | Place::Sync { .. } => None,
        }
    }

    /// What kind of boundary it is, as coverage counts it: `create sent`, `before sync`.
    pub fn kind(&self) -> String {
        match self {
            Place::Delivery(_) => "source".into(),
            Place::Connection { .. } => "connection".into(),
            Place::Exchange(exchange) => exchange.call.word().into(),
            Place::Phase { exchange, phase } => format!("{} {}", exchange.call.word(), phase.word()),
            Place::Sync { when: When::Before, .. } => "before sync".into(),
            Place::Sync { when: When::After, .. } => "after sync".into(),
            Place::Record { .. } => "record".into(),
            Place::Case(_) => "case".into(),
        }
    }
}

impl Phase {
    fn word(self) -> &'static str {
        match self {
            Phase::BeforeSend => "before send",
            Phase::Sent => "sent",
            Phase::Arrived => "arrived",
            Phase::Applied => "applied",
            Phase::Answered => "answered",
        }
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
            Place::Delivery(name) => write!(f, "{name} at its source"),
            Place::Connection { nth } => write!(f, "{} connection to the destination", ordinal(*nth)),
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
            Place::Record { about, nth } => write!(f, "{} record of {about}", ordinal(*nth)),
            Place::Case(about) => write!(f, "the person who owns {about}"),
        }
    }
}
