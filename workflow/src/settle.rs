//! The steps that touch the world: each records what it learnt before anybody builds on it.

use crate::clock::Timestamp;
use crate::engine::Shared;
use crate::evidence::{LookupReport, Observed, Ownership, Proof, Record, ownership, prove};
use crate::hidden::Hidden;
use crate::known::{Known, MISS, MISS_UNPROVEN};
use crate::licence::{Licence, Reason};
use crate::mutant::{Mistake, rendered_anew};
use crate::operation::{FrozenRequest, WireKey};
use crate::state::{Event, State};
use crate::store::{Authorised, Intent, NewEvidence, Operation, Recreation, StoreError, Written};
use destinations::contract::LookupBy;
use serde_json::Value;

/// What became known by a step.
pub(crate) struct Learnt {
    event: Event,
    class: &'static str,
    detail: String,
    external_ref: Option<String>,
}

impl Learnt {
    fn new(event: Event, class: &'static str, detail: impl Into<String>) -> Learnt {
        Learnt { event, class, detail: detail.into(), external_ref: None }
    }

    fn confirmed(record: &Record, how: &str) -> Learnt {
        let external_ref = Some(record.id.clone());
        Learnt { external_ref, ..Learnt::new(Event::Confirmed, "confirmed", format!("{} {how}", record.id)) }
    }
}

impl Shared {
    /// T2, the send, and T3.
    pub(crate) async fn send(&self, known: Known, licence: Licence) -> Result<State, StoreError> {
        let operation = &known.operation;
        let authorisation = known.authorisation().filter(|_| operation.state.is_authorised());
        let recreation = authorisation
            .filter(|given| given.kind == Authorised::Creation)
            .map(|_| self.next_generation(operation));
        let (frozen, wire_key) = match &recreation {
            Some((next, wire_key)) => (next.frozen.clone(), wire_key.clone()),
            None => self.request_of(operation),
        };
        let timeout = self.workflow.definition.policy.send_timeout;
        let state = self
            .mutant()
            .next(operation.state, Event::Intent)
            .expect("a licence is for a state that may send");
        let intent = Intent {
            key: operation.key.clone(),
            version: operation.version,
            state,
            wire_key,
            digest: frozen.digest(),
            whole_digest: frozen.whole_digest(),
            send_not_after: self.store.now().after(timeout),
            ground: licence.ground(),
            authorisation: authorisation.map(|given| given.id),
            recreation: recreation.map(|(next, _)| next),
        };
        let generation = intent.recreation.as_ref().map_or(operation.generation, |next| next.generation);
        let (deadline, sent_key) = (intent.send_not_after, intent.wire_key.clone());
        let observed = if self.mutant().is(Mistake::SendBeforeIntent) {
            let observed = self.exchange(&frozen, deadline).await;
            if self.store.intend(intent).await? != Written::Done {
                return Ok(operation.state);
            }
            observed
        } else {
            if self.store.intend(intent).await? != Written::Done {
                return Ok(operation.state);
            }
            self.exchange(&frozen, deadline).await
        };
        let mut sent = known.operation.clone();
        (sent.frozen, sent.wire_key, sent.generation) = (frozen.clone(), sent_key, generation);
        (sent.state, sent.version, sent.sends) = (state, sent.version + 1, sent.sends + 1);
        let learnt = self.learn(&sent, &frozen, observed).await;
        let evidence = NewEvidence { class: learnt.class, source: "create".into(), detail: learnt.detail };
        self.record(Known::from(sent), learnt.event, evidence, learnt.external_ref).await
    }

    /// The same request under the next key: only a person's word leads here.
    fn next_generation(&self, operation: &Operation) -> (Recreation, WireKey) {
        let def = &self.workflow.definition;
        let generation = operation.generation + 1;
        let wire_key = WireKey::new(&operation.key, &def.account, generation, def.key_format());
        let frozen = operation.frozen.with_key(&operation.wire_key, &wire_key);
        (Recreation { generation, frozen }, wire_key)
    }

