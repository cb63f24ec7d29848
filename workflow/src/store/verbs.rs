//! Writing: the statements of each verb, run inside the committer's transaction.

use super::rows::StoredDelivery;
use super::{
    Accepted, Attempt, Evidence, Finding, Intent, Link, NewDelivery, NewEvidence, NewException, NewOperation,
    Operation, Sighting, Tombstone, Written, chain, discrepancies, person, rows,
};
use crate::clock::Timestamp;
use crate::licence::Reason;
use crate::mutant::{Mistake, Mutant};
use crate::operation::OperationKey;
use crate::state::State;
use rusqlite::{Connection, OptionalExtension as _, params};

pub(super) fn accept(
    tx: &Connection,
    now: Timestamp,
    delivery: &NewDelivery,
    operation: &NewOperation,
    on_change: &impl Fn(&Operation) -> NewException,
    mutant: Mutant,
) -> rusqlite::Result<Accepted> {
    let begun = serving(tx, &operation.key)?;
    let begun = begun.filter(|key| *key == operation.key || !mutant.is(Mistake::VersionStartsBeside));
    match &begun {
        Some(key) => {
            if let Some(stone) = rows::tombstone_of(tx, key.as_str())? {
                let owner = on_change(&operation.as_unsent()).owner;
                return accept_after_end(tx, now, delivery, (operation, stone), &owner);
            }
        }
        None => {
            if begin(tx, now, operation)? {
                let request = operation.frozen.whole_digest();
                record(tx, now, delivery, Some(operation.key.as_str()), "new", Some(&request))?;
                return Ok(Accepted::New(Box::new(operation.as_unsent())));
            }
        }
    }
    let key = begun.unwrap_or_else(|| operation.key.clone());
    let name = key.as_str();
    let stored = rows::operation_of(tx, name)?.expect("what is in the way of another one is there");
    if stored.fingerprint == operation.fingerprint {
        record(tx, now, delivery, Some(name), "same", None)?;
        return Ok(Accepted::Same { key, state: stored.state });
    }
    if record(tx, now, delivery, Some(name), "changed", None)? {
        // Who decides on what they saw before must not decide on this too.
        let (source, detail) = (delivery.source.clone(), format!("delivery {}", delivery.delivery_id));
        let stands = Stands::of(&stored);
        add_aside(tx, now, name, &stands, &NewEvidence { class: "changed_request", source, detail })?;
        if !is_asked(tx, name)? {
            open_exception(tx, now, &key, &on_change(&stored))?;
        }
    }
    Ok(Accepted::Changed { key })
}

/// Begins an operation; false where it was there already.
fn begin(tx: &Connection, now: Timestamp, operation: &NewOperation) -> rusqlite::Result<bool> {
    let sql =
        "insert into operation values(?1, ?2, ?3, ?4, ?5, 0, 1, 0, 0, null, null, 0, null, ?6, ?7, ?7, 0)
               on conflict do nothing";
    let values = params![
        operation.key.as_str(),
        operation.state.as_str(),
        operation.wire_key.as_str(),
        operation.fingerprint.as_str(),
        operation.frozen.to_stored(),
        !operation.state.is_terminal(),
        now.0
    ];
    Ok(tx.prepare_cached(sql)?.execute(values)? == 1)
}

/// Who has the request in hand, or has done it, other than the operation itself: that of another version of
/// the step, because two of them would make two records, or a tombstone, its own too. One that broke its
/// rules, or that the destination refused, is no reason not to begin by another version.
fn serving(tx: &Connection, key: &OperationKey) -> rusqlite::Result<Option<OperationKey>> {
    let (from, to) = key.line();
    let sql = "select key from operation where key >= ?1 and key < ?2 and key <> ?3
                 and state not in ('rejected/validation', 'rejected/by_destination')
               union all
               select key from tombstone where key >= ?1 and key < ?2
                 and (key = ?3 or state not in ('rejected/validation', 'rejected/by_destination'))";
    let other = tx.prepare_cached(sql)?.query_row([&from, &to, key.as_str()], |row| row.get::<_, String>(0));
    Ok(other.optional()?.map(OperationKey::from_printed))
}

