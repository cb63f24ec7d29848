//! The arguments, and what `--help` says about them.

use crate::enumerate::DEPTH_MAX;
use crate::progress::Show;
use crate::seeds::Shard;
use crate::strategies::Strategy;
use clap::{Parser, Subcommand, ValueEnum};
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

/// Runs a workflow under simulated network, clock and disk, injects faults from a seed, and finds duplicates
/// and lost records.
#[derive(Debug, Parser)]
#[command(name = "cargo-sim", bin_name = "cargo sim", version, max_term_width = 100)]
#[command(after_help = EXITS, disable_help_subcommand = true)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// When to use colours; NO_COLOR and CLICOLOR_FORCE are obeyed
    #[arg(
        long,
        global = true,
        value_enum,
        default_value = "auto",
        value_name = "WHEN",
        help_heading = "Output"
    )]
    pub color: When,
    /// Draw with ASCII only
    #[arg(long, global = true, help_heading = "Output")]
    pub ascii: bool,
    /// How data is printed [default: text, github where GITHUB_ACTIONS is set]
    #[arg(long, global = true, value_enum, help_heading = "Output")]
    pub format: Option<Format>,
}

const EXITS: &str = "Exit codes:
   0  everything held
   1  an invariant is violated
   2  wrong usage or contract
   3  undecided: a limit was hit, nothing is violated
   4  nothing ran
   5  not deterministic: one seed, two histories
   6  a canary was not caught, or a known failure holds
   7  with --strict: a goal was never reached, a fault never struck where it can, or a case is stale
  70  the harness failed, or this build cannot simulate";

const SEEDS_HELP: &str = "Seeds:
  7    0x2f8c    3,9,12    0..1000    0..=999    a commit's hash
  5000@COMMIT    5,000 seeds that differ from commit to commit";

const MUTANTS_HELP: &str = "A mutant that no strategy kills is a failure: exit 1.
In CI, where minutes count: cargo sim mutants --starts 1";

/// When colours are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// On a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// How data is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// JSON Lines
    Json,
    /// Text with groups and annotations of GitHub Actions
    Github,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run many seeds, find failures
    #[command(after_help = SEEDS_HELP)]
    Explore(ExploreArgs),
    /// Tell one run in full; run it twice and compare
    Replay(ReplayArgs),
    /// Shrink a failure to the smallest plan that still has it
    Shrink(ShrinkArgs),
    /// Show a finished run again, from its files
    Show(ShowArgs),
    /// Commit a failure: from the pending cases to the committed ones
    Keep(KeepArgs),
    /// Forget a pending case
    Drop(DropArgs),
    /// Run a case file once and print what happens, for another process of this program
    #[command(hide = true)]
    Again(AgainArgs),
    /// List scenarios, contracts, mutants, invariants and cases
    List(ListArgs),
    /// Hunt every known mistake; each must be killed by its invariant
    #[command(after_help = MUTANTS_HELP)]
    Mutants(MutantsArgs),
    /// See that contracts are valid, canaries are caught, and runs repeat
    Check(CheckArgs),
    /// Measure what a run costs
    Bench(BenchArgs),
}

