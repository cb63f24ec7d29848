//! The command line: `explore`, `replay`, `shrink`, `show`, `keep`, `drop`, `list`, `mutants`, `check` and
//! `bench`.
//! Data on stdout, all else on stderr.

mod again;
mod args;
mod artifacts;
mod bench;
mod canaries;
mod cases;
mod check;
mod choose;
mod drop;
mod explore;
mod failures;
mod github;
mod keep;
mod likelihood;
mod list;
mod mutants;
mod pending;
mod place;
mod replay;
mod show;
mod shrink;
mod subject;
mod twin;

pub use args::{Args, Format};

use crate::catalogue::Catalogue;
use crate::confirm::Start;
use crate::pipeline::Pipeline;
use crate::report::text::{Style, count};
use args::Command;
use clap::Parser as _;
use place::Place;
use std::ffi::OsString;
use std::io::{ErrorKind, IsTerminal as _, Write};
use std::process::ExitCode;
use std::sync::Arc;

/// Exit codes; scripts depend on them.
pub mod exit {
    /// Everything held.
    pub const HELD: u8 = 0;
    /// An invariant is violated.
    pub const VIOLATED: u8 = 1;
    /// Wrong usage, configuration or contract.
    pub const USAGE: u8 = 2;
    /// A limit was hit; nothing is violated.
    pub const UNDECIDED: u8 = 3;
    /// Nothing ran.
    pub const NOTHING: u8 = 4;
    /// One seed, two histories.
    pub const DIFFERS: u8 = 5;
    /// The expected did not happen.
    pub const UNEXPECTED: u8 = 6;
    /// A goal was never reached, or a fault never struck, where that counts.
    pub const GAP: u8 = 7;
    /// The harness failed, or cannot simulate in this build.
    pub const HARNESS: u8 = 70;

    /// The worst of several.
    pub fn worst(codes: &[u8]) -> u8 {
        let order = [DIFFERS, HARNESS, VIOLATED, UNEXPECTED, USAGE, GAP, UNDECIDED, NOTHING];
        order.into_iter().find(|code| codes.contains(code)).unwrap_or(HELD)
    }
}

/// Why a command could not do its work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CliError {
    /// The exit code.
    pub code: u8,
    /// What is wrong.
    pub message: String,
    /// What to do, a line each.
    pub help: Vec<String>,
}

impl CliError {
    fn usage(message: impl Into<String>, help: impl Into<String>) -> Self {
        CliError { code: exit::USAGE, message: message.into(), help: vec![help.into()] }
    }

    fn lines(&self) -> Vec<String> {
        let help = self.help.iter().map(|line| format!("  help: {line}"));
        std::iter::once(format!("error: {}", self.message)).chain(help).collect()
    }
}

/// Runs the command that the arguments name, on these scenarios.
///
/// This is the whole `main` of a program that simulates: `sim::cli::main(catalogue())`.
pub fn main(catalogue: Catalogue) -> ExitCode {
    ExitCode::from(main_as(catalogue, std::env::args_os(), place::own_program))
}

/// As [`main`], for a program that is started in another way: with its arguments, its own name first, and
/// with the way to start it again. The exit code.
pub fn main_as(catalogue: Catalogue, arguments: impl IntoIterator<Item = OsString>, start: Start) -> u8 {
    let args = Args::parse_from(arguments);
    let place = Place { start: Some(start), ..Place::read() };
    // Not locked: the simulator itself writes to standard error from other threads when a task panics.
    let (mut out, mut err) = (std::io::stdout(), std::io::stderr());
    let terminals = Terminals { out: out.is_terminal(), err: err.is_terminal() };
    let pipeline = Pipeline::real();
    run(catalogue, pipeline, &args, &place, terminals, &mut out, &mut err)
}

/// Which of the two streams a person watches.
#[derive(Clone, Copy, Default)]
struct Terminals {
    out: bool,
    err: bool,
}

