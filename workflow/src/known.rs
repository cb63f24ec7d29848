//! What the engine holds in memory of one operation between two steps.

use crate::clock::Timestamp;
use crate::licence::{Facts, MissAt};
use crate::store::{Authorisation, Dossier, Evidence, Operation};

/// The class of a look-up that found nothing, read every page, and found its control record.
pub(crate) const MISS: &str = "miss";
/// The class of a look-up that found nothing and proves nothing.
pub(crate) const MISS_UNPROVEN: &str = "miss_unproven";

/// One operation and what its evidence says since its last send.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) operation: Operation,
    misses: Vec<MissAt>,
    authorisation: Option<Authorisation>,
}

impl Known {
    /// What a person permits and nobody has used.
    pub(crate) fn authorisation(&self) -> Option<&Authorisation> {
        self.authorisation.as_ref()
    }

    /// The facts that the next step is chosen by.
    pub(crate) fn facts(&self) -> Facts {
        let op = &self.operation;
        Facts {
            state: op.state,
            sends: op.sends,
            checks: op.checks,
            first_intent: op.first_intent,
            last_possible_send: op.last_possible_send,
            not_before: op.not_before,
            misses: self.misses.clone(),
            authorisation: self.authorisation.clone(),
            cancelled: op.cancelled,
        }
    }
}

impl From<Operation> for Known {
    fn from(operation: Operation) -> Self {
        Known { operation, misses: vec![], authorisation: None }
    }
}

impl From<Dossier> for Known {
    fn from(dossier: Dossier) -> Self {
        let last_intent = dossier.attempts.last().map_or(Timestamp(0), |attempt| attempt.intent_at);
        let misses = dossier.evidence.iter().filter_map(|e| miss(e, last_intent)).collect();
        Known { operation: dossier.operation, misses, authorisation: dossier.authorisation }
    }
}

fn miss(evidence: &Evidence, last_intent: Timestamp) -> Option<MissAt> {
    let proven = evidence.class == MISS;
    let after_last_send = evidence.observed >= last_intent;
    (after_last_send && (proven || evidence.class == MISS_UNPROVEN)).then_some(MissAt {
        at: evidence.observed,
        complete: proven,
        control_found: proven,
    })
}
