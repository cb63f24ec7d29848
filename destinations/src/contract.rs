//! A contract: what is known of one operation of one external system, checked when it is read.
//!
//! A contract is data, one TOML file for each system and operation. Every omitted field is *unknown*, and
//! unknown always derives to the most conservative behaviour (see [`mod@crate::recovery`]). No text of a
//! contract permits anything by itself.

mod catalogue;
mod check;
mod error;
mod identity;
mod key;
pub(crate) mod measure;
mod refusal;
mod weaken;

pub use catalogue::{builtin, builtin_text, named};
pub use error::ContractError;
pub use identity::{
    Atomic, Complete, Consistency, Converge, ConvergeKind, Lookup, LookupBy, OnConflict, OnMultiMatch,
};
pub use key::{
    AfterExpiry, Anchor, Carrier, DedupKey, Hole, InFlight, KeyFormat, Mismatch, NotSaved, ReplayKind,
    ReplayStatus, RetentionKind, Saved, Scope, StoreDown,
};
pub use measure::{Bound, Permanence, Retention, Staleness};
pub use refusal::ErrorMatch;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// What is known of one operation of one external system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contract {
    /// Its name, which is also the name of its file: `zendesk_ticket`.
    pub id: String,
    /// The system in words; a fictional one says so.
    pub system: String,
    /// The operation in words: method and path.
    pub operation: String,
    /// Whether an answer means that the effect is there.
    #[serde(default)]
    pub ack: Ack,
    /// How bad a second effect is; policy only, it never permits anything.
    #[serde(default)]
    pub harm_of_duplicate: Harm,
    /// Whether the effect can be undone.
    #[serde(default)]
    pub undo: Undo,
    /// How all our records can be listed.
    #[serde(default)]
    pub enumerate: Enumerate,
    /// Whether something between us and the destination may send a request twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxies_may_retry: Option<bool>,
    /// When the facts were collected, from where, and how good they are.
    #[serde(default)]
    pub revision: Revision,
    /// The deduplication key, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedup_key: Option<DedupKey>,
    /// Identities that outlive any key.
    #[serde(default)]
    pub converge: Vec<Converge>,
    /// Ways to find a record again.
    #[serde(default)]
    pub lookup: Vec<Lookup>,
    /// Bounds in time.
    #[serde(default)]
    pub time: TimeBounds,
    /// What its errors prove.
    #[serde(default)]
    pub errors: Errors,
    /// The events that it sends.
    #[serde(default)]
    pub webhooks: Webhooks,
    /// Whether an operation can be cancelled by its key (Square).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub void_by_key: Option<VoidByKey>,
    /// The answer to an operation whose state was reached before ("already captured").
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_transition: Option<StateTransition>,
    /// Response headers that say whether to send again.
    #[serde(default)]
    pub retry_directives: Vec<RetryDirective>,
}

/// When the facts were collected, from where, and how good they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Revision {
    /// The day of collection: `2026-11-30`.
    pub as_of: String,
    /// Where the facts were found.
    pub sources: Vec<String>,
    /// How good the evidence is, by the path of a field (`dedup_key.retention`); a path covers what is below
    /// it, and the longest path counts. Items of a list are named by what they are: `lookup.external_ref`.
    pub evidence: BTreeMap<String, Grade>,
}

/// How good the evidence for a field is, weakest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// Nothing was found.
    #[default]
    Unknown,
    /// Somebody takes it to be so.
    Assumed,
    /// Users report it, or it was observed.
    Reported,
    /// The vendor's words, seen where somebody quotes them.
    Quoted,
    /// The vendor's words, seen at their source.
    Documented,
}

/// Whether an answer means that the effect is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ack {
    /// It does.
    Sync,
    /// The work is only accepted; it may still fail.
    AsyncAccepted,
    /// Nothing is documented.
    #[default]
    Unknown,
}

/// How bad a second effect is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Harm {
    /// A record too many.
    Record,
    /// A message too many.
    Notification,
    /// Money.
    Money,
    /// Nobody said.
    #[default]
    Unknown,
}

/// Whether an effect can be undone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Undo {
    /// By this operation, without a trace.
    Reversible(String),
    /// By this operation, which leaves a trace.
    Compensable(String),
    /// Not at all.
    Irreversible,
    /// Nobody said.
    #[default]
    Unknown,
}

