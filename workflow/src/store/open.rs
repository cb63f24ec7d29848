//! Opening a store: settings that durability rests on, the schema, and the checkpoint before anything is
//! believed.

use super::connections::Lent;
use super::{StoreAt, StoreError};
use crate::clock::{Clock, Timestamp};
use crate::mutant::{Mistake, Mutant};
use rusqlite::{Connection, ErrorCode};

/// The version of the schema that this code reads and writes.
pub const SCHEMA_VERSION: i64 = 3;
/// Marks the file as ours ("wfid"), so that another program's database is not written to.
const APPLICATION_ID: i64 = 0x7766_6964;

const SCHEMA: &str = "
create table meta(id integer primary key check(id = 1), high_water integer not null, chain_seq integer not null,
  chain_head text not null) strict;
insert into meta values(1, 0, 0, '');
create table delivery(source text not null, delivery_id text not null, operation text, outcome text not null,
  digest text not null, received integer not null, seq integer not null, hash text not null,
  primary key(source, delivery_id, digest)) strict, without rowid;
create table operation(key text primary key, state text not null, wire_key text not null, fingerprint text not null,
  frozen text not null, generation integer not null, version integer not null, sends integer not null,
  checks integer not null, first_intent integer, last_possible_send integer, not_before integer not null,
  external_ref text, open integer not null, created integer not null, updated integer not null,
  cancelled integer not null)
  strict, without rowid;
create index operation_open on operation(open) where open = 1;
create table attempt(operation text not null, n integer not null, wire_key text not null, digest text not null,
  intent_at integer not null, send_not_after integer not null, licence text not null,
  authorisation integer, seq integer not null, hash text not null, primary key(operation, n)) strict, without rowid;
create table evidence(operation text not null, n integer not null, attempt integer not null, class text not null,
  observed integer not null, source text not null, detail text not null, before text not null, after text not null,
  seq integer not null, hash text not null, primary key(operation, n)) strict, without rowid;
create table authorisation(id integer primary key, operation text not null, kind text not null, by text not null,
  reason text not null, issued integer not null, expires integer not null, consumed_by integer, voided text) strict;
create index authorisation_open on authorisation(operation) where consumed_by is null and voided is null;
create table discrepancy(id text primary key, kind text not null, operation text, ref text, severity text not null,
  detail text not null, proposal text not null, found integer not null, seen integer not null, status text not null, settled text)
  strict, without rowid;
create table tombstone(key text primary key, fingerprint text not null, state text not null, ref text,
  ended integer not null, purged integer not null, seq integer not null, hash text not null,
  removed text not null) strict, without rowid;
create table purged(seq integer primary key, content text not null, operation text not null) strict;
create table external_ref(ref text primary key, operation text not null, linked integer not null)
  strict, without rowid;
create table exception(id integer primary key, operation text not null, reason text not null, owner text not null,
  deadline integer not null, escalate_to text not null, opened integer not null, facts text not null,
  lookup text not null, key_lapses integer, snoozed_until integer, escalated integer, closed integer, decision text, decided_by text, decided_why text) strict;
create index exception_open on exception(deadline) where closed is null;
create table alert(id integer primary key, operation text not null, kind text not null, owner text not null,
  raised integer not null) strict;
";

/// What the version before this one had not: its files are taken over in one transaction.
const FROM_2: &str = "
alter table operation add column cancelled integer not null default 0;
alter table discrepancy add column settled text;
create table tombstone(key text primary key, fingerprint text not null, state text not null, ref text,
  ended integer not null, purged integer not null, seq integer not null, hash text not null,
  removed text not null) strict, without rowid;
create table purged(seq integer primary key, content text not null, operation text not null) strict;
pragma user_version = 3;
";

/// An open connection, its settings checked and everything visible in it durable.
pub(super) struct Opened {
    pub(super) connection: Lent,
    pub(super) high_water: Timestamp,
}

/// Whether another connection of this process has the file open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beside {
    Nobody,
    Another,
}

pub(super) fn open(at: &StoreAt, beside: Beside) -> Result<Opened, StoreError> {
    let path = &at.path;
    let connection = at.connections.lend(path).map_err(|e| classify_open(path, e))?;
    let high_water = prepare(&connection, at, beside).map_err(|e| match e {
        OpenError::Sql(e) => classify_open(path, e),
        OpenError::Refused(why) => StoreError::Unusable(format!("{path}: {why}")),
    })?;
    Ok(Opened { connection, high_water })
}

/// Makes a store file with nothing in it, and closes it again.
///
/// # Errors
/// As [`super::Store::open`].
pub fn create_file(path: &str, clock: &Clock) -> Result<(), StoreError> {
    let at = StoreAt { clock: clock.clone(), ..StoreAt::file(path) };
    open(&at, Beside::Nobody).map(|_| ())
}

enum OpenError {
    Sql(rusqlite::Error),
    Refused(String),
}

impl From<rusqlite::Error> for OpenError {
    fn from(error: rusqlite::Error) -> Self {
        OpenError::Sql(error)
    }
}

