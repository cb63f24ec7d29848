//! Kept cases run before anything else: the committed ones, then those that wait to be committed.

use super::args::{ExploreArgs, Format};
use super::pending::{HELD_MAX, Pending};
use super::replay::told;
use super::subject::{Kept, Shelf, open, shown, tomls};
use super::{CliError, Context, choose, exit, explore};
use crate::case::Expected;
use crate::explore::Request;
use crate::replay::{Answer, Question};
use crate::report::json::line as json_line;
use crate::report::text::{Tone, count};
use crate::resources::now;
use crate::verdict::Verdict;
use destinations::Contract;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Came {
    /// It holds, as it must.
    Held,
    /// It is violated, as everybody knows.
    Known,
    /// It must hold and is violated, or a known failure has become another one.
    Failed,
    /// A known failure holds.
    Fixed,
    /// It holds, and a fault of it never struck: the fault's number, and its words.
    Stale(Vec<String>),
    /// Nothing can be said.
    Undecided(String),
}

impl Came {
    fn word(&self) -> &'static str {
        match self {
            Came::Held => "held",
            Came::Known => "known",
            Came::Failed => "failed",
            Came::Fixed => "fixed",
            Came::Stale(_) => "stale",
            Came::Undecided(_) => "undecided",
        }
    }

    fn code(&self, strict: bool) -> u8 {
        match self {
            Came::Held | Came::Known => exit::HELD,
            Came::Failed => exit::VIOLATED,
            Came::Fixed => exit::UNEXPECTED,
            Came::Stale(_) => {
                if strict {
                    exit::GAP
                } else {
                    exit::HELD
                }
            }
            Came::Undecided(_) => exit::UNDECIDED,
        }
    }
}

/// A case that was run.
struct Checked {
    kept: Kept,
    is_pending: bool,
    came: Came,
    answer: Answer,
    contract: Arc<Contract>,
    /// How often a pending case has held in a row, this time included.
    held: u32,
}

#[derive(Serialize)]
struct CaseLine<'a> {
    kind: &'static str,
    file: String,
    case: String,
    mutant: Option<&'a str>,
    pending: bool,
    expect: &'static str,
    result: &'static str,
    fingerprint: Option<&'a str>,
    found: Option<&'a str>,
    issue: Option<&'a str>,
    never_struck: &'a [String],
    replay: String,
    exit: u8,
}

/// Runs every kept case of the chosen scenarios and says what came of it; the codes of what went wrong.
pub(super) fn run(cx: &mut Context<'_>, args: &ExploreArgs, request: &Request) -> Result<Vec<u8>, CliError> {
    let started = now();
    let shelf = Shelf::at(&cx.catalogue, args.cases.as_deref(), &args.artifacts);
    let pending = Pending(shelf.pending.clone());
    let mut codes = vec![];
    let mut all = vec![];
    for (number, kept) in opened(cx, &shelf)?.into_iter().enumerate() {
        let (kept, is_pending) = kept;
        let is_here = request.shard.has(number as u64);
        if !is_here || !is_chosen(&kept, is_pending, request) || explore::INTERRUPTED.load(Ordering::Relaxed)
        {
            continue;
        }
        match check(cx, kept, is_pending, request) {
            Ok(checked) => all.push(checked),
            Err(error) => {
                cx.note(&cx.err_style.line(&error.lines().join("\n")));
                codes.push(error.code);
            }
        }
    }
    for checked in &mut all {
        remember(cx, &pending, checked);
        codes.push(checked.came.code(args.strict));
    }
    if !all.is_empty() {
        let rest = format!("{:<68} [{:>5.1}s]", sums(&all), started.elapsed().as_secs_f64());
        cx.note(&cx.err_style.status(Tone::Plain, "Cases", &rest));
    }
    for checked in &all {
        say(cx, checked, args.strict);
    }
    Ok(codes)
}

