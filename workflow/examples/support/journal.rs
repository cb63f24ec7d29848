//! The desk's memory: every request that may write, in a file, before the desk begins it.
//!
//! The desk is a pure state machine, so the same requests at the same times make the same desk again. Nothing
//! is synced: it has to outlive this process, not the machine.

use destinations::Millis;
use destinations::fake::http::HttpRequest;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::time::Duration;

const SCHEMA: &str = "in-doubt/example-desk/1";

#[derive(Serialize, Deserialize)]
struct Head {
    schema: String,
    contract: String,
}

#[derive(Serialize, Deserialize)]
struct Line {
    at_ms: u64,
    takes_ms: u64,
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: String,
}

/// One request, when it arrived, and how long the desk takes over it.
pub(crate) struct Entry {
    pub(crate) at: Millis,
    pub(crate) takes: Duration,
    pub(crate) request: HttpRequest,
}

/// The file, open for more.
pub(crate) struct Journal(File);

impl Journal {
    /// Opens the memory of a desk of this contract, and reads what is in it.
    pub(crate) fn open(path: &Path, contract: &str) -> Result<(Journal, Vec<Entry>), String> {
        let file = OpenOptions::new().read(true).append(true).create(true).open(path);
        let mut file = file.map_err(|e| e.to_string())?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(|e| e.to_string())?;
        let mut journal = Journal(file);
        let mut lines = text.lines();
        let Some(head) = lines.next() else {
            journal.write(&Head { schema: SCHEMA.into(), contract: contract.into() })?;
            return Ok((journal, vec![]));
        };
        let head: Head = serde_json::from_str(head).map_err(|e| format!("line 1: {e}"))?;
        if head.schema != SCHEMA {
            return Err(format!("line 1: the schema is {:?}, not {SCHEMA:?}", head.schema));
        }
        if head.contract != contract {
            return Err(format!("this desk follows {}, not {contract}", head.contract));
        }
        let entry = |(n, line): (usize, &str)| {
            serde_json::from_str::<Line>(line).map(Entry::from).map_err(|e| format!("line {}: {e}", n + 2))
        };
        let entries = lines.enumerate().map(entry).collect::<Result<Vec<_>, _>>()?;
        Ok((journal, entries))
    }

    /// Adds one request, in one write.
    pub(crate) fn add(&mut self, entry: &Entry) -> Result<(), String> {
        let Entry { at, takes, request } = entry;
        self.write(&Line {
            at_ms: at.0,
            takes_ms: u64::try_from(takes.as_millis()).unwrap_or(u64::MAX),
            method: request.method.clone(),
            target: request.target.clone(),
            headers: request.headers.clone(),
            body: String::from_utf8_lossy(&request.body).into_owned(),
        })
    }

    fn write(&mut self, line: &impl Serialize) -> Result<(), String> {
        let mut line = serde_json::to_string(line).map_err(|e| e.to_string())?;
        line.push('\n');
        self.0.write_all(line.as_bytes()).map_err(|e| e.to_string())
    }
}

impl From<Line> for Entry {
    fn from(line: Line) -> Entry {
        let Line { at_ms, takes_ms, method, target, headers, body } = line;
        let request = HttpRequest { method, target, headers, body: body.into_bytes() };
        Entry { at: Millis(at_ms), takes: Duration::from_millis(takes_ms), request }
    }
}
