//! A help desk on this machine: the fake behind real HTTP, with what becomes of the n-th create said
//! beforehand.

use bytes::Bytes;
use destinations::fake::http::{HttpRequest, parse};
use destinations::fake::{Begun, Desk, DeskOptions, Reply, WorkId};
use destinations::{Contract, Millis};
use http_body_util::{BodyExt as _, Full};
use hyper::Response;
use hyper::body::Incoming;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::time::Instant;
use workflow::Connect;
use workflow::connector::Stream;
use workflow::http::Io;

/// What becomes of a create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is applied; the connection closes without an answer.
    Drop,
    /// It is applied; the connection is reset.
    Reset,
    /// It is applied; no answer ever comes.
    Hang,
    /// It is not applied; no answer ever comes.
    Ignore,
    /// It is applied after so long; no answer ever comes.
    ApplyLate(Duration),
    /// It is applied; the answer is 201 without an id.
    WithoutId,
    /// It is applied; the answer is an error that proves nothing.
    ErrorAfter(u16),
    /// It is not applied; the answer is this refusal.
    Refuse(u16),
    /// It is applied; the answer is an error that repeats the whole request, credentials included.
    Echo,
}

/// How the connection of an exchange ends.
#[derive(Debug)]
struct Lost;

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the connection breaks")
    }
}

impl std::error::Error for Lost {}

struct Books {
    desk: Desk,
    outcomes: BTreeMap<u32, Outcome>,
    creates: u32,
    finds: u32,
    done: BTreeMap<WorkId, Reply>,
    bodies: Vec<Vec<u8>>,
}

struct Shared {
    books: Mutex<Books>,
    contract: Contract,
    started: Instant,
    refusals: Arc<AtomicU32>,
}

/// The desk, on a runtime of its own: it lives on when the workflow's process dies.
pub(crate) struct HelpDesk {
    shared: Arc<Shared>,
    address: SocketAddr,
    /// An address at which nobody listens.
    nowhere: SocketAddr,
    _runtime: Runtime,
}

