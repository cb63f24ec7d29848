//! Where a store's connections come from and where they go: opened and closed, or lent by whoever keeps them.

use rusqlite::{Connection, OpenFlags};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

/// Prepared statements that a connection keeps: more than the store has.
const STATEMENTS: usize = 48;

type Open = Arc<dyn Fn(&str) -> rusqlite::Result<Connection> + Send + Sync>;
type Keep = Arc<dyn Fn(&str, Connection) + Send + Sync>;

/// A source of connections. A service opens one and closes it; a program that opens thousands of stores of
/// one schema can keep connections with their prepared statements.
#[derive(Clone)]
pub struct Connections {
    open: Open,
    keep: Keep,
}

impl Connections {
    /// Each is opened when it is needed, and closed afterwards.
    pub fn plain() -> Connections {
        Connections::new(open_file, |_, connection| drop(connection))
    }

    /// Connections that come from `open` and go to `keep`, each with the store's path or URI. What `open`
    /// gives must have been opened by [`open_file`] and be outside transactions; `keep` gets it in whatever
    /// state it is.
    pub fn new(
        open: impl Fn(&str) -> rusqlite::Result<Connection> + Send + Sync + 'static,
        keep: impl Fn(&str, Connection) + Send + Sync + 'static,
    ) -> Connections {
        Connections { open: Arc::new(open), keep: Arc::new(keep) }
    }

    pub(super) fn lend(&self, path: &str) -> rusqlite::Result<Lent> {
        let connection = (self.open)(path)?;
        Ok(Lent { connection: Some(connection), path: path.into(), keep: self.keep.clone() })
    }
}

/// Opens a store's file, creating it where it is not there, with the settings that durability rests on.
///
/// # Errors
/// SQLite's.
pub fn open_file(path: &str) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags)?;
    // A busy file is waited for by sleeping asynchronously, never inside SQLite.
    db.busy_timeout(Duration::ZERO)?;
    // FULL is SQLite's default, but a build can change that, and the file does not remember it.
    db.execute_batch("pragma synchronous = full")?;
    db.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(db)
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connections")
    }
}

/// A connection that goes back to its source when it is dropped.
pub(super) struct Lent {
    connection: Option<Connection>,
    path: String,
    keep: Keep,
}

impl Deref for Lent {
    type Target = Connection;
    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            (self.keep)(&self.path, connection);
        }
    }
}
