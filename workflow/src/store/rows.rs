//! Reading: rows to types.

use super::chain::{Head, Link};
use super::{
    Alert, Attempt, Authorisation, Authorised, Discrepancy, Dossier, Evidence, Exception, Operation,
    StoreError, Tombstone, chain,
};
use crate::clock::Timestamp;
use crate::operation::{Fingerprint, FrozenRequest, OperationKey, WireKey};
use crate::state::State;
use rusqlite::{Connection, OptionalExtension as _, Row};

const OPERATION: &str =
    "select key, state, wire_key, fingerprint, frozen, generation, version, sends, checks,
  first_intent, last_possible_send, not_before, external_ref, open, cancelled from operation";

const EXCEPTION: &str =
    "select e.id, e.operation, e.reason, e.owner, e.deadline, e.escalate_to, e.opened, e.facts,
  e.lookup, e.key_lapses, e.snoozed_until, o.version, o.sends from exception e join operation o on o.key = e.operation
  where e.closed is null";

/// A stored value that this code could not have written.
fn garbled(column: usize, what: &str, text: &str) -> rusqlite::Error {
    let error = format!("unreadable {what}: {text:?}");
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, error.into())
}

pub(super) fn state_at(row: &Row<'_>, column: usize) -> rusqlite::Result<State> {
    let text: &str = row.get_ref(column)?.as_str()?;
    State::parse(text).ok_or_else(|| garbled(column, "state", text))
}

fn time_at(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Timestamp>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Timestamp))
}

fn operation(row: &Row<'_>) -> rusqlite::Result<Operation> {
    let frozen = row.get_ref(4)?.as_str()?;
    Ok(Operation {
        key: OperationKey::from_printed(row.get::<_, String>(0)?),
        state: state_at(row, 1)?,
        wire_key: WireKey::from_stored(row.get::<_, String>(2)?),
        fingerprint: Fingerprint::from_stored(row.get::<_, String>(3)?),
        frozen: FrozenRequest::from_stored(frozen).map_err(|_| garbled(4, "request", frozen))?,
        generation: row.get(5)?,
        version: row.get(6)?,
        sends: row.get(7)?,
        checks: row.get(8)?,
        first_intent: time_at(row, 9)?,
        last_possible_send: time_at(row, 10)?,
        not_before: Timestamp(row.get(11)?),
        external_ref: row.get(12)?,
        open: row.get(13)?,
        cancelled: row.get(14)?,
    })
}

fn exception(row: &Row<'_>) -> rusqlite::Result<Exception> {
    Ok(Exception {
        id: row.get(0)?,
        operation: row.get(1)?,
        reason: row.get(2)?,
        owner: row.get(3)?,
        deadline: Timestamp(row.get(4)?),
        escalate_to: row.get(5)?,
        opened: Timestamp(row.get(6)?),
        facts: row.get(7)?,
        lookup: row.get(8)?,
        key_lapses: time_at(row, 9)?,
        snoozed_until: time_at(row, 10)?,
        version: row.get(11)?,
        sends: row.get(12)?,
    })
}

fn attempt(row: &Row<'_>) -> rusqlite::Result<Attempt> {
    Ok(Attempt {
        n: row.get(1)?,
        wire_key: row.get(2)?,
        digest: row.get(3)?,
        intent_at: Timestamp(row.get(4)?),
        send_not_after: Timestamp(row.get(5)?),
        licence: row.get(6)?,
        authorisation: row.get(7)?,
        link: Link { seq: row.get(8)?, hash: row.get(9)? },
    })
}

fn evidence(row: &Row<'_>) -> rusqlite::Result<Evidence> {
    Ok(Evidence {
        n: row.get(1)?,
        attempt: row.get(2)?,
        class: row.get(3)?,
        observed: Timestamp(row.get(4)?),
        source: row.get(5)?,
        detail: row.get(6)?,
        before: row.get(7)?,
        after: row.get(8)?,
        link: Link { seq: row.get(9)?, hash: row.get(10)? },
    })
}

