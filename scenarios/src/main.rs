//! `cargo sim`: explores the catalogue, replays a case, lists what there is.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    sim::cli::main(scenarios::catalogue())
}
