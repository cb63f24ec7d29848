//! Reading a case file; each mistake in it is explained at its line.

use super::{CaseFile, Expected, SCHEMA};
use crate::catalogue::Catalogue;
use crate::fault::{Call, Fault, FaultTape, Place, TapeError, What};
use crate::menu::menu;
use crate::plan::{Case, Recipe, SENTINEL};
use crate::scenario::{Scenario, Seen};
use crate::seed::Seed;
use crate::terms::Terms;
use crate::verdict::Fingerprint;
use destinations::tomltext::{key_at, nearest, place, short};
use destinations::{Assumptions, Contract};
use serde::Deserialize;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use toml::{Spanned, Value};

/// A case file that cannot be used: file and key; the place in the text with a caret; what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct CaseFileError {
    file: String,
    key: String,
    place: String,
    message: String,
    help: String,
}

impl fmt::Display for CaseFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.file, self.key)?;
        write!(f, "{}{}", self.place, self.message)
    }
}

impl CaseFileError {
    /// What to do about it.
    pub fn help(&self) -> &str {
        &self.help
    }
}

/// The version alone: a file of another version may have any other field.
#[derive(Deserialize)]
struct Version {
    schema: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    schema: Spanned<String>,
    scenario: Spanned<String>,
    contract: Spanned<String>,
    seed: Spanned<Value>,
    mutant: Option<Spanned<String>>,
    expect: Spanned<Expected>,
    issue: Option<Spanned<String>>,
    found: Option<String>,
    deliveries: Option<Spanned<Vec<Spanned<String>>>>,
    schedule: Option<Spanned<Value>>,
    #[serde(default)]
    fault: Vec<RawFault>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFault {
    at: Spanned<Place>,
    what: Spanned<What>,
}

/// Reads a case file; `file` is its name in errors.
///
/// # Errors
/// When it is no TOML, has a field or a value that no case has, names what the catalogue does not have, or
/// asks for a plan that no workflow could survive.
pub fn read(file: &str, text: &str, catalogue: &Catalogue) -> Result<CaseFile, CaseFileError> {
    let source = Source { file, text };
    let version: Version = source.parse()?;
    if version.schema.get_ref() != SCHEMA {
        let message = format!("this program reads `{SCHEMA}`, and this is another version of it");
        return Err(source.wrong(version.schema.span(), message, "read it with the program that wrote it"));
    }
    let raw: Raw = source.parse()?;
    assert_eq!(raw.schema.get_ref(), SCHEMA, "the version was read from the same text");
    source.case(raw, catalogue)
}

/// A text and the name of its file.
struct Source<'a> {
    file: &'a str,
    text: &'a str,
}

/// A scenario, one of its contracts, and what is assumed.
struct Met<'a> {
    scenario: &'a dyn Scenario,
    contract: Arc<Contract>,
    assumptions: Assumptions,
}

