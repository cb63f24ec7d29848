//! `show`: a finished run again, from the files that it left; nothing is run.

use super::args::{Format, ShowArgs};
use super::subject::{self, Shelf, Subject, shown};
use super::{CliError, Context, exit};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// The files of a failure: its story, its history for machines and in words, its ledger likewise.
const STORY: &str = "story.txt";
const REPORT: &str = "report.json";
const HISTORY: [&str; 2] = ["history.jsonl", "history.txt"];
const LEDGER: [&str; 2] = ["ledger.jsonl", "ledger.txt"];

pub(super) fn run(cx: &mut Context<'_>, args: &ShowArgs) -> Result<u8, CliError> {
    let folders = folders(cx, args)?;
    let several = folders.len() > 1;
    for folder in folders {
        if several {
            cx.print(&cx.out_style.line(&shown(&folder)));
        }
        for line in wanted(cx.format, args, &folder)? {
            cx.print(&cx.out_style.story_line(&line));
        }
        if several {
            cx.print("");
        }
    }
    Ok(exit::HELD)
}

/// The lines that are asked for.
fn wanted(format: Format, args: &ShowArgs, folder: &Path) -> Result<Vec<String>, CliError> {
    let of_format = |files: [&'static str; 2]| if format == Format::Json { files[0] } else { files[1] };
    if let Some(step) = args.step {
        let events = lines(folder, of_format(HISTORY))?;
        let of = events.len();
        let event = events.into_iter().nth(step.get() as usize - 1);
        let event = event.ok_or_else(|| {
            CliError::usage(format!("there is no step {step}: this run has {of}"), "--history shows them all")
        })?;
        if format == Format::Json {
            return Ok(vec![event]);
        }
        let whole = lines(folder, HISTORY[0])?.into_iter().nth(step.get() as usize - 1).unwrap_or_default();
        let whole: Value = serde_json::from_str(&whole).unwrap_or_default();
        let fields = whole.as_object().into_iter().flatten().map(|(name, value)| format!("  {name} {value}"));
        return Ok(std::iter::once(event).chain(fields).collect());
    }
    if args.history {
        return lines(folder, of_format(HISTORY));
    }
    if args.ledger {
        return lines(folder, of_format(LEDGER));
    }
    lines(folder, if format == Format::Json { REPORT } else { STORY })
}

fn lines(folder: &Path, file: &str) -> Result<Vec<String>, CliError> {
    let path = folder.join(file);
    match fs::read_to_string(&path) {
        Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
        Err(error) => {
            let message = format!("{} cannot be read: {error}", shown(&path));
            Err(CliError::usage(message, "`cargo sim replay` runs it again and tells it"))
        }
    }
}

/// The folders of the failures that are asked for.
fn folders(cx: &Context<'_>, args: &ShowArgs) -> Result<Vec<PathBuf>, CliError> {
    let path = Path::new(&args.what);
    if path.is_dir() {
        let found = failures(path);
        if found.is_empty() {
            let message = format!("{} holds no failure", args.what);
            return Err(CliError::usage(message, "name the folder of a run: target/in-doubt/latest"));
        }
        return Ok(found);
    }
    let shelf = Shelf::of(&cx.catalogue, &args.folders);
    let subject = subject::find(&cx.catalogue, &shelf, &args.what)?;
    let mut runs = inside(&args.folders.artifacts.join("runs"));
    runs.reverse();
    let newest = runs.iter().flat_map(|run| failures(run)).find(|folder| is_about(folder, &subject, args));
    newest.map(|folder| vec![folder]).ok_or_else(|| {
        let message = format!("no run of {} left files in {}", args.what, args.folders.artifacts.display());
        let command = match &args.mutant {
            Some(mutant) => format!("cargo sim replay {} --mutant {mutant}", args.what),
            None => format!("cargo sim replay {}", args.what),
        };
        CliError::usage(message, format!("`{command}` runs it now"))
    })
}

/// The folder itself where it is a failure's, else those of the failures in it.
fn failures(folder: &Path) -> Vec<PathBuf> {
    let is_failure = |folder: &PathBuf| folder.join(REPORT).is_file();
    if is_failure(&folder.to_owned()) {
        return vec![folder.to_owned()];
    }
    inside(folder).into_iter().filter(is_failure).collect()
}

/// What is in a folder, in the order of the names; nothing where it cannot be read.
fn inside(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return vec![] };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}

/// Whether the files are about this case: the same case and mistake, and for a file the same failure.
fn is_about(folder: &Path, subject: &Subject, args: &ShowArgs) -> bool {
    let Ok(text) = fs::read_to_string(folder.join(REPORT)) else { return false };
    let report: Value = serde_json::from_str(&text).unwrap_or_default();
    let says = |field: &str, value: Option<&str>| report[field].as_str() == value;
    match subject {
        Subject::Seed(case) => {
            let mutant = args.mutant.as_deref();
            says("case", Some(&case.to_string())) && (mutant.is_none() || says("mutant", mutant))
        }
        Subject::File(kept) => {
            let recipe = &kept.case.recipe;
            let found = kept.case.found.as_ref().map(|found| found.0.as_str());
            let is_it = says("case", Some(&recipe.case.to_string()));
            is_it
                && says("mutant", recipe.mutant.as_deref())
                && (found.is_none() || says("fingerprint", found))
        }
    }
}