fn run(
    catalogue: Catalogue,
    pipeline: Option<Pipeline>,
    args: &Args,
    place: &Place,
    terminals: Terminals,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let style = |is_terminal| Style {
        color: place.color(args.color, is_terminal),
        ascii: args.ascii || place.wants_ascii,
    };
    let Some(command) = &args.command else {
        for line in explain(&catalogue) {
            if writeln!(out, "{}", style(terminals.out).line(&line)).is_err() {
                return exit::HARNESS;
            }
        }
        return exit::HELD;
    };
    let Some(pipeline) = pipeline else {
        complain(err, style(terminals.err), &place.refusal());
        return exit::HARNESS;
    };
    let mut cx = Context {
        catalogue: Arc::new(catalogue),
        pipeline,
        format: args.format.unwrap_or(if place.is_github { Format::Github } else { Format::Text }),
        out_style: style(terminals.out),
        err_style: style(terminals.err),
        err_is_terminal: terminals.err,
        start: place.start,
        out,
        err,
        out_error: None,
    };
    let done = match command {
        Command::Explore(args) => explore::run(&mut cx, args),
        Command::Replay(args) => replay::run(&mut cx, args),
        Command::Shrink(args) => shrink::run(&mut cx, args),
        Command::Show(args) => show::run(&mut cx, args),
        Command::Keep(args) => keep::run(&mut cx, args),
        Command::Drop(args) => drop::run(&mut cx, args),
        Command::Again(args) => again::run(&mut cx, args),
        Command::List(args) => list::run(&mut cx, args),
        Command::Mutants(args) => mutants::run(&mut cx, args),
        Command::Check(args) => check::run(&mut cx, args),
        Command::Bench(args) => bench::run(&mut cx, args),
    };
    match done.and_then(|code| cx.written().map(|()| code)) {
        Ok(code) => code,
        Err(error) => {
            complain(cx.err, cx.err_style, &error);
            error.code
        }
    }
}

fn complain(err: &mut dyn Write, style: Style, error: &CliError) {
    for line in error.lines() {
        // Where standard error is closed, the exit code still tells.
        let _ = writeln!(err, "{}", style.line(&line));
    }
}

/// What a command works with.
struct Context<'a> {
    catalogue: Arc<Catalogue>,
    pipeline: Pipeline,
    format: Format,
    out_style: Style,
    err_style: Style,
    err_is_terminal: bool,
    start: Option<Start>,
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    out_error: Option<std::io::Error>,
}

impl Context<'_> {
    /// A line of data.
    fn print(&mut self, line: &str) {
        if self.out_error.is_none() {
            self.out_error = writeln!(self.out, "{line}").err();
        }
    }

    /// A line for who watches.
    fn note(&mut self, line: &str) {
        // Where standard error is closed, nobody watches.
        let _ = writeln!(self.err, "{line}");
    }

    /// Whether all data could be written; a reader that has gone away (`| head`) has read what it wanted.
    fn written(&mut self) -> Result<(), CliError> {
        let error = self.out_error.take().or_else(|| self.out.flush().err());
        match error {
            Some(error) if error.kind() != ErrorKind::BrokenPipe => Err(CliError {
                code: exit::HARNESS,
                message: format!("standard output cannot be written: {error}"),
                help: vec!["what was printed is not complete".into()],
            }),
            _ => Ok(()),
        }
    }
}

/// What `cargo sim` alone says.
fn explain(catalogue: &Catalogue) -> Vec<String> {
    let mutants = choose::mutants(catalogue);
    let contracts = choose::contracts(catalogue);
    let example = mutants.first().map(|(mutant, _)| mutant.name);
    let mut lines: Vec<String> = [
        &format!("in-doubt {}: does a workflow stay right when it cannot know what happened?", VERSION),
        "",
        "A seed draws a scenario, a contract, a workload and faults. The real workflow runs",
        "against a fake destination whose ledger is the truth; invariants compare the two.",
        "",
        "  cargo sim explore       many seeds, find failures",
        "  cargo sim replay CASE   one run, told in full; run twice and compared",
        "  cargo sim shrink CASE   the smallest plan with the same failure",
        "  cargo sim show CASE     a finished run again, from its files",
        "  cargo sim keep CASE     commit a failure as a case; `drop` forgets it",
        "  cargo sim list          scenarios, contracts, mutants, invariants, cases",
        "  cargo sim mutants       each known mistake must be found: the kill matrix",
        "  cargo sim check         contracts are valid, canaries are caught, runs repeat",
        "  cargo sim bench         what a run costs",
        "",
    ]
    .iter()
    .map(|line| line.to_string())
    .collect();
    lines.push(format!(
        "Here are {}, {} and {}. Type next:",
        count(catalogue.scenarios.len() as u64, "scenario"),
        count(contracts.len() as u64, "contract"),
        count(mutants.len() as u64, "mutant"),
    ));
    lines.push(String::new());
    lines.push("  cargo sim explore --seeds 0..2000".into());
    if let Some(mutant) = example {
        lines.push(format!("  cargo sim explore --mutant {mutant}   (a known mistake: see it found)"));
    }
    lines
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[cfg(test)]
mod tests;
