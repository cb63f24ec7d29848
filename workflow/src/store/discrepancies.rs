//! Writing what contradicts the records: seen once, seen again, settled by a person, not seen any more.

use super::verbs::{add_aside, raise, stands};
use super::{Discrepancy, NewEvidence, Settled, Sighting, person, rows};
use crate::clock::Timestamp;
use crate::operation::{OperationKey, sha256_hex};
use rusqlite::{Connection, params};
use std::collections::BTreeSet;
use std::time::Duration;

/// The same contradiction has the same id, whoever sees it.
fn id_of(operation: &str, sighting: &Sighting) -> String {
    let record = sighting.external_ref.as_deref().unwrap_or_default();
    let mut id = sha256_hex(format!("{}\n{operation}\n{record}", sighting.kind).as_bytes());
    id.truncate(16);
    id
}

/// Notes that it was seen; true when it is the first time.
pub(super) fn is_new(
    tx: &Connection,
    now: Timestamp,
    operation: &str,
    sighting: &Sighting,
    status: &str,
) -> rusqlite::Result<bool> {
    let id = id_of(operation, sighting);
    let sql = "update discrepancy set seen = ?2 where id = ?1";
    if tx.prepare_cached(sql)?.execute(params![id, now.0])? == 1 {
        return Ok(false);
    }
    let sql = "insert into discrepancy values(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, ?9, null)";
    let Sighting { kind, severity, external_ref, detail, proposal } = sighting;
    let values = params![id, kind, operation, external_ref, severity, detail, proposal, now.0, status];
    tx.prepare_cached(sql)?.execute(values)?;
    Ok(true)
}

pub(super) fn sighted(
    tx: &Connection,
    now: Timestamp,
    key: &OperationKey,
    sightings: &[Sighting],
    lag: Duration,
    owner: &str,
) -> rusqlite::Result<()> {
    let name = key.as_str();
    let mut there = BTreeSet::new();
    for sighting in sightings {
        let id = id_of(name, sighting);
        is_new(tx, now, name, sighting, "seen")?;
        // A later look sees it again; what had been corrected is back.
        let sql = "update discrepancy set status = 'open', settled = null
                   where id = ?1 and (status = 'corrected' or status = 'seen' and found <= ?2)";
        let latest = now.0.saturating_sub(i64::try_from(lag.as_millis()).unwrap_or(i64::MAX));
        if tx.prepare_cached(sql)?.execute(params![id, latest])? == 1 {
            raise(tx, now, name, sighting.kind, owner)?;
        }
        there.insert(id);
    }
    for known in rows::discrepancies_of(tx, name)? {
        if there.contains(&known.id) || known.kind == "late_contradiction" {
            continue;
        }
        let sql = match known.status.as_str() {
            // Nobody was told of it: it was on its way.
            "seen" => "delete from discrepancy where id = ?1",
            "open" => "update discrepancy set status = 'corrected' where id = ?1",
            _ => continue,
        };
        tx.prepare_cached(sql)?.execute([&known.id])?;
    }
    Ok(())
}

/// What a person says of it, with its row in the chain; none where there is no such discrepancy, or nothing
/// to say of it any more.
pub(super) fn settle(
    tx: &Connection,
    now: Timestamp,
    settled: &Settled,
) -> rusqlite::Result<Option<Discrepancy>> {
    let sql = "update discrepancy set status = ?2, settled = ?3 where id = ?1 and status <> 'corrected'";
    let said = format!("{}: {}", settled.by, settled.reason);
    if tx.prepare_cached(sql)?.execute(params![settled.id, settled.status, said])? == 0 {
        return Ok(None);
    }
    let found = rows::discrepancies(tx)?.into_iter().find(|known| known.id == settled.id);
    let operation = found.as_ref().and_then(|known| known.operation.clone());
    if let Some((name, stands)) =
        operation.and_then(|name| Some((name.clone(), stands(tx, &name).transpose()?)))
    {
        let detail = format!("{} discrepancy {}: {}", settled.status, settled.id, settled.reason);
        let evidence = NewEvidence { class: person::HOUSEKEEPING, source: settled.by.clone(), detail };
        add_aside(tx, now, &name, &stands?, &evidence)?;
    }
    Ok(found)
}
