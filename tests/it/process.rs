//! The workflow's process as a test starts, asks and kills it: a runtime of its own, real sockets, a real
//! file.

use crate::client::{self, Answer};
use crate::desk::HelpDesk;
use destinations::Assumptions;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use workflow::mutant::Mutant;
use workflow::store::{Connections, Contents, open_file, read_all};
use workflow::{Clock, Definition, Engine, Policy, Setup, StoreAt, StoreError};

/// What every test waits for comes within this time, or the test fails.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longer than a busy machine takes for an answer that is on its way.
const PATIENT: Duration = Duration::from_secs(20);
/// As long as a test may wait for an answer that never comes.
const HASTY: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(10);

/// A folder with the store's file, which outlives the processes that use it.
pub(crate) struct Place {
    folder: TempDir,
    store: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place::with(|folder| folder.join("store.db"))
    }

    /// A folder in which the store's file is somewhere else.
    pub(crate) fn with(store: impl Fn(&Path) -> PathBuf) -> Place {
        let folder = tempfile::tempdir().expect("a folder for the test");
        Place { store: store(folder.path()), folder }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.store.clone()
    }

    /// Everything that the store holds, read beside whoever has it open.
    pub(crate) fn contents(&self) -> Contents {
        read_all(&open_file(&text(&self.store())).expect("a store")).expect("a readable store")
    }
}

pub(crate) fn text(path: &Path) -> String {
    path.to_str().expect("our paths are text").to_owned()
}

/// How a process differs from the usual one.
#[derive(Clone)]
pub(crate) struct How {
    pub(crate) policy: Policy,
    pub(crate) assumptions: Assumptions,
    pub(crate) personal: Vec<String>,
    /// The version of the step.
    pub(crate) version: u32,
    pub(crate) connections: Connections,
    pub(crate) clock: Clock,
    /// Whether it works on what it has taken in.
    pub(crate) works: bool,
}

impl Default for How {
    fn default() -> How {
        let policy = Policy {
            send_timeout: PATIENT,
            first_pause: Duration::from_millis(10),
            longest_pause: Duration::from_millis(40),
            max_checks: 500,
            body_limit: 4096,
            ..Policy::default()
        };
        let assumptions = Assumptions {
            max_transit: policy.send_timeout,
            max_pause: Duration::from_millis(1),
            assumed_late_commit: Some(Duration::from_millis(50)),
            ..Assumptions::default()
        };
        let (connections, clock) = (Connections::plain(), Clock::system());
        How { policy, assumptions, personal: vec![], version: 1, connections, clock, works: true }
    }
}

impl How {
    /// Soon tired of waiting: for a destination that never answers.
    pub(crate) fn hasty() -> How {
        How::default().waiting(HASTY)
    }

    /// Waits so long for an answer, and assumes that nothing is on its way for longer.
    pub(crate) fn waiting(self, send_timeout: Duration) -> How {
        let policy = Policy { send_timeout, ..self.policy };
        How { policy, assumptions: Assumptions { max_transit: send_timeout, ..self.assumptions }, ..self }
    }
}

/// A running process.
pub(crate) struct Process {
    runtime: Runtime,
    pub(crate) engine: Engine,
    pub(crate) address: SocketAddr,
}

impl Process {
    pub(crate) fn start(place: &Place, desk: &HelpDesk) -> Process {
        Process::start_as(place, desk, How::default()).expect("the store opens")
    }

    pub(crate) fn start_as(place: &Place, desk: &HelpDesk, how: How) -> Result<Process, StoreError> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("the system gives threads");
        let usual = scenarios::access::definition(desk.contract(), how.assumptions);
        let workflow =
            Definition { policy: how.policy, personal: how.personal, version: how.version, ..usual }
                .build()
                .expect("the definition is complete");
        let setup = Setup {
            store: StoreAt {
                path: text(&place.store()),
                connections: how.connections,
                clock: how.clock,
                mutant: Mutant::default(),
            },
            destination: desk.address(),
            credentials: Some(("authorization".into(), "Bearer not-a-secret".into())),
            connect: desk.connect(),
        };
        let engine = runtime.block_on(Engine::open(workflow, setup))?;
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let address = listener.local_addr().expect("it was bound");
        let (serving, working) = (engine.clone(), engine.clone());
        runtime.spawn(async move { serving.serve(listener).await });
        if how.works {
            runtime.spawn(async move { working.run().await });
        }
        Ok(Process { runtime, engine, address })
    }

    /// The process dies: every task is dropped where it stands.
    pub(crate) fn crash(self) {
        drop(self.engine);
        self.runtime.shutdown_timeout(Duration::from_secs(10));
    }

    /// Delivers and returns the answer.
    pub(crate) fn deliver(&self, delivery_id: &str, request: &Value) -> Answer {
        client::post(self.address, "/deliveries", &delivery(delivery_id, request))
    }

    /// What is known of an operation.
    pub(crate) fn explain(&self, key: &str) -> Value {
        let answer = client::get(self.address, &client::operation_path(key));
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.body
    }

    /// Waits until the operation's detail is this one.
    pub(crate) fn until(&self, key: &str, detail: &str) -> Value {
        wait_for(detail, || {
            let known = self.explain(key);
            (known["detail"] == detail).then_some(known)
        })
    }

    /// Decides as a person does, by HTTP.
    pub(crate) fn decide(&self, key: &str, action: &str, body: &Value) -> Answer {
        client::post(self.address, &format!("{}/{action}", client::operation_path(key)), body)
    }
}

/// Looks again and again until there is something to see.
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let looks = PATIENCE.as_millis() / LOOK.as_millis();
    for _ in 0..looks {
        if let Some(seen) = look() {
            return seen;
        }
        std::thread::sleep(LOOK);
    }
    panic!("{what} never came")
}

pub(crate) fn delivery(delivery_id: &str, request: &Value) -> Value {
    json!({"source": "forms", "delivery_id": delivery_id, "request": request})
}

/// A complete request of this name.
pub(crate) fn request(id: &str) -> Value {
    json!({"id": id, "title": format!("{id}: access to the archive"), "requester": "c17"})
}

pub(crate) fn key(id: &str) -> String {
    scenarios::access::operation(id)
}
