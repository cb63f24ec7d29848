//! `explore`: many seeds, then each distinct failure told once, then the sums.

use super::args::{ExploreArgs, Format};
use super::artifacts::{Folder, write_certificates};
use super::failures::{self, Handling, Told, on_trial};
use super::pending::Pending;
use super::subject::Shelf;
use super::{CliError, Context, VERSION, cases, choose, exit, github};
use crate::enumerate::Certificate;
use crate::explore::{Exploration, Failure, Notice, Request, Search};
use crate::progress::Progress;
use crate::replay::{Answer, Question, replay_on};
use crate::report::text::{self, Tone};
use crate::report::{Explored, certificate, json};
use crate::resources::{cpu_seconds, now, peak_rss_bytes};
use crate::seeds::{NOTATION, Seeds, Shard};
use crate::shrink::Budget;
use crate::strategies::{self, Searched, Searches, Strategy};
use destinations::Contract;
use std::num::NonZeroUsize;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Threads that are of any use: each holds a run, and a run uses one core.
pub(super) const JOBS_MAX: usize = 256;

/// A second Ctrl-C that comes sooner is still the first.
const IMPATIENCE: Duration = Duration::from_millis(300);

pub(super) static INTERRUPTED: AtomicBool = AtomicBool::new(false);

pub(super) fn run(cx: &mut Context<'_>, args: &ExploreArgs) -> Result<u8, CliError> {
    let request = request(cx, args)?;
    let searches = searches(args);
    if request.total() == 0 && !searches.strategies.contains(&Strategy::Enumerate) {
        return nothing(cx, args, &request);
    }
    let started = (now(), cpu_seconds());
    let commit = head().ok();
    let short = commit.as_deref().map(|hash| &hash[..hash.len().min(7)]);
    listen_for_interrupt();
    let header = format!(
        "{VERSION}  {}seeds {}  jobs {}",
        short.map_or(String::new(), |commit| format!("commit {commit}  ")),
        request.seeds,
        request.jobs
    );
    cx.note(&cx.err_style.status(Tone::Plain, "in-doubt", &header));
    let mut codes = cases::run(cx, args, &request)?;
    let handling = handling(cx, args, short);
    let Searched { mut done, certificates } = explore_shown(cx, args, (&request, &searches), &handling);
    let (told, more) = failures::tell_all(cx, &request, &handling, &mut done);
    codes.extend(more);
    let told = write_files(cx, args, &done, told, &certificates);
    codes.push(code_of(&done));
    let everything = args.scenarios.is_empty() && request.mutant.is_none() && request.kinds.is_none();
    let is_whole = everything && request.shard == Shard::ALL;
    let mut explored = Explored {
        request: &request,
        done: &done,
        certificates: &certificates,
        commit: short,
        wall_s: started.0.elapsed().as_secs_f64(),
        cpu_s: cpu_seconds().zip(started.1).map(|(after, before)| after - before),
        peak_rss_bytes: peak_rss_bytes(),
        exit: exit::HELD,
        tells_never: request.mutant.is_none(),
        is_whole,
    };
    if args.strict && !explored.never().is_empty() {
        codes.push(exit::GAP);
    }
    explored.exit = exit::worst(&codes);
    report(cx, &told, &explored);
    Ok(explored.exit)
}

fn request(cx: &Context<'_>, args: &ExploreArgs) -> Result<Request, CliError> {
    let chosen = choose::scenarios(&cx.catalogue, &args.scenarios, args.mutant.as_deref())?;
    if chosen.iter().all(|one| one.contracts.is_empty()) {
        return Err(CliError {
            code: exit::NOTHING,
            message: "there is no scenario to run".into(),
            help: vec!["`cargo sim list` shows what there is".into()],
        });
    }
    let seeds = Seeds::parse(&args.seeds, &head).map_err(|error| CliError {
        code: if matches!(error, crate::seeds::SeedsError::Empty(_)) { exit::NOTHING } else { exit::USAGE },
        message: format!("--seeds: {error}"),
        help: vec![format!("seeds are written {NOTATION}")],
    })?;
    let cores = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    Ok(Request {
        shard: args.shard,
        jobs: args.jobs.unwrap_or_else(cores).get().min(JOBS_MAX),
        mutant: args.mutant.clone(),
        kinds: choose::kinds(args.faults.as_deref())?,
        steps_max: args.steps_max.get(),
        failures_max: (!args.keep_going).then_some(args.max_failures.get()),
        time: args.time,
        ..Request::of(chosen, seeds)
    })
}

