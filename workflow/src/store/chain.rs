//! The hash chain over every row that is only ever added: deliveries, attempts and evidence, in the order in
//! which they were written.
//!
//! Each row carries its number and `SHA-256(hash of the row before, number, SHA-256 of its content)`; the
//! head stands in `meta`. Who edits, adds or takes out a row by hand has to write all later hashes anew and
//! the head too: note the head that [`Contents::verify`] gives elsewhere, and even that shows.

use super::rows::{Contents, StoredDelivery};
use super::{Attempt, Evidence};
use crate::state::State;
use data_encoding::HEXLOWER;
use rusqlite::{Connection, params};
use sha2::{Digest as _, Sha256};

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

    fn link(self, before: &Link) -> Link {
        let seq = before.seq + 1;
        let mut hasher = Sha256::new();
        hasher.update(before.hash.as_bytes());
        hasher.update(seq.to_be_bytes());
        hasher.update(self.0.finalize());
        Link { seq, hash: HEXLOWER.encode(&hasher.finalize()) }
    }
}

impl StoredDelivery {
    pub(super) fn content(&self) -> Content {
        Content::of("delivery")
            .text(&self.source)
            .text(&self.delivery_id)
            .maybe(self.operation.as_deref())
            .text(&self.outcome)
            .text(&self.digest)
            .number(self.received.0)
    }
}

impl Attempt {
    pub(super) fn content(&self, operation: &str) -> Content {
        Content::of("attempt")
            .text(operation)
            .number(self.n.into())
            .text(&self.wire_key)
            .text(&self.digest)
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
    Ok(content.link(&head(tx)?))
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
        Ok(head)
    }

    fn walk(&self) -> Result<Head, Tampered> {
        let deliveries = self
            .deliveries
            .iter()
            .map(|row| (&row.link, row.content(), format!("delivery {} of {}", row.delivery_id, row.source)));
        let attempts = self
            .attempts
            .iter()
            .map(|(op, row)| (&row.link, row.content(op), format!("attempt {} of {op}", row.n)));
        let evidence = self
            .evidence
            .iter()
            .map(|(op, row)| (&row.link, row.content(op), format!("evidence {} of {op}", row.n)));
        let mut rows: Vec<_> = deliveries.chain(attempts).chain(evidence).collect();
        rows.sort_by_key(|(link, ..)| link.seq);
        let mut last = Link::default();
        for (link, content, name) in rows {
            let expected = content.link(&last);
            if link.seq != expected.seq {
                let missing = expected.seq;
                return Err(Tampered(format!(
                    "row {missing} of the chain is missing or double; next is {name}"
                )));
            }
            if *link != expected {
                return Err(Tampered(format!("{name} (row {}) is not what was written there", link.seq)));
            }
            last = expected;
        }
        if last == self.head {
            return Ok(last);
        }
        let (last, head) = (last.seq, self.head.seq);
        Err(Tampered(format!(
            "the chain ends at row {last}, and the store notes {head} rows or another hash"
        )))
    }

    /// Whether an operation stands where its last row leaves it.
    fn agrees(&self, operation: &super::Operation) -> Result<(), Tampered> {
        let key = operation.key.as_str();
        let attempts: Vec<&Attempt> = of(&self.attempts, key).collect();
        let last_evidence = of(&self.evidence, key).max_by_key(|row| row.link.seq);
        let last_attempt = attempts.iter().max_by_key(|row| row.link.seq);
        let sent_after =
            |row: &&Attempt| last_evidence.is_none_or(|evidence| evidence.link.seq < row.link.seq);
        let stands = operation.state;
        let agrees = match (last_attempt.copied().filter(sent_after), last_evidence) {
            (Some(_), _) => matches!(stands, State::Sent | State::SentInDoubt),
            (None, Some(evidence)) => evidence.after == stands.as_str(),
            (None, None) => matches!(stands, State::Ready | State::Invalid),
        };
        if !agrees {
            return Err(Tampered(format!("{key} is {stands}, and its last row leads elsewhere")));
        }
        if attempts.len() != operation.sends as usize {
            let (counted, there) = (operation.sends, attempts.len());
            return Err(Tampered(format!("{key} counts {counted} sends, and {there} are on record")));
        }
        let digest = operation.frozen.digest();
        let of_this_key = |row: &&&Attempt| row.wire_key == operation.wire_key.as_str();
        if let Some(other) = attempts.iter().filter(of_this_key).find(|row| row.digest != digest) {
            return Err(Tampered(format!("attempt {} of {key} was for other bytes", other.n)));
        }
        Ok(())
    }
}

fn of<'a, T>(rows: &'a [(String, T)], key: &'a str) -> impl Iterator<Item = &'a T> {
    rows.iter().filter(move |(operation, _)| operation == key).map(|(_, row)| row)
}
