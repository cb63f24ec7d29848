//! `shrink`: the smallest plan with the same failure, written down.

use super::args::{Format, ShrinkArgs};
use super::explore::INTERRUPTED;
use super::failures::on_trial;
use super::pending::Pending;
use super::replay::{code_of, told};
use super::subject::{self, Shelf, Subject, shown};
use super::{CliError, Context, choose, exit, explore};
use crate::case::CaseFile;
use crate::replay::{Answer, Question, shrink_asked};
use crate::report::json;
use crate::report::text::Tone;
use crate::resources::now;
use crate::shrink::{Budget, RUNS_MAX};
use destinations::Contract;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub(super) fn run(cx: &mut Context<'_>, args: &ShrinkArgs) -> Result<u8, CliError> {
    let shelf = Shelf::of(&cx.catalogue, &args.folders);
    let subject = subject::find(&cx.catalogue, &shelf, &args.case)?;
    let question = Question {
        kinds: choose::kinds(args.faults.as_deref())?,
        steps_max: args.steps_max.get(),
        ..subject.question(args.mutant.as_deref())?
    };
    explore::listen_for_interrupt();
    let (mut answer, contract) = shrunk(cx, &question, args.time)?;
    let written = match case_of(&subject, &answer) {
        Some(case) => {
            let pending = Pending(shelf.pending);
            let path = pending.write(&case).map_err(|error| unwritable(&shown(&pending.0), &error))?;
            if let Some(written) = &mut answer.question.written {
                written.path = shown(&path);
            }
            Some(case.name())
        }
        None => None,
    };
    if written.is_none() {
        answer.question = question;
    }
    let code = code_of(&answer);
    if cx.format == Format::Json {
        cx.print(&json::verdict(&answer, code));
        return Ok(code);
    }
    let style = cx.out_style;
    if answer.told.is_none() {
        let rest = format!("{} fails in no way: there is nothing to shrink", answer.question.case);
        cx.print(&style.status(Tone::Plain, "NOTHING", &rest));
        return Ok(code);
    }
    for line in told(style, &answer, &contract, None) {
        cx.print(&line);
    }
    if let Some(name) = written {
        cx.print(&style.line(&format!("  commit  cargo sim keep {name}")));
    }
    Ok(code)
}

/// What is asked for, shrunk and told; the path of its file is still to be filled in.
pub(super) fn shrunk(
    cx: &Context<'_>,
    question: &Question,
    time: Option<Duration>,
) -> Result<(Answer, Arc<Contract>), CliError> {
    let (index, contract) = choose::case(&cx.catalogue, &question.case, question.mutant.as_deref())?;
    let answer = on_trial(cx, index, &contract, question, move |trial, question| {
        let started = now();
        let late = || time.is_some_and(|time| started.elapsed() >= time);
        let over = || INTERRUPTED.load(Ordering::Relaxed) || late();
        shrink_asked(trial, question, Budget { runs: RUNS_MAX, over: &over })
    })?;
    Ok((answer, contract))
}

/// The case file of a shrunk failure: a file that was read keeps what it says beside its plan.
pub(super) fn case_of(subject: &Subject, answer: &Answer) -> Option<CaseFile> {
    let fingerprint = answer.fingerprint().filter(|_| answer.difference.is_none())?;
    let message = answer.violation().map(|violation| violation.message.clone());
    let (head, kept) = match subject {
        Subject::Seed(case) => ([format!("Shrunk from {case}.")].into_iter().chain(message).collect(), None),
        Subject::File(kept) => (kept.case.head.clone(), Some(&kept.case)),
    };
    let mut case = CaseFile::of(answer.recipe.clone(), fingerprint, head);
    if let Some(kept) = kept {
        (case.expect, case.issue) = (kept.expect, kept.issue.clone());
    }
    Some(case)
}

pub(super) fn unwritable(what: &str, error: &std::io::Error) -> CliError {
    CliError {
        code: exit::HARNESS,
        message: format!("{what} cannot be written: {error}"),
        help: vec!["--artifacts and --cases name other folders".into()],
    }
}
