//! What becomes of each failure that was found: written down at once, shrunk, run again in a fresh process,
//! told.

use super::explore::INTERRUPTED;
use super::pending::Pending;
use super::subject::shown;
use super::{CliError, Context, choose, exit};
use crate::case::CaseFile;
use crate::confirm::{Testimony, again};
use crate::explore::{Exploration, Failure, Request};
use crate::replay::{Answer, Difference, Question, ReplayError, killed_by, tell_found};
use crate::report::ToldFailure;
use crate::report::text::Tone;
use crate::resources::now;
use crate::run::Options;
use crate::shrink::{Budget, RUNS_MAX, Trial};
use crate::watch::apart;
use destinations::Contract;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How failures are handled.
#[derive(Clone, Debug)]
pub(super) struct Handling {
    /// Whether they are shrunk, and for how long each.
    pub(super) shrink: Option<Duration>,
    /// Where they are written down.
    pub(super) pending: Pending,
    /// The current commit.
    pub(super) commit: Option<String>,
}

/// A failure's example, shrunk and run again.
pub(super) struct Told {
    index: usize,
    answer: Answer,
    contract: Arc<Contract>,
    /// Its case file, where one could be written.
    file: Option<PathBuf>,
    seconds: f64,
    pub(super) artifacts: Option<String>,
}

impl Told {
    pub(super) fn of<'a>(&'a self, done: &'a Exploration) -> ToldFailure<'a> {
        ToldFailure {
            failure: &done.failures[self.index],
            answer: &self.answer,
            contract: &self.contract,
            artifacts: self.artifacts.as_deref(),
            file: self.file.as_deref().map(shown),
            seconds: Some(self.seconds),
        }
    }
}

fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

impl Handling {
    /// The case file of a failure as it was found.
    fn case(&self, failure: &Failure) -> CaseFile {
        let commit = self.commit.as_ref().map_or(String::new(), |commit| format!(" at {commit}"));
        let id = failure.invariant;
        let head = vec![
            format!("Found by {}{commit}, after {} runs.", failure.strategy, failure.after_runs),
            format!("{} {}: {}.", id.id, id.name, id.says),
        ];
        CaseFile::of(failure.example.clone(), &failure.fingerprint, head)
    }

    /// Writes a failure down the moment it is found: whatever ends the program, it is not lost.
    pub(super) fn found(&self, failure: &Failure) -> std::io::Result<PathBuf> {
        self.pending.write(&self.case(failure))
    }
}

/// Shrinks, writes, confirms and tells each failure; and codes for what went wrong on the way.
pub(super) fn tell_all(
    cx: &mut Context<'_>,
    request: &Request,
    handling: &Handling,
    done: &mut Exploration,
) -> (Vec<Told>, Vec<u8>) {
    let (mut told, mut codes) = (vec![], vec![]);
    for (index, failure) in done.failures.clone().iter().enumerate() {
        match tell(cx, request, handling, index, failure, &mut codes) {
            Ok((one, difference)) => {
                let repeats = difference.is_none();
                done.compared(&failure.example.case, difference);
                // What does not repeat is no failure that anybody could look at.
                told.extend(repeats.then_some(one));
            }
            Err(error) => codes.push(complain(cx, &error)),
        }
    }
    // With a known mistake, what its own invariant found comes first.
    let is_named = |one: &Told| {
        let id = done.failures[one.index].invariant.id;
        request.chosen.iter().any(|chosen| chosen.killed_by == Some(id))
    };
    told.sort_by_key(|one| !is_named(one));
    (told, codes)
}

/// Says what went wrong on the way; its code.
fn complain(cx: &mut Context<'_>, error: &CliError) -> u8 {
    cx.note(&cx.err_style.line(&error.lines().join("\n")));
    error.code
}

