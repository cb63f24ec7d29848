//! The durable records, behind verbs of one transaction each; nothing is acknowledged before its commit is on
//! the disk.

mod committer;
mod connections;
mod mutated;
mod open;
mod rows;
mod verbs;

use crate::clock::{Clock, Timestamp};
use crate::licence::{LicenceGround, Reason};
use crate::mutant::Mutant;
use crate::operation::{Fingerprint, FrozenRequest, OperationKey, WireKey};
use crate::state::State;
use committer::Committer;
use std::sync::Arc;

pub use connections::{Connections, open_file};
pub use open::{SCHEMA_VERSION, create_file};
pub use rows::{Contents, StoredDelivery, read_all};

/// A failed store call. Each says whether its effect may have happened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Nothing was written; the same call may work later.
    #[error("the store is unavailable at the moment and nothing was written: {0}")]
    Transient(String),
    /// The commit itself failed: the change may be durable or not. The process must stop and read again.
    #[error("the store could not say whether the change is durable; restart to read it again: {0}")]
    Unknown(String),
    /// The file is damaged, or is no store.
    #[error(
        "the store file is damaged: {0}\n  help: keep the file, restore the last backup, and start from that"
    )]
    Corrupt(String),
    /// The store cannot be used at all.
    #[error("{0}")]
    Unusable(String),
}

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
        /// Where it stands.
        state: State,
    },
    /// The operation was there with another meaning: an exception is open, nothing else changed.
    Changed,
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
    /// The digest of what is sent.
    pub digest: String,
    /// No byte leaves after this.
    pub send_not_after: Timestamp,
    /// Why the send is allowed.
    pub ground: LicenceGround,
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
    /// The operation's version: a decision names it, and is refused when it has moved on.
    pub version: u32,
    /// Sends made.
    pub sends: u32,
}

/// A person's decision, to be recorded with what it leads to.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The operation.
    pub key: OperationKey,
    /// The version that the person saw.
    pub version: u32,
    /// The state that it leads to.
    pub state: State,
    /// `confirm_found` or `reject`.
    pub action: &'static str,
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
    /// The record that they point to.
    pub external_ref: Option<String>,
    /// Whether it is about a changed request beside the operation, and not about the operation itself.
    pub on_change: bool,
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
}

/// One piece of evidence as stored.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Evidence {
    /// Its number within the operation.
    pub n: u32,
    /// The class.
    pub class: String,
    /// When it was observed.
    pub observed: Timestamp,
    /// Where it comes from.
    pub source: String,
    /// What was seen.
    pub detail: String,
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
}

/// Where a store is and how it is opened.
#[derive(Clone, Debug)]
pub struct StoreAt {
    /// The file's path, or an SQLite URI.
    pub path: String,
    /// Where connections come from.
    pub connections: Connections,
    /// Where time comes from.
    pub clock: Clock,
    /// One known mistake; none outside the simulator.
    pub mutant: Mutant,
}

impl StoreAt {
    /// A file, opened when it is needed, on the wall clock.
    pub fn file(path: impl Into<String>) -> StoreAt {
        StoreAt {
            path: path.into(),
            connections: Connections::plain(),
            clock: Clock::system(),
            mutant: Mutant::default(),
        }
    }
}

/// The engine's durable memory: one SQLite file, one connection, one committer that groups what waits.
///
/// A second `Store` on the same file is a second connection: SQLite's own locks keep the two apart.
#[derive(Clone)]
pub struct Store {
    committer: Arc<Committer>,
    mutant: Mutant,
}

impl Store {
    /// Opens the store, creating it in an empty file, and makes durable whatever is visible in it.
    ///
    /// # Errors
    /// When the file cannot be written, is damaged, belongs to something else, or was written by a newer
    /// version.
    pub fn open(at: &StoreAt) -> Result<Store, StoreError> {
        Store::open_as(at, open::Beside::Nobody)
    }

