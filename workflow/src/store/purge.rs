//! Removing what has long ended: a tombstone stays, and of each row of the chain its content's hash.

use super::{Tombstone, chain, rows};
use crate::clock::Timestamp;
use crate::mutant::{Mistake, Mutant};
use rusqlite::{Connection, params};

/// Removes the records of operations that ended before a time, the oldest first; how many there were.
pub(super) fn purge(
    tx: &Connection,
    now: Timestamp,
    ended_before: Timestamp,
    limit: u32,
    mutant: Mutant,
) -> rusqlite::Result<u32> {
    let mut removed = 0;
    for (operation, ended) in rows::ended_before(tx, ended_before, limit)? {
        let (key, fingerprint, state) =
            (operation.key.clone(), operation.fingerprint.clone(), operation.state);
        let external_ref = operation.external_ref.clone();
        let own = rows::rows_of(tx, operation)?;
        // What does not stand where its rows leave it is not removed: a check has to find it.
        let Ok(contents) = own.rows() else { continue };
        if own.operations.iter().any(|operation| own.agrees(operation).is_err()) {
            continue;
        }
        let gone: Vec<(i64, String)> =
            contents.into_iter().map(|(link, content, _)| (link.seq, content.digest())).collect();
        for (seq, content) in &gone {
            let sql = "insert into purged values(?1, ?2, ?3)";
            tx.prepare_cached(sql)?.execute(params![seq, content, key.as_str()])?;
        }
        let removed_rows = chain::removed(gone.iter().map(|(seq, content)| (*seq, content.as_str())));
        let link = chain::Link::default();
        let stone = Tombstone {
            key,
            fingerprint,
            state,
            external_ref,
            ended,
            purged: now,
            removed: removed_rows,
            link,
        };
        let key = stone.key.as_str();
        for table in ["delivery", "attempt", "evidence", "exception", "authorisation", "alert", "discrepancy"]
        {
            tx.prepare_cached(&format!("delete from {table} where operation = ?1"))?.execute([key])?;
        }
        tx.prepare_cached("delete from operation where key = ?1")?.execute([key])?;
        let link = chain::next(tx, stone.content())?;
        if mutant.is(Mistake::TombstoneDropped) {
            tx.prepare_cached("delete from external_ref where operation = ?1")?.execute([key])?;
            tx.prepare_cached("insert into purged values(?1, ?2, ?3)")?.execute(params![
                link.seq,
                stone.content().digest(),
                key
            ])?;
        } else {
            let sql = "insert into tombstone values(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
            let (fingerprint, state) = (stone.fingerprint.as_str(), stone.state.as_str());
            tx.prepare_cached(sql)?.execute(params![
                key,
                fingerprint,
                state,
                stone.external_ref,
                ended.0,
                now.0,
                link.seq,
                link.hash,
                stone.removed
            ])?;
        }
        chain::advance(tx, &link)?;
        removed += 1;
    }
    Ok(removed)
}
