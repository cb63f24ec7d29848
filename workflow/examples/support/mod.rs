//! What the example is made of: its arguments, the workflow's definition, and a desk to talk to.

mod args;
mod desk;
mod journal;
mod words;

use args::{Args, Parsed};
use desk::DeskHost;
use destinations::{Assumptions, Contract};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use workflow::{Connect, Definition, Engine, Policy, Setup, StoreAt, Workflow};

/// Why the program ends without having done what it was asked.
pub(crate) struct Failure {
    pub(crate) why: String,
    /// 2 for wrong usage, 1 for the rest.
    pub(crate) exit: u8,
}

impl Failure {
    fn usage(why: impl Into<String>) -> Failure {
        Failure { why: why.into(), exit: 2 }
    }

    fn running(why: impl Into<String>) -> Failure {
        Failure { why: why.into(), exit: 1 }
    }
}

/// Serves until Ctrl-C, then says what the desk holds.
pub(crate) async fn run() -> Result<(), Failure> {
    let args = match args::parse(std::env::args().skip(1))? {
        Parsed::Help => {
            print!("{}", args::help());
            return Ok(());
        }
        Parsed::Run(args) => args,
    };
    let workflow = define(&args)?;
    let store = args.store_path();
    make_folder(&store)?;
    let desk = match args.desk {
        Some(_) => None,
        None => Some(open_desk(&args, &store)?),
    };
    // Both ports are taken before anything is sent.
    let intake = listen(args.port, "--port").await?;
    let desk_at = match &args.desk {
        Some(elsewhere) => elsewhere.clone(),
        None => format!("127.0.0.1:{}", args.desk_port),
    };
    if let Some(desk) = &desk {
        tokio::spawn(desk.clone().serve(listen(args.desk_port, "--desk-port").await?));
    }
    let setup = Setup {
        store: StoreAt::file(store.display().to_string()),
        destination: desk_at,
        credentials: None,
        connect: Connect::tcp(),
    };
    words::introduce(&args, &workflow, &setup);
    let engine = Engine::open(workflow, setup).await.map_err(|error| Failure::running(error.to_string()))?;
    let stopped = serve(engine, intake).await;
    words::part(desk.as_deref());
    stopped
}

async fn serve(engine: Engine, intake: TcpListener) -> Result<(), Failure> {
    tokio::select! {
        biased;
        asked = tokio::signal::ctrl_c() => asked.map_err(|e| Failure::running(format!("no signals: {e}"))),
        failed = engine.run() => match failed {
            Ok(never) => match never {},
            Err(error) => Err(Failure::running(error.to_string())),
        },
        failed = engine.serve(intake) => match failed {
            Ok(never) => match never {},
            Err(error) => Err(Failure::running(format!("the intake's listener failed: {error}"))),
        },
    }
}

/// The workflow: what names a request, what it means, who decides, and what is assumed of the desk.
fn define(args: &Args) -> Result<Workflow, Failure> {
    let (assumptions, policy) = match args.desk {
        // Of a desk elsewhere nothing is known beyond its contract.
        Some(_) => (Assumptions::default(), Policy::default()),
        None => patience(args.desk_takes),
    };
    let definition = Definition {
        request_id: "id".into(),
        intent: vec!["title".into(), "requester".into()],
        required: vec!["title".into(), "requester".into()],
        assumptions,
        policy,
        sentinel: Some(desk::SENTINEL.into()),
        owner: "service-desk-lead".into(),
        deadline: Duration::from_secs(4 * 3600),
        escalate_to: "it-duty".into(),
        ..Definition::new("access-request", "create-ticket", contract(&args.contract)?)
    };
    definition.build().map_err(|error| Failure::usage(error.to_string()))
}

/// What is true of a desk in this very process: nothing is slow, and each create ends when its time is over.
fn patience(desk_takes: Duration) -> (Assumptions, Policy) {
    let send_timeout = desk_takes + Duration::from_secs(2);
    let assumptions = Assumptions {
        max_transit: send_timeout,
        max_pause: Duration::from_secs(1),
        assumed_late_commit: Some(desk_takes + Duration::from_secs(1)),
        ..Assumptions::default()
    };
    (assumptions, Policy { send_timeout, ..Policy::default() })
}

/// A contract that comes with the crate, or one from a file.
fn contract(name: &str) -> Result<Contract, Failure> {
    if let Some(known) = destinations::named(name) {
        return Ok(known);
    }
    if !name.ends_with(".toml") {
        let ids: Vec<String> = destinations::builtin().into_iter().map(|contract| contract.id).collect();
        let why = format!("there is no contract `{name}`\n  help: {}, or a file", ids.join(", "));
        return Err(Failure::usage(why));
    }
    let text = std::fs::read_to_string(name).map_err(|e| Failure::usage(format!("{name}: {e}")))?;
    Contract::from_toml(name, &text).map_err(|error| Failure::usage(error.to_string()))
}

/// The desk with all that it remembers; refused where the store knows of tickets that the desk does not.
fn open_desk(args: &Args, store: &Path) -> Result<Arc<DeskHost>, Failure> {
    let mut journal = store.as_os_str().to_owned();
    journal.push(".desk.jsonl");
    let journal = PathBuf::from(journal);
    if store.exists() && !journal.exists() {
        return Err(Failure::running(format!(
            "{} exists, but the desk's own memory, {}, does not\n  \
             help: name another file with --store, or the desk that it belongs to with --desk",
            store.display(),
            journal.display()
        )));
    }
    let desk = DeskHost::open(contract(&args.contract)?, &journal, args.desk_takes, args.lose_responses);
    desk.map_err(|why| Failure::running(format!("{}: {why}", journal.display())))
}

fn make_folder(file: &Path) -> Result<(), Failure> {
    let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return Ok(()) };
    let failed = |e| Failure::running(format!("the folder {} cannot be made: {e}", folder.display()));
    std::fs::create_dir_all(folder).map_err(failed)
}

async fn listen(port: u16, option: &str) -> Result<TcpListener, Failure> {
    TcpListener::bind(("127.0.0.1", port)).await.map_err(|e| {
        Failure::running(format!("127.0.0.1:{port}: {e}\n  help: choose another port with {option}"))
    })
}
