//! The arguments, and what `--help` says about them.

use crate::progress::Show;
use crate::seeds::Shard;
use clap::{Parser, Subcommand, ValueEnum};
use std::num::{NonZeroU32, NonZeroUsize};
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
   6  the canary was not caught
   7  with --strict: a goal was never reached, or a fault never struck where it can
  70  the harness failed, or this build cannot simulate";

const SEEDS_HELP: &str = "Seeds:
  7    0x2f8c    3,9,12    0..1000    0..=999    a commit's hash
  5000@COMMIT    5,000 seeds that differ from commit to commit";

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
    /// List scenarios, contracts, mutants and invariants
    List(ListArgs),
    /// See that contracts are valid, a canary is caught, and runs repeat
    Check,
    /// Measure what a run costs
    Bench(BenchArgs),
}

/// Arguments of `explore`.
#[derive(Debug, clap::Args)]
pub struct ExploreArgs {
    /// Scenarios, or scenario/contract; all when none is named
    #[arg(value_name = "SCENARIO")]
    pub scenarios: Vec<String>,
    /// The seeds; one seed is one run
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
    /// Exit with 7 when a goal was never reached, an invariant never evaluated, or a fault never struck where
    /// it can
    #[arg(long)]
    pub strict: bool,
    /// A shard without a seed is no error
    #[arg(long)]
    pub allow_empty: bool,
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
    /// The case, as a report names it: scenario/contract@seed
    #[arg(value_name = "CASE")]
    pub case: String,
    /// Run the workflow with one known mistake
    #[arg(long, value_name = "NAME")]
    pub mutant: Option<String>,
    /// Only these kinds of faults, as they were explored with
    #[arg(long, value_name = "KINDS")]
    pub faults: Option<String>,
    /// Limit of steps
    #[arg(long, default_value = "20000", value_name = "N")]
    pub steps_max: NonZeroU32,
    /// Tell the run with all faults that the seed drew, needed or not
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
    /// Print every event too
    #[arg(long, short)]
    pub verbose: bool,
}

/// Arguments of `list`.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Tell these scenarios in full
    #[arg(value_name = "SCENARIO")]
    pub scenarios: Vec<String>,
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