/// Arguments of `explore`.
#[derive(Debug, clap::Args)]
pub struct ExploreArgs {
    /// Scenarios, or scenario/contract; all when none is named
    #[arg(value_name = "SCENARIO")]
    pub scenarios: Vec<String>,
    /// The seeds: one run each of `swarm`; for each four of them `pct` and `guided` make one more
    #[arg(long, default_value = "0..2000")]
    pub seeds: String,
    /// Start no seed after this time; what ran counts (30s, 10m)
    #[arg(long, value_parser = humantime::parse_duration)]
    pub time: Option<Duration>,
    /// Run the third eighth of the seeds: 3/8
    #[arg(long, default_value = "1/1", value_name = "M/N")]
    pub shard: Shard,
    /// Threads [default: cores]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// Only these kinds of faults (lose-response,kill), or none
    #[arg(long, value_name = "KINDS")]
    pub faults: Option<String>,
    /// Only these ways to find plans [default: all, in this order; `enumerate` first, whatever the seeds]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAMES")]
    pub strategy: Vec<Strategy>,
    /// Faults that `enumerate` adds at once: singles, pairs, triples
    #[arg(long, default_value = "2", value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(DEPTH_MAX)))]
    pub depth: u32,
    /// Run the workflow with one known mistake
    #[arg(long, value_name = "NAME")]
    pub mutant: Option<String>,
    /// Limit of steps of one run; reaching it is undecided
    #[arg(long, default_value = "20000", value_name = "N")]
    pub steps_max: NonZeroU32,
    /// Stop after so many distinct failures
    #[arg(long, default_value = "5", value_name = "N", conflicts_with = "keep_going")]
    pub max_failures: NonZeroUsize,
    /// Run every seed, however many failures there are
    #[arg(long)]
    pub keep_going: bool,
    /// Exit with 7 when a goal was never reached; over everything, also when an invariant was never evaluated
    /// or a fault never struck where it can
    #[arg(long)]
    pub strict: bool,
    /// A shard without a seed is no error
    #[arg(long)]
    pub allow_empty: bool,
    /// Tell failures as they were found
    #[arg(long)]
    pub no_shrink: bool,
    /// The longest that shrinking one failure may take
    #[arg(long, default_value = "30s", value_parser = humantime::parse_duration, value_name = "TIME")]
    pub shrink_time: Duration,
    /// The folder of committed cases, which run first [default: cases/ beside the scenarios]
    #[arg(long, value_name = "DIR")]
    pub cases: Option<PathBuf>,
    /// Where the files of failures are written
    #[arg(long, default_value = "target/in-doubt", value_name = "DIR")]
    pub artifacts: PathBuf,
    /// How progress is shown
    #[arg(long, value_enum, default_value = "auto", value_name = "HOW", help_heading = "Output")]
    pub show_progress: Show,
}

/// Arguments of `replay`.
#[derive(Debug, clap::Args)]
pub struct ReplayArgs {
    /// The case, as a report names it (scenario/contract@seed), or a case file
    #[arg(value_name = "CASE|FILE")]
    pub case: String,
    /// Where cases are kept
    #[command(flatten)]
    pub folders: Folders,
    /// Run the workflow with one known mistake
    #[arg(long, value_name = "NAME")]
    pub mutant: Option<String>,
    /// Only these kinds of faults, as they were explored with
    #[arg(long, value_name = "KINDS")]
    pub faults: Option<String>,
    /// Limit of steps
    #[arg(long, default_value = "20000", value_name = "N")]
    pub steps_max: NonZeroU32,
    /// Tell the run as it was drawn or written down, without trying what it needs
    #[arg(long)]
    pub all_faults: bool,
    /// What if: leave this fault out
    #[arg(long, value_name = "N")]
    pub without_fault: Option<NonZeroU32>,
    /// Tell nothing after this step
    #[arg(long, value_name = "N")]
    pub until_step: Option<NonZeroU32>,
    /// Run once, compare nothing
    #[arg(long)]
    pub once: bool,
    /// Which decision settled it: draw everything after each anew, so many times [default: 30]
    #[arg(long, value_name = "RUNS", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "30", conflicts_with = "verbose")]
    pub likelihood: Option<NonZeroU32>,
    /// Print every event too
    #[arg(long, short)]
    pub verbose: bool,
}

/// Arguments of `shrink`.
#[derive(Debug, clap::Args)]
pub struct ShrinkArgs {
    /// The case, as a report names it (scenario/contract@seed), or a case file
    #[arg(value_name = "CASE|FILE")]
    pub case: String,
    /// Where cases are kept
    #[command(flatten)]
    pub folders: Folders,
    /// Run the workflow with one known mistake
    #[arg(long, value_name = "NAME")]
    pub mutant: Option<String>,
    /// Only these kinds of faults, as they were explored with
    #[arg(long, value_name = "KINDS")]
    pub faults: Option<String>,
    /// Limit of steps
    #[arg(long, default_value = "20000", value_name = "N")]
    pub steps_max: NonZeroU32,
    /// End it after this time [default: after 1,000 runs]
    #[arg(long, value_parser = humantime::parse_duration)]
    pub time: Option<Duration>,
}

