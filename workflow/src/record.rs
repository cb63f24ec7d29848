//! Recording what was learnt, until it is durable: whatever else moves the operation on meanwhile.

use crate::engine::Shared;
use crate::known::Known;
use crate::licence::Reason;
use crate::mutant::Mistake;
use crate::state::{Event, State};
use crate::store::{Finding, NewEvidence, NewException, Operation, StoreError, Written};

/// How often a write is repeated that met another writer.
const TRIES: u32 = 100;

impl Shared {
    /// T3: records what was learnt and the state that it leads to.
    pub(crate) async fn record(
        &self,
        known: Known,
        event: Event,
        evidence: NewEvidence,
        external_ref: Option<String>,
    ) -> Result<State, StoreError> {
        let reason = (event == Event::Conflict).then_some(Reason::Conflict);
        self.write(known, event, evidence, external_ref, reason).await
    }

    /// Writes until it is durable: evidence must not be lost to another writer or to a store that is full for
    /// a while.
    pub(crate) async fn write(
        &self,
        mut known: Known,
        mut event: Event,
        evidence: NewEvidence,
        mut external_ref: Option<String>,
        mut reason: Option<Reason>,
    ) -> Result<State, StoreError> {
        let (mut stale, sends) = (0, known.operation.sends);
        while stale < TRIES {
            // What one send showed says nothing of the next one, which somebody else has made meanwhile.
            let is_its_own = known.operation.sends == sends;
            let next = self.mutant().next(known.operation.state, event).ok().filter(|_| is_its_own);
            let Some(state) = next else {
                // Somebody has moved it on; what was learnt is kept, and nothing is rewritten.
                return self.write_late(known.operation, sends, evidence, external_ref).await;
            };
            let state = self.after_recreation(&known.operation, state);
            let reason_now = reason.or((state == State::DeclaredAbsent).then_some(Reason::CreationFailed));
            let finding = self.finding(&known.operation, state, &evidence, external_ref.clone(), reason_now);
            let key = known.operation.key.clone();
            let failed = match self.store.find(finding).await {
                Ok(Written::Done) => {
                    if reason_now.is_some() {
                        self.cases.notify_one();
                    }
                    return Ok(state);
                }
                Ok(Written::RefTaken) => {
                    (event, external_ref, reason) = (Event::Conflict, None, Some(Reason::Conflict));
                    stale += 1;
                    continue;
                }
                Ok(Written::Stale) => match self.store.load(key).await {
                    // What the engine concluded, it concluded from what is not so any more.
                    Ok(Some(dossier)) if evidence.is_conclusion() => return Ok(dossier.operation.state),
                    Ok(Some(dossier)) => {
                        known = Known::from(dossier);
                        stale += 1;
                        continue;
                    }
                    Ok(None) => return Ok(state),
                    Err(error) => error,
                },
                Err(error) => error,
            };
            match failed {
                // However long it takes: nobody else knows what was learnt.
                StoreError::Transient(why) => {
                    tracing::warn!(%why, "evidence is kept in memory until the store takes it");
                    tokio::time::sleep(self.workflow.definition.policy.first_pause).await;
                    if self.mutant().is(Mistake::EvidenceDropped) {
                        return Ok(state);
                    }
                }
                error => return Err(error),
            }
        }
        Err(StoreError::Unknown("other writers kept evidence from being written".into()))
    }

    /// Where an operation stands by what its newest key proves. Of the older ones a person has declared that
    /// they made no record; that is no proof, so nothing leads back to a send or a refusal but that person's
    /// word.
    fn after_recreation(&self, operation: &Operation, state: State) -> State {
        let retried = self.mutant().is(Mistake::CreationRetried);
        match state {
            State::Backoff | State::RefusedByDestination if operation.generation > 0 && !retried => {
                State::DeclaredAbsent
            }
            state => state,
        }
    }

    /// Writes late evidence of a send until it is durable.
    pub(crate) async fn write_late(
        &self,
        operation: Operation,
        attempt: u32,
        evidence: NewEvidence,
        external_ref: Option<String>,
    ) -> Result<State, StoreError> {
        let owner = &self.workflow.definition.owner;
        loop {
            let (key, evidence, found) = (operation.key.clone(), evidence.clone(), external_ref.clone());
            match self.store.find_late((key, attempt), evidence, found, owner.clone()).await {
                Ok(()) => return Ok(operation.state),
                Err(StoreError::Transient(why)) => {
                    tracing::warn!(%why, "late evidence is kept in memory until the store takes it");
                    tokio::time::sleep(self.workflow.definition.policy.first_pause).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn finding(
        &self,
        operation: &Operation,
        state: State,
        evidence: &NewEvidence,
        external_ref: Option<String>,
        reason: Option<Reason>,
    ) -> Finding {
        let policy = &self.workflow.definition.policy;
        let looked = evidence.source == "look-up";
        let failures = if looked { operation.checks + 1 } else { operation.sends.max(1) };
        let pause = match (&self.workflow.recovery.lookup, looked) {
            (Some(rule), true) => policy.pause(failures).max(rule.lag),
            _ => policy.pause(failures),
        };
        Finding {
            key: operation.key.clone(),
            version: operation.version,
            state,
            evidence: evidence.clone(),
            // A negative that was accepted needs no further pause.
            not_before: self.store.now().after(if evidence.class == "negative" {
                Default::default()
            } else {
                pause
            }),
            external_ref,
            counts_check: looked,
            exception: reason.map(|reason| self.exception(operation, reason)),
            owner: self.workflow.definition.owner.clone(),
        }
    }

    /// The case for the owner: what is known, what to look for, and until when the key still works.
    pub(crate) fn exception(&self, operation: &Operation, reason: Reason) -> NewException {
        let def = &self.workflow.definition;
        let replay = self.workflow.recovery.replay.as_ref();
        NewException {
            reason,
            owner: if self.mutant().is(Mistake::ExceptionWithoutOwner) {
                String::new()
            } else {
                def.owner_of(reason).to_owned()
            },
            deadline: self.store.now().after(def.deadline),
            escalate_to: def.escalate_to.clone(),
            facts: crate::explain::facts(operation, reason),
            lookup: crate::explain::lookup_by_hand(operation, def),
            key_lapses: replay.zip(operation.first_intent).map(|(replay, at)| at.after(replay.safe_for)),
        }
    }
}
