//! What the store's verbs take and give: the records in the engine's own types.

use super::chain::Link;
use crate::clock::Timestamp;
use crate::licence::{LicenceGround, Reason};
use crate::operation::{Fingerprint, FrozenRequest, OperationKey, WireKey};
use crate::state::State;

/// A delivery that is to be recorded.
#[derive(Clone, Debug)]
pub struct NewDelivery {
    /// Who delivers.
    pub source: String,
    /// The source's id of this delivery.
    pub delivery_id: String,
    /// SHA-256 of the body.
    pub digest: String,
}

/// The operation that a delivery asks for.
#[derive(Clone, Debug)]
pub struct NewOperation {
    /// Its key.
    pub key: OperationKey,
    /// Its key on the wire.
    pub wire_key: WireKey,
    /// What it means.
    pub fingerprint: Fingerprint,
    /// What will be sent, verbatim.
    pub frozen: FrozenRequest,
    /// `Ready`, or `Invalid` for one that never met its rules.
    pub state: State,
}

impl NewOperation {
    /// The operation as it is before anything was sent.
    pub(crate) fn as_unsent(&self) -> Operation {
        Operation {
            key: self.key.clone(),
            state: self.state,
            wire_key: self.wire_key.clone(),
            fingerprint: self.fingerprint.clone(),
            frozen: self.frozen.clone(),
            generation: 0,
            version: 1,
            sends: 0,
            checks: 0,
            first_intent: None,
            last_possible_send: None,
            not_before: Timestamp(0),
            external_ref: None,
            open: !self.state.is_terminal(),
            cancelled: false,
        }
    }
}

/// What became of a delivery. Each of these is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// The operation begins with it.
    New(Box<Operation>),
    /// The operation was there already.
    Same {
        /// Its key: another version of the step may be serving the request.
        key: OperationKey,
        /// Where it stands.
        state: State,
    },
    /// The operation was there with another meaning: an exception is open, nothing else changed.
    Changed {
        /// Its key.
        key: OperationKey,
    },
}

/// One operation as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its key.
    pub key: OperationKey,
    /// Where it stands.
    pub state: State,
    /// Its key on the wire.
    pub wire_key: WireKey,
    /// What it means.
    pub fingerprint: Fingerprint,
    /// What is sent, verbatim.
    pub frozen: FrozenRequest,
    /// Raised by a person's authorisation only.
    pub generation: u32,
    /// Raised by each change; a writer that names another one changes nothing.
    pub version: u32,
    /// Sends counted, each before its first byte.
    pub sends: u32,
    /// Look-ups in the present doubt.
    pub checks: u32,
    /// When the first intent became durable.
    pub first_intent: Option<Timestamp>,
    /// The last instant at which a byte of the last send could leave.
    pub last_possible_send: Option<Timestamp>,
    /// Not to be touched before this.
    pub not_before: Timestamp,
    /// The destination's record.
    pub external_ref: Option<String>,
    /// Whether the engine takes it up after a start.
    pub open: bool,
    /// Whether it is not wanted any more: nothing further is sent.
    pub cancelled: bool,
}

/// What is kept of an operation whose records were removed: enough to know it again for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tombstone {
    /// Its key.
    pub key: OperationKey,
    /// What it meant.
    pub fingerprint: Fingerprint,
    /// How it ended.
    pub state: State,
    /// The destination's record.
    pub external_ref: Option<String>,
    /// When it ended.
    pub ended: Timestamp,
    /// When its records were removed.
    pub purged: Timestamp,
    /// The hash over the rows of the chain that were removed: the number and the content's hash of each.
    pub removed: String,
    /// Where it stands in the chain.
    pub link: Link,
}

/// A person's permission for one send more.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Authorisation {
    /// Its number.
    pub id: i64,
    /// What it permits.
    pub kind: Authorised,
    /// Who gave it.
    pub by: String,
    /// Why.
    pub reason: String,
    /// When.
    pub issued: Timestamp,
    /// It permits nothing after this.
    pub expires: Timestamp,
    /// The attempt that has used it up.
    pub consumed_by: Option<u32>,
    /// What has voided it.
    pub voided: Option<String>,
}

