//! Case files: a plan that is kept for good, with what is expected of it. It names its faults itself, so it
//! lives through changes of everything that a seed draws.

mod read;

pub use read::{CaseFileError, read};

use crate::fault::Fault;
use crate::plan::Recipe;
use crate::verdict::Fingerprint;
use serde::Serialize;
use std::fmt;

/// The version of case files that this program reads and writes.
pub const SCHEMA: &str = "in-doubt/case/1";

/// What must come of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expected {
    /// Every invariant holds: what once was wrong stays right.
    Held,
    /// A known and open failure.
    Violated,
}

impl Expected {
    /// As the file says it.
    pub fn word(self) -> &'static str {
        match self {
            Expected::Held => "held",
            Expected::Violated => "violated",
        }
    }
}

/// One case, as its file says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseFile {
    /// The comment before everything else, a line each, without its `#`.
    pub head: Vec<String>,
    /// What is run.
    pub recipe: Recipe,
    /// What must come of it.
    pub expect: Expected,
    /// Where a known failure is written down; never none where one is expected.
    pub issue: Option<String>,
    /// The failure that it was found as.
    pub found: Option<Fingerprint>,
}

impl CaseFile {
    /// A recipe that was found to fail and must not.
    pub fn of(recipe: Recipe, found: &Fingerprint, head: Vec<String>) -> Self {
        CaseFile { head, recipe, expect: Expected::Held, issue: None, found: Some(found.clone()) }
    }

    /// A name that is the same for the same failure: `one-ticket-at-most-one-9c1e`.
    pub fn name(&self) -> String {
        let Recipe { case, mutant, .. } = &self.recipe;
        let found = self.found.as_ref().map_or("case", |found| found.0.as_str());
        let mut parts = found.split('/');
        let what = parts.next().unwrap_or("case");
        let hash = parts.next_back().map_or(String::new(), |hash| format!("-{hash}"));
        let mutant = mutant.as_ref().map_or(String::new(), |mutant| format!("-{mutant}"));
        let name = format!("{}{mutant}-{what}{hash}", case.scenario);
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
    }
}

/// The text of the file.
///
/// # Panics
/// When a fault lasts longer than TOML has numbers for: 292 million years.
impl fmt::Display for CaseFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.head {
            let line: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            writeln!(f, "{}", format!("# {line}").trim_end())?;
        }
        let Recipe { case, mutant, tape, deliveries, schedule } = &self.recipe;
        let mut set = vec![
            ("schema", value(SCHEMA)),
            ("scenario", value(&case.scenario)),
            ("contract", value(&case.contract)),
            ("seed", number(case.seed.0)),
        ];
        set.extend(mutant.as_ref().map(|mutant| ("mutant", value(mutant))));
        set.push(("expect", value(self.expect.word())));
        set.extend(self.issue.as_ref().map(|issue| ("issue", value(issue))));
        set.extend(self.found.as_ref().map(|found| ("found", value(&found.0))));
        set.extend(deliveries.as_ref().map(|names| ("deliveries", value(names))));
        set.extend(schedule.map(|schedule| ("schedule", number(schedule))));
        let width = set.iter().map(|(key, _)| key.len()).max().unwrap_or(0);
        for (key, value) in set {
            writeln!(f, "{key:<width$} = {value}")?;
        }
        for Fault { at, what } in tape.faults() {
            write!(f, "\n[[fault]]\nat   = {}\nwhat = {}\n", value(at), value(what))?;
        }
        Ok(())
    }
}

/// A value on one line.
fn value(value: &(impl Serialize + ?Sized)) -> String {
    let mut text = String::new();
    value
        .serialize(toml::ser::ValueSerializer::new(&mut text))
        .expect("names, and numbers below 2^63, can be written as TOML");
    text
}

/// TOML has no number above 2^63; a larger one is written as text.
fn number(number: u64) -> String {
    if i64::try_from(number).is_ok() { number.to_string() } else { format!("\"{number:#x}\"") }
}

#[cfg(test)]
mod tests;
