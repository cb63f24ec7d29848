//! A record of a fake: the ticket as the destination keeps it.

use crate::ledger::Millis;
use serde_json::{Map, Value, json};

/// A ticket.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) id: String,
    pub(super) fields: Map<String, Value>,
    pub(super) reference: Option<String>,
    pub(super) client_id: Option<String>,
    pub(super) key: Option<String>,
    /// When the request that made it arrived.
    pub(super) began: Millis,
    /// When it came to be.
    pub(super) made_at: Millis,
    /// When an eventual look-up begins to show it.
    pub(super) visible_at: Millis,
    /// Since when it is archived.
    pub(super) archived: Option<Millis>,
    /// Whether it was there from the start; it never shows in the ledger.
    pub(super) sentinel: bool,
}

impl Record {
    /// The ticket as it goes over the wire.
    pub(super) fn ticket(&self) -> Value {
        let mut ticket = self.fields.clone();
        ticket.insert("id".to_owned(), json!(self.id));
        match &self.reference {
            Some(reference) => ticket.insert("external_id".to_owned(), json!(reference)),
            None => ticket.remove("external_id"),
        };
        Value::Object(ticket)
    }

    pub(super) fn marker(&self) -> &str {
        self.fields.get("marker").and_then(Value::as_str).unwrap_or("")
    }
}
