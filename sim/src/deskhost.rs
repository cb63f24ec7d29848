//! The destination's node: real HTTP in front of the pure fake, and everything that can become of an answer.

use crate::fault::{Call, ExchangeName, Phase, What};
use crate::field::{DESK, Field, OnItsWay, now};
use crate::history::{Kind, Step};
use crate::io::Io;
use crate::plan::{DeskPlan, SENTINEL, UNKNOWN_REQUESTER};
use crate::scenario::Seen;
use crate::seed::Seed;
use crate::wire::Reply;
use bytes::Bytes;
use destinations::fake::http::{HttpRequest, parse};
use destinations::fake::{self, Begun, Desk, DeskOptions, WorkId};
use destinations::{Contract, Millis};
use http_body_util::BodyExt as _;
use hyper::Response;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

struct Books {
    desk: Desk,
    /// Effects of the ledger that are in the history: the desk also commits what is due when a request
    /// begins.
    noted: usize,
    /// The operation that each effect was made for.
    made_for: Vec<String>,
    /// Whoever waits for a commit, with the operation and the step at which the request arrived.
    waiting: BTreeMap<WorkId, Waiting>,
}

struct Waiting {
    about: String,
    cause: Step,
    reply: oneshot::Sender<fake::Reply>,
}

/// The destination as the world holds it.
pub(crate) struct DeskHost {
    books: Mutex<Books>,
    contract: Arc<Contract>,
    plan: DeskPlan,
    field: Arc<Field>,
}

impl DeskHost {
    pub(crate) fn new(contract: Arc<Contract>, plan: DeskPlan, field: Arc<Field>) -> Arc<DeskHost> {
        let options = DeskOptions {
            lag: Duration::from_millis(plan.lag_ms),
            refused_requesters: vec![UNKNOWN_REQUESTER.into()],
            sentinel: Some(SENTINEL.into()),
            seed: plan.seed,
            ..DeskOptions::default()
        };
        let desk = Desk::new((*contract).clone(), options);
        let books = Books { desk, noted: 0, made_for: vec![], waiting: BTreeMap::new() };
        Arc::new(DeskHost { books: Mutex::new(books), contract, plan, field })
    }