fn authorisation(row: &Row<'_>) -> rusqlite::Result<Authorisation> {
    let kind = match row.get_ref(1)?.as_str()? {
        "resend" => Authorised::Resend,
        "creation" => Authorised::Creation,
        other => return Err(garbled(1, "authorisation", other)),
    };
    Ok(Authorisation {
        id: row.get(0)?,
        kind,
        by: row.get(2)?,
        reason: row.get(3)?,
        issued: Timestamp(row.get(4)?),
        expires: Timestamp(row.get(5)?),
        consumed_by: row.get(6)?,
        voided: row.get(7)?,
    })
}

const AUTHORISATION: &str =
    "select id, kind, by, reason, issued, expires, consumed_by, voided, operation from authorisation";

/// The permission that stands for an operation.
pub(super) fn standing_authorisation(db: &Connection, key: &str) -> rusqlite::Result<Option<Authorisation>> {
    let sql = format!("{AUTHORISATION} where operation = ?1 and consumed_by is null and voided is null");
    db.prepare_cached(&sql)?.query_row([key], authorisation).optional()
}

const ATTEMPT: &str = "select operation, n, wire_key, digest, intent_at, send_not_after, licence, authorisation, seq, hash from attempt";
const EVIDENCE: &str =
    "select operation, n, attempt, class, observed, source, detail, before, after, seq, hash from evidence";

fn list<T>(
    db: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
    read: fn(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    db.prepare_cached(sql)?.query_map(params, read)?.collect()
}

/// Those that were ever sent, in the order of their keys.
pub(super) fn sent_operations(db: &Connection, after: &str, limit: u32) -> rusqlite::Result<Vec<Operation>> {
    let sql = format!("{OPERATION} where key > ?1 and sends > 0 order by key limit ?2");
    list(db, &sql, rusqlite::params![after, limit], operation)
}

pub(super) fn open_operations(db: &Connection) -> rusqlite::Result<Vec<Operation>> {
    list(db, &format!("{OPERATION} where open = 1 order by key"), [], operation)
}

/// One operation.
pub(super) fn operation_of(db: &Connection, key: &str) -> rusqlite::Result<Option<Operation>> {
    db.prepare_cached(&format!("{OPERATION} where key = ?1"))?.query_row([key], operation).optional()
}

/// All that is stored of one operation, with its open cases where somebody will read them.
pub(super) fn dossier(db: &Connection, key: &OperationKey, cases: bool) -> rusqlite::Result<Option<Dossier>> {
    let key = key.as_str();
    let Some(operation) = operation_of(db, key)? else { return Ok(None) };
    // Sorted here: with bound values SQLite prepares an ordered query anew each time.
    let mut attempts = list(db, &format!("{ATTEMPT} where operation = ?1"), [key], attempt)?;
    let mut evidence = list(db, &format!("{EVIDENCE} where operation = ?1"), [key], evidence)?;
    attempts.sort_by_key(|attempt| attempt.n);
    evidence.sort_by_key(|evidence| evidence.n);
    let authorisation = if operation.state.is_authorised() { standing_authorisation(db, key)? } else { None };
    Ok(Some(Dossier {
        authorisation,
        operation,
        attempts,
        evidence,
        exceptions: if cases {
            list(db, &format!("{EXCEPTION} and e.operation = ?1 order by e.id"), [key], exception)?
        } else {
            vec![]
        },
    }))
}

pub(super) fn exceptions(db: &Connection, limit: u32) -> rusqlite::Result<Vec<Exception>> {
    list(db, &format!("{EXCEPTION} order by e.deadline, e.id limit ?1"), [limit], exception)
}

pub(super) fn last_confirmed(db: &Connection) -> rusqlite::Result<Option<Operation>> {
    let sql = format!(
        "{OPERATION} where key = (select e.operation from external_ref e join operation o on o.key = e.operation
           order by e.linked desc, e.ref desc limit 1)"
    );
    db.prepare_cached(&sql)?.query_row([], operation).optional()
}