/// How all our records can be listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Enumerate {
    /// They cannot.
    None,
    /// By our marker.
    ByMarker,
    /// By who created them.
    ByCreator,
    /// By a cursor over changes.
    Incremental {
        /// How far the cursor lags behind.
        #[serde(default)]
        lag: Bound,
    },
    /// Nobody said.
    #[default]
    Unknown,
}

/// Bounds in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TimeBounds {
    /// How long after its last possible send an abandoned request may still take effect; almost never
    /// documented.
    pub late_commit_bound: Bound,
    /// How far the destination's clock may be off; only ever widens the assumed skew.
    pub clock_skew_margin: Bound,
}

/// What the errors of a destination prove.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Errors {
    /// Answers that prove that the request was not executed.
    pub not_executed: Vec<ErrorMatch>,
    /// Answers that prove nothing although `not_executed` matches them.
    pub unknown: Vec<ErrorMatch>,
}

/// The events that a destination sends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Webhooks {
    /// How often an event arrives.
    pub delivery: Delivery,
    /// Header or field with the event's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    /// Header or field with the delivery's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_id: Option<String>,
    /// Whether a failed delivery is repeated by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_redelivery: Option<bool>,
    /// For how long deliveries are repeated.
    pub window: Bound,
    /// How long the destination waits for our answer.
    pub ack_timeout: Bound,
    /// In what order events arrive.
    pub ordering: Ordering,
}

/// How often an event arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// Once or more.
    AtLeastOnce,
    /// Once or not at all.
    BestEffortOnce,
    /// There are no events.
    None,
    /// Nothing is documented.
    #[default]
    Unknown,
}

/// In what order events arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ordering {
    /// In any.
    None,
    /// In order for each record.
    PerKey,
    /// In one order.
    Total,
    /// Nothing is documented.
    #[default]
    Unknown,
}

/// An operation that cancels another by its key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VoidByKey {
    /// The cancelling operation: method and path.
    pub operation: String,
    /// Whether it also stops a commit that is still to come (Square: no).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fences_late_commit: Option<bool>,
}

/// The answer to an operation whose state was reached before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateTransition {
    /// HTTP status of the answer.
    pub status: u16,
    /// Error code in the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// A response header that says whether to send again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetryDirective {
    /// Name of the header: `Stripe-Should-Retry`.
    pub header: String,
    /// The value that permits a resend with the same key; any other value, or none, forbids it.
    pub permits: String,
}

impl Contract {
    /// Reads a contract and checks that it does not contradict itself; `name` is the file named in errors.
    ///
    /// # Errors
    /// An unknown field, a malformed value, or values that contradict each other, with the place in the text.
    pub fn from_toml(name: &str, text: &str) -> Result<Self, ContractError> {
        let contract: Self =
            toml::from_str(text).map_err(|error| ContractError::from_toml(name, text, &error))?;
        match check::contradiction(&contract) {
            None => Ok(contract),
            Some(found) => Err(ContractError::contradiction(name, text, &found)),
        }
    }

    /// SHA-256 of the canonical form, in hexadecimal: the same for two texts that declare the same.
    ///
    /// The canonical form is TOML with sorted keys in which unknown fields are left out, so a schema that
    /// learns a new field does not change it.
    pub fn digest(&self) -> String {
        let form = weaken::known_tree(self).to_string();
        data_encoding::HEXLOWER.encode(&Sha256::digest(form))
    }

    /// Whether an answer proves that the request was not executed: a documented refusal before execution.
    pub fn not_executed(&self, status: u16, body: &[u8]) -> bool {
        let matches = |list: &[ErrorMatch]| list.iter().any(|error| error.matches(status, body));
        matches(&self.errors.not_executed) && !matches(&self.errors.unknown)
    }

    /// Every contract that knows one thing less, with the path of what it does not know.
    ///
    /// Each leaf of the declaration is made unknown and each item of a list removed, one at a time. Left
    /// alone is what only ever forbids, for whoever does not know of it is not more careful: the holes of a
    /// key, a mismatch that executes, a store of keys that fails open, errors that prove nothing, a single
    /// write path, and the margin for the clock.
    pub fn weakened(&self) -> Vec<(String, Self)> {
        weaken::weakened(self)
    }

    /// How good the evidence for a field is: the grade of the longest path that covers it.
    pub fn grade(&self, path: &str) -> Grade {
        let mut covering = path;
        loop {
            if let Some(grade) = self.revision.evidence.get(covering) {
                return *grade;
            }
            match covering.rfind('.') {
                Some(dot) => covering = &covering[..dot],
                None => return Grade::Unknown,
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
