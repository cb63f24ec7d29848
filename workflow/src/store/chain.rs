//! The hash chain over every row that is only ever added: deliveries, attempts and evidence, in the order in
//! which they were written.
//!
//! Each row carries its number and `SHA-256(hash of the row before, number, SHA-256 of its content)`; the
//! head stands in `meta`. Who edits, adds or takes out a row by hand has to write all later hashes anew and
//! the head too: note the head that [`Contents::verify`] gives elsewhere, and even that shows.

use super::rows::{Contents, StoredDelivery};
use super::{Attempt, Authorised, Evidence, Operation, Tombstone, person};
use crate::operation::WireKey;
use crate::state::State;
use data_encoding::HEXLOWER;
use rusqlite::{Connection, params};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// Where a row stands in the chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Its number, from 1, over all tables.
    pub seq: i64,
    /// Its hash, hexadecimal.
    pub hash: String,
}

/// The chain's last link, as the store itself notes it.
pub type Head = Link;

/// The hash of what a row says: each field with its length, so that no two rows run together.
pub(super) struct Content(Sha256);

impl Content {
    fn of(table: &str) -> Content {
        Content(Sha256::new()).text(table)
    }

    fn text(mut self, text: &str) -> Content {
        self.0.update((text.len() as u64).to_be_bytes());
        self.0.update(text);
        self
    }

    fn number(mut self, number: i64) -> Content {
        self.0.update(number.to_be_bytes());
        self
    }

    fn maybe(self, text: Option<&str>) -> Content {
        let content = self.number(i64::from(text.is_some()));
        content.text(text.unwrap_or_default())
    }

    /// The hash, hexadecimal.
    pub(super) fn digest(self) -> String {
        HEXLOWER.encode(&self.0.finalize())
    }
}

/// The link of a row with this content after another one.
fn link_after(before: &Link, content: &str) -> Link {
    let seq = before.seq + 1;
    let mut hasher = Sha256::new();
    hasher.update(before.hash.as_bytes());
    hasher.update(seq.to_be_bytes());
    hasher.update(HEXLOWER.decode(content.as_bytes()).unwrap_or_default());
    Link { seq, hash: HEXLOWER.encode(&hasher.finalize()) }
}

/// The hash over rows that were removed together.
pub(super) fn removed<'a>(rows: impl Iterator<Item = (i64, &'a str)>) -> String {
    rows.fold(Content::of("removed"), |all, (seq, content)| all.number(seq).text(content)).digest()
}

impl Tombstone {
    pub(super) fn content(&self) -> Content {
        Content::of("tombstone")
            .text(self.key.as_str())
            .text(self.fingerprint.as_str())
            .text(self.state.as_str())
            .maybe(self.external_ref.as_deref())
            .number(self.ended.0)
            .number(self.purged.0)
            .text(&self.removed)
    }
}

impl StoredDelivery {
    pub(super) fn content(&self, request: Option<&str>) -> Content {
        Content::of("delivery")
            .text(&self.source)
            .text(&self.delivery_id)
            .maybe(self.operation.as_deref())
            .text(&self.outcome)
            .text(&self.digest)
            .maybe(request)
            .number(self.received.0)
    }
}

impl Attempt {
    pub(super) fn content(&self, operation: &str, request: &str) -> Content {
        Content::of("attempt")
            .text(operation)
            .number(self.n.into())
            .text(&self.wire_key)
            .text(&self.digest)
            .text(request)
            .number(self.intent_at.0)
            .number(self.send_not_after.0)
            .text(&self.licence)
            .number(self.authorisation.unwrap_or_default())
    }
}

impl Evidence {
    pub(super) fn content(&self, operation: &str) -> Content {
        Content::of("evidence")
            .text(operation)
            .number(self.n.into())
            .number(self.attempt.into())
            .text(&self.class)
            .number(self.observed.0)
            .text(&self.source)
            .text(&self.detail)
            .text(&self.before)
            .text(&self.after)
    }
}

/// The last link.
pub(super) fn head(db: &Connection) -> rusqlite::Result<Head> {
    db.prepare_cached("select chain_seq, chain_head from meta")?
        .query_row([], |row| Ok(Link { seq: row.get(0)?, hash: row.get(1)? }))
}

/// The link of a row that is about to be added.
pub(super) fn next(tx: &Connection, content: Content) -> rusqlite::Result<Link> {
    Ok(link_after(&head(tx)?, &content.digest()))
}