    /// The frozen request and the key that it carries.
    fn request_of(&self, operation: &Operation) -> (FrozenRequest, WireKey) {
        let (frozen, key) = (operation.frozen.clone(), operation.wire_key.clone());
        let (mutant, sends) = (self.mutant(), operation.sends);
        if mutant.is(Mistake::BodyRenderedAnew) && sends > 0 {
            return (rendered_anew(&frozen, sends + 1), key);
        }
        let afresh = mutant.is(Mistake::FreshKeyPerRetry) && sends > 0
            || mutant.is(Mistake::ConflictRetriedFresh) && sends > 1;
        if !afresh {
            return (frozen, key);
        }
        let account = &self.workflow.definition.account;
        let fresh = WireKey::new(&operation.key, account, sends, destinations::contract::KeyFormat::Any);
        (frozen.with_key(&key, &fresh), fresh)
    }

    /// Sends, unless so much time has passed since the intent that a send could not end in time.
    async fn exchange(&self, frozen: &FrozenRequest, deadline: Timestamp) -> Observed {
        let patience = deadline.remaining_at(self.store.now());
        if patience.is_zero() {
            return Observed::NotSent { why: "the time for this send passed before it began".into() };
        }
        self.connector.exchange(frozen, patience).await
    }

    /// What a send proves, read to its end: a conflict is followed to the record that it speaks of.
    async fn learn(&self, operation: &Operation, frozen: &FrozenRequest, observed: Observed) -> Learnt {
        let sent: Value = serde_json::from_str(&frozen.body).unwrap_or_default();
        let hidden = self.hidden(&frozen.body);
        let proof = prove(&observed, &self.workflow.definition.contract, &hidden);
        match self.mutant().proof(&observed, proof) {
            Proof::Created(record) => match ownership(&record, &sent) {
                Ownership::NotOurs(why) => {
                    Learnt::new(Event::Conflict, "conflict", format!("{}: {why}", record.id))
                }
                // The answer to our own create need not repeat what we sent.
                Ownership::Ours | Ownership::UnclaimedSame | Ownership::Unclaimed => {
                    Learnt::confirmed(&record, "was created")
                }
            },
            Proof::CreatedWithoutRef => Learnt::new(
                Event::ConfirmedWithoutRef,
                "confirmed_without_ref",
                "success without a readable id",
            ),
            Proof::Exists { id } => self.read_existing(operation, &sent, id).await,
            Proof::Refused(why) => Learnt::new(Event::Refused, "refused", why),
            Proof::NotApplied(why) => Learnt::new(Event::NotApplied, "not_applied", why),
            Proof::Unknown(why) => Learnt::new(Event::Unknown, "unknown", why),
        }
    }

    async fn read_existing(&self, operation: &Operation, sent: &Value, id: Option<String>) -> Learnt {
        let patience = self.workflow.definition.policy.send_timeout;
        let found = match &id {
            Some(id) => self.connector.fetch(id, patience).await,
            None => match self.look_up(&self.lookup_value(operation)).await {
                Some(LookupReport::Complete { mut matches, .. }) if matches.len() == 1 => Ok(matches.pop()),
                Some(LookupReport::Incomplete(why)) => Err(why),
                _ => Err("the conflict names no record and a look-up does not find one".into()),
            },
        };
        match found {
            Ok(Some(record)) => match ownership(&record, sent) {
                Ownership::Ours => Learnt::confirmed(&record, "exists with our reference"),
                Ownership::UnclaimedSame | Ownership::Unclaimed => Learnt::new(
                    Event::Conflict,
                    "conflict",
                    format!("{}: it carries no reference", record.id),
                ),
                Ownership::NotOurs(why) => {
                    Learnt::new(Event::Conflict, "conflict", format!("{}: {why}", record.id))
                }
            },
            Ok(None) => {
                Learnt::new(Event::Unknown, "unknown", "the record that the conflict names is not there")
            }
            Err(why) => Learnt::new(
                Event::Unknown,
                "unknown",
                format!("it exists, but cannot be read: {}", self.hidden(&operation.frozen.body).clean(&why)),
            ),
        }
    }

    /// What words about an operation must not hold.
    pub(crate) fn hidden(&self, body: &str) -> Hidden {
        Hidden::of(&self.workflow.definition, self.setup.credentials.as_ref(), body)
    }