/// Arguments of `show`.
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// A case, a case file, or the folder of a run: target/in-doubt/latest
    #[arg(value_name = "CASE|FILE|FOLDER")]
    pub what: String,
    /// Where cases are kept
    #[command(flatten)]
    pub folders: Folders,
    /// The run with this known mistake
    #[arg(long, value_name = "NAME")]
    pub mutant: Option<String>,
    /// Every event
    #[arg(long, conflicts_with = "ledger")]
    pub history: bool,
    /// Every effect at the destination
    #[arg(long)]
    pub ledger: bool,
    /// One event in full
    #[arg(long, value_name = "N", conflicts_with_all = ["history", "ledger"])]
    pub step: Option<NonZeroU32>,
}

/// Arguments of `keep`.
#[derive(Debug, clap::Args)]
pub struct KeepArgs {
    /// A pending case by its name, its file or its seed; another seed is run and shrunk first
    #[arg(value_name = "CASE|FILE")]
    pub case: String,
    /// Where cases are kept
    #[command(flatten)]
    pub folders: Folders,
    /// The known mistake that it was found with
    #[arg(long, value_name = "NAME")]
    pub mutant: Option<String>,
    /// The name of the committed file
    #[arg(long = "as", value_name = "NAME")]
    pub name: Option<String>,
    /// It is known and open, and this is where: `explore` fails once it holds
    #[arg(long, value_name = "TEXT")]
    pub issue: Option<String>,
}

/// Arguments of `drop`.
#[derive(Debug, clap::Args)]
pub struct DropArgs {
    /// A pending case by its name, its file or its seed
    #[arg(value_name = "CASE|FILE")]
    pub case: String,
    /// Where cases are kept
    #[command(flatten)]
    pub folders: Folders,
    /// The known mistake that it was found with
    #[arg(long, value_name = "NAME")]
    pub mutant: Option<String>,
}

/// Arguments of `again`.
#[derive(Debug, clap::Args)]
pub struct AgainArgs {
    /// The case file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Limit of steps
    #[arg(long, default_value = "20000", value_name = "N")]
    pub steps_max: NonZeroU32,
}

/// Where cases are kept.
#[derive(Clone, Debug, clap::Args)]
pub struct Folders {
    /// The folder of committed cases [default: cases/ beside the scenarios]
    #[arg(long, value_name = "DIR")]
    pub cases: Option<PathBuf>,
    /// Where the files of failures are, and cases that are not committed
    #[arg(long, default_value = "target/in-doubt", value_name = "DIR")]
    pub artifacts: PathBuf,
}

/// Arguments of `list`.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Tell these scenarios in full
    #[arg(value_name = "SCENARIO")]
    pub scenarios: Vec<String>,
}

/// Arguments of `mutants`.
#[derive(Debug, clap::Args)]
pub struct MutantsArgs {
    /// Mutants; all when none is named
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Only these strategies [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub strategy: Vec<String>,
    /// Starts of a strategy that draws: other seeds each time
    #[arg(long, default_value = "20", value_name = "N")]
    pub starts: NonZeroU64,
    /// Plans that a start may take
    #[arg(long, default_value = "2000", value_name = "N")]
    pub budget: NonZeroU64,
    /// Threads [default: cores]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// How progress is shown
    #[arg(long, value_enum, default_value = "auto", value_name = "HOW", help_heading = "Output")]
    pub show_progress: Show,
}

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// Compare the runs of so many seeds with those of a second process, and check nothing else
    #[arg(long, value_name = "N")]
    pub against_process: Option<NonZeroU64>,
    /// Print what came of so many seeds, a line each: what the second process does
    #[arg(long, value_name = "N", hide = true, conflicts_with = "against_process")]
    pub results: Option<NonZeroU64>,
}

/// Arguments of `bench`.
#[derive(Debug, clap::Args)]
pub struct BenchArgs {
    /// Time for each measurement
    #[arg(long, default_value = "2s", value_parser = humantime::parse_duration)]
    pub time: Duration,
    /// Requests a run
    #[arg(long, default_value = "1,10,100,1000", value_delimiter = ',', value_name = "N,N")]
    pub requests: Vec<NonZeroU32>,
    /// Only these variants
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub variants: Vec<String>,
}
