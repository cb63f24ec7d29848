//! `cargo workflow`: a workflow from its file, the queue of a running service, its records, and what people
//! do about them.

mod args;
mod remote;
mod runbook;
mod serve;
mod show;

use crate::clock::Timestamp;
use crate::store::{Contents, open_file, read_all};
use args::{Act, Args, At, Command, Format, Queue};
use clap::Parser as _;
use remote::Remote;
use rusqlite::config::DbConfig;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::Write;

/// What the program ends with.
pub mod exit {
    /// Done.
    pub const DONE: u8 = 0;
    /// Refused by the service's rules, the gate is closed, or the records are not as they were written.
    pub const REFUSED: u8 = 1;
    /// Wrong usage.
    pub const USAGE: u8 = 2;
    /// The service, the store or a file cannot be reached or read.
    pub const UNREACHABLE: u8 = 3;
}

/// Why a command did not do what was asked.
#[derive(Debug, thiserror::Error)]
enum CliError {
    #[error("{0}")]
    Refused(String),
    #[error("{why}")]
    Gate {
        /// What is printed all the same.
        text: String,
        why: String,
    },
    #[error("{0}")]
    Usage(String),
    #[error("{0}")]
    Unreachable(String),
    /// What was asked for, and it is not well.
    #[error("{0}")]
    Report(String),
}

impl CliError {
    fn exit(&self) -> u8 {
        match self {
            CliError::Refused(_) | CliError::Report(_) | CliError::Gate { .. } => exit::REFUSED,
            CliError::Usage(_) => exit::USAGE,
            CliError::Unreachable(_) => exit::UNREACHABLE,
        }
    }
}

/// Does what the arguments say at this time, the program's name first among them; gives the exit code.
pub fn run(
    args: impl IntoIterator<Item = OsString>,
    now: Timestamp,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let done = match Args::try_parse_from(args) {
        Ok(args) => command(args.command, now, out),
        Err(usage) => {
            let code = u8::try_from(usage.exit_code()).unwrap_or(exit::USAGE);
            let to: &mut dyn Write = if code == exit::DONE { out } else { err };
            return written(to, &usage.render().to_string(), code);
        }
    };
    match done {
        Ok(text) => written(out, &text, exit::DONE),
        Err(CliError::Report(text)) => written(out, &text, exit::REFUSED),
        Err(CliError::Gate { text, why }) => {
            written(out, &text, exit::DONE);
            written(err, &format!("error: {why}\n"), exit::REFUSED)
        }
        Err(error) => written(err, &format!("error: {error}\n"), error.exit()),
    }
}

/// Prints words that may come from anybody: nothing in them moves the cursor. A reader that has gone away is
/// no failure of the command.
fn written(to: &mut dyn Write, text: &str, code: u8) -> u8 {
    let plain: String = text
        .chars()
        .map(|c| if c.is_control() && c != '\n' { char::REPLACEMENT_CHARACTER } else { c })
        .collect();
    let _ = to.write_all(plain.as_bytes()).and_then(|()| to.flush());
    code
}

fn command(command: Command, now: Timestamp, out: &mut dyn Write) -> Result<String, CliError> {
    match command {
        Command::Queue(Queue::List { at, all, format }) => {
            let cases = cases(&at)?;
            Ok(match format {
                Format::Json => format!("{cases}\n"),
                Format::Text => show::list(&cases, all, now),
            })
        }
        Command::Queue(Queue::Show { operation, at, format }) => {
            let known = operation_at(&at, &operation)?;
            Ok(match format {
                Format::Json => format!("{known}\n"),
                Format::Text => show::operation(&known),
            })
        }
        Command::Queue(Queue::Act(act)) => take(&act),
        Command::Discrepancies { service, format } => {
            let (status, body) = Remote::at(&service)?.get("/discrepancies")?;
            expect(status, &body)?;
            Ok(match format {
                Format::Json => format!("{body}\n"),
                Format::Text => show::discrepancies(&body),
            })
        }
        Command::Reconcile { service, format } => reconcile(&service, format),
        Command::Settle { id, said, service, by, reason } => {
            let path = format!("/discrepancies/{id}/{}", said.word());
            let (status, body) = Remote::at(&service)?.post(&path, &json!({"by": by, "reason": reason}))?;
            expect(status, &body)?;
            Ok(format!("{id} is {}\n", body["status"].as_str().unwrap_or("?")))
        }
        Command::Check { file } => runbook::check(&file),
        Command::Runbook(args) => runbook::runbook(&args),
        Command::Serve(args) => serve::serve(&args, out),
        Command::Verify { store } => verify(&store),
    }
}

/// The open cases, `{"exceptions": […]}`.
fn cases(at: &At) -> Result<Value, CliError> {
    if let Some(service) = &at.service {
        let (status, body) = Remote::at(service)?.get("/exceptions")?;
        expect(status, &body)?;
        return Ok(body);
    }
    let mut cases = contents(at.store.as_deref().unwrap_or_default())?.exceptions;
    cases.sort_by_key(|case| (case.deadline, case.id));
    Ok(json!({ "exceptions": cases }))
}

