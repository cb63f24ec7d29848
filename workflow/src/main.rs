//! `cargo workflow`: shows what waits for a person, and takes what they decide.
#![forbid(unsafe_code)]

use std::process::ExitCode;

#[cfg(not(madsim))]
fn main() -> ExitCode {
    let now = workflow::Clock::system().now();
    let args = std::env::args_os();
    ExitCode::from(workflow::cli::run(args, now, &mut std::io::stdout(), &mut std::io::stderr()))
}

#[cfg(madsim)]
fn main() -> ExitCode {
    eprintln!("error: this program was built with `cfg(madsim)`: it would work in a simulated world");
    ExitCode::from(70)
}