/// A repeat of what has long ended, and was removed: it is known all the same.
fn accept_after_end(
    tx: &Connection,
    now: Timestamp,
    delivery: &NewDelivery,
    (operation, stone): (&NewOperation, Tombstone),
    owner: &str,
) -> rusqlite::Result<Accepted> {
    let key = stone.key.as_str();
    if operation.fingerprint == stone.fingerprint {
        record(tx, now, delivery, Some(key), "same", None)?;
        return Ok(Accepted::Same { key: stone.key, state: stone.state });
    }
    // There is nothing left to decide on: its owner is told.
    if record(tx, now, delivery, Some(key), "changed", None)? {
        raise(tx, now, key, Reason::ChangedRequest.code(), owner)?;
    }
    Ok(Accepted::Changed { key: stone.key })
}

/// Whether a person has an open question about a changed request already.
fn is_asked(tx: &Connection, key: &str) -> rusqlite::Result<bool> {
    let sql =
        "select exists(select 1 from exception where operation = ?1 and reason = ?2 and closed is null)";
    tx.prepare_cached(sql)?.query_row([key, Reason::ChangedRequest.code()], |row| row.get(0))
}

/// Records a delivery, with the digest of the request that is sent for it where it begins an operation; false
/// when this very delivery, to the byte, was recorded before.
fn record(
    tx: &Connection,
    now: Timestamp,
    delivery: &NewDelivery,
    operation: Option<&str>,
    outcome: &str,
    request: Option<&str>,
) -> rusqlite::Result<bool> {
    let mut row = StoredDelivery {
        source: delivery.source.clone(),
        delivery_id: delivery.delivery_id.clone(),
        operation: operation.map(str::to_owned),
        outcome: outcome.to_owned(),
        digest: delivery.digest.clone(),
        received: now,
        link: Link::default(),
    };
    let is_new = add_delivery(tx, &row, request)?;
    let Some(begun) = operation.filter(|_| !is_new && outcome == "new") else { return Ok(is_new) };
    // The very same bytes have come before, and begun nothing, or another version's operation.
    row.digest = format!("{} for {begun}", row.digest);
    add_delivery(tx, &row, request)
}

fn add_delivery(tx: &Connection, row: &StoredDelivery, request: Option<&str>) -> rusqlite::Result<bool> {
    let link = chain::next(tx, row.content(request))?;
    let sql = "insert into delivery values(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) on conflict do nothing";
    let values = params![
        row.source,
        row.delivery_id,
        row.operation,
        row.outcome,
        row.digest,
        row.received.0,
        link.seq,
        link.hash
    ];
    let is_new = tx.prepare_cached(sql)?.execute(values)? == 1;
    if is_new {
        chain::advance(tx, &link)?;
    }
    Ok(is_new)
}

pub(super) fn refuse(
    tx: &Connection,
    now: Timestamp,
    delivery: &NewDelivery,
    why: &str,
) -> rusqlite::Result<()> {
    record(tx, now, delivery, None, why, None).map(|_| ())
}

/// Where an operation stands inside this transaction.
#[derive(Clone)]
pub(super) struct Stands {
    pub(super) state: State,
    pub(super) version: u32,
    pub(super) sends: u32,
    pub(super) external_ref: Option<String>,
    pub(super) cancelled: bool,
}

impl Stands {
    fn of(operation: &Operation) -> Stands {
        Stands {
            state: operation.state,
            version: operation.version,
            sends: operation.sends,
            external_ref: operation.external_ref.clone(),
            cancelled: operation.cancelled,
        }
    }
}

pub(super) fn stands(tx: &Connection, key: &str) -> rusqlite::Result<Option<Stands>> {
    let sql = "select state, version, sends, external_ref, cancelled from operation where key = ?1";
    tx.prepare_cached(sql)?
        .query_row([key], |row| {
            Ok(Stands {
                state: rows::state_at(row, 0)?,
                version: row.get(1)?,
                sends: row.get(2)?,
                external_ref: row.get(3)?,
                cancelled: row.get(4)?,
            })
        })
        .optional()
}