impl Source<'_> {
    fn parse<T: for<'de> Deserialize<'de>>(&self) -> Result<T, CaseFileError> {
        toml::from_str(self.text).map_err(|error| {
            let message = error.message();
            let words = match message {
                text if text.contains(" variant, expected") => "this fault is written in another way",
                text => short(text),
            };
            let words = words.replace("unknown variant", "unknown here:");
            self.wrong(error.span().unwrap_or(0..0), words, help(message))
        })
    }

    fn wrong(
        &self,
        span: Range<usize>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> CaseFileError {
        CaseFileError {
            file: self.file.to_owned(),
            key: key_at(self.text, span.start),
            place: place(self.text, &span),
            message: message.into(),
            help: help.into(),
        }
    }

    /// A name that must be one of those known.
    fn known(&self, name: &Spanned<String>, what: &str, known: &[&str]) -> Result<usize, CaseFileError> {
        let given = name.get_ref().as_str();
        let found = known.iter().position(|known| *known == given);
        found.ok_or_else(|| self.wrong(name.span(), format!("{what} `{given}`"), near(given, known)))
    }

    fn number(&self, value: &Spanned<Value>) -> Result<u64, CaseFileError> {
        let number = match value.get_ref() {
            Value::Integer(number) => u64::try_from(*number).ok(),
            Value::String(text) => match text.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16).ok(),
                None => text.parse().ok(),
            },
            _ => None,
        };
        let help = "a number from 0 on; one above 2^63 as text: \"0xf000000000000001\"";
        number.ok_or_else(|| self.wrong(value.span(), "this is no number of 64 bits", help))
    }

    fn case(&self, raw: Raw, catalogue: &Catalogue) -> Result<CaseFile, CaseFileError> {
        let met = self.met(&raw, catalogue)?;
        let seed = Seed(self.number(&raw.seed)?);
        if let Some(mutant) = &raw.mutant {
            let mutants = met.scenario.mutants();
            let names: Vec<&str> = mutants.iter().map(|mutant| mutant.name).collect();
            self.known(mutant, &format!("{} has no mutant", met.scenario.name()), &names)?;
        }
        if *raw.expect.get_ref() == Expected::Violated && raw.issue.is_none() {
            let help = "add `issue = \"…\"`: who looks at a known failure wants to read about it";
            return Err(self.wrong(raw.expect.span(), "a known failure needs its issue", help));
        }
        self.deliveries(&raw, &met, seed)?;
        if raw.mutant.is_none() {
            self.names(&raw.fault, &met, seed)?;
        }
        let tape = self.tape(&raw.fault, &met)?;
        let schedule = raw.schedule.as_ref().map(|value| self.number(value)).transpose()?;
        let names = |names: Spanned<Vec<Spanned<String>>>| -> Vec<String> {
            names.into_inner().into_iter().map(Spanned::into_inner).collect()
        };
        let case = Case { scenario: raw.scenario.into_inner(), contract: raw.contract.into_inner(), seed };
        let recipe = Recipe {
            case,
            mutant: raw.mutant.map(Spanned::into_inner),
            tape,
            deliveries: raw.deliveries.map(names),
            schedule,
        };
        Ok(CaseFile {
            head: head(self.text),
            recipe,
            expect: raw.expect.into_inner(),
            issue: raw.issue.map(Spanned::into_inner),
            found: raw.found.map(Fingerprint),
        })
    }

    fn met<'c>(&self, raw: &Raw, catalogue: &'c Catalogue) -> Result<Met<'c>, CaseFileError> {
        let names: Vec<&str> = catalogue.scenarios.iter().map(|scenario| scenario.name()).collect();
        let scenario = &*catalogue.scenarios[self.known(&raw.scenario, "there is no scenario", &names)?];
        let contracts = scenario.contracts();
        let ids: Vec<&str> = contracts.iter().map(|contract| contract.id.as_str()).collect();
        let what = format!("{} has no contract", scenario.name());
        let contract = Arc::clone(&contracts[self.known(&raw.contract, &what, &ids)?]);
        let assumptions = scenario.assumptions(&contract);
        Ok(Met { scenario, contract, assumptions })
    }

    fn deliveries(&self, raw: &Raw, met: &Met<'_>, seed: Seed) -> Result<(), CaseFileError> {
        let Some(kept) = &raw.deliveries else { return Ok(()) };
        let workload = met.scenario.workload(&met.contract, seed);
        let drawn: Vec<&str> = workload.deliveries.iter().map(|delivery| delivery.name.as_str()).collect();
        if kept.get_ref().is_empty() {
            let help = format!("name some of these, or leave the line out: {}", drawn.join(", "));
            return Err(self.wrong(kept.span(), "a run without a delivery says nothing", help));
        }
        let each = kept.get_ref().iter();
        each.map(|name| self.known(name, &format!("seed {seed} draws no delivery"), &drawn))
            .try_for_each(|known| known.map(|_| ()))
    }

    /// That each fault stands at something that the seed's run can come by. A known mistake may make up
    /// operations of its own.
    fn names(&self, raw: &[RawFault], met: &Met<'_>, seed: Seed) -> Result<(), CaseFileError> {
        let workload = met.scenario.workload(&met.contract, seed);
        let deliveries: Vec<&str> = workload.deliveries.iter().map(|one| one.name.as_str()).collect();
        let mut operations: Vec<&str> = workload.requests.iter().map(|ask| ask.operation.as_str()).collect();
        operations.dedup();
        let control = Seen { call: Call::Find, key: Some(SENTINEL), body: &[] };
        let control = (met.scenario.serves())(control);
        for one in raw {
            let at = one.at.get_ref();
            let Some(about) = at.about() else { continue };
            // `R17/1+1` is a further arrival of R17/1; `?` is what nobody could recognise.
            let (what, known, is_other) = if at.is_of_delivery() {
                let first = about.rsplit_once('+').map(|(first, _)| first);
                ("delivery", &deliveries, first.is_some_and(|first| deliveries.contains(&first)))
            } else {
                ("operation", &operations, about == "?" || control.as_deref() == Some(about))
            };
            if !is_other && !known.contains(&about) {
                let message = format!("seed {seed} has no {what} `{about}`");
                return Err(self.wrong(one.at.span(), message, near(about, known)));
            }
        }
        Ok(())
    }

    fn tape(&self, raw: &[RawFault], met: &Met<'_>) -> Result<FaultTape, CaseFileError> {
        let terms = Terms { contract: &met.contract, assumptions: &met.assumptions };
        let mut faults: Vec<Fault> = vec![];
        for one in raw {
            let fault = Fault { at: one.at.get_ref().clone(), what: one.what.get_ref().clone() };
            match fault.check() {
                Ok(()) => {}
                Err(error @ TapeError::Zero(_)) => {
                    return Err(self.wrong(one.at.span(), error.to_string(), "the first is 1"));
                }
                Err(error) => {
                    let help = format!("here can strike: {}", kinds(&fault.at, &terms));
                    return Err(self.wrong(one.what.span(), error.to_string(), help));
                }
            }
            if faults.iter().any(|known| known.at == fault.at) {
                let message = TapeError::SamePlace(fault.at).to_string();
                let help = "only one thing can go wrong at a place: take one of them out";
                return Err(self.wrong(one.at.span(), message, help));
            }
            if let Some(why) = terms.forbids(&fault) {
                return Err(self.unsurvivable(one.what.span(), &format!("{}: {why}", fault.what.kind())));
            }
            faults.push(fault);
        }
        let tape = FaultTape::new(faults).expect("each fault and each pair of places was checked");
        match (terms.unsurvivable(&tape), raw.last()) {
            (Some(why), Some(last)) => Err(self.unsurvivable(last.what.span(), &why)),
            _ => Ok(tape),
        }
    }

    fn unsurvivable(&self, span: Range<usize>, why: &str) -> CaseFileError {
        let help = "what the contract and the assumptions exclude tests no workflow; make it milder";
        self.wrong(span, format!("no workflow could survive this: {why}"), help)
    }
}

