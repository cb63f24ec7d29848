//! What contradicts the records, and how it is written: seen once, seen again, settled by a person, not seen
//! any more.

use super::verbs::{add_aside, raise, stands};
use super::{NewEvidence, person, rows};
use crate::clock::Timestamp;
use crate::operation::{OperationKey, sha256_hex};
use rusqlite::{Connection, params};
use std::collections::BTreeSet;
use std::time::Duration;

/// Something that contradicts what is recorded.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Discrepancy {
    /// The same contradiction has the same id: a hash of kind, operation and record.
    pub id: String,
    /// `late_contradiction`, `missing_there`, `field_mismatch`, `wrong_link`, `duplicate_there`,
    /// `exists_but_in_doubt`, `exists_but_rejected` or `exists_but_open`.
    pub kind: String,
    /// The operation.
    pub operation: Option<String>,
    /// The record.
    #[serde(rename = "ref")]
    pub external_ref: Option<String>,
    /// `high` or `low`.
    pub severity: String,
    /// What was seen.
    pub detail: String,
    /// What would correct it.
    pub proposal: String,
    /// When it was first seen.
    pub found: Timestamp,
    /// When it was last seen.
    pub seen: Timestamp,
    /// `seen` once, and not believed yet; `open`; `explained` or `accepted` by a person; `corrected`: a later
    /// look did not see it any more.
    pub status: String,
    /// Who has explained or accepted it, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled: Option<String>,
}

/// What a reconciliation has seen of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// As in [`Discrepancy`].
    pub kind: &'static str,
    /// `high` or `low`.
    pub severity: &'static str,
    /// The record.
    pub external_ref: Option<String>,
    /// What was seen.
    pub detail: String,
    /// What would correct it.
    pub proposal: String,
}

/// One look at an operation's records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// When it began.
    pub at: Timestamp,
    /// The version of the operation that it looked at; if it has moved on, nothing is noted.
    pub version: u32,
    /// What is seen again so much later is believed.
    pub again_after: Duration,
    /// Whether what a look-up did not show is not there.
    pub is_shown: bool,
    /// Who hears of what is believed.
    pub owner: String,
}

/// What a person says of a discrepancy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Its id.
    pub id: String,
    /// `explained` or `accepted`.
    pub status: &'static str,
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
}

/// The same contradiction has the same id, whoever sees it.
fn id_of(operation: &str, sighting: &Sighting) -> String {
    let record = sighting.external_ref.as_deref().unwrap_or_default();
    let mut id = sha256_hex(format!("{}\n{operation}\n{record}", sighting.kind).as_bytes());
    id.truncate(16);
    id
}

/// Notes that it was seen, at this time, and how; true when it is the first time.
pub(super) fn is_new(
    tx: &Connection,
    at: Timestamp,
    operation: &str,
    sighting: &Sighting,
    status: &str,
) -> rusqlite::Result<bool> {
    let id = id_of(operation, sighting);
    let Sighting { kind, severity, external_ref, detail, proposal } = sighting;
    let sql = "update discrepancy set seen = ?2, detail = ?3 where id = ?1";
    if tx.prepare_cached(sql)?.execute(params![id, at.0, detail])? == 1 {
        return Ok(false);
    }
    let sql = "insert into discrepancy values(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, ?9, null)";
    let values = params![id, kind, operation, external_ref, severity, detail, proposal, at.0, status];
    tx.prepare_cached(sql)?.execute(values)?;
    Ok(true)
}

pub(super) fn sighted(
    tx: &Connection,
    now: Timestamp,
    key: &OperationKey,
    sightings: &[Sighting],
    look: &Look,
) -> rusqlite::Result<()> {
    let name = key.as_str();
    // A person, or the engine, knows more than this look.
    if stands(tx, name)?.is_none_or(|stands| stands.version != look.version) {
        return Ok(());
    }
    let mut there = BTreeSet::new();
    for sighting in sightings {
        let id = id_of(name, sighting);
        is_new(tx, look.at, name, sighting, "seen")?;
        // What had been corrected may be back: it needs a second look again.
        let sql = "update discrepancy set status = 'seen', found = ?2, settled = null
                   where id = ?1 and status = 'corrected'";
        tx.prepare_cached(sql)?.execute(params![id, look.at.0])?;
        let sql = "update discrepancy set status = 'open' where id = ?1 and status = 'seen' and found <= ?2";
        if tx.prepare_cached(sql)?.execute(params![id, look.at.before(look.again_after).0])? == 1 {
            raise(tx, now, name, sighting.kind, &look.owner)?;
        }
        there.insert(id);
    }
    for known in rows::discrepancies_of(tx, name)? {
        let by_look_up = known.kind == "duplicate_there" || known.kind.starts_with("exists_but");
        let hidden = by_look_up && !look.is_shown;
        if there.contains(&known.id) || known.kind == "late_contradiction" || hidden {
            continue;
        }
        let sql = match known.status.as_str() {
            // Nobody was told of it: it was on its way.
            "seen" => "delete from discrepancy where id = ?1",
            _ => "update discrepancy set status = 'corrected' where id = ?1",
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
    let sql = "update discrepancy set status = ?2, settled = ?3 where id = ?1 and status = 'open'";
    let said = format!("{}: {}", settled.by, settled.reason);
    if tx.prepare_cached(sql)?.execute(params![settled.id, settled.status, said])? == 0 {
        return Ok(None);
    }
    let found = rows::discrepancy_of(tx, &settled.id)?;
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