fn nothing(cx: &mut Context<'_>, args: &ExploreArgs, request: &Request) -> Result<u8, CliError> {
    let message = format!("shard {} of {} holds no seed", request.shard, request.seeds);
    if args.allow_empty {
        cx.note(&cx.err_style.status(Tone::Warn, "NOTHING", &message));
        return Ok(exit::HELD);
    }
    let help = "use fewer shards, or --allow-empty".into();
    Err(CliError { code: exit::NOTHING, message, help: vec![help] })
}

/// The current commit's hash.
fn head() -> Result<String, String> {
    let output = Command::new("git").args(["rev-parse", "HEAD"]).output();
    let output = output.map_err(|error| format!("git cannot be started: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().next().unwrap_or("git says nothing").trim_start_matches("fatal: ");
        return Err(format!("git: {said}; write a hash of 40 digits in its place"));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The first Ctrl-C ends the exploration with a report; the second ends the program.
pub(super) fn listen_for_interrupt() {
    let first: OnceLock<Instant> = OnceLock::new();
    let handler = move || {
        let since = first.get_or_init(now).elapsed();
        // Who sends a signal to a process and to its group means one.
        if INTERRUPTED.swap(true, Ordering::Relaxed) && since > IMPATIENCE {
            std::process::exit(exit::UNDECIDED.into());
        }
    };
    // It can be set once in a process; where that fails, Ctrl-C ends the program without a report.
    let _ = ctrlc::set_handler(handler);
}

/// The searches that are asked for.
fn searches(args: &ExploreArgs) -> Searches {
    let all = || Strategy::ALL.to_vec();
    Searches {
        strategies: if args.strategy.is_empty() { all() } else { args.strategy.clone() },
        depth: args.depth,
        named: !args.scenarios.is_empty(),
    }
}

fn explore_shown(
    cx: &mut Context<'_>,
    args: &ExploreArgs,
    (request, searches): (&Request, &Searches),
    handling: &Handling,
) -> Searched {
    let style = cx.err_style;
    let mut progress = Progress::new(args.show_progress, cx.err_is_terminal, style, request.total());
    let started = now();
    let err = &mut *cx.err;
    let mut tell = |notice: Notice<'_>| match notice {
        Notice::First(case, came) => {
            let seconds = started.elapsed().as_secs_f64();
            let rest = format!("{case}  {came}  [{seconds:.2}s]");
            progress.say(err, &style.status(Tone::Plain, "First", &rest));
        }
        Notice::Stage { what, done, total } => progress.stage(what, done, total),
        Notice::Enumerated(done) => progress.say(err, &certificate::brief(style, done)),
        Notice::Done { done, failures, scenario } => progress.done(err, done, failures, scenario),
        Notice::Found(failure) => progress.say(err, &found(style, failure, handling)),
        Notice::Hung(case) => {
            let rest = format!("{case}  has run for 60 s of wall clock; it is given up");
            progress.say(err, &style.status(Tone::Bad, "HANGS", &rest));
        }
    };
    let search = Search::new(&cx.catalogue, cx.pipeline, request.clone(), &INTERRUPTED, &mut tell);
    let searched = strategies::run(search, searches);
    progress.end();
    searched
}

/// Writes a failure down at once, and says that it was found.
fn found(style: text::Style, failure: &Failure, handling: &Handling) -> String {
    let Failure { example, invariant, .. } = failure;
    let told = match handling.found(failure) {
        Ok(_) => "told at the end".to_owned(),
        Err(error) => format!("{} cannot be written: {error}", handling.pending.0.display()),
    };
    let rest = format!("{example}  {} {}  ({told})", invariant.id, invariant.name);
    style.status(Tone::Bad, "VIOLATED", &rest)
}

/// Replays on a thread of its own, which is given up when a run never ends.
pub(super) fn ask(
    cx: &Context<'_>,
    index: usize,
    contract: &Arc<Contract>,
    question: Question,
) -> Result<Answer, CliError> {
    on_trial(cx, index, contract, &question, |trial, question| replay_on(trial, question, Budget::RUNS))
}

/// What becomes of each failure.
fn handling(cx: &Context<'_>, args: &ExploreArgs, commit: Option<&str>) -> Handling {
    let shelf = Shelf::at(&cx.catalogue, args.cases.as_deref(), &args.artifacts);
    Handling {
        shrink: (!args.no_shrink).then_some(args.shrink_time),
        pending: Pending(shelf.pending),
        commit: commit.map(str::to_owned),
    }
}

fn write_files(
    cx: &mut Context<'_>,
    args: &ExploreArgs,
    done: &Exploration,
    told: Vec<Told>,
    certificates: &[Certificate],
) -> Vec<Told> {
    let mut told = told;
    let written = write_certificates(&args.artifacts, certificates).and_then(|()| {
        if told.is_empty() {
            // The files of the last failure stay where they are.
            return Ok(());
        }
        let folder = Folder::create(&args.artifacts)?;
        for one in &mut told {
            one.artifacts = Some(folder.write(&one.of(done), done.runs)?);
        }
        folder.prune();
        Ok(())
    });
    if let Err(error) = written {
        let rest =
            format!("the files of this run cannot be written to {}: {error}", args.artifacts.display());
        cx.note(&cx.err_style.status(Tone::Warn, "NO FILES", &rest));
    }
    told
}

fn code_of(done: &Exploration) -> u8 {
    let mut codes = vec![];
    let mut when = |condition: bool, code: u8| {
        if condition {
            codes.push(code);
        }
    };
    when(done.differing > 0, exit::DIFFERS);
    when(done.harness > 0, exit::HARNESS);
    when(done.violated > 0, exit::VIOLATED);
    // A scenario asks for more than any workflow could survive.
    when(done.invalid > 0, exit::USAGE);
    when(done.undecided > 0 || done.interrupted, exit::UNDECIDED);
    when(done.runs == 0, exit::NOTHING);
    exit::worst(&codes)
}

fn report(cx: &mut Context<'_>, told: &[Told], explored: &Explored<'_>) {
    let (style, done) = (cx.out_style, explored.done);
    if cx.format == Format::Json {
        for one in told {
            cx.print(&json::failure(&one.of(done), done.runs));
        }
        for never in explored.never() {
            cx.print(&json::never(&never));
        }
        for one in explored.certificates {
            cx.print(&certificate::json(one));
        }
        if explored.is_whole {
            for excluded in &done.coverage.excluded {
                cx.print(&json::excluded(excluded));
            }
        }
        for result in json::results(explored) {
            cx.print(&result);
        }
        cx.print(&json::summary(explored));
        return;
    }
    for (n, one) in told.iter().enumerate() {
        let failure = one.of(done);
        let is_github = cx.format == Format::Github;
        if is_github {
            cx.print(&github::group(&format!("VIOLATED {}", failure.failure.example)));
        }
        for line in text::failure(style, &failure, done.runs) {
            cx.print(&line);
        }
        if is_github {
            cx.print(github::END);
        }
        if is_github && n < github::ANNOTATIONS_MAX {
            cx.print(&github::error(&failure));
        }
        cx.print("");
    }
    for line in certificate::texts(style, explored.certificates) {
        cx.print(&line);
    }
    for line in text::scenarios(style, explored).into_iter().chain(text::summary(style, explored)) {
        cx.print(&line);
    }
}
