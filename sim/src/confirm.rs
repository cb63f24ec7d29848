//! What a run says of itself, so that a fresh process can say it again and both can be compared.

use crate::pipeline::Ran;
use crate::replay::Difference;
use crate::verdict::Fingerprint;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// This program again, with these arguments; not started yet.
///
/// # Errors
/// When the program does not know where it is.
pub type Start = fn(&[&str]) -> Result<Command, String>;

/// One event: all of it for machines, and in words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Heard {
    event: Value,
    words: String,
}

/// The end of a testimony.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Closing {
    fingerprint: Option<String>,
    history_hash: String,
}

/// All that a run says of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Testimony {
    events: Vec<Heard>,
    closing: Closing,
}

impl Testimony {
    /// That of a run, and of the violation that is told of it.
    ///
    /// # Panics
    /// Never: every event can be written as JSON.
    pub fn of(ran: &Ran, fingerprint: Option<&Fingerprint>) -> Self {
        let heard = |event: &crate::history::Event| Heard {
            event: serde_json::to_value(event).expect("keys are text and numbers are finite"),
            words: event.to_string().trim_start().to_owned(),
        };
        Testimony {
            events: ran.run.history.events().iter().map(heard).collect(),
            closing: Closing {
                fingerprint: fingerprint.map(|fingerprint| fingerprint.0.clone()),
                history_hash: format!("{:016x}", ran.run.history.hash()),
            },
        }
    }

    /// A line an event, and one for the end.
    pub fn lines(&self) -> Vec<String> {
        let events = self.events.iter().map(crate::report::json::line);
        events.chain([crate::report::json::line(&self.closing)]).collect()
    }

    /// Reads what a process printed; lines that are no part of a testimony are passed over.
    ///
    /// # Errors
    /// When there is no end.
    pub fn read(printed: &str) -> Result<Self, String> {
        let events = printed.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let closing = printed.lines().rev().find_map(|line| serde_json::from_str(line).ok());
        let closing = closing.ok_or("it printed no whole run")?;
        Ok(Testimony { events, closing })
    }

    /// Where another testimony of the same plan differs.
    pub fn differs(&self, other: &Testimony) -> Option<Difference> {
        let (a, b) = (&self.events, &other.events);
        let at = (0..a.len().max(b.len())).find(|index| a.get(*index) != b.get(*index));
        if let Some(index) = at {
            let (a, b) = shown(a.get(index), b.get(index));
            return Some(Difference { step: index as u32 + 1, a, b });
        }
        (self.closing != other.closing).then(|| {
            let says = |closing: &Closing| {
                let verdict = closing.fingerprint.as_deref().unwrap_or("it holds");
                format!("{verdict}; hash {}, disk writes included", closing.history_hash)
            };
            let (a, b) = (says(&self.closing), says(&other.closing));
            Difference { step: a_step(&self.events), a, b }
        })
    }
}

/// The step after the last event.
fn a_step(events: &[Heard]) -> u32 {
    events.len() as u32 + 1
}

/// Two events in words; where the words are the same, with the fields in which they differ.
fn shown(a: Option<&Heard>, b: Option<&Heard>) -> (String, String) {
    let words = |heard: Option<&Heard>| match heard {
        Some(heard) => heard.words.clone(),
        None => "the run has ended".to_owned(),
    };
    let (mut left, mut right) = (words(a), words(b));
    let (Some(a), Some(b)) = (a, b) else { return (left, right) };
    let (Some(a), Some(b)) = (a.event.as_object(), b.event.as_object()) else { return (left, right) };
    let mut names: Vec<&String> = a.keys().chain(b.keys()).collect();
    names.sort();
    names.dedup();
    for name in names.into_iter().filter(|name| a.get(*name) != b.get(*name)) {
        for (words, event) in [(&mut left, a), (&mut right, b)] {
            let value = event.get(name).map_or("-".to_owned(), Value::to_string);
            *words += &format!("  {name} {value}");
        }
    }
    (left, right)
}

/// Runs a case file once in a process of its own, with a limit of steps, and hands back what it says.
///
/// # Errors
/// When no process can be started, or it says nothing.
pub fn again(start: Start, file: &Path, steps_max: u32) -> Result<Testimony, String> {
    let path = file.to_str().ok_or_else(|| format!("{} is no text", file.display()))?;
    hear(&mut start(&["again", path, "--steps-max", &steps_max.to_string()])?)
}

/// Starts a process and hears what it says.
///
/// # Errors
/// When it cannot be started, or says no whole run.
pub fn hear(command: &mut Command) -> Result<Testimony, String> {
    let output = command.output().map_err(|error| format!("no process can be started: {error}"))?;
    Testimony::read(&String::from_utf8_lossy(&output.stdout)).map_err(|error| {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it says no reason");
        format!("{error}: {last}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{MUTANT, Toy, pipeline};
    use crate::run::Options;
    use crate::scenario::Scenario as _;
    use crate::seed::Seed;

    fn testimony() -> Testimony {
        let scenario = Toy("one-ticket");
        let contract = scenario.contracts().remove(0);
        let plan = (pipeline().draft)(&scenario, &contract, Seed(0), Some(MUTANT), None).unwrap();
        let ran = pipeline().once(&scenario, &plan, &Options::default()).unwrap();
        Testimony::of(&ran, ran.judgement.fingerprints.first())
    }

    #[test]
    fn what_is_said_is_heard() {
        let said = testimony();
        let printed = format!("running 1 test\n{}\nok\n", said.lines().join("\n"));
        let heard = Testimony::read(&printed).unwrap();
        assert_eq!((said.differs(&heard), &heard), (None, &said));
        assert_eq!(Testimony::read("nothing\n{}"), Err("it printed no whole run".into()));
    }

    #[test]
    fn the_first_event_that_differs_is_named_with_what_differs_in_it() {
        let (a, mut b) = (testimony(), testimony());
        b.events[3].event["digest"] = "77aa".into();
        b.events[5].words = "later".into();
        let mut shown = String::new();
        let mut show = |difference: Option<Difference>| {
            let Difference { step, a, b } = difference.expect("they differ");
            shown += &format!("{step}\n  a: {a}\n  b: {b}\n");
        };
        show(a.differs(&b));
        let mut short = testimony();
        short.events.truncate(20);
        show(a.differs(&short));
        let mut ending = testimony();
        ending.closing.history_hash = "0".repeat(16);
        show(a.differs(&ending));
        insta::assert_snapshot!("differences", shown);
    }

    #[test]
    fn a_process_that_says_nothing_is_an_error() {
        let error = hear(Command::new("rustc").arg("--no-such-flag")).unwrap_err();
        assert!(error.starts_with("it printed no whole run: "), "{error}");
        assert!(hear(&mut Command::new("/no/such/program")).unwrap_err().contains("no process"));
    }
}
