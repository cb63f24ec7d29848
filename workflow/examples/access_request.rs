//! The access-request workflow on real sockets and a real file, against a help desk on this machine.
//!
//! ```text
//! cargo run -p in-doubt-workflow --example access_request -- --lose-responses 1
//! ```
//! It prints the `curl` lines to type next. The desk follows one of the declared contracts and lives in this
//! process, but its memory is a file of its own: it outlives a `kill -9` as a system somewhere else would.

#[cfg(not(madsim))]
mod support;

/// In the simulated build there is no real socket to serve on.
#[cfg(madsim)]
fn main() -> std::process::ExitCode {
    eprintln!("error: this example needs real sockets, and this build has simulated ones");
    eprintln!("  help: cargo run -p in-doubt-workflow --example access_request");
    std::process::ExitCode::from(70)
}

#[cfg(not(madsim))]
#[tokio::main]
async fn main() -> std::process::ExitCode {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_target(false).init();
    match support::run().await {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {}", failure.why);
            std::process::ExitCode::from(failure.exit)
        }
    }
}
