//! `keep`: a failure that was found becomes a committed case.

use super::args::KeepArgs;
use super::pending::Pending;
use super::shrink::{case_of, shrunk, unwritable};
use super::subject::{self, Shelf, Subject, shown};
use super::{CliError, Context, exit};
use crate::case::{CaseFile, Expected};
use crate::report::text::Tone;
use std::fs;

pub(super) fn run(cx: &mut Context<'_>, args: &KeepArgs) -> Result<u8, CliError> {
    let shelf = Shelf::of(&cx.catalogue, &args.folders);
    let pending = Pending(shelf.pending.clone());
    let Some(folder) = shelf.committed.clone() else {
        let message = "there is no folder of committed cases";
        return Err(CliError::usage(message, "name one: --cases DIR"));
    };
    let subject = subject::waiting(&cx.catalogue, &shelf, &args.case, args.mutant.as_deref())?;
    let (mut case, from) = match subject {
        Subject::File(kept) if !pending.has(&kept.path) && kept.path.parent() == Some(folder.as_path()) => {
            let message = format!("{} is committed already", shown(&kept.path));
            return Err(CliError::usage(message, "edit it there; git keeps what it was"));
        }
        Subject::File(kept) => (kept.case.clone(), Some(kept.path)),
        Subject::Seed(_) => (found(cx, &subject, args)?, None),
    };
    if let Some(issue) = &args.issue {
        (case.expect, case.issue) = (Expected::Violated, Some(issue.clone()));
    }
    let name = match &args.name {
        Some(name) => checked(name)?,
        None => case.name(),
    };
    let path = folder.join(&name).with_extension("toml");
    if path.exists() {
        let message = format!("{} is there already", shown(&path));
        return Err(CliError::usage(message, "give it another name: --as NAME"));
    }
    fs::create_dir_all(&folder)
        .and_then(|()| fs::write(&path, case.to_string()))
        .map_err(|error| unwritable(&shown(&path), &error))?;
    if let Some(from) = from.filter(|from| pending.has(from)) {
        pending.forget(&from).map_err(|error| unwritable(&shown(&from), &error))?;
    }
    let style = cx.out_style;
    cx.print(&style.status(Tone::Good, "KEPT", &shown(&path)));
    let next = match case.expect {
        Expected::Held => "it must hold from now on: every `explore` fails until it does",
        Expected::Violated => "it is a known failure: `explore` says so, and fails once it holds",
    };
    cx.print(&style.line(&format!("{:13}{next}", "")));
    Ok(exit::HELD)
}

/// A seed that no pending case is about is run and shrunk now.
fn found(cx: &Context<'_>, subject: &Subject, args: &KeepArgs) -> Result<CaseFile, CliError> {
    let (answer, _) = shrunk(cx, &subject.question(args.mutant.as_deref())?, None)?;
    case_of(subject, &answer).ok_or_else(|| {
        let case = &answer.question.case;
        let message = match answer.difference {
            Some(_) => format!("two runs of {case} differ: there is nothing to keep"),
            None => format!("{case} fails in no way: there is nothing to keep"),
        };
        CliError::usage(message, "name its mistake with --mutant, where it was found with one")
    })
}

/// A name that a file can have everywhere.
fn checked(name: &str) -> Result<String, CliError> {
    let name = name.strip_suffix(".toml").unwrap_or(name);
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || !name.chars().all(plain) {
        let message = format!("`{name}` is no name for a case");
        return Err(CliError::usage(message, "use small letters, digits and -: one-ticket-new-key-on-retry"));
    }
    Ok(name.to_owned())
}
