//! The determinism gate: the same seeds in a second process must give the same histories, to the event.

use super::args::Format;
use super::check::{finding, request, show};
use super::explore::{INTERRUPTED, ask, listen_for_interrupt};
use super::{CliError, Context, choose, exit};
use crate::catalogue::Catalogue;
use crate::confirm::Start;
use crate::explore::{Notice, Outcome, Plans, Search, SeedPlans};
use crate::pipeline::Pipeline;
use crate::plan::Case;
use crate::replay::{Difference, Question};
use crate::report::json::{self, line as json_line};
use crate::report::text::{count, differ};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The name of this check.
const CHECK: &str = "second process";

/// How the line of an event begins.
const EVENT: &str = "{\"step\":";

/// Starts the second process with these arguments: what it prints.
pub(super) type Hear<'a> = &'a dyn Fn(&[&str]) -> Result<Box<dyn BufRead>, String>;

/// What came of one seed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct CameOf {
    case: String,
    hash: String,
    came: String,
}

impl CameOf {
    fn one(outcome: &Outcome) -> Self {
        CameOf {
            case: outcome.case.to_string(),
            hash: format!("{:016x}", outcome.hash()),
            came: outcome.came.word().to_owned(),
        }
    }
}

/// Starts this program again, and listens.
pub(super) fn hear(start: Option<Start>, arguments: &[&str]) -> Result<Box<dyn BufRead>, String> {
    let start = start.ok_or("how this program is started is not known")?;
    let child = start(arguments)?.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let said = child.map_err(|error| error.to_string())?.stdout;
    Ok(Box::new(BufReader::new(said.ok_or("its output is not connected")?)))
}

/// What the second process prints: a line for each seed.
pub(super) fn results(cx: &mut Context<'_>, seeds: u64) -> Result<u8, CliError> {
    let (catalogue, pipeline) = (Arc::clone(&cx.catalogue), cx.pipeline);
    run_seeds(&catalogue, pipeline, seeds, &mut |outcome| cx.print(&json_line(&CameOf::one(outcome))))?;
    Ok(exit::HELD)
}

/// Runs the seeds here and in a second process, and compares what came of each.
pub(super) fn against(cx: &mut Context<'_>, seeds: u64, hear: Hear<'_>) -> Result<u8, CliError> {
    listen_for_interrupt();
    let harness = |message: String| CliError { code: exit::HARNESS, message, help: vec![] };
    let there = hear(&["check", "--results", &seeds.to_string()]);
    let there = there.map_err(|error| harness(format!("no second process can be started: {error}")))?;
    // What is said around it, such as by a program of tests, is passed over.
    let mut there = there.lines().filter_map(|line| serde_json::from_str::<CameOf>(&line.ok()?).ok());
    let (mut compared, mut differing, mut first, mut broken) = (0_u64, 0_u64, None, None);
    let (catalogue, pipeline) = (Arc::clone(&cx.catalogue), cx.pipeline);
    run_seeds(&catalogue, pipeline, seeds, &mut |outcome| {
        let here = CameOf::one(outcome);
        let Some(other) = there.next() else {
            broken.get_or_insert_with(|| outcome.case.clone());
            return;
        };
        compared += 1;
        if other != here {
            differing += 1;
            first.get_or_insert_with(|| (outcome.case.clone(), here, other));
        }
    })?;
    let interrupted = INTERRUPTED.load(Ordering::Relaxed);
    if let Some(case) = broken.filter(|_| !interrupted) {
        return Err(harness(format!("the second process said less than it must: nothing of {case}")));
    }
    let Some((case, here, other)) = first else {
        let says = format!("{} run in two processes, equal", count(compared, "seed"));
        let code = if interrupted { exit::UNDECIDED } else { exit::HELD };
        show(cx, &finding(CHECK, code, says));
        return Ok(code);
    };
    let says = format!("{differing} of {} differ, the first is {case}", count(compared, "seed"));
    show(cx, &finding(CHECK, exit::DIFFERS, says));
    let difference = first_event(cx, &case, hear)?.unwrap_or_else(|| Difference {
        step: 0,
        a: format!("{}, hash {}; alone it is equal: an earlier run has left something", here.came, here.hash),
        b: format!("{}, hash {}", other.came, other.hash),
    });
    if cx.format != Format::Json {
        differ(cx.out_style, &case, &difference).iter().for_each(|line| cx.print(line));
        return Ok(exit::DIFFERS);
    }
    let Difference { step, a, b } = difference;
    cx.print(&json_line(&DifferLine { kind: "difference", case: case.to_string(), step, a, b }));
    Ok(exit::DIFFERS)
}

#[derive(Serialize)]
struct DifferLine {
    kind: &'static str,
    case: String,
    step: u32,
    a: String,
    b: String,
}

/// Runs the seeds, each once, with a thread for each core that the two processes leave to each other.
fn run_seeds(
    catalogue: &Arc<Catalogue>,
    pipeline: Pipeline,
    seeds: u64,
    seen: &mut dyn FnMut(&Outcome),
) -> Result<(), CliError> {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let Some(request) = request(catalogue, seeds, cores.div_ceil(2)) else {
        let message = "there is no scenario to run".to_owned();
        return Err(CliError { code: exit::NOTHING, message, help: vec![] });
    };
    let mut silent = |_: Notice<'_>| {};
    let mut search = Search::new(catalogue, pipeline, request, &INTERRUPTED, &mut silent);
    let plans: Arc<dyn Plans> = Arc::new(SeedPlans::of(search.request()).once());
    // What ended it is in the sums.
    let _ = search.stage(&plans, seen);
    let done = search.finish();
    match done.harness_examples.first() {
        Some((case, error)) => {
            let message = format!("{case}: {error}");
            Err(CliError { code: exit::HARNESS, message, help: vec![] })
        }
        None => Ok(()),
    }
}

/// The first event of a case in which the two processes differ.
fn first_event(cx: &mut Context<'_>, case: &Case, hear: Hear<'_>) -> Result<Option<Difference>, CliError> {
    let (index, contract) = choose::case(&cx.catalogue, case, None)?;
    let question = Question { all_faults: true, once: true, ..Question::about(case.clone()) };
    let answer = ask(cx, index, &contract, question)?;
    let here = json::history(&answer, None);
    let text = case.to_string();
    let there = hear(&["replay", &text, "--all-faults", "--once", "--format", "json"]);
    let there = there.map_err(|error| CliError {
        code: exit::HARNESS,
        message: format!("no second process can be started: {error}"),
        help: vec![],
    })?;
    // Only events: the verdict has no step, and neither has what is said around them.
    let there: Vec<String> =
        there.lines().map_while(Result::ok).filter(|line| line.starts_with(EVENT)).collect();
    Ok(first_difference(&here, &there))
}

fn first_difference(here: &[String], there: &[String]) -> Option<Difference> {
    let at = (0..here.len().max(there.len())).find(|index| here.get(*index) != there.get(*index))?;
    let shown = |lines: &[String]| lines.get(at).map_or("the run has ended".to_owned(), String::clone);
    Some(Difference { step: at as u32 + 1, a: shown(here), b: shown(there) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_differs_is_named() {
        let lines = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(first_difference(&lines("a b c"), &lines("a b c")), None);
        let other = first_difference(&lines("a b c"), &lines("a x c")).expect("it differs");
        assert_eq!((other.step, other.a.as_str(), other.b.as_str()), (2, "b", "x"));
        let shorter = first_difference(&lines("a b c"), &lines("a b")).expect("it differs");
        assert_eq!((shorter.step, shorter.b.as_str()), (3, "the run has ended"));
    }
}