    /// Looks a value up by the contract's way; none where it offers no way.
    pub(crate) async fn look_up(&self, value: &str) -> Option<LookupReport> {
        let rule = self.workflow.recovery.lookup.as_ref()?;
        let patience = self.workflow.definition.policy.send_timeout;
        Some(self.connector.find(rule.by.parameter(), value, patience).await)
    }

    /// What the contract's look-up is asked for.
    pub(crate) fn lookup_value(&self, operation: &Operation) -> String {
        let by = self.workflow.recovery.lookup.as_ref().map(|rule| rule.by);
        let value = if by == Some(LookupBy::MarkerText) {
            operation.key.as_str()
        } else {
            operation.wire_key.as_str()
        };
        value.to_owned()
    }

    /// T4: looks the operation up, with a control where a miss could decide.
    pub(crate) async fn look(&self, known: Known) -> Result<State, StoreError> {
        let operation = &known.operation;
        let rule =
            self.workflow.recovery.lookup.as_ref().expect("a look is planned only where there is a way");
        let value = self.lookup_value(operation);
        let could_decide = rule
            .decides_after
            .zip(operation.last_possible_send)
            .is_some_and(|(bound, sent)| self.store.now() >= sent.after(bound));
        let report = self.look_up(&value).await.expect("there is a way");
        let learnt = match report {
            LookupReport::Complete { matches, .. } if matches.is_empty() => {
                self.learn_from_miss(could_decide).await?
            }
            LookupReport::Complete { matches, .. } if self.mutant().is(Mistake::AnyMatchIsOurs) => {
                Learnt::confirmed(&matches[0], "was found")
            }
            LookupReport::Complete { matches, .. } => learn_from_matches(&matches, operation),
            LookupReport::Incomplete(why) if self.mutant().is(Mistake::LookupErrorIsMiss) => {
                Learnt::new(Event::Unknown, MISS, why)
            }
            LookupReport::Incomplete(why) => {
                let why = self.hidden(&operation.frozen.body).clean(&why);
                Learnt::new(Event::Unknown, "lookup_failed", why)
            }
        };
        let evidence = NewEvidence { class: learnt.class, source: "look-up".into(), detail: learnt.detail };
        self.record(known, learnt.event, evidence, learnt.external_ref).await
    }

    /// A miss counts only when the same query finds a record that is known to exist.
    async fn learn_from_miss(&self, could_decide: bool) -> Result<Learnt, StoreError> {
        if !could_decide {
            return Ok(Learnt::new(
                Event::Unknown,
                MISS_UNPROVEN,
                "not found, and a miss proves nothing here",
            ));
        }
        if self.mutant().is(Mistake::NoPositiveControl) {
            return Ok(Learnt::new(Event::Unknown, MISS, "not found on any page"));
        }
        let Some(control) = self.control().await? else {
            return Ok(Learnt::new(Event::Unknown, MISS_UNPROVEN, "not found; there is no control record"));
        };
        Ok(match self.look_up(&control).await {
            Some(LookupReport::Complete { matches, .. }) if !matches.is_empty() => {
                Learnt::new(Event::Unknown, MISS, "not found on any page; the control record was found")
            }
            Some(LookupReport::Complete { .. }) => {
                Learnt::new(Event::Unknown, MISS_UNPROVEN, "not found, but neither was the control record")
            }
            Some(LookupReport::Incomplete(why)) => Learnt::new(
                Event::Unknown,
                MISS_UNPROVEN,
                format!("not found; the control look-up failed: {}", self.hidden("").clean(&why)),
            ),
            None => Learnt::new(Event::Unknown, MISS_UNPROVEN, "not found"),
        })
    }

    /// The reference of a record that is known to exist: the declared one, or the last that was confirmed.
    async fn control(&self) -> Result<Option<String>, StoreError> {
        if let Some(sentinel) = &self.workflow.definition.sentinel {
            return Ok(Some(sentinel.clone()));
        }
        Ok(self.store.last_confirmed().await?.map(|op| self.lookup_value(&op)))
    }

