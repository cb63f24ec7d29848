//! `replay`: one run, told in full.

use super::args::{Format, ReplayArgs};
use super::subject::{self, Shelf, Subject};
use super::{CliError, Context, choose, exit};
use crate::history::Step;
use crate::replay::{Answer, Question};
use crate::report::json;
use crate::report::text::{Style, Tone, count, differ, reduction};
use crate::story::Tale;
use crate::verdict::Verdict;
use destinations::Contract;

pub(super) fn run(cx: &mut Context<'_>, args: &ReplayArgs) -> Result<u8, CliError> {
    let shelf = Shelf::of(&cx.catalogue, &args.folders);
    let subject = subject::find(&cx.catalogue, &shelf, &args.case)?;
    if let (Some(kinds), Subject::File(_)) = (&args.faults, &subject) {
        let help = format!("leave `--faults {kinds}` out: a case file names its faults itself");
        return Err(CliError::usage("--faults is for what a seed draws", help));
    }
    let question = Question {
        kinds: choose::kinds(args.faults.as_deref())?,
        steps_max: args.steps_max.get(),
        all_faults: args.all_faults,
        without: args.without_fault.map(|n| n.get()),
        once: args.once,
        ..subject.question(args.mutant.as_deref())?
    };
    let (index, contract) = choose::case(&cx.catalogue, &question.case, question.mutant.as_deref())?;
    let answer = super::explore::ask(cx, index, &contract, question)?;
    let code = code_of(&answer);
    if let Some(runs) = args.likelihood {
        super::likelihood::run(cx, index, &contract, &answer, runs.get())?;
        return Ok(code);
    }
    let until = args.until_step.map(|n| n.get());
    if cx.format == Format::Json {
        for line in json::history(&answer, until) {
            cx.print(&line);
        }
        cx.print(&json::verdict(&answer, code));
        return Ok(code);
    }
    for line in told(cx.out_style, &answer, &contract, until) {
        cx.print(&line);
    }
    if args.verbose {
        cx.print("");
        let style = cx.out_style;
        for event in answer.ran.run.history.events() {
            if until.is_none_or(|until| event.step.0 <= until) {
                cx.print(&style.line(&event.to_string()));
            }
        }
    }
    Ok(code)
}

pub(super) fn code_of(answer: &Answer) -> u8 {
    let of_verdict = match &answer.ran.judgement.verdict {
        Verdict::Held => exit::HELD,
        Verdict::Violated(_) => exit::VIOLATED,
        Verdict::Undecided(_) => exit::UNDECIDED,
        Verdict::Invalid(_) => exit::USAGE,
        Verdict::Harness(_) => exit::HARNESS,
    };
    let of_twice = if answer.difference.is_some() { exit::DIFFERS } else { exit::HELD };
    exit::worst(&[of_verdict, of_twice])
}

/// The whole answer as text.
pub(super) fn told(style: Style, answer: &Answer, contract: &Contract, until: Option<u32>) -> Vec<String> {
    let case = &answer.question.case;
    let mut lines = vec![match (&answer.ran.judgement.verdict, answer.violation()) {
        (_, Some(violation)) => {
            let id = violation.invariant;
            style.status(Tone::Bad, "VIOLATED", &format!("{case}  {} {}", id.id, id.name))
        }
        (Verdict::Undecided(why), _) => style.status(Tone::Warn, "UNDECIDED", &format!("{case}  {why}")),
        (Verdict::Invalid(why), _) => style.status(Tone::Warn, "INVALID", &format!("{case}  {why}")),
        (Verdict::Harness(error), _) => style.status(Tone::Bad, "HARNESS", &format!("{case}  {error}")),
        (Verdict::Held | Verdict::Violated(_), _) => style.status(Tone::Good, "HELD", &case.to_string()),
    }];
    if answer.told.is_some() {
        lines.extend(reduction(answer).iter().map(|line| style.line(line)));
    }
    let events = answer.ran.run.history.events().len() as u64;
    let twice = match (answer.question.once, &answer.difference) {
        (true, _) => "run once",
        (false, None) => "run twice, equal",
        (false, Some(_)) => "run twice, and they differ",
    };
    let hash = answer.ran.run.history.hash();
    lines.push(style.line(&format!("{:13}{}, {twice}, hash {hash:016x}", "", count(events, "event"))));
    if let Some(difference) = &answer.difference {
        lines.extend(differ(style, case, difference));
    }
    lines.push(String::new());
    let story = Tale::of(answer, Some(contract), until.map(Step)).lines();
    lines.extend(story.iter().map(|line| style.story_line(line)));
    lines
}
