//! A help desk in this process: real HTTP in front of the fake that the simulator uses, and a memory of its
//! own.

use super::journal::{Entry, Journal};
use bytes::Bytes;
use destinations::fake::http::{HttpRequest, parse};
use destinations::fake::{Begun, Desk, DeskOptions, Reply, WorkId};
use destinations::{Contract, Ledger, Millis};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use workflow::Clock;
use workflow::http::Io;

/// The reference of the record that exists from the start, as the control for look-ups.
pub(crate) const SENTINEL: &str = "in-doubt-sentinel";
/// How long a new ticket may be missing from an eventual search, at most.
const LAG: Duration = Duration::from_secs(3);
/// The longest body that is read.
const BODY_LIMIT: usize = 64 * 1024;

struct Books {
    desk: Desk,
    journal: Journal,
    /// Creates that still lose their answer.
    lose: u32,
    waiting: BTreeMap<WorkId, oneshot::Sender<Reply>>,
    /// The latest instant seen: a wall clock that steps back must not take the desk with it.
    latest: Millis,
}

/// The desk, its memory, and whoever waits for an answer.
pub(crate) struct DeskHost {
    books: Mutex<Books>,
    takes: Duration,
    clock: Clock,
}

/// The connection breaks without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the answer is lost")]
struct Lost;

impl DeskHost {
    /// The desk as its memory has it.
    pub(crate) fn open(
        contract: Contract,
        journal: &Path,
        takes: Duration,
        lose: u32,
    ) -> Result<Arc<DeskHost>, String> {
        let (journal, entries) = Journal::open(journal, &contract.id)?;
        let options = DeskOptions { lag: LAG, sentinel: Some(SENTINEL.into()), ..DeskOptions::default() };
        let mut desk = Desk::new(contract, options);
        let mut latest = Millis(0);
        for Entry { at, takes, request } in entries {
            latest = at.max(latest);
            if let Ok(asked) = parse(&desk.contract().clone(), &request) {
                desk.begin(latest, asked, takes);
            }
        }
        let books = Books { desk, journal, lose, waiting: BTreeMap::new(), latest };
        Ok(Arc::new(DeskHost { books: Mutex::new(books), takes, clock: Clock::system() }))
    }

    /// The truth: every effect so far, and how many requests are still being worked on.
    pub(crate) fn ledger(&self) -> (Ledger, bool) {
        let mut books = self.lock();
        let now = self.now(&mut books);
        books.desk.advance(now);
        (books.desk.ledger().clone(), books.desk.due().is_some())
    }

    /// Serves until the process ends.
    pub(crate) async fn serve(self: Arc<Self>, listener: TcpListener) {
        loop {
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "the desk could not accept a connection");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                }
            };
            let host = self.clone();
            tokio::spawn(async move {
                let service = hyper::service::service_fn(move |request| host.clone().answer(request));
                let http = hyper::server::conn::http1::Builder::new();
                // A lost answer ends the connection with an error: that is what it is for.
                let _ = http.serve_connection(Io::new(stream), service).await;
            });
        }
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Lost> {
        let (parts, body) = request.into_parts();
        let body = http_body_util::Limited::new(body, BODY_LIMIT).collect().await.map_err(|_| Lost)?;
        let text =
            |value: &hyper::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let request = HttpRequest {
            method: parts.method.to_string(),
            target: parts.uri.to_string(),
            headers: parts.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect(),
            body: body.to_bytes().to_vec(),
        };
        let asked = format!("{} {}", request.method, request.target);
        let writes = request.method != "GET";
        let reply = self.execute(request).await?;
        let said = format!("{} {}", reply.status, subject(&reply));
        if writes && self.takes_a_loss() {
            println!("desk   {asked}  {said}  <- this answer is lost");
            return Err(Lost);
        }
        println!("desk   {asked}  {said}");
        response(reply)
    }

    /// Lets the desk work; what it has begun stands even when nobody waits any more.
    async fn execute(self: &Arc<Self>, request: HttpRequest) -> Result<Reply, Lost> {
        let answer = {
            let mut books = self.lock();
            let at = self.now(&mut books);
            let asked = match parse(books.desk.contract(), &request) {
                Ok(asked) => asked,
                Err(reply) => return Ok(reply),
            };
            let entry = Entry { at, takes: self.takes, request };
            if entry.request.method != "GET"
                && let Err(why) = books.journal.add(&entry)
            {
                tracing::error!(%why, "the desk cannot remember this request and drops it");
                return Err(Lost);
            }
            match books.desk.begin(at, asked, self.takes) {
                Begun::Reply(reply) => return Ok(reply),
                Begun::Working(work) => {
                    let (reply, answer) = oneshot::channel();
                    books.waiting.insert(work, reply);
                    answer
                }
            }
        };
        let host = self.clone();
        tokio::spawn(async move { host.finish().await });
        answer.await.map_err(|_| Lost)
    }

    /// Waits until something is due, commits it, and answers whoever waits.
    async fn finish(&self) {
        loop {
            let wait = {
                let mut books = self.lock();
                let now = self.now(&mut books);
                for (work, reply) in books.desk.advance(now) {
                    // Whoever asked may have given up.
                    let _ = books.waiting.remove(&work).map(|waiting| waiting.send(reply));
                }
                books.desk.due().map(|due| due.since(now))
            };
            match wait {
                Some(wait) => tokio::time::sleep(wait.max(Duration::from_millis(1))).await,
                None => return,
            }
        }
    }

    fn takes_a_loss(&self) -> bool {
        let mut books = self.lock();
        let loses = books.lose > 0;
        books.lose = books.lose.saturating_sub(1);
        loses
    }

    fn lock(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self, books: &mut Books) -> Millis {
        let now = u64::try_from(self.clock.now().0).unwrap_or(0);
        books.latest = books.latest.max(Millis(now));
        books.latest
    }
}

/// What an answer is about: a ticket, some tickets, or a refusal.
fn subject(reply: &Reply) -> String {
    let body = &reply.body;
    if let Some(found) = body["tickets"].as_array() {
        let ids: Vec<&str> = found.iter().filter_map(|ticket| ticket["id"].as_str()).collect();
        return if ids.is_empty() { "no match".into() } else { ids.join(", ") };
    }
    let id = body["ticket"]["id"].as_str().or_else(|| body["error"]["code"].as_str());
    id.unwrap_or_default().to_owned()
}

fn response(reply: Reply) -> Result<Response<Full<Bytes>>, Lost> {
    let status = StatusCode::from_u16(reply.status).map_err(|_| Lost)?;
    let mut builder = Response::builder().status(status).header("content-type", "application/json");
    for (name, value) in &reply.headers {
        builder = builder.header(name, value);
    }
    builder.body(Full::new(Bytes::from(reply.body.to_string()))).map_err(|_| Lost)
}
