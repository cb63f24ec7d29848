//! What a command is about: a case in the notation of seeds, or a case file, by its path or by its name.

use super::args::Folders;
use super::{CliError, exit};
use crate::case::{CaseFile, read};
use crate::catalogue::Catalogue;
use crate::plan::Case;
use crate::replay::{Question, Written};
use destinations::tomltext::nearest;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Where case files are: the committed ones, and those that an exploration left behind.
#[derive(Clone, Debug)]
pub(super) struct Shelf {
    pub(super) committed: Option<PathBuf>,
    pub(super) pending: PathBuf,
}

/// A case file that was read.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) path: PathBuf,
    pub(super) case: CaseFile,
}

/// What a command is about.
#[derive(Clone, Debug)]
pub(super) enum Subject {
    /// A seed, in the notation of reports.
    Seed(Case),
    /// A case file.
    File(Box<Kept>),
}

impl Shelf {
    pub(super) fn of(catalogue: &Catalogue, folders: &Folders) -> Self {
        Shelf::at(catalogue, folders.cases.as_deref(), &folders.artifacts)
    }

    pub(super) fn at(catalogue: &Catalogue, cases: Option<&Path>, artifacts: &Path) -> Self {
        let committed = cases.map(Path::to_owned).or_else(|| catalogue.cases.clone());
        Shelf { committed, pending: artifacts.join("pending") }
    }

    /// The committed case files, then the pending ones, each folder in the order of names.
    pub(super) fn paths(&self) -> Result<Vec<PathBuf>, CliError> {
        let mut all = match &self.committed {
            Some(folder) => tomls(folder)?,
            None => vec![],
        };
        all.extend(tomls(&self.pending)?);
        Ok(all)
    }
}

/// The TOML files of a folder in the order of their names; a folder that is not there has none.
pub(super) fn tomls(folder: &Path) -> Result<Vec<PathBuf>, CliError> {
    let failed = |error: std::io::Error| unreadable(folder, &error);
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(vec![]),
        Err(error) => return Err(failed(error)),
    };
    let mut paths = vec![];
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|end| end == "toml") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Reads one case file.
pub(super) fn open(catalogue: &Catalogue, path: &Path) -> Result<Kept, CliError> {
    let text = fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
    let case = read(&shown(path), &text, catalogue).map_err(|error| CliError {
        code: exit::USAGE,
        message: error.to_string(),
        help: vec![error.help().to_owned()],
    })?;
    Ok(Kept { path: path.to_owned(), case })
}

fn unreadable(path: &Path, error: &std::io::Error) -> CliError {
    let help = "give the path of a case file, or a case such as one-ticket/zendesk_ticket@760";
    CliError::usage(format!("{} cannot be read: {error}", shown(path)), help)
}

/// A path as people type it here: from the current folder, where it is inside.
pub(super) fn shown(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    let inside = here.as_deref().and_then(|here| path.strip_prefix(here).ok());
    inside.unwrap_or(path).display().to_string()
}

/// What a text names: a case, a file, or the name of a case file.
pub(super) fn find(catalogue: &Catalogue, shelf: &Shelf, text: &str) -> Result<Subject, CliError> {
    if let Ok(case) = text.parse::<Case>() {
        return Ok(Subject::Seed(case));
    }
    let path = Path::new(text);
    if path.is_file() {
        return open(catalogue, path).map(|kept| Subject::File(Box::new(kept)));
    }
    let all = shelf.paths()?;
    let stem = |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = text.strip_suffix(".toml").unwrap_or(text);
    if let Some(path) = all.iter().find(|path| stem(path).as_deref() == Some(name)) {
        return open(catalogue, path).map(|kept| Subject::File(Box::new(kept)));
    }
    Err(nothing(text, &all.iter().filter_map(|path| stem(path)).collect::<Vec<_>>()))
}

