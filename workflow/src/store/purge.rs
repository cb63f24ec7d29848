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
    for (key, ended) in rows::ended_before(tx, ended_before, limit)? {
        let own = rows::rows_of(tx, Some(&key))?;
        let [operation] = own.operations.as_slice() else { continue };
        // What does not stand where its rows leave it is not removed: a check has to find it.
        let (Ok(contents), Ok(())) = (own.rows(), own.agrees(operation)) else { continue };
        let gone: Vec<(i64, String)> =
            contents.into_iter().map(|(link, content, _)| (link.seq, content.digest())).collect();
        for (seq, content) in &gone {
            let sql = "insert into purged values(?1, ?2, ?3)";
            tx.prepare_cached(sql)?.execute(params![seq, content, key])?;
        }
        let stone = Tombstone {
            key: operation.key.clone(),
            fingerprint: operation.fingerprint.clone(),
            state: operation.state,
            external_ref: operation.external_ref.clone(),
            ended,
            purged: now,
            removed: chain::removed(gone.iter().map(|(seq, content)| (*seq, content.as_str()))),
            link: chain::Link::default(),
        };
        for table in ["delivery", "attempt", "evidence", "exception", "authorisation", "alert", "discrepancy"]
        {
            tx.prepare_cached(&format!("delete from {table} where operation = ?1"))?.execute([&key])?;
        }
        tx.prepare_cached("delete from operation where key = ?1")?.execute([&key])?;
        let link = chain::next(tx, stone.content())?;
        if mutant.is(Mistake::TombstoneDropped) {
            tx.prepare_cached("delete from external_ref where operation = ?1")?.execute([&key])?;
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