/// Makes a link the last one, once its row was added.
pub(super) fn advance(tx: &Connection, link: &Link) -> rusqlite::Result<()> {
    tx.prepare_cached("update meta set chain_seq = ?1, chain_head = ?2")?
        .execute(params![link.seq, link.hash])
        .map(|_| ())
}

/// What is wrong with a store's records: the first thing, in a sentence that names the row.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Tampered(pub String);

impl Contents {
    /// Walks the chain from its first row to its head, and compares what the rows say with where each
    /// operation stands. Gives the head.
    ///
    /// # Errors
    /// At the first row that was edited, added or taken out, and at the first operation that does not stand
    /// where its rows leave it.
    pub fn verify(&self) -> Result<Head, Tampered> {
        let head = self.walk()?;
        for operation in &self.operations {
            self.agrees(operation)?;
        }
        for stone in &self.tombstones {
            let key = stone.key.as_str();
            let linked = self.refs.iter().filter(|(_, to)| to == key).map(|(found, _)| found);
            let gone = self.purged.iter().filter(|(_, _, of)| of == key);
            if removed(gone.map(|(seq, content, _)| (*seq, content.as_str()))) != stone.removed {
                return Err(Tampered(format!("{key} was removed, and other rows than its own with it")));
            }
            if !linked.eq(&stone.external_ref) {
                return Err(Tampered(format!("{key} was removed, and another record is linked to it")));
            }
        }
        let is_known = |of: &str| self.tombstones.iter().any(|stone| stone.key.as_str() == of);
        match self.purged.iter().find(|(_, _, of)| !is_known(of)) {
            Some((seq, ..)) => {
                Err(Tampered(format!("row {seq} of the chain was removed, and nobody says why")))
            }
            None => Ok(head),
        }
    }

    /// Every row with its content, hashed anew, and its name.
    pub(super) fn rows(&self) -> Result<Vec<(&Link, Content, String)>, Tampered> {
        let operations: BTreeMap<&str, &Operation> =
            self.operations.iter().map(|operation| (operation.key.as_str(), operation)).collect();
        let operation_of = |key: &str, name: &str| {
            let found = operations.get(key).copied();
            found.ok_or_else(|| Tampered(format!("{name} is there, and its operation is not")))
        };
        let mut rows = vec![];
        for row in &self.deliveries {
            let mut name = format!("delivery {} of {}", row.delivery_id, row.source);
            let mut request = None;
            if let Some(key) = row.operation.as_deref().filter(|_| row.outcome == "new") {
                request = Some(self.first_request(operation_of(key, &name)?));
                name += ", with its request,";
            }
            rows.push((&row.link, row.content(request.as_deref()), name));
        }
        for (key, row) in &self.attempts {
            let name = format!("attempt {} of {key}", row.n);
            let request = request_with(operation_of(key, &name)?, &row.wire_key);
            rows.push((&row.link, row.content(key, &request), format!("{name}, with its request,")));
        }
        for (key, row) in &self.evidence {
            let name = format!("evidence {} of {key}", row.n);
            operation_of(key, &name)?;
            rows.push((&row.link, row.content(key), name));
        }
        for stone in &self.tombstones {
            rows.push((&stone.link, stone.content(), format!("the tombstone of {}", stone.key)));
        }
        rows.sort_by_key(|(link, ..)| link.seq);
        Ok(rows)
    }

    /// The digest of the request with which an operation began.
    fn first_request(&self, operation: &Operation) -> String {
        let first = of(&self.attempts, operation.key.as_str()).min_by_key(|row| row.n);
        request_with(operation, first.map_or(operation.wire_key.as_str(), |first| &first.wire_key))
    }

    fn walk(&self) -> Result<Head, Tampered> {
        let mut last = Link::default();
        let mut purged = self.purged.iter().peekable();
        for (link, content, name) in self.rows()? {
            // Of a row that was removed its content's hash is left.
            while let Some((_, content, _)) = purged.next_if(|(seq, ..)| *seq == last.seq + 1) {
                last = link_after(&last, content);
            }
            let expected = link_after(&last, &content.digest());
            if link.seq != expected.seq {
                let missing = expected.seq;
                return Err(Tampered(format!(
                    "row {missing} of the chain is missing or double; next is {name}"
                )));
            }
            if *link != expected {
                return Err(Tampered(format!("{name} is not what was written there (row {})", link.seq)));
            }
            last = expected;
        }
        while let Some((_, content, _)) = purged.next_if(|(seq, ..)| *seq == last.seq + 1) {
            last = link_after(&last, content);
        }
        if let Some((seq, ..)) = purged.peek() {
            return Err(Tampered(format!("row {seq} of the chain is there and was removed")));
        }
        if last == self.head {
            return Ok(last);
        }
        let (last, head) = (last.seq, self.head.seq);
        Err(Tampered(format!(
            "the chain ends at row {last}, and the store notes {head} rows or another hash"
        )))
    }