    /// Opens a second connection to a store that this process has open already.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_beside(at: &StoreAt) -> Result<Store, StoreError> {
        Store::open_as(at, open::Beside::Another)
    }

    fn open_as(at: &StoreAt, beside: open::Beside) -> Result<Store, StoreError> {
        let opened = open::open(at, beside)?;
        let committer = Arc::new(Committer::start(opened, at.clock.clone(), at.mutant));
        Ok(Store { committer, mutant: at.mutant })
    }

    /// The time that leases, keys and deadlines are judged by: the later of the clock and the durable
    /// high-water mark.
    pub fn now(&self) -> Timestamp {
        self.committer.now()
    }

    /// T0: records a delivery and its operation, before the delivery is acknowledged.
    ///
    /// # Errors
    /// [`StoreError`]; nothing may be acknowledged then.
    pub async fn accept(
        &self,
        delivery: NewDelivery,
        operation: NewOperation,
        on_change: NewException,
    ) -> Result<Accepted, StoreError> {
        let mutant = self.mutant;
        let accept = move |tx: &_, now| {
            mutated::before_accept(tx, mutant, &operation)?;
            let accepted = verbs::accept(tx, now, &delivery, &operation, &on_change)?;
            mutated::after_accept(tx, mutant, &delivery, &accepted)?;
            Ok(accepted)
        };
        self.committer.write(accept).await
    }

    /// T0 for a delivery that names no operation: records that it was refused.
    ///
    /// # Errors
    /// [`StoreError`]; nothing may be answered as recorded then.
    pub async fn refuse(&self, delivery: NewDelivery, why: String) -> Result<(), StoreError> {
        self.committer.write(move |tx, now| verbs::refuse(tx, now, &delivery, &why)).await
    }

    /// T1 and T2: claims the operation and records the intent to send, before the first byte.
    ///
    /// # Errors
    /// [`StoreError`]; nothing may be sent then.
    pub async fn intend(&self, intent: Intent) -> Result<Written, StoreError> {
        let mutant = self.mutant;
        let intend = move |tx: &_, now| {
            let written = verbs::intend(tx, now, &intent)?;
            mutated::after_intend(tx, mutant, &intent)?;
            Ok(written)
        };
        self.committer.write(intend).await
    }

    /// T3 and T4: records evidence and the state that it leads to, before anything is built on it.
    ///
    /// # Errors
    /// [`StoreError`]; the evidence must be kept and recorded again.
    pub async fn find(&self, finding: Finding) -> Result<Written, StoreError> {
        let mutant = self.mutant;
        let find = move |tx: &_, now| {
            let written = verbs::find(tx, now, &finding)?;
            mutated::after_find(tx, mutant, now, &finding)?;
            Ok(written)
        };
        self.committer.write(find).await
    }

    /// T5: records a person's decision and what it leads to, before the action that it allows.
    ///
    /// # Errors
    /// [`StoreError`]; the decision is not taken then.
    pub async fn decide(&self, decision: Decision) -> Result<Written, StoreError> {
        self.committer.write(move |tx, now| verbs::decide(tx, now, &decision)).await
    }

    /// Every operation that has not ended and that no person owns.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn open_operations(&self) -> Result<Vec<Operation>, StoreError> {
        self.committer.read(rows::open_operations).await
    }

    /// One operation with all that belongs to it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn dossier(&self, key: OperationKey) -> Result<Option<Dossier>, StoreError> {
        self.committer.read(move |tx| rows::dossier(tx, &key, true)).await
    }

    /// As [`Store::dossier`], without the open cases: what the engine needs between two steps.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(crate) async fn load(&self, key: OperationKey) -> Result<Option<Dossier>, StoreError> {
        self.committer.read(move |tx| rows::dossier(tx, &key, false)).await
    }

    /// The open cases for people, the earliest deadline first; at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn exceptions(&self, limit: u32) -> Result<Vec<Exception>, StoreError> {
        self.committer.read(move |tx| rows::exceptions(tx, limit)).await
    }

    /// The record of the last operation that was confirmed: the control for look-ups that find nothing.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn last_confirmed(&self) -> Result<Option<Operation>, StoreError> {
        self.committer.read(rows::last_confirmed).await
    }
}
