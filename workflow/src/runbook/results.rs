//! What the simulator observed, read from the lines of `cargo sim explore --format json`.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The version of the lines that are read.
const SCHEMA: &str = "in-doubt/report/1";

/// The results of one exploration, or of its shards one after another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Results {
    /// The explorations.
    pub summaries: Vec<Summary>,
    /// What the runs of each scenario with each contract came to.
    pub observed: Vec<Observed>,
}

/// One exploration.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Summary {
    /// The seeds, `0..2000`.
    pub seeds: String,
    /// The commit, where there is one.
    pub commit: Option<String>,
    /// Whether somebody ended it early.
    pub interrupted: bool,
    /// The comparison of runs that were made twice.
    pub determinism: Determinism,
}

/// The comparison of runs that were made twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Determinism {
    /// Runs whose second run differs.
    pub differing: u64,
}

/// What the runs of one scenario with one contract came to.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Observed {
    /// The scenario.
    pub scenario: String,
    /// The contract.
    pub contract: String,
    /// SHA-256 of the contract, hexadecimal.
    pub contract_digest: String,
    /// SHA-256 of the workflow; none where the scenario did not say.
    pub workflow_digest: Option<String>,
    /// The known mistake that it was run with.
    pub mutant: Option<String>,
    /// Runs.
    pub runs: u64,
    /// Runs in which every invariant held.
    pub held: u64,
    /// Runs that violate one.
    pub violated: u64,
    /// Runs that hit a limit.
    pub undecided: u64,
    /// Runs in which the harness failed.
    pub harness_errors: u64,
    /// Operations by how many records the destination made.
    pub operations: Operations,
    /// Operations that a person owned, by the reason's code.
    pub cases: BTreeMap<String, u64>,
}

/// Operations by how many records the destination made for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Operations {
    /// None.
    pub none: u64,
    /// One.
    pub one: u64,
    /// More than one.
    pub several: u64,
}

/// Why results cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResultsError {
    /// A line is not what the simulator prints.
    #[error(
        "line {line}: {why}\n  help: it is what `cargo sim explore --format json` prints on standard output"
    )]
    Line {
        /// From 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// The last line is not there.
    #[error(
        "the last line, the summary, is missing: the exploration was not finished, or the file is cut off"
    )]
    CutOff,
}

impl Results {
    /// Reads the lines; those of other kinds are passed over.
    ///
    /// # Errors
    /// When a line is no JSON, or of another version, or the end is missing.
    pub fn read(text: &str) -> Result<Results, ResultsError> {
        let mut results = Results { summaries: vec![], observed: vec![] };
        let mut is_ended = false;
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let wrong = |why: String| ResultsError::Line { line: index + 1, why };
            let value: Value = serde_json::from_str(line).map_err(|why| wrong(format!("no JSON: {why}")))?;
            let kind = value["kind"].as_str().unwrap_or_default().to_owned();
            is_ended = kind == "summary";
            if kind != "result" && kind != "summary" {
                continue;
            }
            if value["schema"] != SCHEMA {
                return Err(wrong(format!("its schema is {}, not \"{SCHEMA}\"", value["schema"])));
            }
            let read = match kind.as_str() {
                "result" => serde_json::from_value(value).map(|one| results.observed.push(one)),
                _ => serde_json::from_value(value).map(|one| results.summaries.push(one)),
            };
            read.map_err(|why| wrong(why.to_string()))?;
        }
        if is_ended { Ok(results) } else { Err(ResultsError::CutOff) }
    }
}

/// The sums of several results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) runs: u64,
    pub(super) held: u64,
    pub(super) violated: u64,
    pub(super) undecided: u64,
    pub(super) harness_errors: u64,
    pub(super) operations: Operations,
    pub(super) cases: BTreeMap<String, u64>,
}

impl Sums {
    pub(super) fn of<'a>(all: impl Iterator<Item = &'a Observed>) -> Sums {
        let mut sums = Sums::default();
        for one in all {
            sums.runs += one.runs;
            sums.held += one.held;
            sums.violated += one.violated;
            sums.undecided += one.undecided;
            sums.harness_errors += one.harness_errors;
            sums.operations.none += one.operations.none;
            sums.operations.one += one.operations.one;
            sums.operations.several += one.operations.several;
            for (reason, count) in &one.cases {
                *sums.cases.entry(reason.clone()).or_default() += count;
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUMMARY: &str = r#"{"kind":"summary","schema":"in-doubt/report/1","seeds":"0..9","commit":null,"interrupted":false,"determinism":{"differing":0}}"#;

    #[test]
    fn lines_of_other_kinds_are_passed_over() {
        let read = Results::read(&format!("{{\"kind\":\"never\",\"due\":\"goal\"}}\n{SUMMARY}\n"));
        let read = read.expect("two lines");
        assert_eq!((read.summaries.len(), read.observed.len()), (1, 0));
    }

    #[test]
    fn what_is_cut_off_or_of_another_version_is_refused() {
        assert_eq!(Results::read(""), Err(ResultsError::CutOff));
        assert_eq!(Results::read(&format!("{SUMMARY}\n{{\"kind\":\"never\"}}")), Err(ResultsError::CutOff));
        let line = |text: &str| match Results::read(text) {
            Err(ResultsError::Line { line, why }) => (line, why),
            other => panic!("{other:?}"),
        };
        assert_eq!(line(&SUMMARY.replace("report/1", "report/2")).0, 1);
        assert!(line(&format!("{SUMMARY}\nHELD 9 seeds")).1.starts_with("no JSON"));
        let no_seeds = line(&SUMMARY.replace("seeds", "sides")).1;
        assert!(no_seeds.contains("missing field `seeds`"), "{no_seeds}");
    }
}
