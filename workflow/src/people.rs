//! What people do with a case: each decision is checked, recorded with its author and reason, and compared
//! and swapped.

mod judge;
mod offers;
mod posted;

use crate::clock::Timestamp;
use crate::engine::{Engine, Shared};
use crate::explain::{Explanation, explain};
use crate::mutant::Mistake;
use crate::operation::OperationKey;
use crate::store::{
    Decision, Discrepancy, Exception, Head, Settled, StoreError, Tampered, Tombstone, Written,
};

pub(crate) use judge::{claims, is_contradicted};
pub use offers::Offer;
pub(crate) use offers::offers;
pub use posted::{ACTIONS, SAID};
pub(crate) use posted::{read, read_said};

/// How often an act is repeated that met another writer.
const TRIES: u32 = 100;

/// Cases that one listing shows.
const LISTED: u32 = 1_000;

/// What a person does with a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// "This record is it." The engine fetches and checks it before it believes.
    ConfirmFound {
        /// The destination's id of the record.
        external_ref: String,
    },
    /// "It shall not be done." Without a proof that nothing was applied, the risk must be accepted in so many
    /// words.
    Reject {
        /// Whether the person answers for a record that may exist.
        accept_risk: bool,
    },
    /// "I have looked everywhere: there is no record." Counts only when nothing sent so far can take effect
    /// any more at the time of looking.
    DeclareAbsent {
        /// Where and how they looked.
        how: String,
        /// When they looked.
        checked_at: Timestamp,
        /// Whether the person answers for a record that comes later, where nobody knows when it is too late
        /// for one.
        accept_risk: bool,
    },
    /// "Send the same once more." Only where the contract permits that at this moment, or nothing was ever
    /// applied.
    AuthoriseResend,
    /// "Make another one", under another key, after a fresh declaration that there is none.
    AuthoriseCreation,
    /// "It is not wanted any more." Nothing further is sent; what may have been applied stays in doubt until
    /// it is known. Possible at any time before the end, and from the source as well.
    Cancel,
    /// "They see to it."
    Assign {
        /// The new owner.
        owner: String,
    },
    /// "Not before then."
    Snooze {
        /// No later than the case's deadline.
        until: Timestamp,
    },
    /// "This is known besides." Whoever decides on an older view is told.
    AddEvidence {
        /// What sort of thing it is: `call`, `mail`, `screenshot` …
        kind: String,
        /// What it shows.
        note: String,
    },
}

/// Who decided, why, and what they had seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decider {
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
    /// The version that they saw; none decides on whatever is there now.
    pub version: Option<u32>,
}