    fn lock(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The truth, and the operation behind each effect.
    pub(crate) fn ledger(&self) -> (destinations::Ledger, Vec<String>) {
        let books = self.lock();
        (books.desk.ledger().clone(), books.made_for.clone())
    }

    /// The record that a person finds for an operation: they search the desk by hand and see everything.
    pub(crate) fn record_of(&self, about: &str) -> Option<String> {
        let books = self.lock();
        let index = books.made_for.iter().position(|made_for| made_for == about)?;
        Some(books.desk.ledger().effects()[index].record.clone())
    }

    /// When the last work that is under way will commit.
    pub(crate) fn busy(&self) -> bool {
        self.lock().desk.due().is_some()
    }

    /// Serves until the node ends.
    pub(crate) async fn serve(self: Arc<Self>, listener: TcpListener) -> std::io::Result<()> {
        loop {
            let (stream, caller) = listener.accept().await?;
            let host = self.clone();
            tokio::spawn(async move {
                let service = hyper::service::service_fn(move |request| host.clone().answer(caller, request));
                let mut http = hyper::server::conn::http1::Builder::new();
                // A broken connection is what this node is for.
                let _ = http.auto_date_header(false).serve_connection(Io::new(stream), service).await;
            });
        }
    }

    async fn answer(
        self: Arc<Self>,
        caller: SocketAddr,
        request: hyper::Request<Incoming>,
    ) -> Result<Response<Answer>, Lost> {
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
        let (exchange, sent) = self.field.arrives(caller).ok_or(Lost)?;
        let arrived = self.field.event(DESK, Kind::Arrived { exchange: exchange.clone() }, Some(sent));
        // The workflow may die here; the request is at the desk all the same.
        let _ = self.field.phase(&exchange, Phase::Arrived);
        let outcome = self.field.outcome(DESK, &exchange, arrived);
        self.fulfil(request, exchange, arrived, outcome).await
    }

    async fn fulfil(
        self: &Arc<Self>,
        request: HttpRequest,
        exchange: ExchangeName,
        arrived: Step,
        outcome: Option<(What, Step)>,
    ) -> Result<Response<Answer>, Lost> {
        let cause = outcome.as_ref().map_or(arrived, |(_, step)| *step);
        let outcome = outcome.map(|(what, _)| what);
        match &outcome {
            Some(What::LoseRequest(loss)) => return self.lose((*loss).into(), None).await,
            Some(What::NotApplied(None) | What::Hang { applied: false }) => {
                return self.lose(Reply::Silence, None).await;
            }
            Some(What::NotApplied(Some(status))) => return Ok(self.send(&exchange, error(*status), cause)),
            _ => {}
        }
        let takes = match &outcome {
            Some(What::ApplyLate(ms)) => *ms,
            _ => self.service_ms(&exchange),
        };
        let reply = self.execute(&request, &exchange, cause, Duration::from_millis(takes)).await;
        // The effect is there; the workflow may die before it hears of it.
        let _ = self.field.phase(&exchange, Phase::Applied);
        match outcome {
            Some(What::LoseResponse(loss)) => self.lose(loss.into(), Some(reply)).await,
            Some(What::ApplyLate(_) | What::Hang { .. }) => self.lose(Reply::Silence, None).await,
            Some(What::ErrorAfter(status)) => Ok(self.send(&exchange, error(status), cause)),
            Some(What::OmitId(_)) => {
                let status = if reply.status < 300 { reply.status } else { 201 };
                let bare = fake::Reply { status, headers: vec![], body: serde_json::json!({"ticket": {}}) };
                Ok(self.send(&exchange, bare, cause))
            }
            Some(What::AnswerSlowly(ms)) => {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                Ok(self.send(&exchange, reply, cause))
            }
            _ => Ok(self.send(&exchange, reply, cause)),
        }
    }

    /// Milliseconds that the desk takes over a request: its own for each exchange.
    fn service_ms(&self, exchange: &ExchangeName) -> u64 {
        let spread = self.plan.service_ms.max(1);
        let mut rng = Seed(self.plan.seed).stream(&format!("service/{exchange}"));
        spread / 2 + rng.below(spread)
    }

    /// Lets the desk work; what it commits later stands even when nobody waits any more.
    async fn execute(
        self: &Arc<Self>,
        request: &HttpRequest,
        exchange: &ExchangeName,
        cause: Step,
        takes: Duration,
    ) -> fake::Reply {
        let answer = {
            let mut books = self.lock();
            let begun = match parse(&self.contract, request) {
                Ok(asked) => books.desk.begin(millis(), asked, takes),
                Err(reply) => return reply,
            };
            match begun {
                Begun::Reply(reply) => return reply,
                Begun::Working(work) => {
                    let (reply, answer) = oneshot::channel();
                    let waiting = Waiting { about: exchange.about.clone(), cause, reply };
                    books.waiting.insert(work, waiting);
                    answer
                }
            }
        };
        let host = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(takes).await;
            host.commit_due();
        });
        answer.await.expect("every work that was begun is committed")
    }

    /// Commits what is due, notes the effects, and answers whoever waits.
    fn commit_due(&self) {
        let mut books = self.lock();
        let done = books.desk.advance(millis());
        let mut finished = vec![];
        for (work, reply) in done {
            if let Some(waiting) = books.waiting.remove(&work) {
                finished.push((waiting, reply));
            }
        }
        let effects = books.desk.ledger().effects()[books.noted..].to_vec();
        books.noted += effects.len();
        for effect in effects {
            let key = effect.by.key.clone().or_else(|| effect.by.reference.clone());
            let seen = Seen { call: Call::Create, key: key.as_deref(), body: effect.by.body.as_bytes() };
            let about = (self.field.serves)(seen).unwrap_or_else(|| "?".into());
            let cause = finished.iter().find(|(waiting, _)| waiting.about == about).map(|(w, _)| w.cause);
            books.made_for.push(about.clone());
            let kind = Kind::Effect { about, record: effect.record.clone(), key, late: effect.late };
            self.field.event(DESK, kind, cause);
        }
        for (waiting, reply) in finished {
            // Whoever asked may have given up.
            let _ = waiting.reply.send(reply);
        }
    }

    /// Sends an answer on its way.
    fn send(&self, exchange: &ExchangeName, reply: fake::Reply, cause: Step) -> Response<Answer> {
        let (status, summary, record, empty) = summarise(exchange.call, &reply);
        let kind = Kind::Answered { exchange: exchange.clone(), status, summary: summary.clone() };
        let step = self.field.event(DESK, kind, Some(cause));
        let answer = OnItsWay { status, summary, record, empty, cause: step };
        self.field.lock().answers.insert(exchange.clone(), answer);
        response(reply, Answer::whole)
    }

    async fn lose(&self, how: Reply, reply: Option<fake::Reply>) -> Result<Response<Answer>, Lost> {
        match (how, reply) {
            (Reply::Truncated, Some(reply)) => Ok(response(reply, Answer::cut)),
            (Reply::Reset | Reply::Truncated, _) => Err(Lost),
            (Reply::Silence, _) => std::future::pending().await,
        }
    }
}

