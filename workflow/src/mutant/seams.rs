//! What the known mistakes do where one place is enough: each function gives back what it was given, unless
//! the engine makes a mistake.

use super::{Mistake, Mutant};
use crate::definition::Workflow;
use crate::evidence::{Observed, Proof, Record};
use crate::licence::Facts;
use crate::operation::{FrozenRequest, OperationKey, WireKey};
use crate::state::{Event, IllegalTransition, State};
use crate::store::NewOperation;
use destinations::contract::KeyFormat;
use std::sync::Arc;
use std::time::Duration;

/// Longer than any run.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

impl Mutant {
    /// The workflow, with its limits and its licences.
    pub(crate) fn workflow(self, mut workflow: Workflow) -> Workflow {
        let policy = |workflow: &mut Workflow, change: fn(&mut crate::policy::Policy)| {
            change(&mut Arc::make_mut(&mut workflow.definition).policy);
        };
        if self.is(Mistake::BudgetNotKept) || self.is(Mistake::RefusalRetried) {
            policy(&mut workflow, |policy| policy.max_sends = u32::MAX);
        }
        if self.is(Mistake::LooksForEver) {
            policy(&mut workflow, |policy| policy.max_checks = u32::MAX - 2);
        }
        if self.is(Mistake::NoSendTimeout) {
            policy(&mut workflow, |policy| policy.send_timeout = FOR_EVER);
        }
        if self.is(Mistake::ResendInFlight)
            && let Some(replay) = &mut Arc::make_mut(&mut workflow.recovery).replay
        {
            replay.wait_between = Duration::ZERO;
        }
        if self.is(Mistake::SettleWithoutHorizon)
            && let Some(rule) = &mut Arc::make_mut(&mut workflow.recovery).lookup
        {
            rule.decides_after = rule.decides_after.map(|_| Duration::ZERO);
        }
        workflow
    }

    /// What the next step is chosen by.
    pub(crate) fn facts(self, facts: Facts) -> Facts {
        if self.is(Mistake::CancelNotKept) { Facts { cancelled: false, ..facts } } else { facts }
    }

    /// What an observation proves.
    pub(crate) fn proof(self, observed: &Observed, proof: Proof) -> Proof {
        use Mistake as M;
        match (proof, observed) {
            (Proof::Unknown(why), Observed::Broken { .. }) if self.is(M::TimeoutIsRejection) => {
                Proof::Refused(why)
            }
            (Proof::Unknown(why), Observed::Answer { .. }) if self.is(M::ErrorIsRejection) => {
                Proof::Refused(why)
            }
            (Proof::Exists { .. }, _) if self.is(M::ConflictIsFailure) => {
                Proof::Refused("it exists already".into())
            }
            (Proof::Exists { .. }, _) if self.is(M::ConflictRetriedFresh) => {
                Proof::NotApplied("it exists already".into())
            }
            (Proof::Refused(why), _) if self.is(M::RefusalRetried) => Proof::NotApplied(why),
            (Proof::CreatedWithoutRef, _) if self.is(M::SuccessWithoutIdResends) => {
                Proof::NotApplied("a success without an id".into())
            }
            (Proof::CreatedWithoutRef, _) if self.is(M::SuccessWithoutIdCompletes) => {
                Proof::Created(Record { id: String::new(), fields: serde_json::json!({}) })
            }
            (Proof::CreatedWithoutRef, _) if self.is(M::PanicOnUnreadable) => {
                panic!("a success names its record")
            }
            (proof, _) => proof,
        }
    }

    /// The transition function.
    pub(crate) fn next(self, state: State, event: Event) -> Result<State, IllegalTransition> {
        use Mistake as M;
        match (state, event) {
            (State::Sent | State::SentInDoubt, Event::Intent)
                if self.is(M::LookupThenCreate) || self.is(M::CrashReturnsToReady) =>
            {
                Ok(State::Sent)
            }
            (State::SentInDoubt, Event::Refused) if self.is(M::ConflictIsFailure) => {
                Ok(State::RefusedByDestination)
            }
            (State::InDoubt | State::RefMissing, Event::OpenException) if self.is(M::DoubtExpires) => {
                Ok(State::RefusedByDestination)
            }
            _ => crate::state::next(state, event),
        }
    }

    /// What is concluded of a send that a crash has interrupted.
    pub(crate) fn interrupted(self) -> Event {
        match () {
            () if self.is(Mistake::CrashMeansDone) => Event::Confirmed,
            () if self.is(Mistake::CrashMeansFailed) => Event::Refused,
            () => Event::Unknown,
        }
    }

    /// The operation that a delivery asks for.
    pub(crate) fn operation(self, mut operation: NewOperation) -> NewOperation {
        if self.is(Mistake::SameKeyForAll) {
            let nobody = OperationKey::from_printed("");
            let shared = WireKey::new(&nobody, "main", 0, KeyFormat::Any);
            operation.frozen = operation.frozen.with_key(&operation.wire_key, &shared);
            operation.wire_key = shared;
        }
        if self.is(Mistake::KeyLeftOut) {
            operation.frozen = unkeyed(operation.frozen, &operation.wire_key);
        }
        operation
    }
}

/// A frozen request without its key: no header and no field of the body carries it.
fn unkeyed(mut frozen: FrozenRequest, key: &WireKey) -> FrozenRequest {
    frozen.headers.retain(|(_, value)| value != key.as_str());
    let mut body: serde_json::Value = serde_json::from_str(&frozen.body).unwrap_or_default();
    if let Some(fields) = body.as_object_mut() {
        fields.retain(|_, value| value != key.as_str());
    }
    FrozenRequest { body: body.to_string(), ..frozen }
}

/// A frozen request whose body was rendered anew, for the attempt of this number.
pub(crate) fn rendered_anew(frozen: &FrozenRequest, attempt: u32) -> FrozenRequest {
    let mut body: serde_json::Value = serde_json::from_str(&frozen.body).unwrap_or_default();
    body["attempt"] = attempt.into();
    FrozenRequest { body: body.to_string(), ..frozen.clone() }
}