/// One stored delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDelivery {
    /// Who delivered.
    pub source: String,
    /// The source's id.
    pub delivery_id: String,
    /// The operation that it belongs to; none for a recorded refusal.
    pub operation: Option<String>,
    /// `new`, `same`, `changed`, or why it was refused.
    pub outcome: String,
    /// SHA-256 of its body, hexadecimal.
    pub digest: String,
    /// When it was recorded.
    pub received: Timestamp,
    /// Where it stands in the chain.
    pub link: Link,
}

/// Everything that a store holds, for whoever has to judge it as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Every delivery.
    pub deliveries: Vec<StoredDelivery>,
    /// Every operation.
    pub operations: Vec<Operation>,
    /// Every attempt with its operation.
    pub attempts: Vec<(String, Attempt)>,
    /// Every piece of evidence with its operation.
    pub evidence: Vec<(String, Evidence)>,
    /// Every open exception.
    pub exceptions: Vec<Exception>,
    /// Every alert, in the order in which they were raised.
    pub alerts: Vec<Alert>,
    /// Every permission, with its operation.
    pub authorisations: Vec<(String, Authorisation)>,
    /// Every record that belongs to an operation: record, operation.
    pub refs: Vec<(String, String)>,
    /// Whatever contradicts what is recorded.
    pub discrepancies: Vec<Discrepancy>,
    /// What is kept of operations whose records were removed.
    pub tombstones: Vec<Tombstone>,
    /// Of each row of the chain that was removed, its number, the hash of its content, and its operation.
    pub purged: Vec<(i64, String, String)>,
    /// The chain's last link, as the store notes it.
    pub head: Head,
}

/// Reads a whole store through a connection that is open already, without changing anything.
///
/// # Errors
/// When the file is no store, or cannot be read.
pub fn read_all(db: &Connection) -> Result<Contents, StoreError> {
    read_tables(db).map_err(|e| super::open::classify(&e, false))
}

const DELIVERY: &str =
    "select source, delivery_id, operation, outcome, digest, received, seq, hash from delivery";

fn delivery(row: &Row<'_>) -> rusqlite::Result<StoredDelivery> {
    Ok(StoredDelivery {
        source: row.get(0)?,
        delivery_id: row.get(1)?,
        operation: row.get(2)?,
        outcome: row.get(3)?,
        digest: row.get(4)?,
        received: Timestamp(row.get(5)?),
        link: Link { seq: row.get(6)?, hash: row.get(7)? },
    })
}

