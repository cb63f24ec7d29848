//! What people do with a case: each decision is checked, recorded with its author and reason, and compared
//! and swapped.

use crate::engine::{Engine, Shared};
use crate::evidence::{Ownership, ownership};
use crate::explain::{Explanation, explain};
use crate::mutant::Mistake;
use crate::operation::OperationKey;
use crate::state::{Event, next};
use crate::store::{Decision, Dossier, Exception, StoreError, Written};

/// Cases that one listing shows.
const LISTED: u32 = 1_000;

/// A person's decision on a case.
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

    /// The open cases, the earliest deadline first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn exceptions(&self) -> Result<Vec<Exception>, StoreError> {
        self.shared.asked(async { self.shared.people()?.exceptions(LISTED).await }).await
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
        for (value, field) in [(&decider.by, "by"), (&decider.reason, "reason")] {
            if value.trim().is_empty() {
                return Err(DecisionError::Unsigned(field));
            }
        }
        let decided = self.take(key, verdict, decider).await;
        if let Err(DecisionError::Store(error)) = &decided {
            self.shared.stop(error);
        }
        decided
    }

    async fn take(
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
        let on_change = !state.is_exception();
        let (state, action, external_ref) = self.shared.judge(&dossier, verdict).await?;
        let Decider { by, reason, .. } = decider;
        let decision =
            Decision { key: key.clone(), version, state, action, by, reason, external_ref, on_change };
        match store.decide(decision).await? {
            Written::Done => Ok(()),
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

type Judged = (crate::state::State, &'static str, Option<String>);

impl Shared {
    /// Passes an answer of the second connection on; what stops the store stops the engine.
    async fn asked<T>(&self, answer: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let answer = answer.await;
        if let Err(error) = &answer {
            self.stop(error);
        }
        answer
    }

    async fn judge(&self, dossier: &Dossier, verdict: Verdict) -> Result<Judged, DecisionError> {
        let operation = &dossier.operation;
        let nothing = || DecisionError::NothingToDecide {
            operation: operation.key.to_string(),
            state: operation.state.as_str(),
        };
        if !operation.state.is_exception() {
            // A changed request is a case beside the operation: rejecting it leaves the operation as it is.
            return match verdict {
                Verdict::Reject { .. } if !dossier.exceptions.is_empty() => {
                    Ok((operation.state, "reject", None))
                }
                _ => Err(nothing()),
            };
        }
        match verdict {
            Verdict::ConfirmFound { external_ref } => {
                let checked = self.check_record(dossier, &external_ref).await;
                if self.mutant().is(Mistake::UnfetchedIsProof) && checked.is_err() {
                    return Ok((crate::state::State::Withdrawn, "reject", None));
                }
                if !self.mutant().is(Mistake::ConfirmUnchecked) {
                    checked?;
                }
                let state = next(operation.state, Event::PersonConfirmed).map_err(|_| nothing())?;
                Ok((state, "confirm_found", Some(external_ref)))
            }
            Verdict::Reject { accept_risk } => match next(operation.state, Event::PersonRejected) {
                Ok(state) => Ok((state, "reject", None)),
                Err(_) if accept_risk => {
                    let state = next(operation.state, Event::PersonAcceptedRisk).map_err(|_| nothing())?;
                    Ok((state, "reject", None))
                }
                Err(_) => Err(DecisionError::MayExist),
            },
        }
    }

    /// Fetches the record that a person points to: it must exist, and be ours or unclaimed with our content.
    async fn check_record(&self, dossier: &Dossier, id: &str) -> Result<(), DecisionError> {
        let patience = self.workflow.definition.policy.send_timeout;
        let not_found = |why: String| DecisionError::NotFound(why);
        let record = self
            .connector
            .fetch(id, patience)
            .await
            .map_err(|why| not_found(format!("{id} could not be read, so nothing was decided: {why}")))?
            .ok_or_else(|| not_found(format!("the destination has no record {id}")))?;
        let sent = serde_json::from_str(&dossier.operation.frozen.body).unwrap_or_default();
        match ownership(&record, &sent) {
            Ownership::Ours | Ownership::UnclaimedSame => Ok(()),
            Ownership::Unclaimed => {
                Err(not_found(format!("{id} does not show what this operation asked for")))
            }
            Ownership::NotOurs(why) => {
                Err(not_found(format!("{id} is not the record of this operation: {why}")))
            }
        }
    }
}
