//! The arguments: few, read by hand, each mistake named with the option that it is in.

use super::Failure;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// What the example is to do.
pub(crate) struct Args {
    /// The intake's port.
    pub(crate) port: u16,
    /// The port of the desk in this process.
    pub(crate) desk_port: u16,
    /// A desk elsewhere, `host:port`.
    pub(crate) desk: Option<String>,
    /// A contract's id, or a file.
    pub(crate) contract: String,
    /// The workflow's store.
    pub(crate) store: Option<PathBuf>,
    /// How many creates the desk does not answer.
    pub(crate) lose_responses: u32,
    /// How long the desk takes over a create.
    pub(crate) desk_takes: Duration,
}

/// What was asked for.
pub(crate) enum Parsed {
    /// The text of `--help`.
    Help,
    /// Serving.
    Run(Args),
}

const OPTIONS: [&str; 7] =
    ["--port", "--desk-port", "--desk", "--contract", "--store", "--lose-responses", "--desk-takes"];

impl Default for Args {
    fn default() -> Self {
        Args {
            port: 8917,
            desk_port: 8918,
            desk: None,
            contract: "zendesk_ticket".into(),
            store: None,
            lose_responses: 0,
            desk_takes: Duration::from_millis(200),
        }
    }
}

impl Args {
    /// The store's file: one for each contract, unless it is named.
    pub(crate) fn store_path(&self) -> PathBuf {
        let name = self.contract.rsplit('/').next().unwrap_or_default().trim_end_matches(".toml");
        self.store.clone().unwrap_or_else(|| format!("target/access_request/{name}.db").into())
    }
}

/// What `--help` prints.
pub(crate) fn help() -> &'static str {
    "Serves the access-request workflow against a help desk on this machine.\n\n\
     Usage: cargo run -p in-doubt-workflow --example access_request -- [OPTIONS]\n\n\
     Options:\n  \
     --contract ID|FILE.toml  what the desk declares [default: zendesk_ticket]\n  \
     --lose-responses N       the desk does not answer its first N creates [default: 0]\n  \
     --desk-takes TIME        how long the desk takes over a create [default: 200ms]\n  \
     --port N                 where deliveries arrive [default: 8917]\n  \
     --desk-port N            where the desk listens [default: 8918]\n  \
     --desk HOST:PORT         a desk that runs elsewhere; none is started here\n  \
     --store FILE             the workflow's store [default: target/access_request/CONTRACT.db]\n  \
     --help                   this text\n"
}

/// Reads the arguments.
pub(crate) fn parse(words: impl Iterator<Item = String>) -> Result<Parsed, Failure> {
    let mut args = Args::default();
    let mut words = words;
    let mut for_our_desk = None;
    while let Some(word) = words.next() {
        if matches!(word.as_str(), "--help" | "-h") {
            return Ok(Parsed::Help);
        }
        let (option, value) = match word.split_once('=') {
            Some((option, value)) => (option.to_owned(), Some(value.to_owned())),
            None => (word, None),
        };
        if !OPTIONS.contains(&option.as_str()) {
            return Err(Failure::usage(format!("`{option}` is no option\n  help: --help lists them")));
        }
        let value = value.or_else(|| words.next()).filter(|value| !value.is_empty());
        let value = value.ok_or_else(|| Failure::usage(format!("{option} needs a value")))?;
        if matches!(option.as_str(), "--desk-port" | "--lose-responses" | "--desk-takes") {
            for_our_desk = Some(option.clone());
        }
        set(&mut args, &option, value)?;
    }
    match (&args.desk, for_our_desk) {
        (Some(_), Some(option)) => {
            Err(Failure::usage(format!("{option} is about the desk in this process; --desk names another")))
        }
        _ if args.port == args.desk_port && args.desk.is_none() => {
            Err(Failure::usage("--port and --desk-port are the same"))
        }
        _ => Ok(Parsed::Run(args)),
    }
}

fn set(args: &mut Args, option: &str, value: String) -> Result<(), Failure> {
    match option {
        "--port" => args.port = number(option, &value)?,
        "--desk-port" => args.desk_port = number(option, &value)?,
        "--lose-responses" => args.lose_responses = number(option, &value)?,
        "--desk-takes" => {
            let time = humantime::parse_duration(&value)
                .map_err(|e| Failure::usage(format!("{option} {value}: {e}\n  help: 200ms, 5s")))?;
            if time > Duration::from_secs(60) {
                return Err(Failure::usage(format!("{option} {value}: at most 1m")));
            }
            args.desk_takes = time;
        }
        "--desk" => {
            let port = value.rsplit_once(':').filter(|(host, _)| !host.is_empty());
            if port.is_none_or(|(_, port)| port.parse::<u16>().is_err()) {
                return Err(Failure::usage(format!("{option} {value}: not HOST:PORT")));
            }
            args.desk = Some(value);
        }
        "--store" => args.store = Some(value.into()),
        _ => args.contract = value,
    }
    Ok(())
}

fn number<T: FromStr>(option: &str, value: &str) -> Result<T, Failure>
where
    T::Err: std::fmt::Display,
{
    value.parse().map_err(|e| Failure::usage(format!("{option} {value}: {e}")))
}
