//! Writing what people decide: each act is compared and swapped on the version that they saw, and leaves its
//! row in the chain.

use super::verbs::{add_evidence, close_case, link, raise, stands};
use super::{CaseChange, Decision, NewEvidence, Written, person};
use crate::clock::Timestamp;
use crate::state::State;
use rusqlite::{Connection, params};

pub(super) fn decide(tx: &Connection, now: Timestamp, decision: &Decision) -> rusqlite::Result<Written> {
    let key = decision.key.as_str();
    let Some(stands) = stands(tx, key)?.filter(|stands| stands.version == decision.version) else {
        return Ok(Written::Stale);
    };
    if let Some(found) = &decision.external_ref
        && !link(tx, now, found, key)?
    {
        return Ok(Written::RefTaken);
    }
    let sql =
        "update operation set state = ?2, version = version + 1, external_ref = coalesce(?3, external_ref),
                 open = case when ?4 then 0 else ?5 or open end, updated = ?6,
                 cancelled = cancelled or ?7 where key = ?1";
    let (ends, permits) = (decision.state.is_terminal(), decision.permits.is_some());
    let cancels = decision.class == person::CANCELLED;
    let values = params![key, decision.state.as_str(), decision.external_ref, ends, permits, now.0, cancels];
    tx.prepare_cached(sql)?.execute(values)?;
    change_case(tx, now, decision)?;
    if stands.cancelled && decision.state == State::ConfirmedByPerson {
        raise(tx, now, key, "cancelled_too_late", &decision.owner)?;
    }
    let detail = format!("{}: {}", decision.action, decision.reason);
    let evidence = NewEvidence { class: decision.class, source: decision.by.clone(), detail };
    add_evidence(tx, now, key, &stands, &evidence, decision.state)?;
    if let Some((kind, expires)) = decision.permits {
        let sql = "insert into authorisation(operation, kind, by, reason, issued, expires)
                   values(?1, ?2, ?3, ?4, ?5, ?6)";
        let values = params![key, kind.as_str(), decision.by, decision.reason, now.0, expires.0];
        tx.prepare_cached(sql)?.execute(values)?;
    }
    Ok(Written::Done)
}

fn change_case(tx: &Connection, now: Timestamp, decision: &Decision) -> rusqlite::Result<()> {
    let key = decision.key.as_str();
    match &decision.case {
        CaseChange::Stays => Ok(()),
        CaseChange::Closed | CaseChange::ChangeClosed => {
            let on_change = decision.case == CaseChange::ChangeClosed;
            close_case(tx, now, key, on_change, (decision.action, &decision.by, &decision.reason))
        }
        CaseChange::AssignedTo(owner) => {
            let sql = "update exception set owner = ?2 where operation = ?1 and closed is null";
            tx.prepare_cached(sql)?.execute([key, owner])?;
            // Whoever is to act has to hear of it.
            raise(tx, now, key, "assigned", owner)
        }
        CaseChange::SnoozedUntil(until) => {
            let sql = "update exception set snoozed_until = ?2 where operation = ?1 and closed is null";
            tx.prepare_cached(sql)?.execute(params![key, until.0]).map(|_| ())
        }
    }
}