impl HelpDesk {
    pub(crate) fn open(contract: &str, outcomes: &[(u32, Outcome)]) -> HelpDesk {
        let contract = destinations::named(contract).expect("a built-in contract");
        let options = DeskOptions {
            sentinel: Some(sim::plan::SENTINEL.into()),
            lag: Duration::ZERO,
            ..DeskOptions::default()
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("the system gives a thread");
        let bind = || async { TcpListener::bind("127.0.0.1:0").await.expect("a free port") };
        let listener = runtime.block_on(bind());
        let nowhere = runtime.block_on(bind()).local_addr().expect("it was bound");
        let address = listener.local_addr().expect("it was bound");
        let books = Books {
            desk: Desk::new(contract.clone(), options),
            outcomes: outcomes.iter().copied().collect(),
            creates: 0,
            finds: 0,
            done: BTreeMap::new(),
            bodies: vec![],
        };
        let shared = Arc::new(Shared {
            books: Mutex::new(books),
            contract,
            started: runtime.block_on(async { Instant::now() }),
            refusals: Arc::default(),
        });
        runtime.spawn(serve(shared.clone(), listener));
        HelpDesk { shared, address, nowhere, _runtime: runtime }
    }

    pub(crate) fn contract(&self) -> &Contract {
        &self.shared.contract
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// The next connections are refused by the system: nobody listens where they go.
    pub(crate) fn refuse_next(&self, connections: u32) {
        self.shared.refusals.store(connections, Ordering::SeqCst);
    }

    /// How connections to this desk are opened.
    pub(crate) fn connect(&self) -> Connect {
        let (refusals, nowhere) = (self.shared.refusals.clone(), self.nowhere.to_string());
        Connect::from_fn(move |address| {
            let refuse = |left: u32| left.checked_sub(1);
            let refused = refusals.fetch_update(Ordering::SeqCst, Ordering::SeqCst, refuse).is_ok();
            let address = if refused { nowhere.clone() } else { address };
            Box::pin(async move {
                let stream = TcpStream::connect(address).await?;
                Ok(Box::new(stream) as Box<dyn Stream>)
            })
        })
    }

    /// What becomes of the next create, whatever was said of it before.
    pub(crate) fn next_create(&self, outcome: Outcome) {
        let mut books = self.lock();
        let nth = books.creates + 1;
        books.outcomes.insert(nth, outcome);
    }

    /// The ids of the records that exist, from the ledger.
    pub(crate) fn records(&self) -> Vec<String> {
        self.lock().desk.ledger().records().into_iter().map(str::to_owned).collect()
    }

    /// A person deletes a record, or makes a second one like it.
    pub(crate) fn by_hand(&self, id: &str, deletes: bool) -> Option<String> {
        let (now, mut books) = (self.shared.now(), self.lock());
        if deletes {
            books.desk.delete(now, id);
            return None;
        }
        books.desk.copy(now, id)
    }

    /// The creates that arrived.
    pub(crate) fn creates(&self) -> u32 {
        self.lock().creates
    }

    /// The look-ups that arrived.
    pub(crate) fn finds(&self) -> u32 {
        self.lock().finds
    }

    /// The bodies of the creates that arrived.
    pub(crate) fn bodies(&self) -> Vec<Vec<u8>> {
        self.lock().bodies.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Books> {
        self.shared.lock()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Millis {
        Millis(u64::try_from(self.started.elapsed().as_millis()).expect("a test is short"))
    }

    /// Counts the request and says what becomes of it.
    fn register(&self, request: &HttpRequest) -> Option<Outcome> {
        let mut books = self.lock();
        if request.method == "GET" {
            books.finds += u32::from(request.target.contains('?'));
            return None;
        }
        books.creates += 1;
        books.bodies.push(request.body.clone());
        let nth = books.creates;
        books.outcomes.get(&nth).copied()
    }

    async fn execute(&self, request: &HttpRequest, takes: Duration) -> Reply {
        let work = {
            let mut books = self.lock();
            let asked = match parse(&self.contract, request) {
                Ok(asked) => asked,
                Err(reply) => return reply,
            };
            match books.desk.begin(self.now(), asked, takes) {
                Begun::Reply(reply) => return reply,
                Begun::Working(work) => work,
            }
        };
        loop {
            {
                let mut books = self.lock();
                let done = books.desk.advance(self.now());
                books.done.extend(done);
                if let Some(reply) = books.done.remove(&work) {
                    return reply;
                }
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn answer(
        &self,
        request: hyper::Request<Incoming>,
        reset: &AtomicU32,
    ) -> Result<Response<Full<Bytes>>, Lost> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map_err(|_| Lost)?.to_bytes();
        let text =
            |value: &hyper::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let request = HttpRequest {
            method: parts.method.to_string(),
            target: parts.uri.to_string(),
            headers: parts.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect(),
            body: body.to_vec(),
        };
        let outcome = self.register(&request);
        let takes = match outcome {
            Some(Outcome::ApplyLate(after)) => after,
            _ => Duration::ZERO,
        };
        match outcome {
            Some(Outcome::Ignore) => std::future::pending().await,
            Some(Outcome::Refuse(status)) => return Ok(error(status)),
            _ => {}
        }
        let reply = self.execute(&request, takes).await;
        match outcome {
            Some(Outcome::Drop) => Err(Lost),
            Some(Outcome::Reset) => {
                reset.store(1, Ordering::SeqCst);
                Err(Lost)
            }
            Some(Outcome::Hang | Outcome::ApplyLate(_)) => std::future::pending().await,
            Some(Outcome::WithoutId) => Ok(response(201, &[], serde_json::json!({"ticket": {}}))),
            Some(Outcome::ErrorAfter(status)) => Ok(error(status)),
            Some(Outcome::Echo) => {
                let credentials = request.headers.iter().find(|(name, _)| name == "authorization");
                let credentials = credentials.map(|(_, value)| value.as_str()).unwrap_or_default();
                let told = format!("{credentials} {}", String::from_utf8_lossy(&request.body));
                Ok(response(500, &[], told.into()))
            }
            _ => Ok(response(reply.status, &reply.headers, reply.body)),
        }
    }
}

async fn serve(shared: Arc<Shared>, listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        let shared = shared.clone();
        tokio::spawn(async move {
            let reset = AtomicU32::new(0);
            let service = hyper::service::service_fn(|request| Box::pin(shared.answer(request, &reset)));
            let mut served =
                hyper::server::conn::http1::Builder::new().serve_connection(Io::new(stream), service);
            // What is broken on purpose ends with an error; how the stream ends is decided here.
            let _ = std::future::poll_fn(|cx| served.poll_without_shutdown(cx)).await;
            let stream = served.into_parts().io.into_inner();
            if reset.load(Ordering::SeqCst) == 1 {
                stream.set_zero_linger().expect("a TCP stream");
            }
        });
    }
}

fn error(status: u16) -> Response<Full<Bytes>> {
    response(status, &[], serde_json::json!({"error": {"code": "validation", "message": "not possible"}}))
}

fn response(status: u16, headers: &[(String, String)], body: serde_json::Value) -> Response<Full<Bytes>> {
    let mut builder = Response::builder().status(status).header("content-type", "application/json");
    for (name, value) in headers {
        builder = builder.header(name, value);
    }
    builder.body(Full::new(Bytes::from(body.to_string()))).expect("the fake's headers are valid")
}
