//! The durable records, behind verbs of one transaction each; nothing is acknowledged before its commit is on
//! the disk.

mod chain;
mod committer;
mod connections;
mod discrepancies;
mod mutated;
mod open;
mod people;
mod purge;
mod records;
mod rows;
mod verbs;

use crate::clock::{Clock, Timestamp};
use crate::mutant::Mutant;
use crate::operation::OperationKey;
use committer::Committer;
use std::sync::Arc;

pub use chain::{Head, Link, Tampered};
pub use connections::{Connections, open_file};
pub use discrepancies::{Discrepancy, Look, Settled, Sighting};
pub use open::{SCHEMA_VERSION, create_file};
pub use records::{
    Accepted, Alert, Attempt, Authorisation, Authorised, CaseChange, Decision, Dossier, Evidence, Exception,
    Finding, Intent, NewDelivery, NewEvidence, NewException, NewOperation, Operation, Recreation, Tombstone,
    Written, person,
};
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
        on_change: impl Fn(&Operation) -> NewException + Send + 'static,
    ) -> Result<Accepted, StoreError> {
        let mutant = self.mutant;
        let accept = move |tx: &_, now| {
            mutated::before_accept(tx, mutant, &operation)?;
            let accepted = verbs::accept(tx, now, &delivery, &operation, &on_change, mutant)?;
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

    /// Records what an attempt showed of an operation that had moved on: nothing of it is rewritten. What
    /// contradicts it becomes a discrepancy with an alert.
    ///
    /// # Errors
    /// [`StoreError`]; the evidence must be kept and recorded again.
    pub async fn find_late(
        &self,
        (key, attempt): (OperationKey, u32),
        evidence: NewEvidence,
        external_ref: Option<String>,
        owner: String,
    ) -> Result<(), StoreError> {
        let late = move |tx: &_, now| {
            verbs::find_late(tx, now, (&key, attempt), &evidence, external_ref.as_deref(), &owner)
        };
        self.committer.write(late).await
    }

    /// The earliest deadline of a case that nobody has been told of as overdue.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(crate) async fn next_deadline(&self) -> Result<Option<Timestamp>, StoreError> {
        self.committer.read(verbs::next_deadline).await
    }

    /// Tells whoever is to hear of it of each case whose deadline has passed; gives how many there were.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(crate) async fn escalate(&self) -> Result<usize, StoreError> {
        self.committer.write(verbs::escalate).await
    }

    /// Walks the hash chain and compares it with where each operation stands.
    ///
    /// # Errors
    /// When the store cannot be read; what is wrong with its records is the inner error.
    pub async fn verify(&self) -> Result<Result<Head, Tampered>, StoreError> {
        Ok(self.committer.read(rows::read_tables).await?.verify())
    }

    /// Whatever contradicts what is recorded, open or not, the latest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn discrepancies(&self) -> Result<Vec<Discrepancy>, StoreError> {
        self.committer.read(rows::discrepancies).await
    }

    /// Operations that were ever sent, in the order of their keys, after this one.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn sent_operations(&self, after: String, limit: u32) -> Result<Vec<Operation>, StoreError> {
        self.committer.read(move |tx| rows::sent_operations(tx, &after, limit)).await
    }

    /// Records what a reconciliation saw of one operation: new findings wait for a second look; old ones that
    /// are not seen any more are closed.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn sighted(
        &self,
        key: OperationKey,
        sightings: Vec<Sighting>,
        look: Look,
    ) -> Result<(), StoreError> {
        self.committer.write(move |tx, now| discrepancies::sighted(tx, now, &key, &sightings, &look)).await
    }

    /// Whether a record belongs to another operation than this one.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn is_linked_elsewhere(&self, found: String, key: OperationKey) -> Result<bool, StoreError> {
        self.committer.read(move |tx| rows::is_linked_elsewhere(tx, &found, key.as_str())).await
    }

    /// Removes the records of operations that ended before a time, at most so many, the oldest first; how
    /// many there were. A tombstone of each stays: a repeat is known for ever.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn purge(&self, ended_before: Timestamp, limit: u32) -> Result<u32, StoreError> {
        let mutant = self.mutant;
        self.committer.write(move |tx, now| purge::purge(tx, now, ended_before, limit, mutant)).await
    }

    /// What is left of an operation whose records were removed.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn tombstone(&self, key: OperationKey) -> Result<Option<Tombstone>, StoreError> {
        self.committer.read(move |tx| rows::tombstone_of(tx, key.as_str())).await
    }

    /// Records what a person says of a discrepancy.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn settle_discrepancy(&self, settled: Settled) -> Result<Option<Discrepancy>, StoreError> {
        self.committer.write(move |tx, now| discrepancies::settle(tx, now, &settled)).await
    }

    /// The discrepancy of this id.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn discrepancy(&self, id: String) -> Result<Option<Discrepancy>, StoreError> {
        self.committer.read(move |tx| rows::discrepancy_of(tx, &id)).await
    }

    /// T5: records a person's decision and what it leads to, before the action that it allows.
    ///
    /// # Errors
    /// [`StoreError`]; the decision is not taken then.
    pub async fn decide(&self, decision: Decision) -> Result<Written, StoreError> {
        let mutant = self.mutant;
        let decide = move |tx: &_, now| {
            let written = people::decide(tx, now, &decision)?;
            mutated::after_decide(tx, mutant, &decision)?;
            Ok(written)
        };
        self.committer.write(decide).await
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