/// The case files, and whether each is a pending one. A pending one that cannot be used any more is said and
/// passed over; a committed one must be right.
fn opened(cx: &mut Context<'_>, shelf: &Shelf) -> Result<Vec<(Kept, bool)>, CliError> {
    let mut all = vec![];
    for path in shelf.committed.as_deref().map_or(Ok(vec![]), tomls)? {
        all.push((open(&cx.catalogue, &path)?, false));
    }
    for path in tomls(&shelf.pending)? {
        match open(&cx.catalogue, &path) {
            Ok(kept) => all.push((kept, true)),
            Err(error) => {
                let rest = format!("{} is passed over; `cargo sim drop` forgets it", shown(&path));
                cx.note(&cx.err_style.status(Tone::Warn, "PENDING", &rest));
                cx.note(&cx.err_style.line(&error.message));
            }
        }
    }
    Ok(all)
}

/// Whether this exploration is about it: scenario, contract, mistake and fault kinds. What a mistake has left
/// among the pending ones is no failure of the workflow without it.
fn is_chosen(kept: &Kept, is_pending: bool, request: &Request) -> bool {
    let recipe = &kept.case.recipe;
    let named = request.chosen.iter().any(|chosen| {
        chosen.name == recipe.case.scenario
            && chosen.contracts.iter().any(|contract| contract.id == recipe.case.contract)
    });
    let any = !is_pending && request.mutant.is_none();
    let mistaken = any || request.mutant == recipe.mutant;
    let allowed = recipe.tape.faults().iter().all(|fault| fault.what.is_on(request.kinds.as_deref()));
    named && mistaken && allowed
}

fn check(cx: &Context<'_>, kept: Kept, is_pending: bool, request: &Request) -> Result<Checked, CliError> {
    let recipe = &kept.case.recipe;
    let (index, contract) = choose::case(&cx.catalogue, &recipe.case, recipe.mutant.as_deref())?;
    let question = Question { steps_max: request.steps_max, ..kept.question(None)? };
    let once = Question { all_faults: true, once: true, ..question.clone() };
    let mut answer = explore::ask(cx, index, &contract, once)?;
    let came = came(&kept, &answer);
    if came == Came::Failed && !is_pending {
        answer = explore::ask(cx, index, &contract, question.clone())?;
    }
    answer.question = question;
    Ok(Checked { kept, is_pending, came, answer, contract, held: 0 })
}

fn came(kept: &Kept, answer: &Answer) -> Came {
    let judgement = &answer.ran.judgement;
    match (&judgement.verdict, kept.case.expect) {
        (Verdict::Violated(_), Expected::Violated) => {
            // A change of the code may change the shape of the steps; the invariant must be the same.
            let name = |fingerprint: &str| fingerprint.split('/').next().map(str::to_owned);
            let found = kept.case.found.as_ref().and_then(|found| name(&found.0));
            let same = judgement.fingerprints.iter().any(|fingerprint| name(&fingerprint.0) == found);
            if found.is_none() || same { Came::Known } else { Came::Failed }
        }
        (Verdict::Violated(_), Expected::Held) => Came::Failed,
        (Verdict::Held, Expected::Violated) => Came::Fixed,
        (Verdict::Held, Expected::Held) => {
            let never = answer.faults.iter().filter(|told| !told.fired);
            let never: Vec<String> =
                never.map(|told| format!("{}: {} ({})", told.n, told.fault.what, told.fault.at)).collect();
            if never.is_empty() { Came::Held } else { Came::Stale(never) }
        }
        (Verdict::Undecided(why) | Verdict::Invalid(why) | Verdict::Harness(why), _) => {
            Came::Undecided(why.clone())
        }
    }
}

/// Counts how often a pending case has held; the last time it is forgotten. One whose faults do not strike
/// any more says nothing about its failure.
fn remember(cx: &mut Context<'_>, pending: &Pending, checked: &mut Checked) {
    if !checked.is_pending {
        return;
    }
    let path = &checked.kept.path;
    let written = match checked.came {
        Came::Held => pending.held(path).map(|held| checked.held = held),
        Came::Stale(_) => return,
        _ => pending.failed(path),
    };
    if let Err(error) = written {
        let rest = format!("{}: its count cannot be kept: {error}", shown(path));
        cx.note(&cx.err_style.status(Tone::Warn, "PENDING", &rest));
    }
}