fn tell(
    cx: &mut Context<'_>,
    request: &Request,
    handling: &Handling,
    index: usize,
    failure: &Failure,
    codes: &mut Vec<u8>,
) -> Result<(Told, Option<Difference>), CliError> {
    let started = now();
    let mut case = handling.case(failure);
    let (mut answer, contract) = match shrunk(cx, request, handling.shrink, failure) {
        // A smaller plan that never ends hides nothing: the failure is told as it was found.
        Err(error) if error.code == exit::UNDECIDED && handling.shrink.is_some() => {
            codes.push(complain(cx, &error));
            shrunk(cx, request, None, failure)?
        }
        answered => answered?,
    };
    let seconds = started.elapsed().as_secs_f64();
    case.recipe = answer.recipe.clone();
    case.head.extend(answer.violation().map(|violation| violation.message.clone()));
    let file = match handling.pending.write(&case) {
        Ok(file) => Some(file),
        Err(error) => {
            let rest = format!("{} cannot be written: {error}", handling.pending.0.display());
            cx.note(&cx.err_style.status(Tone::Warn, "NO FILES", &rest));
            None
        }
    };
    if let (Some(written), Some(file)) = (&mut answer.question.written, &file) {
        written.path = shown(file);
    }
    let other = answer.fingerprint().map_or("it holds", |fingerprint| &fingerprint.0);
    let difference = match answer.fingerprint() == Some(&failure.fingerprint) {
        true => answer.difference.clone(),
        false => Some(Difference { step: 0, a: failure.fingerprint.0.clone(), b: other.to_owned() }),
    };
    let difference = match (&file, difference) {
        (_, Some(difference)) => Some(difference),
        (Some(file), None) => confirmed(cx, file, &answer).unwrap_or_else(|error| {
            codes.push(complain(cx, &error));
            None
        }),
        (None, None) => None,
    };
    Ok((Told { index, answer, contract, file, seconds, artifacts: None }, difference))
}

/// Where a fresh process says something else of the same case file.
fn confirmed(cx: &Context<'_>, file: &Path, answer: &Answer) -> Result<Option<Difference>, CliError> {
    let Some(start) = cx.start.filter(|_| !interrupted()) else { return Ok(None) };
    match again(start, file, answer.question.steps_max) {
        Ok(there) => Ok(Testimony::of(&answer.ran, answer.fingerprint()).differs(&there)),
        // Whoever breaks off the program breaks off the other process too.
        Err(_) if interrupted() => Ok(None),
        Err(error) => Err(CliError {
            code: exit::HARNESS,
            message: format!("{} could not be run again in a fresh process: {error}", shown(file)),
            help: vec![format!("see what `cargo sim replay {}` says", shown(file))],
        }),
    }
}

/// Shrinks on a thread of its own, which is given up when a run never ends.
fn shrunk(
    cx: &Context<'_>,
    request: &Request,
    shrink: Option<Duration>,
    failure: &Failure,
) -> Result<(Answer, Arc<Contract>), CliError> {
    let found = failure.example.clone();
    let (index, contract) = choose::case(&cx.catalogue, &found.case, request.mutant.as_deref())?;
    let question = Question {
        mutant: request.mutant.clone(),
        kinds: request.kinds.clone(),
        steps_max: request.steps_max,
        ..Question::about(found.case.clone())
    };
    let (by_seed, time) = (failure.by_seed, shrink.filter(|_| !interrupted()));
    let answer = on_trial(cx, index, &contract, &question, move |trial, question| {
        let started = now();
        let over = || interrupted() || time.is_some_and(|time| started.elapsed() >= time);
        let budget = time.map(|_| Budget { runs: RUNS_MAX, over: &over });
        tell_found(trial, &found, question, by_seed, budget)
    })?;
    Ok((answer, contract))
}

/// Answers a question on a thread of its own, which is given up when a run never ends.
pub(super) fn on_trial(
    cx: &Context<'_>,
    index: usize,
    contract: &Arc<Contract>,
    question: &Question,
    answer: impl FnOnce(&Trial<'_>, &Question) -> Result<Answer, ReplayError> + Send + 'static,
) -> Result<Answer, CliError> {
    let (catalogue, pipeline) = (Arc::clone(&cx.catalogue), cx.pipeline);
    let (contract, question) = (Arc::clone(contract), question.clone());
    let answered = apart(move |watch| {
        let scenario = &*catalogue.scenarios[index];
        let killed_by = killed_by(scenario, question.mutant.as_deref());
        let options = Options { steps_max: question.steps_max, ..Options::default() };
        let trial = Trial { pipeline, scenario, contract: &contract, killed_by, options, watch };
        answer(&trial, &question)
    });
    let no_help = |code, message| CliError { code, message, help: vec![] };
    match answered {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error @ ReplayError::NoFault { .. })) => {
            Err(CliError::usage(error.to_string(), "the story numbers the faults from 1"))
        }
        Ok(Err(error)) => Err(no_help(exit::HARNESS, error.to_string())),
        Err(hung) => Err(no_help(exit::UNDECIDED, hung.to_string())),
    }
}
