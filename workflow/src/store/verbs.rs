//! Writing: the statements of each verb, run inside the committer's transaction.

use super::{Accepted, Decision, Finding, Intent, NewDelivery, NewException, NewOperation, Written, rows};
use crate::clock::Timestamp;
use crate::explain::CHANGED_AFTER_REJECTION;
use crate::licence::Reason;
use crate::operation::OperationKey;
use crate::state::State;
use rusqlite::{Connection, OptionalExtension as _, params};

pub(super) fn accept(
    tx: &Connection,
    now: Timestamp,
    delivery: &NewDelivery,
    operation: &NewOperation,
    on_change: &NewException,
) -> rusqlite::Result<Accepted> {
    let key = operation.key.as_str();
    let sql = "insert into operation values(?1, ?2, ?3, ?4, ?5, 0, 1, 0, 0, null, null, 0, null, ?6, ?7, ?7)
               on conflict do nothing";
    let open = !operation.state.is_terminal();
    let inserted = tx.prepare_cached(sql)?.execute(params![
        key,
        operation.state.as_str(),
        operation.wire_key.as_str(),
        operation.fingerprint.as_str(),
        operation.frozen.to_stored(),
        open,
        now.0
    ])?;
    if inserted == 1 {
        record(tx, now, delivery, Some(key), "new")?;
        return Ok(Accepted::New(Box::new(operation.as_unsent())));
    }
    let sql = "select state, fingerprint from operation where key = ?1";
    let (state, fingerprint) = tx
        .prepare_cached(sql)?
        .query_row([key], |row| Ok((rows::state_at(row, 0)?, row.get::<_, String>(1)?)))?;
    if fingerprint == operation.fingerprint.as_str() {
        record(tx, now, delivery, Some(key), "same")?;
        return Ok(Accepted::Same { state });
    }
    let fresh = record(tx, now, delivery, Some(key), "changed")?;
    if fresh && !is_asked(tx, key)? {
        // Who decides on what they saw before must not decide on this too.
        tx.prepare_cached("update operation set version = version + 1 where key = ?1")?.execute([key])?;
        let facts = if state == State::Invalid { CHANGED_AFTER_REJECTION } else { &on_change.facts };
        open_exception(
            tx,
            now,
            &operation.key,
            &NewException { facts: facts.to_owned(), ..on_change.clone() },
        )?;
    }
    Ok(Accepted::Changed)
}

/// Whether a person has an open question about a changed request already.
fn is_asked(tx: &Connection, key: &str) -> rusqlite::Result<bool> {
    let sql =
        "select exists(select 1 from exception where operation = ?1 and reason = ?2 and closed is null)";
    tx.prepare_cached(sql)?.query_row([key, Reason::ChangedRequest.code()], |row| row.get(0))
}

/// Records a delivery; false when this very delivery, to the byte, was recorded before.
fn record(
    tx: &Connection,
    now: Timestamp,
    delivery: &NewDelivery,
    operation: Option<&str>,
    outcome: &str,
) -> rusqlite::Result<bool> {
    let sql = "insert into delivery values(?1, ?2, ?3, ?4, ?5, ?6) on conflict do nothing";
    let values = params![delivery.source, delivery.delivery_id, operation, outcome, delivery.digest, now.0];
    Ok(tx.prepare_cached(sql)?.execute(values)? == 1)
}

pub(super) fn refuse(
    tx: &Connection,
    now: Timestamp,
    delivery: &NewDelivery,
    why: &str,
) -> rusqlite::Result<()> {
    record(tx, now, delivery, None, why).map(|_| ())
}

pub(super) fn intend(tx: &Connection, now: Timestamp, intent: &Intent) -> rusqlite::Result<Written> {
    let sql = "update operation set state = ?3, version = version + 1, sends = sends + 1, checks = 0,
                 first_intent = coalesce(first_intent, ?4), last_possible_send = ?5, updated = ?4
               where key = ?1 and version = ?2 returning sends";
    let key = intent.key.as_str();
    let values = params![key, intent.version, intent.state.as_str(), now.0, intent.send_not_after.0];
    let sends: Option<u32> = tx.prepare_cached(sql)?.query_row(values, |row| row.get(0)).optional()?;
    let Some(n) = sends else { return Ok(Written::Stale) };
    let licence = intent.ground.to_string();
    tx.prepare_cached("insert into attempt values(?1, ?2, ?3, ?4, ?5, ?6, ?7)")?.execute(params![
        key,
        n,
        intent.wire_key.as_str(),
        intent.digest,
        now.0,
        intent.send_not_after.0,
        licence
    ])?;
    Ok(Written::Done)
}

