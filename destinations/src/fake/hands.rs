//! What happens to a fake without a request: people's hands, and the faults of its own parts.

use super::destination::{Desk, Reply};
use super::race::WorkId;
use crate::ledger::{EffectKind, Millis, RequestFacts};

impl Desk {
    /// A person deletes a ticket; false where there is none.
    pub fn delete(&mut self, now: Millis, id: &str) -> bool {
        self.settle(now);
        let Some(place) = self.records.iter().position(|record| record.id == id) else { return false };
        let record = self.records.remove(place);
        self.ended.insert(record.id.clone(), now);
        if !record.sentinel {
            self.ledger.append(now, &record.id, EffectKind::Deleted, RequestFacts::default(), false);
        }
        true
    }

    /// A person archives a ticket, so that some look-ups no longer show it; false where there is none.
    pub fn archive(&mut self, now: Millis, id: &str) -> bool {
        self.settle(now);
        let record = self.records.iter_mut().find(|record| record.id == id);
        record.map(|record| record.archived = true).is_some()
    }

    /// The store of keys forgets everything; a request in progress goes on without protection.
    pub fn lose_keys(&mut self) {
        self.keys.lose();
    }

    /// The store of keys goes down, or comes up again.
    pub fn set_keys_down(&mut self, down: bool) {
        self.keys.down = down;
    }

    /// Requests reach another scope from now on: another account, region or feature flag.
    pub fn set_scope(&mut self, scope: &str) {
        scope.clone_into(&mut self.keys.scope);
    }

    /// The next commit answers with this status; where `executed`, its effect comes to be all the same.
    pub fn fail_next(&mut self, status: u16, executed: bool) {
        self.failing = Some((status, executed));
    }

    /// A request in progress comes to nothing, as when the destination crashes before its commit; those that
    /// wait for it get 503. False where it is not in progress.
    pub fn abandon(&mut self, work: WorkId) -> bool {
        let Some(work) = self.race.take(work) else { return false };
        self.keys.abandon(work.id);
        for waiting in work.waiting {
            self.race.finish(waiting, Reply::error(503, "unavailable"));
        }
        true
    }
}