/// What a person permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Authorised {
    /// The same key and bytes once more.
    Resend,
    /// A new key: whatever the old one made or will make, this makes another record.
    Creation,
}

impl Authorised {
    /// As it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Authorised::Resend => "resend",
            Authorised::Creation => "creation",
        }
    }
}

/// An intent to send: durable before the first byte.
#[derive(Clone, Debug)]
pub struct Intent {
    /// The operation.
    pub key: OperationKey,
    /// The version that it must still have.
    pub version: u32,
    /// The state that the intent leads to.
    pub state: State,
    /// The key on the wire.
    pub wire_key: WireKey,
    /// The digest of the body that is sent.
    pub digest: String,
    /// The digest of the whole request.
    pub whole_digest: String,
    /// No byte leaves after this.
    pub send_not_after: Timestamp,
    /// Why the send is allowed.
    pub ground: LicenceGround,
    /// The permission that it uses up.
    pub authorisation: Option<i64>,
    /// The next generation, where a person permits another record.
    pub recreation: Option<Recreation>,
}

/// The next generation of an operation: another key, and the same request with it.
#[derive(Clone, Debug)]
pub struct Recreation {
    /// Its number.
    pub generation: u32,
    /// What is sent from here on.
    pub frozen: FrozenRequest,
}

/// Something that became known about an operation, and the state that it leads to.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The operation.
    pub key: OperationKey,
    /// The version that it must still have.
    pub version: u32,
    /// The state that this leads to.
    pub state: State,
    /// The evidence.
    pub evidence: NewEvidence,
    /// Not to be touched before this.
    pub not_before: Timestamp,
    /// The confirmed record.
    pub external_ref: Option<String>,
    /// Whether it counts as a look-up of the present doubt.
    pub counts_check: bool,
    /// The exception that it opens.
    pub exception: Option<NewException>,
    /// Who hears of it where somebody must.
    pub owner: String,
}

/// An immutable observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEvidence {
    /// `confirmed`, `refused`, `not_applied`, `unknown`, `miss`, `negative`, `conflict`, `person` …
    pub class: &'static str,
    /// Where it comes from: `create`, `look-up`, `recovery`, a person's name.
    pub source: String,
    /// What was seen, in one line.
    pub detail: String,
}

impl NewEvidence {
    /// Whether the engine drew it from what was known, and nobody has observed it.
    pub(crate) fn is_conclusion(&self) -> bool {
        self.source == "engine" || self.class == "negative"
    }
}

/// A case for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewException {
    /// Why.
    pub reason: Reason,
    /// Who has to decide.
    pub owner: String,
    /// Until when.
    pub deadline: Timestamp,
    /// Who hears of it when the deadline passes.
    pub escalate_to: String,
    /// What is known, in sentences.
    pub facts: String,
    /// The look-up to do by hand.
    pub lookup: String,
    /// When the key lapses, where there is one.
    pub key_lapses: Option<Timestamp>,
}

/// Somebody who was told of something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert {
    /// The operation.
    pub operation: String,
    /// `overdue`, `assigned`, `late_contradiction`, `cancelled_too_late`, or the reason of the case that was
    /// opened.
    pub kind: String,
    /// Who was told.
    pub owner: String,
    /// When.
    pub raised: Timestamp,
}

/// A case for a person, as stored.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Exception {
    /// Its number.
    pub id: i64,
    /// The operation.
    pub operation: String,
    /// The reason's code.
    pub reason: String,
    /// Who has to decide.
    pub owner: String,
    /// Until when.
    pub deadline: Timestamp,
    /// Who hears of it when the deadline passes.
    pub escalate_to: String,
    /// When it was opened.
    pub opened: Timestamp,
    /// What is known.
    pub facts: String,
    /// The look-up to do by hand.
    pub lookup: String,
    /// When the key lapses.
    pub key_lapses: Option<Timestamp>,
    /// Nobody needs to look at it before this.
    pub snoozed_until: Option<Timestamp>,
    /// The operation's version: a decision names it, and is refused when it has moved on.
    pub version: u32,
    /// Sends made.
    pub sends: u32,
}