pub(super) fn read_tables(db: &Connection) -> rusqlite::Result<Contents> {
    Ok(Contents {
        exceptions: list(db, &format!("{EXCEPTION} order by e.id"), [], exception)?,
        alerts: list(db, "select operation, kind, owner, raised from alert order by id", [], |row| {
            Ok(Alert {
                operation: row.get(0)?,
                kind: row.get(1)?,
                owner: row.get(2)?,
                raised: Timestamp(row.get(3)?),
            })
        })?,
        discrepancies: discrepancies(db)?,
        tombstones: list(db, &format!("{TOMBSTONE} order by key"), [], tombstone)?,
        purged: list(db, "select seq, content, operation from purged order by seq", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?,
        head: chain::head(db)?,
        ..rows_of(db, None)?
    })
}

/// The rows of the chain, with what they are compared with: of one operation, or of all that are there.
pub(super) fn rows_of(db: &Connection, key: Option<&str>) -> rusqlite::Result<Contents> {
    let (of_it, it) = if key.is_some() { ("where operation = ?1", "where key = ?1") } else { ("", "") };
    let key = || rusqlite::params_from_iter(key);
    let refs = format!("select ref, operation from external_ref {of_it} order by ref");
    Ok(Contents {
        deliveries: list(db, &format!("{DELIVERY} {of_it} order by source, delivery_id"), key(), delivery)?,
        operations: list(db, &format!("{OPERATION} {it} order by key"), key(), operation)?,
        attempts: list(db, &format!("{ATTEMPT} {of_it} order by operation, n"), key(), |row| {
            Ok((row.get(0)?, attempt(row)?))
        })?,
        evidence: list(db, &format!("{EVIDENCE} {of_it} order by operation, n"), key(), |row| {
            Ok((row.get(0)?, evidence(row)?))
        })?,
        authorisations: list(db, &format!("{AUTHORISATION} {of_it} order by id"), key(), |row| {
            Ok((row.get(8)?, authorisation(row)?))
        })?,
        refs: list(db, &refs, key(), |row| Ok((row.get(0)?, row.get(1)?)))?,
        ..Contents::default()
    })
}

const TOMBSTONE: &str =
    "select key, fingerprint, state, ref, ended, purged, seq, hash, removed from tombstone";

fn tombstone(row: &Row<'_>) -> rusqlite::Result<Tombstone> {
    Ok(Tombstone {
        key: OperationKey::from_printed(row.get::<_, String>(0)?),
        fingerprint: Fingerprint::from_stored(row.get::<_, String>(1)?),
        state: state_at(row, 2)?,
        external_ref: row.get(3)?,
        ended: Timestamp(row.get(4)?),
        purged: Timestamp(row.get(5)?),
        link: Link { seq: row.get(6)?, hash: row.get(7)? },
        removed: row.get(8)?,
    })
}

/// Whether a record belongs to another operation than this one.
pub(super) fn is_linked_elsewhere(db: &Connection, found: &str, key: &str) -> rusqlite::Result<bool> {
    let sql = "select exists(select 1 from external_ref where ref = ?1 and operation <> ?2)";
    db.prepare_cached(sql)?.query_row([found, key], |row| row.get(0))
}

/// What is left of an operation of this key.
pub(super) fn tombstone_of(db: &Connection, key: &str) -> rusqlite::Result<Option<Tombstone>> {
    db.prepare_cached(&format!("{TOMBSTONE} where key = ?1"))?.query_row([key], tombstone).optional()
}

/// Operations that ended before a time, with nothing left to decide, and when; the oldest first.
pub(super) fn ended_before(
    db: &Connection,
    time: Timestamp,
    limit: u32,
) -> rusqlite::Result<Vec<(String, Timestamp)>> {
    // What somebody answers for without a proof is watched for ever.
    let sql = "select key, updated from operation where open = 0 and updated <= ?1
         and (state like 'completed/%' or state like 'rejected/%') and state <> 'rejected/accepted_risk'
         and not exists(select 1 from exception e where e.operation = key and e.closed is null)
         and not exists(select 1 from discrepancy d where d.operation = key and d.status in ('seen', 'open'))
       order by updated, key limit ?2";
    list(db, sql, rusqlite::params![time.0, limit], |row| Ok((row.get(0)?, Timestamp(row.get(1)?))))
}

const DISCREPANCY: &str = "select id, kind, operation, ref, severity, detail, proposal, found, seen, status, settled from discrepancy";

fn discrepancy(row: &Row<'_>) -> rusqlite::Result<Discrepancy> {
    Ok(Discrepancy {
        id: row.get(0)?,
        kind: row.get(1)?,
        operation: row.get(2)?,
        external_ref: row.get(3)?,
        severity: row.get(4)?,
        detail: row.get(5)?,
        proposal: row.get(6)?,
        found: Timestamp(row.get(7)?),
        seen: Timestamp(row.get(8)?),
        status: row.get(9)?,
        settled: row.get(10)?,
    })
}

pub(super) fn discrepancies(db: &Connection) -> rusqlite::Result<Vec<Discrepancy>> {
    list(db, &format!("{DISCREPANCY} order by found desc, id"), [], discrepancy)
}

/// The discrepancy of this id.
pub(super) fn discrepancy_of(db: &Connection, id: &str) -> rusqlite::Result<Option<Discrepancy>> {
    db.prepare_cached(&format!("{DISCREPANCY} where id = ?1"))?.query_row([id], discrepancy).optional()
}

pub(super) fn discrepancies_of(db: &Connection, operation: &str) -> rusqlite::Result<Vec<Discrepancy>> {
    list(db, &format!("{DISCREPANCY} where operation = ?1 order by id"), [operation], discrepancy)
}