pub(super) fn intend(tx: &Connection, now: Timestamp, intent: &Intent) -> rusqlite::Result<Written> {
    let key = intent.key.as_str();
    let Some(stands) = stands(tx, key)?.filter(|stands| stands.version == intent.version) else {
        return Ok(Written::Stale);
    };
    let n = stands.sends + 1;
    if let Some(id) = intent.authorisation {
        let sql = "update authorisation set consumed_by = ?2
                   where id = ?1 and consumed_by is null and voided is null and expires > ?3";
        if tx.prepare_cached(sql)?.execute(params![id, n, now.0])? == 0 {
            return Ok(Written::Stale);
        }
    }
    let sql = "update operation set state = ?2, version = version + 1, sends = ?3, checks = 0,
                 first_intent = coalesce(first_intent, ?4), last_possible_send = ?5, updated = ?4
               where key = ?1";
    let values = params![key, intent.state.as_str(), n, now.0, intent.send_not_after.0];
    tx.prepare_cached(sql)?.execute(values)?;
    if let Some(next) = &intent.recreation {
        // Another key begins its life with this send.
        let sql = "update operation set generation = ?2, wire_key = ?3, frozen = ?4, first_intent = ?5
                   where key = ?1";
        let wire_key = intent.wire_key.as_str();
        let values = params![key, next.generation, wire_key, next.frozen.to_stored(), now.0];
        tx.prepare_cached(sql)?.execute(values)?;
    }
    let row = Attempt {
        n,
        wire_key: intent.wire_key.as_str().to_owned(),
        digest: intent.digest.clone(),
        intent_at: now,
        send_not_after: intent.send_not_after,
        licence: intent.ground.to_string(),
        authorisation: intent.authorisation,
        link: Link::default(),
    };
    add_attempt(tx, key, row, &intent.whole_digest)?;
    Ok(Written::Done)
}

pub(super) fn add_attempt(tx: &Connection, key: &str, row: Attempt, request: &str) -> rusqlite::Result<()> {
    let link = chain::next(tx, row.content(key, request))?;
    tx.prepare_cached("insert into attempt values(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")?.execute(
        params![
            key,
            row.n,
            row.wire_key,
            row.digest,
            row.intent_at.0,
            row.send_not_after.0,
            row.licence,
            row.authorisation,
            link.seq,
            link.hash
        ],
    )?;
    chain::advance(tx, &link)
}

pub(super) fn find(tx: &Connection, now: Timestamp, finding: &Finding) -> rusqlite::Result<Written> {
    let key = finding.key.as_str();
    let Some(stands) = stands(tx, key)?.filter(|stands| stands.version == finding.version) else {
        return Ok(Written::Stale);
    };
    if let Some(found) = &finding.external_ref
        && !link(tx, now, found, key)?
    {
        return Ok(Written::RefTaken);
    }
    let sql = "update operation set state = ?2, version = version + 1, checks = checks + ?3, not_before = ?4,
                 external_ref = coalesce(?5, external_ref), open = ?6, updated = ?7
               where key = ?1";
    let ends = finding.state.is_terminal();
    tx.prepare_cached(sql)?.execute(params![
        key,
        finding.state.as_str(),
        finding.counts_check,
        finding.not_before.0,
        finding.external_ref,
        !ends && !finding.state.is_exception(),
        now.0
    ])?;
    add_evidence(tx, now, key, &stands, &finding.evidence, finding.state)?;
    if ends {
        // Whatever has ended the operation ends its case.
        let evidence = &finding.evidence;
        close_case(tx, now, key, false, ("resolved", &evidence.source, &evidence.detail))?;
    }
    if let Some(exception) = &finding.exception {
        open_exception(tx, now, &finding.key, exception)?;
    }
    if stands.cancelled && finding.state == State::Confirmed {
        // Nobody wanted it any more, and there it is: somebody has to undo it at the destination.
        raise(tx, now, key, "cancelled_too_late", &finding.owner)?;
    }
    Ok(Written::Done)
}