/// The classes of what people say, each with the word in front.
pub mod person {
    /// A decision, or something that is known besides.
    pub const SAYS: &str = "person";
    /// There is no record, and none will come.
    pub const ABSENT: &str = "person_absent";
    /// The same, and the person answers for a record that comes all the same.
    pub const ABSENT_AT_RISK: &str = "person_absent_at_risk";
    /// Nothing about the record.
    pub const HOUSEKEEPING: &str = "person_housekeeping";
    /// It is not wanted any more.
    pub const CANCELLED: &str = "person_cancelled";
    /// All of them.
    pub const ALL: [&str; 5] = [SAYS, ABSENT, ABSENT_AT_RISK, HOUSEKEEPING, CANCELLED];
}

/// A person's act, to be recorded with what it leads to.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The operation.
    pub key: OperationKey,
    /// The version that the person saw.
    pub version: u32,
    /// The state that it leads to.
    pub state: State,
    /// `confirm_found`, `reject`, `assign` …
    pub action: &'static str,
    /// What it says of the record, as evidence: one of [`person`].
    pub class: &'static str,
    /// Who.
    pub by: String,
    /// Why, and what else they said.
    pub reason: String,
    /// The record that they point to.
    pub external_ref: Option<String>,
    /// What becomes of the case.
    pub case: CaseChange,
    /// What they permit, and until when.
    pub permits: Option<(Authorised, Timestamp)>,
    /// Who hears of it where somebody must.
    pub owner: String,
}

/// What a person's act makes of the case that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseChange {
    /// The case about the operation itself is closed.
    Closed,
    /// The case about a changed request, beside the operation, is closed.
    ChangeClosed,
    /// It stays as it is.
    Stays,
    /// It has another owner.
    AssignedTo(String),
    /// It rests until then.
    SnoozedUntil(Timestamp),
}

/// Whether a write found the version that it named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a stale write changed nothing"]
pub enum Written {
    /// Yes; it is durable.
    Done,
    /// The operation has moved on; nothing changed.
    Stale,
    /// The record belongs to another operation already; nothing changed.
    RefTaken,
}

/// One attempt as stored.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Attempt {
    /// Its number, from 1.
    pub n: u32,
    /// The key that it carries.
    pub wire_key: String,
    /// SHA-256 of what is sent.
    pub digest: String,
    /// When its intent became durable.
    pub intent_at: Timestamp,
    /// No byte left after this.
    pub send_not_after: Timestamp,
    /// Why it was allowed.
    pub licence: String,
    /// The person's permission that it has used up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorisation: Option<i64>,
    /// Where it stands in the chain; shown as its number, `seq`.
    #[serde(rename = "seq", serialize_with = "number")]
    pub link: Link,
}

/// One piece of evidence as stored.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Evidence {
    /// Its number within the operation; they rise, with gaps.
    pub n: u32,
    /// Sends counted when it was observed.
    pub attempt: u32,
    /// The class.
    pub class: String,
    /// When it was observed.
    pub observed: Timestamp,
    /// Where it comes from.
    pub source: String,
    /// What was seen.
    pub detail: String,
    /// Where the operation stood.
    pub before: String,
    /// Where it stands by this.
    pub after: String,
    /// Where it stands in the chain; shown as its number, `seq`.
    #[serde(rename = "seq", serialize_with = "number")]
    pub link: Link,
}

fn number<S: serde::Serializer>(link: &Link, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_i64(link.seq)
}

/// All that is stored of one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dossier {
    /// The operation.
    pub operation: Operation,
    /// Its attempts.
    pub attempts: Vec<Attempt>,
    /// Its evidence.
    pub evidence: Vec<Evidence>,
    /// Its open exceptions.
    pub exceptions: Vec<Exception>,
    /// The permission that stands: not used, not void.
    pub authorisation: Option<Authorisation>,
}
