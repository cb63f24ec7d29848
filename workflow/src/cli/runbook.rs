//! `check` and `runbook`: what a workflow's file says, and whether it may go live.

use super::CliError;
use super::args::RunbookArgs;
use crate::file::{FileError, WorkflowFile};
use crate::runbook::{Results, Runbook, blockers};
use std::path::Path;

/// The guarantee of a file's workflow, in words.
pub(super) fn check(file: &Path) -> Result<String, CliError> {
    let file = read_file(file)?;
    let definition = file.workflow.definition();
    let open = file.decisions.iter().filter(|decision| decision.owner.is_none()).count();
    let owners = match open {
        0 => "every decision has an owner".to_owned(),
        1 => "1 decision has no owner".to_owned(),
        n => format!("{n} decisions have no owner"),
    };
    Ok(format!(
        "{}, step {}, version {}: {owners}\nworkflow digest {}\ncontract digest {}\n\n{}\n",
        definition.name,
        definition.step,
        definition.version,
        definition.digest(),
        definition.contract.digest(),
        definition.contract.guarantee(&definition.assumptions)
    ))
}

/// Writes the runbook, and asks the gate where that is wanted.
pub(super) fn runbook(args: &RunbookArgs) -> Result<String, CliError> {
    let file = read_file(&args.file)?;
    let results = args.results.as_deref().map(read_results).transpose()?;
    let book = Runbook::of(&file, results);
    let text = match &args.out {
        None => book.markdown(),
        Some(path) => {
            let written = std::fs::write(path, book.markdown());
            written.map_err(|why| CliError::Unreachable(format!("{}: {why}", path.display())))?;
            format!("{} is written\n", path.display())
        }
    };
    match args.gate {
        // The document is written all the same: it is what the missing owners are to read.
        true if !book.blockers.is_empty() => Err(CliError::Gate { text, why: closed(&book.blockers) }),
        _ => Ok(text),
    }
}

/// Refuses where the gate is closed.
pub(super) fn gate(file: &WorkflowFile, results: Option<&Path>) -> Result<(), CliError> {
    let results = results.map(read_results).transpose()?;
    let blockers = blockers(file, results.as_ref());
    if blockers.is_empty() { Ok(()) } else { Err(CliError::Refused(closed(&blockers))) }
}

fn closed(blockers: &[String]) -> String {
    let lines: String = blockers.iter().map(|blocker| format!("\n  - {blocker}")).collect();
    format!("the gate is closed{lines}")
}

pub(super) fn read_file(path: &Path) -> Result<WorkflowFile, CliError> {
    WorkflowFile::read(path).map_err(|why| match why {
        FileError::Unreadable(_) => CliError::Unreachable(why.to_string()),
        FileError::Wrong(_) => CliError::Usage(format!("this is no workflow\n{why}")),
    })
}

fn read_results(path: &Path) -> Result<Results, CliError> {
    let unreadable = |why: String| CliError::Unreachable(format!("{}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|why| unreadable(why.to_string()))?;
    Results::read(&text).map_err(|why| unreadable(why.to_string()))
}
