//! The arguments, and what `--help` says about them.

use crate::clock::Timestamp;
use clap::{Parser, Subcommand, ValueEnum};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

const EXITS: &str = "Times are RFC 3339, such as 2026-01-05T09:00:00Z.

Exit codes:
  0  done
  1  refused by the service's rules, the gate is closed, or the records are not as they were written
  2  wrong usage
  3  the service, the store or a file cannot be reached or read";

/// Serves a workflow, shows what waits for a person, takes what they decide, and checks the records.
#[derive(Debug, Parser)]
#[command(name = "cargo-workflow", bin_name = "cargo workflow", version, max_term_width = 100)]
#[command(after_help = EXITS, disable_help_subcommand = true)]
pub(super) struct Args {
    /// What to do.
    #[command(subcommand)]
    pub(super) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// The cases that people own
    #[command(subcommand)]
    Queue(Queue),
    /// What contradicts the records
    Discrepancies {
        /// The running service's address, HOST:PORT
        #[arg(long, value_name = "ADDRESS")]
        service: String,
        /// How it is printed
        #[arg(long, value_enum, default_value = "text")]
        format: Format,
    },
    /// Compare the records with the destination's, both ways; 1 where something is open or unread
    Reconcile {
        /// The running service's address, HOST:PORT
        #[arg(long, value_name = "ADDRESS")]
        service: String,
        /// How it is printed
        #[arg(long, value_enum, default_value = "text")]
        format: Format,
    },
    /// Say of a discrepancy that it is explained, or accepted
    Settle {
        /// Its id
        id: String,
        /// What is said of it
        #[arg(long = "as", value_enum)]
        said: Said,
        /// The running service's address, HOST:PORT
        #[arg(long, value_name = "ADDRESS")]
        service: String,
        /// Who says so
        #[arg(long, value_name = "WHO")]
        by: String,
        /// Why
        #[arg(long, value_name = "WHY")]
        reason: String,
    },
    /// Whether a file is a workflow, and what its contract guarantees
    Check {
        /// The workflow's file, `access_request.toml`
        file: PathBuf,
    },
    /// What people do in each situation, as Markdown, beside what the simulator observed
    Runbook(RunbookArgs),
    /// Serve a workflow until Ctrl-C
    Serve(ServeArgs),
    /// Walk the hash chain of the records
    Verify {
        /// The store's file
        #[arg(long, value_name = "FILE")]
        store: String,
    },
}

/// What the runbook is made of.
#[derive(Debug, clap::Args)]
pub(super) struct RunbookArgs {
    /// The workflow's file, `access_request.toml`
    pub(super) file: PathBuf,
    /// What `cargo sim explore --format json` printed
    #[arg(long, value_name = "FILE")]
    pub(super) results: Option<PathBuf>,
    /// Exit code 1 while a decision has no owner, or the results are missing, violated, or of another
    /// contract or workflow
    #[arg(long)]
    pub(super) gate: bool,
    /// Where it is written; without it, standard output
    #[arg(long, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
}

/// What is served, and where.
#[derive(Debug, clap::Args)]
pub(super) struct ServeArgs {
    /// The workflow's file, `access_request.toml`
    pub(super) file: PathBuf,
    /// The store's file; it is made where it does not exist
    #[arg(long, value_name = "FILE")]
    pub(super) store: PathBuf,
    /// The destination
    #[arg(long, value_name = "HOST:PORT", value_parser = host_and_port)]
    pub(super) destination: String,
    /// Where deliveries and decisions arrive; neither is authenticated, so this machine alone reaches it
    /// unless another address is named
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:0")]
    pub(super) listen: SocketAddr,
    /// The environment variable with the destination's credentials, a header line such as
    /// `Authorization: Bearer ...`
    #[arg(long, value_name = "NAME")]
    pub(super) credentials_env: Option<String>,
    /// Refuse to start while the gate of the runbook is closed
    #[arg(long)]
    pub(super) require_gate: bool,
    /// What `cargo sim explore --format json` printed
    #[arg(long, value_name = "FILE", requires = "require_gate")]
    pub(super) results: Option<PathBuf>,
}

/// What to do with the queue.
#[derive(Debug, Subcommand)]
pub(super) enum Queue {
    /// The open cases, the earliest deadline first
    List {
        #[command(flatten)]
        at: At,
        /// Those that rest, too
        #[arg(long)]
        all: bool,
        /// How it is printed
        #[arg(long, value_enum, default_value = "text")]
        format: Format,
    },
    /// All that is known of one operation, and what can be done about it
    Show {
        /// Its key, R17:create-ticket:v1
        operation: String,
        #[command(flatten)]
        at: At,
        /// How it is printed
        #[arg(long, value_enum, default_value = "text")]
        format: Format,
    },
    /// Something that a person decides.
    #[command(flatten)]
    Act(Act),
}

/// Where to read: a running service, or the file of its store beside it.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(super) struct At {
    /// The running service's address, HOST:PORT
    #[arg(long, value_name = "ADDRESS")]
    pub(super) service: Option<String>,
    /// The store's file; without the service, what its workflow permits is not known
    #[arg(long, value_name = "FILE")]
    pub(super) store: Option<String>,
}

/// How data is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people
    Text,
    /// JSON, as the service gives it
    Json,
}

/// What is said of a discrepancy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Said {
    /// It is known why, and nothing has to be done
    Explained,
    /// It is known, and stays as it is
    Accepted,
}