/// The help for a name that is not known.
fn near(given: &str, known: &[&str]) -> String {
    match nearest(given, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => "there is none".to_owned(),
        None => format!("known: {}", known.join(", ")),
    }
}

/// The fault kinds that can strike at a place, each once.
fn kinds(at: &Place, terms: &Terms<'_>) -> String {
    let mut kinds: Vec<&str> = menu(at, terms).iter().map(What::kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    if kinds.is_empty() { "nothing".to_owned() } else { kinds.join(", ") }
}

/// The comment lines before everything else, without their `#`.
fn head(text: &str) -> Vec<String> {
    let comments = text.lines().map_while(|line| line.strip_prefix('#'));
    comments.map(|line| line.strip_prefix(' ').unwrap_or(line).to_owned()).collect()
}

/// The help for a message of the parser: the nearest allowed word, or all of them.
fn help(message: &str) -> String {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    match quoted.split_first() {
        Some((given, allowed)) if message.starts_with("unknown ") && !allowed.is_empty() => {
            match nearest(given, allowed) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("allowed here: {}", allowed.join(", ")),
            }
        }
        Some((field, [])) if message.starts_with("missing field") => format!("add `{field} = …`"),
        _ if message.contains(" variant") => {
            "a fault stands alone (`what = \"refuse\"`) or has values (`what = { kill = 100 }`, \
             `what = { power-cut = { down = 100, keep = \"nothing\" } }`)"
                .to_owned()
        }
        _ => "`cargo sim keep` writes files of this kind; compare with one of them".to_owned(),
    }
}
