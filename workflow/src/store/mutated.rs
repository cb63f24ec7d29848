//! What the known mistakes do to the store's transactions: nothing, unless the engine makes one of them.

use super::{Accepted, Attempt, Decision, Finding, Intent, Link, NewDelivery, NewOperation};
use crate::clock::Timestamp;
use crate::mutant::{Mistake, Mutant};
use crate::operation::FrozenRequest;
use crate::state::State;
use rusqlite::{Connection, params};

/// After the store was opened, before anything is read from it.
pub(super) fn at_opening(db: &Connection, mutant: Mutant) -> rusqlite::Result<()> {
    if mutant.is(Mistake::MemoryOnlyDedupe) {
        // What a process does not remember is what was there before it.
        db.execute_batch(
            "pragma temp_store = memory; create temp table forgotten as select key from operation",
        )?;
    }
    if mutant.is(Mistake::BudgetForgottenAtStart) {
        db.execute_batch(
            "delete from attempt where operation in (select key from operation where open = 1);
             update operation set sends = 0 where open = 1",
        )?;
    }
    if mutant.is(Mistake::EndedTakenUpAgain) {
        db.execute_batch(
            "update operation set state = 'requiring_verification/in_doubt', open = 1
             where state = 'completed/confirmed'",
        )?;
    }
    if mutant.is(Mistake::KeyPerProcess) {
        db.execute_batch(
            "update operation set wire_key = fresh, frozen = replace(frozen, wire_key, fresh)
             from (select key as named, substr(wire_key, 1, 20) || (high_water % 1000000) as fresh
                   from operation, meta) where key = named and open = 1",
        )?;
    }
    Ok(())
}

/// Before a delivery is accepted.
pub(super) fn before_accept(
    tx: &Connection,
    mutant: Mutant,
    operation: &NewOperation,
) -> rusqlite::Result<()> {
    let key = operation.key.as_str();
    if mutant.is(Mistake::ChangedPayloadSent) {
        let sql = "update operation set frozen = ?2, fingerprint = ?3 where key = ?1 and fingerprint <> ?3";
        tx.execute(sql, params![key, operation.frozen.to_stored(), operation.fingerprint.as_str()])?;
    }
    let forgotten = match () {
        () if mutant.is(Mistake::RepeatStartsOver) => "",
        () if mutant.is(Mistake::MemoryOnlyDedupe) => "and key in (select key from forgotten)",
        () => return Ok(()),
    };
    let sql = format!("delete from operation where key = ?1 and open = 0 {forgotten}");
    if tx.execute(&sql, [key])? == 1 {
        for table in ["attempt", "evidence", "external_ref", "exception"] {
            tx.execute(&format!("delete from {table} where operation = ?1"), [key])?;
        }
    }
    Ok(())
}

/// After a delivery was accepted.
pub(super) fn after_accept(
    tx: &Connection,
    mutant: Mutant,
    delivery: &NewDelivery,
    accepted: &Accepted,
) -> rusqlite::Result<()> {
    if mutant.is(Mistake::RepeatNotRecorded) && matches!(accepted, Accepted::Same { .. }) {
        let sql = "delete from delivery where source = ?1 and delivery_id = ?2 and outcome = 'same'";
        tx.execute(sql, [&delivery.source, &delivery.delivery_id])?;
    }
    forget_alerts(tx, mutant)
}

/// After an intent was recorded.
pub(super) fn after_intend(tx: &Connection, mutant: Mutant, intent: &Intent) -> rusqlite::Result<()> {
    if mutant.is(Mistake::CountedAtEnd) {
        let key = intent.key.as_str();
        tx.execute(
            "delete from attempt where operation = ?1 and n = (select sends from operation where key = ?1)",
            [key],
        )?;
        tx.execute("update operation set sends = sends - 1 where key = ?1", [key])?;
    }
    Ok(())
}

/// After something was found out.
pub(super) fn after_find(
    tx: &Connection,
    mutant: Mutant,
    now: Timestamp,
    finding: &Finding,
) -> rusqlite::Result<()> {
    if mutant.is(Mistake::CountedAtEnd) && finding.evidence.source == "create" {
        let sql = "update operation set sends = sends + 1 where key = ?1 returning sends, wire_key, frozen";
        let (n, wire_key, frozen) = tx.query_row(sql, [finding.key.as_str()], |row| {
            Ok((row.get::<_, u32>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?))
        })?;
        let digest = FrozenRequest::from_stored(&frozen).map(|frozen| frozen.digest()).unwrap_or_default();
        let licence = "counted at the end".into();
        let row = Attempt {
            n,
            wire_key,
            digest,
            intent_at: now,
            send_not_after: now,
            licence,
            authorisation: None,
            link: Link::default(),
        };
        super::verbs::add_attempt(tx, finding.key.as_str(), row, "not kept")?;
    }
    if mutant.is(Mistake::AuthorisationReusable) && finding.state == State::InDoubt {
        let used = "operation = ?1 and kind = 'creation' and consumed_by is not null";
        let again = format!("update authorisation set consumed_by = null where {used}");
        if tx.execute(&again, [finding.key.as_str()])? > 0 {
            let sql = "update operation set state = ?2 where key = ?1";
            tx.execute(sql, [finding.key.as_str(), State::AuthorisedCreation.as_str()])?;
        }
    }
    forget_alerts(tx, mutant)
}

/// After a person has decided.
pub(super) fn after_decide(tx: &Connection, mutant: Mutant, decision: &Decision) -> rusqlite::Result<()> {
    let key = decision.key.as_str();
    if mutant.is(Mistake::AuthorisationForgotten) && decision.permits.is_some() {
        tx.execute("update operation set open = 0 where key = ?1", [key])?;
    }
    if mutant.is(Mistake::DecisionUntraced) {
        // The operation has moved on, and nobody can tell who moved it.
        let last = "operation = ?1 and class like 'person%'";
        tx.execute(&format!("delete from evidence where {last}"), [key])?;
    }
    Ok(())
}

fn forget_alerts(tx: &Connection, mutant: Mutant) -> rusqlite::Result<()> {
    if mutant.is(Mistake::ExceptionWithoutAlert) {
        tx.execute("delete from alert", [])?;
    }
    Ok(())
}