/// `14 committed cases: 13 held, 1 known; 1 pending: 1 failed`.
fn sums(all: &[Checked]) -> String {
    let part = |is_pending: bool, what: &str| {
        let mut words: Vec<(&str, u64)> = vec![];
        let of_these = || all.iter().filter(|checked| checked.is_pending == is_pending);
        for checked in of_these() {
            match words.iter_mut().find(|(word, _)| *word == checked.came.word()) {
                Some((_, n)) => *n += 1,
                None => words.push((checked.came.word(), 1)),
            }
        }
        let words: Vec<String> = words.into_iter().map(|(word, n)| format!("{n} {word}")).collect();
        let total = count(of_these().count() as u64, what);
        (!words.is_empty()).then(|| format!("{total}: {}", words.join(", ")))
    };
    let parts = [part(false, "committed case"), part(true, "pending case")];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn say(cx: &mut Context<'_>, checked: &Checked, strict: bool) {
    if cx.format == Format::Json {
        cx.print(&line(checked, strict));
        return;
    }
    let style = cx.out_style;
    let file = shown(&checked.kept.path);
    let name = checked.answer.fingerprint().map_or("", |fingerprint| &fingerprint.0);
    let replay = format!("{:13}replay  {}", "", checked.answer.question);
    let lines = match &checked.came {
        Came::Held if !checked.is_pending => vec![],
        Came::Held => vec![style.status(Tone::Good, "HELD", &format!("{file}  {}", row(checked.held)))],
        Came::Known => {
            let issue = checked.kept.case.issue.as_deref().unwrap_or("");
            vec![style.status(Tone::Warn, "KNOWN", &format!("{file}  {name}  {issue}"))]
        }
        Came::Failed if checked.is_pending => {
            let head = style.status(Tone::Bad, "VIOLATED", &format!("{file}  still {name}"));
            vec![head, style.line(&replay)]
        }
        Came::Failed => {
            let head = format!("{file}  {}", expected(&checked.kept));
            let mut lines = vec![style.status(Tone::Bad, "CASE", &head)];
            lines.extend(told(style, &checked.answer, &checked.contract, None));
            lines.push(String::new());
            lines
        }
        Came::Fixed => vec![
            style.status(Tone::Bad, "FIXED", &format!("{file}  is a known failure, and it holds")),
            style.line(&format!("{:13}if that is meant: expect = \"held\", and it stays so", "")),
            style.line(&replay),
        ],
        Came::Stale(never) => {
            let rest = format!("{file}  holds, and tests less than it says");
            let mut lines = vec![style.status(Tone::Warn, "STALE", &rest)];
            lines.extend(never.iter().map(|one| style.line(&format!("{:13}fault {one} never struck", ""))));
            lines
        }
        Came::Undecided(why) => {
            vec![style.status(Tone::Warn, "UNDECIDED", &format!("{file}  {why}")), style.line(&replay)]
        }
    };
    for line in lines {
        cx.print(&line);
    }
}

fn row(held: u32) -> String {
    let forgotten = if held >= HELD_MAX { ": forgotten" } else { "" };
    format!("held {held} of {HELD_MAX} times in a row{forgotten}")
}

fn expected(kept: &Kept) -> String {
    match (kept.case.expect, &kept.case.found) {
        (Expected::Held, _) => "must hold, and does not".to_owned(),
        (Expected::Violated, found) => {
            let found = found.as_ref().map_or("a known failure", |found| found.0.as_str());
            format!("is known as {found}, and fails in another way")
        }
    }
}

fn line(checked: &Checked, strict: bool) -> String {
    let Checked { kept, came, answer, .. } = checked;
    let never: &[String] = if let Came::Stale(never) = came { never } else { &[] };
    json_line(&CaseLine {
        kind: "case",
        file: shown(&kept.path),
        case: kept.case.recipe.case.to_string(),
        mutant: kept.case.recipe.mutant.as_deref(),
        pending: checked.is_pending,
        expect: kept.case.expect.word(),
        result: came.word(),
        fingerprint: answer.fingerprint().map(|fingerprint| fingerprint.0.as_str()),
        found: kept.case.found.as_ref().map(|found| found.0.as_str()),
        issue: kept.case.issue.as_deref(),
        never_struck: never,
        replay: answer.question.to_string(),
        exit: came.code(strict),
    })
}