/// What is known of an operation, as the service explains it; from the store alone, without what its workflow
/// permits.
fn operation_at(at: &At, operation: &str) -> Result<Value, CliError> {
    if let Some(service) = &at.service {
        let (status, body) = Remote::at(service)?.get(&remote::path(operation))?;
        expect(status, &body)?;
        return Ok(body);
    }
    let contents = contents(at.store.as_deref().unwrap_or_default())?;
    let found = contents.operations.iter().find(|known| known.key.as_str() == operation);
    let known = found.ok_or_else(|| CliError::Refused(format!("there is no operation `{operation}`")))?;
    fn of<'a, T>(rows: &'a [(String, T)], operation: &str) -> Vec<&'a T> {
        rows.iter().filter(|(about, _)| about == operation).map(|(_, row)| row).collect()
    }
    let exceptions: Vec<_> = contents.exceptions.iter().filter(|case| case.operation == operation).collect();
    Ok(json!({
        "operation": operation,
        "detail": known.state.as_str(),
        "external_ref": known.external_ref,
        "version": known.version,
        "attempts": of(&contents.attempts, operation),
        "evidence": of(&contents.evidence, operation),
        "exceptions": exceptions,
    }))
}

/// Has the service do what a person decided.
fn take(act: &Act) -> Result<String, CliError> {
    let (signed, action, fields) = act.posted();
    let service = Remote::at(&signed.service)?;
    let mut body = json!({"by": signed.by, "reason": signed.reason});
    if let Some(version) = signed.version {
        body["version"] = version.into();
    }
    for (name, value) in fields {
        body[name] = value;
    }
    let path = remote::path(&signed.operation);
    let (status, answer) = service.post(&format!("{path}/{action}"), &body)?;
    expect(status, &answer).map_err(|error| match error {
        CliError::Unreachable(why) => CliError::Unreachable(format!("{why}{}", remote::IN_DOUBT)),
        CliError::Refused(why) if answer["version"].is_number() => CliError::Refused(format!(
            "{why}\n  help: look again: cargo workflow queue show {} --service {}",
            signed.operation, signed.service
        )),
        other => other,
    })?;
    // It was taken; that its new state cannot be read takes nothing back.
    let stands = match service.get(&path) {
        Ok((200, known)) => {
            format!("{} (version {})", known["detail"].as_str().unwrap_or("?"), known["version"])
        }
        _ => "changed; where it stands now could not be read".to_owned(),
    };
    Ok(format!("{action}: {} is {stands}\n", signed.operation))
}

/// Has the records compared. What is open, or could not be read, is a refusal, with the report all the same.
fn reconcile(service: &str, format: Format) -> Result<String, CliError> {
    let (status, report) = Remote::at(service)?.patiently().post("/reconcile", &json!({}))?;
    expect(status, &report)?;
    let text = match format {
        Format::Json => format!("{report}\n"),
        Format::Text => show::reconciliation(&report),
    };
    let waits = |one: &Value| matches!(one["status"].as_str(), Some("open" | "seen"));
    let open = report["discrepancies"].as_array().is_some_and(|all| all.iter().any(waits));
    if open || report["unread"].as_array().is_some_and(|unread| !unread.is_empty()) {
        return Err(CliError::Report(text));
    }
    Ok(text)
}

fn verify(store: &str) -> Result<String, CliError> {
    match contents(store)?.verify() {
        Ok(head) => Ok(format!(
            "ok: {} rows, head {}\n  Keep the head somewhere else: who can write the store can write a new chain, but \
             not this one.\n",
            head.seq, head.hash
        )),
        Err(wrong) => Err(CliError::Refused(format!("{store}: {wrong}"))),
    }
}

/// Reads a store at one instant, beside whoever has it open. Nothing is written: a file that is not there is
/// not made, and what a crash has left is for the next start to deal with.
fn contents(store: &str) -> Result<Contents, CliError> {
    let unreadable = |why: String| CliError::Unreachable(format!("{store}: {why}"));
    if !std::path::Path::new(store).is_file() {
        return Err(unreadable("there is no such file".into()));
    }
    let begun = || {
        let db = open_file(store)?;
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        db.execute_batch("pragma query_only = on; begin")?;
        Ok(db)
    };
    let db = begun().map_err(|e: rusqlite::Error| unreadable(e.to_string()))?;
    read_all(&db).map_err(|e| unreadable(e.to_string()))
}

/// What a service's refusal means.
fn expect(status: u16, body: &Value) -> Result<(), CliError> {
    let why =
        || body["error"].as_str().map_or_else(|| format!("the service answered {status}"), str::to_owned);
    match status {
        200..=299 => Ok(()),
        400 => Err(CliError::Usage(why())),
        404 | 409 | 410 | 422 => Err(CliError::Refused(why())),
        _ => Err(CliError::Unreachable(why())),
    }
}
