//! What happens to a fake without a request: people's hands, and the faults of its own parts.

use super::destination::{Desk, Reply};
use super::race::WorkId;
use super::record::Record;
use crate::contract::ConvergeKind;
use crate::ledger::{EffectKind, Millis, RequestFacts};
use serde_json::{Map, Value, json};

impl Desk {
    /// A person deletes a ticket; false where there is none.
    pub fn delete(&mut self, now: Millis, id: &str) -> bool {
        self.settle(now);
        let Some(place) = self.records.iter().position(|record| record.id == id) else { return false };
        let record = self.records.remove(place);
        self.ended.insert(record.id.clone(), now);
        if !record.sentinel {
            self.ledger.append_by_hand(now, &record.id, EffectKind::Deleted, RequestFacts::default());
        }
        true
    }

    /// A person archives a ticket, so that some look-ups no longer show it; false where there is none.
    pub fn archive(&mut self, now: Millis, id: &str) -> bool {
        self.settle(now);
        let record = self.records.iter_mut().find(|record| record.id == id);
        record.map(|record| record.archived = record.archived.or(Some(now))).is_some()
    }

    /// A person changes a field of a ticket; false where there is none.
    pub fn edit(&mut self, now: Millis, id: &str, field: &str, value: Value) -> bool {
        self.settle(now);
        let Some(record) = self.records.iter_mut().find(|record| record.id == id) else { return false };
        record.fields.insert(field.to_owned(), value);
        if !record.sentinel {
            self.ledger.append_by_hand(now, id, EffectKind::Updated, RequestFacts::default());
        }
        true
    }

    /// A person makes a second ticket like this one, its external reference too, unless that is unique; none
    /// where there is no such ticket. No look-up shows it before it shows the first.
    pub fn copy(&mut self, now: Millis, id: &str) -> Option<String> {
        self.settle(now);
        let original = self.records.iter().find(|record| record.id == id)?;
        let unique = self.contract.converge.iter().any(|rule| {
            matches!(rule.kind, ConvergeKind::UniqueRef | ConvergeKind::Upsert) && rule.field == "external_id"
        });
        let reference = original.reference.clone().filter(|_| !unique);
        let (fields, not_before) = (original.fields.clone(), original.visible_at);
        Some(self.enter(fields, reference, not_before))
    }

    /// A person makes a ticket for a matter of their own, with this reference and marker.
    pub fn make(&mut self, now: Millis, title: &str, reference: &str) -> String {
        self.settle(now);
        let fields = [("title", title), ("marker", reference)];
        let fields = fields.map(|(name, value)| (name.to_owned(), json!(value))).into_iter().collect();
        let reference = self.stores_reference().then(|| reference.to_owned());
        self.enter(fields, reference, now)
    }

    fn enter(&mut self, fields: Map<String, Value>, reference: Option<String>, not_before: Millis) -> String {
        let now = self.now;
        let id = self.next_id();
        let facts = RequestFacts { reference: reference.clone(), ..RequestFacts::default() };
        self.ledger.append_by_hand(now, &id, EffectKind::Created, facts);
        self.records.push(Record {
            id: id.clone(),
            fields,
            reference,
            client_id: None,
            key: None,
            began: now,
            made_at: now,
            visible_at: now.after(self.lag()).max(not_before),
            archived: None,
            sentinel: false,
        });
        id
    }

    /// A ticket as it goes over the wire; none where there is no such ticket.
    pub fn ticket(&self, id: &str) -> Option<Value> {
        self.records.iter().find(|record| record.id == id).map(Record::ticket)
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