/// The simulated time as the desk counts it.
fn millis() -> Millis {
    Millis(now().millis())
}

fn error(status: u16) -> fake::Reply {
    let body = serde_json::json!({"error": {"code": "unavailable", "message": "try again later"}});
    fake::Reply { status, headers: vec![], body }
}

/// One line of what an answer says: status, words, the record that it names, and whether it says "none".
fn summarise(call: Call, reply: &fake::Reply) -> (u16, String, Option<String>, bool) {
    let body = &reply.body;
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    if let Some(code) = text(&body["error"]["code"]) {
        let existing = text(&body["error"]["existing_id"]);
        let names = existing.as_deref().map(|id| format!(", {id} exists")).unwrap_or_default();
        return (reply.status, format!("{code}{names}"), existing, false);
    }
    if let Some(found) = body["tickets"].as_array() {
        let ids: Vec<String> = found.iter().filter_map(|ticket| text(&ticket["id"])).collect();
        let more = !body["next_page"].is_null();
        let words = if ids.is_empty() { "no match".to_owned() } else { ids.join(", ") };
        let words = if more { format!("{words}, more pages") } else { words };
        let empty = call == Call::Find && ids.is_empty() && !more;
        return (reply.status, words, ids.into_iter().next(), empty);
    }
    match text(&body["ticket"]["id"]) {
        Some(id) => (reply.status, id.clone(), Some(id), false),
        None => (reply.status, "without an id".into(), None, false),
    }
}

/// The connection breaks without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the connection breaks")]
struct Lost;

/// The body of an answer: whole, or cut off in the middle.
enum Answer {
    Whole(Option<Bytes>),
    Cut(Option<Bytes>),
}

impl Answer {
    fn whole(bytes: Bytes) -> Answer {
        Answer::Whole(Some(bytes))
    }

    fn cut(mut bytes: Bytes) -> Answer {
        bytes.truncate(bytes.len() / 2);
        Answer::Cut(Some(bytes))
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Lost;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Lost>>> {
        Poll::Ready(match &mut *self {
            Answer::Whole(bytes) => bytes.take().map(|bytes| Ok(Frame::data(bytes))),
            Answer::Cut(bytes) => Some(bytes.take().map(Frame::data).ok_or(Lost)),
        })
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Answer::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Answer::Whole(Some(bytes)) => SizeHint::with_exact(bytes.len() as u64),
            _ => SizeHint::default(),
        }
    }
}

fn response(reply: fake::Reply, body: fn(Bytes) -> Answer) -> Response<Answer> {
    let mut builder = Response::builder().status(reply.status).header("content-type", "application/json");
    for (name, value) in &reply.headers {
        builder = builder.header(name, value);
    }
    builder.body(body(Bytes::from(reply.body.to_string()))).expect("the fake's headers are valid")
}