    /// Records that a trusted negative is accepted: from here on it may be sent as if it never had been.
    pub(crate) async fn accept_negative(&self, known: Known) -> Result<State, StoreError> {
        let evidence = NewEvidence {
            class: "negative",
            source: "look-up".into(),
            detail: "not found after every bound had passed: no send with this key did or will create it"
                .into(),
        };
        self.record(known, Event::TrustedNegative, evidence, None).await
    }

    /// Hands the operation over to its owner.
    pub(crate) async fn hand_over(&self, known: Known, reason: Reason) -> Result<State, StoreError> {
        let evidence =
            NewEvidence { class: "handed_over", source: "engine".into(), detail: reason.code().into() };
        let expires = self.mutant().is(Mistake::DoubtExpires) && known.operation.state.is_in_doubt();
        let reason = Some(reason).filter(|_| !expires);
        self.write(known, Event::OpenException, evidence, None, reason).await
    }

    /// Ends an operation that was cancelled, once it is proven that nothing was applied.
    pub(crate) async fn withdraw(&self, known: Known) -> Result<State, StoreError> {
        let detail = "it was cancelled, and nothing was applied".into();
        let evidence = NewEvidence { class: "withdrawn", source: "engine".into(), detail };
        self.record(known, Event::Cancelled, evidence, None).await
    }

    /// Gives an operation back to its owner, who had permitted a send that did not happen.
    pub(crate) async fn lapse(&self, known: Known) -> Result<State, StoreError> {
        let why = match known.authorisation() {
            Some(given) if self.store.now() >= given.expires => "it was not used in time",
            Some(_) => "the contract does not permit it any more",
            None => "more became known before it was used",
        };
        let evidence =
            NewEvidence { class: "authorisation_lapsed", source: "engine".into(), detail: why.into() };
        self.write(known, Event::AuthorisationLapsed, evidence, None, Some(Reason::AuthorisationLapsed)).await
    }
}

fn learn_from_matches(matches: &[Record], operation: &Operation) -> Learnt {
    let sent: Value = serde_json::from_str(&operation.frozen.body).unwrap_or_default();
    let [record] = matches else {
        let ids: Vec<&str> = matches.iter().map(|record| record.id.as_str()).collect();
        return Learnt::new(
            Event::Conflict,
            "conflict",
            format!("several records match: {}", ids.join(", ")),
        );
    };
    match ownership(record, &sent) {
        Ownership::Ours => Learnt::confirmed(record, "was found"),
        Ownership::UnclaimedSame | Ownership::Unclaimed => Learnt::new(
            Event::Conflict,
            "conflict",
            format!("{}: it carries no reference of ours", record.id),
        ),
        Ownership::NotOurs(why) => Learnt::new(Event::Conflict, "conflict", format!("{}: {why}", record.id)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::{Fingerprint, OperationKey};
    use crate::store::NewOperation;
    use destinations::contract::KeyFormat;
    use serde_json::json;

    #[test]
    fn a_single_match_is_believed_by_its_reference_alone() {
        let key = OperationKey::new(None, "R17", "create-ticket", 1);
        let wire_key = WireKey::new(&key, "main", 0, KeyFormat::Any);
        let body = json!({"title": "Access", "external_id": wire_key.as_str()}).to_string();
        let (method, target) = ("POST".into(), "/tickets".into());
        let frozen = FrozenRequest { method, target, headers: vec![], body };
        let fingerprint = Fingerprint::from_stored("f");
        let new = NewOperation { key, wire_key, fingerprint, frozen, state: State::Ready };
        let operation = new.as_unsent();
        let seen = |fields: Value| {
            let record = crate::evidence::record_of(&fields).expect("it has an id");
            learn_from_matches(&[record], &operation).event
        };
        let ours = json!({"id": "T93", "title": "Access", "external_id": operation.wire_key.as_str()});
        assert_eq!(seen(ours), Event::Confirmed);
        assert_eq!(seen(json!({"id": "T93", "title": "Access"})), Event::Conflict, "the same content");
        assert_eq!(seen(json!({"id": "T93"})), Event::Conflict, "no content");
        assert_eq!(seen(json!({"id": "T93", "external_id": "another"})), Event::Conflict);
    }
}