/// Why a decision was not taken. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecisionError {
    /// There is no such operation.
    #[error("there is no operation `{0}`")]
    NoOperation(String),
    /// Nobody has to decide on it.
    #[error("`{operation}` is {state}; there is nothing to decide")]
    NothingToDecide {
        /// The operation.
        operation: String,
        /// Where it stands.
        state: &'static str,
    },
    /// The operation has moved on since the person looked.
    #[error("the operation has changed since version {seen}; it is {state} now (version {version})")]
    Stale {
        /// What the person saw.
        seen: u32,
        /// The version now.
        version: u32,
        /// Where it stands now.
        state: &'static str,
    },
    /// A name or a reason is missing.
    #[error("`{0}` must be given")]
    Unsigned(&'static str),
    /// The record is not there, is not ours, or is linked elsewhere.
    #[error("{0}")]
    NotFound(String),
    /// It may have been applied, and nobody accepted the risk.
    #[error(
        "the record may exist: find it and confirm it, or reject with `accept_risk` and answer for a record nobody knows of"
    )]
    MayExist,
    /// What was sent can still take effect: nobody can have seen that it does not.
    #[error("a record can still come until {0}: look again after that, and declare it then")]
    TooEarly(Timestamp),
    /// The contract, or the rules of this workflow, do not permit it.
    #[error("{0}")]
    NotPermitted(String),
    /// Something that was given makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Engine {
    /// What is known of an operation, and what comes next.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn explain(&self, key: &OperationKey) -> Result<Option<Explanation>, StoreError> {
        let dossier = self.shared.asked(async { self.shared.people()?.dossier(key.clone()).await }).await?;
        Ok(dossier.map(|dossier| explain(dossier, &self.shared.workflow, self.now())))
    }

    /// What is left of an operation whose records were removed.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn tombstone(&self, key: &OperationKey) -> Result<Option<Tombstone>, StoreError> {
        self.shared.asked(async { self.shared.people()?.tombstone(key.clone()).await }).await
    }

    /// The open cases, the earliest deadline first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn exceptions(&self) -> Result<Vec<Exception>, StoreError> {
        self.shared.asked(async { self.shared.people()?.exceptions(LISTED).await }).await
    }

    /// Whatever contradicts what is recorded, the latest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn discrepancies(&self) -> Result<Vec<Discrepancy>, StoreError> {
        self.shared.asked(async { self.shared.people()?.discrepancies().await }).await
    }

    /// Records what somebody says of a discrepancy: `explained`, or `accepted`. None where there is none of
    /// this id, or it has been corrected.
    ///
    /// # Errors
    /// When it is not signed, or the store fails.
    pub async fn settle_discrepancy(
        &self,
        id: &str,
        status: &'static str,
        said: Decider,
    ) -> Result<Option<Discrepancy>, DecisionError> {
        let store = self.shared.people()?;
        let known = self.shared.asked(async { store.discrepancy(id.to_owned()).await }).await?;
        let about = known.and_then(|known| known.operation);
        let dossier = match about {
            Some(name) => {
                let key = OperationKey::from_printed(name);
                self.shared.asked(async { store.dossier(key).await }).await?
            }
            None => None,
        };
        let hidden =
            self.shared.hidden(dossier.as_ref().map_or("", |dossier| &dossier.operation.frozen.body));
        let (by, reason) = (hidden.clean(said.by.trim()), hidden.clean(said.reason.trim()));
        for (value, field) in [(&by, "by"), (&reason, "reason")] {
            if value.is_empty() {
                return Err(DecisionError::Unsigned(field));
            }
        }
        let settled = Settled { id: id.to_owned(), status, by, reason };
        Ok(self.shared.asked(async { store.settle_discrepancy(settled).await }).await?)
    }

    /// Walks the hash chain of the records and compares it with where each operation stands.
    ///
    /// # Errors
    /// When the store cannot be read; what is wrong with its records is the inner error.
    pub async fn verify(&self) -> Result<Result<Head, Tampered>, StoreError> {
        self.shared.asked(async { self.shared.people()?.verify().await }).await
    }

    /// Takes a person's decision.
    ///
    /// # Errors
    /// When it cannot be taken; nothing is changed then.
    pub async fn decide(
        &self,
        key: &OperationKey,
        verdict: Verdict,
        decider: Decider,
    ) -> Result<(), DecisionError> {
        let Decider { by, reason, version } = decider;
        let decider = Decider { by: by.trim().to_owned(), reason: reason.trim().to_owned(), version };
        for (value, field) in [(&decider.by, "by"), (&decider.reason, "reason")] {
            if value.is_empty() {
                return Err(DecisionError::Unsigned(field));
            }
        }
        // Who hangs up must not cut this short: what is durably permitted has to get on the agenda.
        let (engine, key) = (self.clone(), key.clone());
        let decided = if self.shared.mutant().is(Mistake::HangUpCutsDecision) {
            self.take(&key, verdict, decider).await
        } else {
            let taken = tokio::spawn(async move { engine.take(&key, verdict, decider).await });
            taken.await.expect("taking a decision does not panic and is never aborted")
        };
        if let Err(DecisionError::Store(error)) = &decided {
            self.shared.stop(error);
        }
        decided
    }

    /// Takes an act. Who cancels does not go by what they saw: the engine may have moved it on meanwhile.
    async fn take(
        &self,
        key: &OperationKey,
        verdict: Verdict,
        decider: Decider,
    ) -> Result<(), DecisionError> {
        let blindly = verdict == Verdict::Cancel && decider.version.is_none();
        for _ in 0..TRIES {
            match self.take_once(key, verdict.clone(), decider.clone()).await {
                Err(DecisionError::Stale { .. }) if blindly => {}
                taken => return taken,
            }
        }
        let why = "other writers kept it from being written".into();
        Err(DecisionError::Store(StoreError::Transient(why)))
    }

    async fn take_once(
        &self,
        key: &OperationKey,
        verdict: Verdict,
        decider: Decider,
    ) -> Result<(), DecisionError> {
        let store = self.shared.people()?;
        let found = store.dossier(key.clone()).await?;
        let dossier = found.ok_or_else(|| DecisionError::NoOperation(key.to_string()))?;
        let (state, version) = (dossier.operation.state, dossier.operation.version);
        if let Some(seen) = decider.version.filter(|seen| *seen != version) {
            return Err(DecisionError::Stale { seen, version, state: state.as_str() });
        }
        // People quote what they see; the records keep no more of it than is declared. Who somebody is, is
        // told by what the records keep of their name.
        let hidden = self.shared.hidden(&dossier.operation.frozen.body);
        let (by, reason) = (hidden.clean(&decider.by), hidden.clean(&decider.reason));
        if verdict == Verdict::Cancel && dossier.operation.cancelled {
            // Who asks again has not heard the answer.
            return Ok(());
        }
        let judged = self.shared.judge(&dossier, &verdict, &by).await?;
        let permits = judged.permits.map(|kind| {
            let span = self.shared.workflow.definition.policy.authorisation_for;
            (kind, self.now().after(span))
        });
        let reason = judged.said.map_or(reason.clone(), |said| format!("{reason}; {said}"));
        let decision = Decision {
            key: key.clone(),
            version,
            state: judged.state,
            action: verdict.word(),
            class: judged.class,
            by,
            reason,
            external_ref: judged.external_ref,
            case: judged.case,
            permits,
            owner: self.shared.workflow.definition.owner.clone(),
        };
        match store.decide(decision).await? {
            Written::Done => {
                if permits.is_some() {
                    self.shared.agenda.put(Timestamp(0), key.clone(), None);
                }
                Ok(())
            }
            Written::RefTaken => {
                Err(DecisionError::NotFound("the record belongs to another operation".into()))
            }
            Written::Stale => {
                let now = store.dossier(key.clone()).await?;
                let now = now.ok_or_else(|| DecisionError::NoOperation(key.to_string()))?.operation;
                Err(DecisionError::Stale { seen: version, version: now.version, state: now.state.as_str() })
            }
        }
    }
}

impl Shared {
    /// Passes an answer of the second connection on; what stops the store stops the engine.
    async fn asked<T>(&self, answer: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let answer = answer.await;
        if let Err(error) = &answer {
            self.stop(error);
        }
        answer
    }
}