impl Said {
    /// As the service calls it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Said::Explained => "explain",
            Said::Accepted => "accept",
        }
    }
}

/// Who decides on what, and why.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Signed {
    /// The operation's key, R17:create-ticket:v1
    pub(super) operation: String,
    /// The running service's address, HOST:PORT: each act is checked at the destination
    #[arg(long, value_name = "ADDRESS")]
    pub(super) service: String,
    /// Who decides
    #[arg(long, value_name = "WHO")]
    pub(super) by: String,
    /// Why
    #[arg(long, value_name = "WHY")]
    pub(super) reason: String,
    /// The version that was seen; if it has moved on, nothing is decided
    #[arg(long)]
    pub(super) version: Option<u32>,
}

/// What people decide.
#[derive(Debug, Subcommand)]
pub(super) enum Act {
    /// This record is it
    Confirm {
        #[command(flatten)]
        signed: Signed,
        /// The destination's id of the record
        #[arg(long = "ref", value_name = "ID")]
        external_ref: String,
    },
    /// It shall not be done
    Reject {
        #[command(flatten)]
        signed: Signed,
        /// Answer for a record that may exist
        #[arg(long)]
        accept_risk: bool,
    },
    /// There is no record
    Absent {
        #[command(flatten)]
        signed: Signed,
        /// Where and how you looked
        #[arg(long)]
        how: String,
        /// When you looked, before anything else happened
        #[arg(long, value_name = "TIME", value_parser = time)]
        checked_at: Timestamp,
        /// Answer for a record that comes later
        #[arg(long)]
        accept_risk: bool,
    },
    /// Send the same once more
    Resend {
        #[command(flatten)]
        signed: Signed,
    },
    /// Make another record, after it was declared absent
    Create {
        #[command(flatten)]
        signed: Signed,
    },
    /// It is not wanted any more: nothing further is sent
    Cancel {
        #[command(flatten)]
        signed: Signed,
    },
    /// Somebody else sees to it
    Assign {
        #[command(flatten)]
        signed: Signed,
        /// Who
        #[arg(long)]
        owner: String,
    },
    /// Nobody needs to look at it before then
    Snooze {
        #[command(flatten)]
        signed: Signed,
        /// At most the case's deadline
        #[arg(long, value_name = "TIME", value_parser = time)]
        until: Timestamp,
    },
    /// Something else is known
    Evidence {
        #[command(flatten)]
        signed: Signed,
        /// What it is: call, mail, screenshot
        #[arg(long)]
        kind: String,
        /// What it shows
        #[arg(long)]
        note: String,
    },
}

impl Act {
    /// Who decides, the act as the service calls it, and its own fields.
    pub(super) fn posted(&self) -> (&Signed, &'static str, Vec<(&'static str, Value)>) {
        match self {
            Act::Confirm { signed, external_ref } => {
                (signed, "confirm_found", vec![("ref", json!(external_ref))])
            }
            Act::Reject { signed, accept_risk } => {
                (signed, "reject", vec![("accept_risk", json!(accept_risk))])
            }
            Act::Absent { signed, how, checked_at, accept_risk } => {
                let fields = vec![
                    ("how", json!(how)),
                    ("checked_at", json!(checked_at)),
                    ("accept_risk", json!(accept_risk)),
                ];
                (signed, "declare_absent", fields)
            }
            Act::Resend { signed } => (signed, "authorise_resend", vec![]),
            Act::Create { signed } => (signed, "authorise_creation", vec![]),
            Act::Cancel { signed } => (signed, "cancel", vec![]),
            Act::Assign { signed, owner } => (signed, "assign", vec![("owner", json!(owner))]),
            Act::Snooze { signed, until } => (signed, "snooze", vec![("until", json!(until))]),
            Act::Evidence { signed, kind, note } => {
                (signed, "add_evidence", vec![("kind", json!(kind)), ("note", json!(note))])
            }
        }
    }
}

/// The command for an act of the service, with the options that it needs.
pub(super) fn command_for(action: &str) -> Option<(&'static str, &'static str)> {
    Some(match action {
        "confirm_found" => ("confirm", " --ref ID"),
        "reject" => ("reject", ""),
        "declare_absent" => ("absent", " --how HOW --checked-at TIME"),
        "authorise_resend" => ("resend", ""),
        "authorise_creation" => ("create", ""),
        "cancel" => ("cancel", ""),
        "assign" => ("assign", " --owner WHO"),
        "snooze" => ("snooze", " --until TIME"),
        "add_evidence" => ("evidence", " --kind KIND --note NOTE"),
        _ => return None,
    })
}

fn host_and_port(text: &str) -> Result<String, String> {
    let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty());
    let is_port = port.is_some_and(|(_, port)| port.parse::<u16>().is_ok_and(|port| port > 0));
    if is_port { Ok(text.to_owned()) } else { Err("it is not HOST:PORT".into()) }
}

fn time(text: &str) -> Result<Timestamp, String> {
    let time = humantime::parse_rfc3339(text).map_err(|e| format!("{e}; write 2026-01-05T09:00:00Z"))?;
    let since_1970 = time.duration_since(UNIX_EPOCH).map_err(|_| "it is before 1970".to_owned())?;
    i64::try_from(since_1970.as_millis()).map(Timestamp).map_err(|_| "it is too far away".to_owned())
}