/// Closes the case about an operation, or the one about a changed request beside it.
pub(super) fn close_case(
    tx: &Connection,
    now: Timestamp,
    key: &str,
    on_change: bool,
    (how, by, why): (&str, &str, &str),
) -> rusqlite::Result<()> {
    let sql = "update exception set closed = ?2, decision = ?3, decided_by = ?4, decided_why = ?5
               where operation = ?1 and closed is null and (reason = ?6) = ?7";
    let values = params![key, now.0, how, by, why, Reason::ChangedRequest.code(), on_change];
    tx.prepare_cached(sql)?.execute(values).map(|_| ())
}

/// What a late observation says against what is recorded: what a person has to compare.
fn contradiction(stands: &Stands, evidence: &NewEvidence, found: Option<&str>) -> Option<&'static str> {
    let says_there_is_one = matches!(evidence.class, "confirmed" | "confirmed_without_ref" | "conflict");
    match (stands.state, stands.external_ref.as_deref()) {
        _ if !says_there_is_one => None,
        (state, Some(linked)) if state.is_terminal() => found.filter(|found| *found != linked).map(|_| {
            "two records exist for one operation: look at both at the destination, and close one of them there"
        }),
        (state, None) if state.is_terminal() => Some(
            "the operation ended without a record, and there may be one: look for it at the destination, and close it \
             there if nobody wants it",
        ),
        (State::ExceptionUnsent | State::Authorised, _) => {
            Some("every send was proven to have done nothing, and there may be a record: look for it, and confirm it")
        }
        _ => None,
    }
}

/// Records what an attempt showed after its operation had moved on. The same contradiction is told once.
pub(super) fn find_late(
    tx: &Connection,
    now: Timestamp,
    (key, attempt): (&OperationKey, u32),
    evidence: &NewEvidence,
    found: Option<&str>,
    owner: &str,
) -> rusqlite::Result<()> {
    let name = key.as_str();
    let Some(stands) = stands(tx, name)? else { return Ok(()) };
    let late = NewEvidence { source: format!("late {}", evidence.source), ..evidence.clone() };
    add_aside(tx, now, name, &Stands { sends: attempt, ..stands.clone() }, &late)?;
    let Some(proposal) = contradiction(&stands, evidence, found) else { return Ok(()) };
    let kind = "late_contradiction";
    let detail = format!("it is {}, and then: {}", stands.state, evidence.detail);
    let (severity, external_ref, proposal) = ("high", found.map(str::to_owned), proposal.to_owned());
    let sighting = Sighting { kind, severity, external_ref, detail, proposal };
    if !discrepancies::is_new(tx, now, name, &sighting, "open")? {
        return Ok(());
    }
    raise(tx, now, name, kind, owner)
}

/// Adds evidence that leaves an operation where it stands, and moves it to another version.
pub(super) fn add_aside(
    tx: &Connection,
    now: Timestamp,
    key: &str,
    stands: &Stands,
    evidence: &NewEvidence,
) -> rusqlite::Result<()> {
    tx.prepare_cached("update operation set version = version + 1 where key = ?1")?.execute([key])?;
    add_evidence(tx, now, key, stands, evidence, stands.state)
}

/// Links a record to an operation; false when it belongs to another one.
pub(super) fn link(tx: &Connection, now: Timestamp, found: &str, key: &str) -> rusqlite::Result<bool> {
    let sql = "insert into external_ref values(?1, ?2, ?3) on conflict do nothing";
    if tx.prepare_cached(sql)?.execute(params![found, key, now.0])? == 1 {
        return Ok(true);
    }
    let sql = "select operation = ?2 from external_ref where ref = ?1";
    tx.prepare_cached(sql)?.query_row([found, key], |row| row.get(0))
}