    /// Whether an operation stands where its rows leave it.
    pub(super) fn agrees(&self, operation: &Operation) -> Result<(), Tampered> {
        let key = operation.key.as_str();
        let attempts: Vec<&Attempt> = of(&self.attempts, key).collect();
        let last = attempts.iter().max_by_key(|row| row.n);
        let begun = |row: &&StoredDelivery| row.outcome == "new" && row.operation.as_deref() == Some(key);
        let of_this_key = attempts.iter().filter(|row| row.wire_key == operation.wire_key.as_str());
        let made_anew = of(&self.authorisations, key)
            .filter(|given| given.kind == Authorised::Creation && given.consumed_by.is_some())
            .count();
        let linked: Vec<&str> =
            self.refs.iter().filter(|(_, to)| to == key).map(|(found, _)| found.as_str()).collect();
        let checks = [
            (self.deliveries.iter().filter(begun).count() == 1, "no delivery has begun it"),
            (self.leads_to(key, operation.state), "its last row leads elsewhere"),
            (attempts.len() == operation.sends as usize, "another number of sends is on record"),
            (
                last.is_none_or(|row| row.wire_key == operation.wire_key.as_str()),
                "its last send carried another key",
            ),
            (made_anew == operation.generation as usize, "another number of keys was permitted"),
            (
                of_this_key.map(|row| row.intent_at).min() == operation.first_intent,
                "its key was first sent at another time",
            ),
            (
                last.map(|row| row.send_not_after) == operation.last_possible_send,
                "its last send ended at another time",
            ),
            (linked == operation.external_ref.as_slice(), "another record is linked to it"),
            (self.permissions_agree(key, &attempts), "a permission was used by another send"),
            (
                of(&self.evidence, key).any(|row| row.class == person::CANCELLED) == operation.cancelled,
                "it was cancelled, or was not, by another account",
            ),
        ];
        match checks.iter().find(|(holds, _)| !holds) {
            Some((_, wrong)) => Err(Tampered(format!("{key} is {}: {wrong}", operation.state))),
            None => Ok(()),
        }
    }

    /// Whether the last row of an operation leads to this state.
    fn leads_to(&self, key: &str, state: State) -> bool {
        let last_evidence = of(&self.evidence, key).max_by_key(|row| row.link.seq);
        let last_attempt = of(&self.attempts, key).max_by_key(|row| row.link.seq);
        let sent_after =
            |row: &&Attempt| last_evidence.is_none_or(|evidence| evidence.link.seq < row.link.seq);
        match (last_attempt.filter(sent_after), last_evidence) {
            (Some(_), _) => matches!(state, State::Sent | State::SentInDoubt),
            (None, Some(evidence)) => evidence.after == state.as_str(),
            (None, None) => matches!(state, State::Ready | State::Invalid),
        }
    }

    /// Whether each permission that was used is named by the send that used it, and the other way round.
    fn permissions_agree(&self, key: &str, attempts: &[&Attempt]) -> bool {
        let used = of(&self.authorisations, key).filter_map(|given| Some((given.consumed_by?, given.id)));
        let named = attempts.iter().filter_map(|row| Some((row.n, row.authorisation?)));
        used.collect::<BTreeSet<_>>() == named.collect::<BTreeSet<_>>()
    }
}

/// The digest of an operation's request with this key in it.
fn request_with(operation: &Operation, key: &str) -> String {
    let key = WireKey::from_stored(key);
    if key == operation.wire_key {
        return operation.frozen.whole_digest();
    }
    operation.frozen.with_key(&operation.wire_key, &key).whole_digest()
}

fn of<'a, T>(rows: &'a [(String, T)], key: &'a str) -> impl Iterator<Item = &'a T> {
    rows.iter().filter(move |(operation, _)| operation == key).map(|(_, row)| row)
}