fn prepare(db: &Connection, at: &StoreAt, beside: Beside) -> Result<Timestamp, OpenError> {
    if at.mutant.is(Mistake::SkipFsync) {
        db.execute_batch("pragma synchronous = off")?;
    }
    let version = number(db, "pragma user_version")?;
    match version {
        0 if beside == Beside::Another => {
            let why = "the store file is gone or was replaced while it was in use\n  \
                       help: stop, put the file back, and start again";
            return Err(OpenError::Refused(why.into()));
        }
        0 => create(db, &at.clock)?,
        SCHEMA_VERSION => check_ours(db)?,
        2 => {
            check_ours(db)?;
            db.execute_batch(&format!("begin immediate; {FROM_2} commit;"))?;
        }
        older if older < SCHEMA_VERSION => {
            check_ours(db)?;
            return Err(OpenError::Refused(format!(
                "the store was written by an older version (schema {older}, this program knows {SCHEMA_VERSION})\n  \
                 help: let that version bring its operations to an end, then begin a new file; nothing was changed"
            )));
        }
        newer => {
            check_ours(db)?;
            return Err(OpenError::Refused(format!(
                "the store was written by a newer version (schema {newer}, this program knows {SCHEMA_VERSION})\n  \
                 help: run the version that wrote it; nothing was changed"
            )));
        }
    }
    if beside == Beside::Nobody {
        make_durable(db, at.mutant)?;
        super::mutated::at_opening(db, at.mutant)?;
    }
    Ok(Timestamp(number(db, "select high_water from meta")?))
}

fn number(db: &Connection, sql: &str) -> rusqlite::Result<i64> {
    db.prepare_cached(sql)?.query_row([], |row| row.get(0))
}

/// Makes durable whatever can be read, so that nothing is built on what a power cut would take away.
///
/// After a process died at the sync of its log, or after that sync failed, a commit can be visible that the
/// disk does not hold. A checkpoint copies it to the database file; but the log on the disk may still end
/// before it, and would be replayed over the newer pages. So the log begins anew, under other salts, and one
/// real write makes that durable. It is not cut to nothing: a power cut before that write is synced could
/// keep the new length with the old bytes, and the first commit of the old log would be replayed alone.
/// Nothing that can be read here tells whether it is needed, so it is done at every start.
fn make_durable(db: &Connection, mutant: Mutant) -> rusqlite::Result<()> {
    if mutant.is(Mistake::NothingAfterOpening) {
        return Ok(());
    }
    let busy: bool = db.prepare_cached("pragma wal_checkpoint(restart)")?.query_row([], |row| row.get(0))?;
    if busy || mutant.is(Mistake::NoWriteAfterCheckpoint) {
        // Somebody else has it open: they have done this when they came.
        return Ok(());
    }
    db.prepare_cached("update meta set high_water = high_water + 1")?.execute([]).map(|_| ())
}

fn create(db: &Connection, clock: &Clock) -> Result<(), OpenError> {
    let objects = number(db, "select count(*) from sqlite_master")?;
    if objects > 0 {
        return Err(OpenError::Refused(
            "the file is a database of something else\n  help: name another file; nothing was changed".into(),
        ));
    }
    let mode: String = db.query_row("pragma journal_mode = wal", [], |row| row.get(0))?;
    if mode != "wal" {
        return Err(OpenError::Refused(format!(
            "the file system does not support SQLite's write-ahead log (journal mode is {mode})"
        )));
    }
    let now = clock.now().0;
    db.execute_batch(&format!(
        "begin immediate; {SCHEMA} update meta set high_water = {now};
         pragma application_id = {APPLICATION_ID}; pragma user_version = {SCHEMA_VERSION}; commit;"
    ))?;
    Ok(())
}

fn check_ours(db: &Connection) -> Result<(), OpenError> {
    let id = number(db, "pragma application_id")?;
    if id == APPLICATION_ID {
        return Ok(());
    }
    Err(OpenError::Refused("the file is a database of something else\n  help: name another file".into()))
}

fn classify_open(path: &str, error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            StoreError::Unusable(format!(
                "{path}: the store file cannot be opened for writing: {error}\n  \
                 help: check that the folder exists and that this user may write to it"
            ))
        }
        _ => match classify(&error, false) {
            StoreError::Corrupt(why) => StoreError::Corrupt(format!("{path}: {why}")),
            other => other,
        },
    }
}

/// What a failed statement means: `committing` when it was the commit itself.
pub(super) fn classify(error: &rusqlite::Error, committing: bool) -> StoreError {
    let text = error.to_string();
    if matches!(error, rusqlite::Error::FromSqlConversionFailure(..) | rusqlite::Error::InvalidColumnType(..))
    {
        return StoreError::Corrupt(text);
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Corrupt(text),
        // A full disk is met by a write, and the transaction is rolled back.
        Some(ErrorCode::DiskFull | ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            StoreError::Transient(text)
        }
        Some(ErrorCode::ReadOnly | ErrorCode::OutOfMemory | ErrorCode::CannotOpen) if !committing => {
            StoreError::Transient(text)
        }
        _ => StoreError::Unknown(text),
    }
}