/// Adds evidence, and voids whatever a person has permitted and nobody has used: they did not know of this,
/// where it says anything about the record.
///
/// Each piece of evidence moves its operation to another version, so the version that it met numbers it.
pub(super) fn add_evidence(
    tx: &Connection,
    now: Timestamp,
    key: &str,
    stands: &Stands,
    new: &NewEvidence,
    after: State,
) -> rusqlite::Result<()> {
    let row = Evidence {
        n: stands.version,
        attempt: stands.sends,
        class: new.class.to_owned(),
        observed: now,
        source: new.source.clone(),
        detail: new.detail.clone(),
        before: stands.state.as_str().to_owned(),
        after: after.as_str().to_owned(),
        link: Link::default(),
    };
    let link = chain::next(tx, row.content(key))?;
    let sql = "insert into evidence values(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
    tx.prepare_cached(sql)?.execute(params![
        key,
        row.n,
        row.attempt,
        row.class,
        row.observed.0,
        row.source,
        row.detail,
        row.before,
        row.after,
        link.seq,
        link.hash
    ])?;
    chain::advance(tx, &link)?;
    if stands.state.is_authorised() && new.class != person::HOUSEKEEPING {
        let why = format!("{} from {}", new.class, new.source);
        let sql = "update authorisation set voided = ?2
                   where operation = ?1 and consumed_by is null and voided is null";
        tx.prepare_cached(sql)?.execute([key, &why])?;
    }
    Ok(())
}

fn open_exception(
    tx: &Connection,
    now: Timestamp,
    key: &OperationKey,
    new: &NewException,
) -> rusqlite::Result<()> {
    let sql = "insert into exception(operation, reason, owner, deadline, escalate_to, opened, facts, lookup,
                 key_lapses)
               values(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let (mut owner, mut deadline) = (new.owner.clone(), new.deadline.0);
    if matches!(new.reason, Reason::AuthorisationLapsed | Reason::CreationFailed) {
        // The case goes on that the permission had closed: with whom it was, and until when it was to be
        // decided.
        let sql = "select owner, deadline from exception where operation = ?1 and decision like 'authorise_%'
                   order by id desc limit 1";
        let before = tx.prepare_cached(sql)?.query_row([key.as_str()], |row| Ok((row.get(0)?, row.get(1)?)));
        (owner, deadline) = before.optional()?.unwrap_or((owner, deadline));
    }
    let lapses = new.key_lapses.map(|at| at.0);
    let values = params![
        key.as_str(),
        new.reason.code(),
        owner,
        deadline,
        new.escalate_to,
        now.0,
        new.facts,
        new.lookup,
        lapses
    ];
    tx.prepare_cached(sql)?.execute(values)?;
    raise(tx, now, key.as_str(), new.reason.code(), &owner)
}

/// The earliest deadline of a case that nobody has been told of as overdue.
pub(super) fn next_deadline(db: &Connection) -> rusqlite::Result<Option<Timestamp>> {
    let sql = "select min(deadline) from exception where closed is null and escalated is null";
    db.prepare_cached(sql)?.query_row([], |row| Ok(row.get::<_, Option<i64>>(0)?.map(Timestamp)))
}

/// Tells, of each case whose deadline has passed, whoever is to hear of that; once a case. How many there
/// were.
pub(super) fn escalate(tx: &Connection, now: Timestamp) -> rusqlite::Result<usize> {
    let sql = "insert into alert(operation, kind, owner, raised)
               select operation, 'overdue', escalate_to, ?1 from exception
               where closed is null and escalated is null and deadline <= ?1";
    tx.prepare_cached(sql)?.execute([now.0])?;
    let sql =
        "update exception set escalated = ?1 where closed is null and escalated is null and deadline <= ?1";
    tx.prepare_cached(sql)?.execute([now.0])
}

/// Tells somebody of something.
pub(super) fn raise(
    tx: &Connection,
    now: Timestamp,
    key: &str,
    kind: &str,
    owner: &str,
) -> rusqlite::Result<()> {
    let sql = "insert into alert(operation, kind, owner, raised) values(?1, ?2, ?3, ?4)";
    tx.prepare_cached(sql)?.execute(params![key, kind, owner, now.0]).map(|_| ())
}