fn nothing(text: &str, known: &[String]) -> CliError {
    let mut help = vec![];
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    help.extend(nearest(text, &known).map(|near| format!("did you mean `{near}`?")));
    help.push("a case looks like one-ticket/zendesk_ticket@760; any seed will do".into());
    help.push("a case file is named by its path or by its name; `cargo sim list` shows all of these".into());
    let message = format!("`{text}` is neither a case nor a case file");
    CliError { code: exit::USAGE, message, help }
}

impl Subject {
    /// The plain question about it. A file says itself which mistake it is about.
    pub(super) fn question(&self, mutant: Option<&str>) -> Result<Question, CliError> {
        match self {
            Subject::Seed(case) => {
                Ok(Question { mutant: mutant.map(str::to_owned), ..Question::about(case.clone()) })
            }
            Subject::File(kept) => kept.question(mutant),
        }
    }
}

impl Kept {
    /// Its file's name, without the ending.
    pub(super) fn name(&self) -> String {
        self.path.file_stem().map_or(String::new(), |stem| stem.to_string_lossy().into_owned())
    }

    /// The plain question about it.
    pub(super) fn question(&self, mutant: Option<&str>) -> Result<Question, CliError> {
        let recipe = self.case.recipe.clone();
        if let Some(mutant) = mutant.filter(|mutant| recipe.mutant.as_deref() != Some(*mutant)) {
            let message = format!("{} says itself which mistake it is run with", shown(&self.path));
            let help = format!("leave `--mutant {mutant}` out, or change `mutant` in the file");
            return Err(CliError::usage(message, help));
        }
        let written = Written { recipe: recipe.clone(), path: shown(&self.path) };
        Ok(Question { mutant: recipe.mutant, written: Some(written), ..Question::about(recipe.case) })
    }
}

/// As [`find`]; a seed that a pending case is about is that case.
pub(super) fn waiting(
    catalogue: &Catalogue,
    shelf: &Shelf,
    text: &str,
    mutant: Option<&str>,
) -> Result<Subject, CliError> {
    let subject = find(catalogue, shelf, text)?;
    let Subject::Seed(case) = &subject else { return Ok(subject) };
    let about = |kept: &Kept| {
        let recipe = &kept.case.recipe;
        recipe.case == *case && (mutant.is_none() || recipe.mutant.as_deref() == mutant)
    };
    // A pending file that cannot be read is about nothing.
    let pending = tomls(&shelf.pending)?.into_iter().filter_map(|path| open(catalogue, &path).ok());
    let mut all: Vec<Kept> = pending.filter(about).collect();
    match (all.pop(), all.is_empty()) {
        (Some(kept), true) => Ok(Subject::File(Box::new(kept))),
        (None, _) => Ok(subject),
        // One seed can fail in several ways; taking any of them would be a guess.
        (Some(last), false) => {
            let message = format!("{case} fails in {} ways", all.len() + 1);
            let names = all.iter().chain([&last]).map(|kept| format!("name one: {}", kept.name()));
            Err(CliError { code: exit::USAGE, message, help: names.collect() })
        }
    }
}

/// The path of the case file that a text names; the file may be one that cannot be read any more.
pub(super) fn path(
    catalogue: &Catalogue,
    shelf: &Shelf,
    text: &str,
    mutant: Option<&str>,
) -> Result<PathBuf, CliError> {
    if Path::new(text).is_file() {
        return Ok(PathBuf::from(text));
    }
    let name = text.strip_suffix(".toml").unwrap_or(text);
    let is_named = |path: &PathBuf| path.file_stem().is_some_and(|stem| stem == name);
    if let Some(path) = shelf.paths()?.into_iter().find(is_named) {
        return Ok(path);
    }
    match waiting(catalogue, shelf, text, mutant)? {
        Subject::File(kept) => Ok(kept.path),
        Subject::Seed(case) => {
            let help = format!("those that are: {}", shown(&shelf.pending));
            Err(CliError::usage(format!("{case} is no pending case"), help))
        }
    }
}