pub(super) fn find(tx: &Connection, now: Timestamp, finding: &Finding) -> rusqlite::Result<Written> {
    let key = finding.key.as_str();
    if let Some(found) = &finding.external_ref
        && !link(tx, now, found, key)?
    {
        return Ok(Written::RefTaken);
    }
    let sql = "update operation set state = ?3, version = version + 1, checks = checks + ?4, not_before = ?5,
                 external_ref = coalesce(?6, external_ref), open = ?7, updated = ?8
               where key = ?1 and version = ?2";
    let open = !finding.state.is_terminal() && !finding.state.is_exception();
    let changed = tx.prepare_cached(sql)?.execute(params![
        key,
        finding.version,
        finding.state.as_str(),
        finding.counts_check,
        finding.not_before.0,
        finding.external_ref,
        open,
        now.0
    ])?;
    if changed == 0 {
        unlink(tx, finding.external_ref.as_deref(), key)?;
        return Ok(Written::Stale);
    }
    let evidence = &finding.evidence;
    add_evidence(tx, now, (key, finding.version), evidence.class, &evidence.source, &evidence.detail)?;
    if let Some(exception) = &finding.exception {
        open_exception(tx, now, &finding.key, exception)?;
    }
    Ok(Written::Done)
}

/// Links a record to an operation; false when it belongs to another one.
fn link(tx: &Connection, now: Timestamp, found: &str, key: &str) -> rusqlite::Result<bool> {
    let sql = "insert into external_ref values(?1, ?2, ?3) on conflict do nothing";
    if tx.prepare_cached(sql)?.execute(params![found, key, now.0])? == 1 {
        return Ok(true);
    }
    let sql = "select operation = ?2 from external_ref where ref = ?1";
    tx.prepare_cached(sql)?.query_row([found, key], |row| row.get(0))
}

/// Takes back a link that was made for a write that turned out to be stale.
fn unlink(tx: &Connection, found: Option<&str>, key: &str) -> rusqlite::Result<()> {
    let Some(found) = found else { return Ok(()) };
    let sql = "delete from external_ref where ref = ?1 and operation = ?2
                 and not exists(select 1 from operation where key = ?2 and external_ref = ?1)";
    tx.prepare_cached(sql)?.execute([found, key]).map(|_| ())
}

/// Each piece of evidence moves its operation to another version, so the version that it met numbers it.
fn add_evidence(
    tx: &Connection,
    now: Timestamp,
    (key, version): (&str, u32),
    class: &str,
    source: &str,
    detail: &str,
) -> rusqlite::Result<()> {
    let values = params![key, version, class, now.0, source, detail];
    tx.prepare_cached("insert into evidence values(?1, ?2, ?3, ?4, ?5, ?6)")?.execute(values).map(|_| ())
}

fn open_exception(
    tx: &Connection,
    now: Timestamp,
    key: &OperationKey,
    new: &NewException,
) -> rusqlite::Result<()> {
    let sql = "insert into exception(operation, reason, owner, deadline, escalate_to, opened, facts, lookup, key_lapses)
               values(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let lapses = new.key_lapses.map(|at| at.0);
    let values = params![
        key.as_str(),
        new.reason.code(),
        new.owner,
        new.deadline.0,
        new.escalate_to,
        now.0,
        new.facts,
        new.lookup,
        lapses
    ];
    tx.prepare_cached(sql)?.execute(values)?;
    let sql = "insert into alert(operation, kind, owner, raised) values(?1, ?2, ?3, ?4)";
    let values = params![key.as_str(), new.reason.code(), new.owner, now.0];
    tx.prepare_cached(sql)?.execute(values).map(|_| ())
}

pub(super) fn decide(tx: &Connection, now: Timestamp, decision: &Decision) -> rusqlite::Result<Written> {
    let key = decision.key.as_str();
    if let Some(found) = &decision.external_ref
        && !link(tx, now, found, key)?
    {
        return Ok(Written::RefTaken);
    }
    let sql =
        "update operation set state = ?3, version = version + 1, external_ref = coalesce(?4, external_ref),
                 open = case when ?6 then 0 else open end, updated = ?5 where key = ?1 and version = ?2";
    let ends = decision.state.is_terminal();
    let values = params![key, decision.version, decision.state.as_str(), decision.external_ref, now.0, ends];
    if tx.prepare_cached(sql)?.execute(values)? == 0 {
        unlink(tx, decision.external_ref.as_deref(), key)?;
        return Ok(Written::Stale);
    }
    let sql = "update exception set closed = ?2, decision = ?3, decided_by = ?4, decided_why = ?5
               where operation = ?1 and closed is null and (reason = ?6) = ?7";
    let (change, on_change) = (Reason::ChangedRequest.code(), decision.on_change);
    let values = params![key, now.0, decision.action, decision.by, decision.reason, change, on_change];
    tx.prepare_cached(sql)?.execute(values)?;
    let detail = format!("{}: {}", decision.action, decision.reason);
    add_evidence(tx, now, (key, decision.version), "person", &decision.by, &detail)?;
    Ok(Written::Done)
}
