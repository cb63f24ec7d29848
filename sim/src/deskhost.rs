//! The destination's node: real HTTP in front of the pure fake, and everything that can become of a request
//! and its answer.

mod answer;
mod books;
mod hands;
mod lookups;

use crate::fault::{ExchangeName, Loss, Omission, Phase, Place, Way, What};
use crate::field::{DESK, Field, OnItsWay, now};
use crate::history::{Deed, Kind, Step};
use crate::io::Io;
use crate::plan::{DeskPlan, SENTINEL, UNKNOWN_REQUESTER};
use crate::seed::Seed;
use answer::{Answer, Lost, bare, error, named, response, summarise};
use books::Books;
use bytes::Bytes;
use destinations::fake::http::{HttpRequest, parse};
use destinations::fake::{self, Desk, DeskOptions, Request};
use destinations::{Contract, Millis};
use hands::Doomed;
use http_body_util::BodyExt as _;
use hyper::Response;
use hyper::body::Incoming;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;

/// A job does what was accepted after so many milliseconds at least, and after as many again at most.
const JOB_MS: u64 = 2_000;

/// A request that has arrived.
struct Asked {
    request: HttpRequest,
    exchange: ExchangeName,
    place: Place,
    arrived: Step,
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
        let books = Mutex::new(Books::new(Desk::new((*contract).clone(), options)));
        Arc::new(DeskHost { books, contract, plan, field })
    }

    fn lock(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
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
        if now() < self.lock().there_until {
            return lose(Loss::Silence, None).await;
        }
        let place = Place::Exchange(exchange.clone());
        let planned = self.field.foresee(&place);
        if let Some(loss) = planned.as_ref().and_then(lost_on_the_way) {
            self.field.strikes(DESK, &place, Some(sent));
            if let Some(What::Partition { way, ms }) = planned {
                self.cut(way, ms);
            }
            return lose(loss, None).await;
        }
        let arrived = self.field.event(DESK, Kind::Arrived { exchange: exchange.clone() }, Some(sent));
        let held_up = self.field.held_up(DESK, &exchange, Phase::Arrived, Some(arrived));
        let asked = Asked { request, exchange, place, arrived };
        let Some(wait) = held_up else {
            // The workflow may die here; the request is at the desk all the same.
            let _ = self.field.phase(&asked.exchange, Phase::Arrived);
            return self.fulfil(asked, planned).await;
        };
        // A caller that gives up meanwhile takes nothing back: the request is a task of its own.
        let held = tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            self.fulfil(asked, planned).await
        });
        held.await.unwrap_or(Err(Lost))
    }

    /// The fault that is planned for a request's outcome strikes now, unless the storm is over.
    fn strikes(&self, asked: &Asked) -> Option<Step> {
        self.field.strikes(DESK, &asked.place, Some(asked.arrived))
    }

    /// From now on the link carries nothing this way.
    fn cut(&self, way: Way, ms: u64) {
        let mut books = self.lock();
        let until = now().after_ms(ms);
        if matches!(way, Way::There | Way::Both) {
            books.there_until = books.there_until.max(until);
        }
        if matches!(way, Way::Back | Way::Both) {
            books.back_until = books.back_until.max(until);
        }
    }

    async fn fulfil(
        self: Arc<Self>,
        asked: Asked,
        mut planned: Option<What>,
    ) -> Result<Response<Answer>, Lost> {
        let mut cause = asked.arrived;
        if planned.as_ref().is_some_and(strikes_on_arrival) {
            match self.strikes(&asked) {
                Some(step) => cause = step,
                None => planned = None,
            }
        }
        match &planned {
            Some(What::NotApplied(None) | What::Hang { applied: false }) => {
                return lose(Loss::Silence, None).await;
            }
            Some(What::NotApplied(Some(status))) => {
                return Ok(self.send(&asked.exchange, error(*status), cause));
            }
            Some(What::ForgetKeys) => self.lock().desk.lose_keys(),
            Some(What::KeysDown(ms)) => {
                let mut books = self.lock();
                books.keys_down_until = books.keys_down_until.max(now().after_ms(*ms));
            }
            _ => {}
        }
        let (reply, cause) = self.work(&asked, planned.as_ref(), cause).await;
        match self.field.held_up(DESK, &asked.exchange, Phase::Applied, Some(asked.arrived)) {
            Some(wait) => tokio::time::sleep(wait).await,
            // The effect is there; the workflow may die before it hears of it.
            None => {
                let _ = self.field.phase(&asked.exchange, Phase::Applied);
            }
        }
        self.leave(asked, planned, reply, cause).await
    }

    /// The answer is there and about to leave: what becomes of it.
    async fn leave(
        self: &Arc<Self>,
        asked: Asked,
        planned: Option<What>,
        reply: fake::Reply,
        cause: Step,
    ) -> Result<Response<Answer>, Lost> {
        if now() < self.lock().back_until || matches!(planned, Some(What::ApplyLate(_))) {
            return lose(Loss::Silence, None).await;
        }
        let strikes_now = planned.as_ref().is_some_and(|what| strikes_on_leaving(what, &reply));
        let struck = strikes_now.then(|| self.strikes(&asked)).flatten();
        match (planned, struck) {
            (Some(What::LoseResponse(loss)), Some(_)) => lose(loss, Some(reply)).await,
            (Some(What::Hang { .. }), Some(_)) => lose(Loss::Silence, None).await,
            (Some(What::Partition { way, ms }), Some(_)) => {
                self.cut(way, ms);
                lose(Loss::Silence, None).await
            }
            (Some(What::ErrorAfter(status)), Some(step)) => {
                Ok(self.send(&asked.exchange, error(status), step))
            }
            (Some(What::OmitId(Omission::Garbled)), Some(step)) => {
                Ok(self.send_as(&asked.exchange, bare(reply.status), step, Answer::garbled))
            }
            (Some(What::OmitId(_)), Some(step)) => Ok(self.send(&asked.exchange, bare(reply.status), step)),
            (Some(What::AnswerSlowly(ms)), Some(step)) => {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                if now() < self.lock().back_until {
                    return lose(Loss::Silence, None).await;
                }
                Ok(self.send(&asked.exchange, reply, step))
            }
            (planned, _) => {
                let (exchange, record) = (asked.exchange.clone(), named(&reply).map(str::to_owned));
                self.afterwards(asked, planned, record);
                Ok(self.send(&exchange, reply, cause))
            }
        }
    }

    /// What comes of a request after its answer has left.
    fn afterwards(self: &Arc<Self>, asked: Asked, planned: Option<What>, record: Option<String>) {
        match (planned, record) {
            (Some(What::Duplicate(ms)), _) => self.send_again(asked, ms),
            (Some(What::Undo(ms)), Some(record)) => {
                let (place, about, cause) = (asked.place, asked.exchange.about, asked.arrived);
                let doomed = Doomed { place, about, record, cause };
                self.once_recorded(ms, doomed, Deed::RolledBack);
            }
            _ => {}
        }
    }

    /// Something on the way sends the very request again; nobody hears the answer.
    fn send_again(self: &Arc<Self>, asked: Asked, ms: u64) {
        self.field.prolong(ms);
        let host = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            let Some(step) = host.strikes(&asked) else { return };
            if let Ok(request) = parse(&host.contract, &asked.request) {
                let takes = host.service(&asked.exchange);
                drop(host.begin(request, &asked.exchange, step, takes));
            }
        });
    }

    /// The seed that the desk's times are drawn from.
    fn seed(&self) -> Seed {
        self.field.reroll.seed().unwrap_or(Seed(self.plan.seed))
    }

    /// What the desk takes over a request: its own time for each exchange.
    fn service(&self, exchange: &ExchangeName) -> Duration {
        let spread = self.plan.service_ms.max(1);
        let mut rng = self.seed().stream(&format!("service/{exchange}"));
        Duration::from_millis(spread / 2 + rng.below(spread))
    }

    /// Lets the desk work; also says what the answer follows from.
    async fn work(
        self: &Arc<Self>,
        asked: &Asked,
        planned: Option<&What>,
        cause: Step,
    ) -> (fake::Reply, Step) {
        let request = match parse(&self.contract, &asked.request) {
            Ok(Request::Find { by, value, page }) => return self.look(asked, planned, (by, value, page)),
            Ok(request) => request,
            Err(reply) => return (reply, cause),
        };
        let service = self.service(&asked.exchange);
        let by_job = matches!(planned, Some(What::OmitId(Omission::Accepted)));
        let takes = match planned {
            Some(What::ApplyLate(ms)) => Duration::from_millis(*ms),
            _ if by_job => {
                let mut rng = self.seed().stream(&format!("job/{}", asked.exchange));
                service + Duration::from_millis(JOB_MS + rng.below(JOB_MS))
            }
            _ => service,
        };
        let answer = match self.begin(request, &asked.exchange, cause, takes) {
            Ok(answer) => answer,
            Err(reply) => return (reply, cause),
        };
        if by_job && let Some(step) = self.strikes(asked) {
            tokio::time::sleep(service).await;
            return (bare(202), step);
        }
        (answer.await.expect("every work that was begun is committed"), cause)
    }

    /// Sends an answer on its way.
    fn send(&self, exchange: &ExchangeName, reply: fake::Reply, cause: Step) -> Response<Answer> {
        self.send_as(exchange, reply, cause, Answer::whole)
    }

    fn send_as(
        &self,
        exchange: &ExchangeName,
        reply: fake::Reply,
        cause: Step,
        body: fn(Bytes) -> Answer,
    ) -> Response<Answer> {
        let (status, summary, record, empty) = summarise(exchange.call, &reply);
        let kind = Kind::Answered { exchange: exchange.clone(), status, summary: summary.clone() };
        let step = self.field.event(DESK, kind, Some(cause));
        let answer = OnItsWay { status, summary, record, empty, cause: step };
        self.field.lock().answers.insert(exchange.clone(), answer);
        response(reply, body)
    }
}

/// How a request is lost that never arrives.
fn lost_on_the_way(what: &What) -> Option<Loss> {
    match what {
        What::LoseRequest(loss) => Some(*loss),
        What::Partition { way: Way::There | Way::Both, .. } => Some(Loss::Silence),
        _ => None,
    }
}

/// Whether it strikes before the desk has judged the request.
fn strikes_on_arrival(what: &What) -> bool {
    matches!(
        what,
        What::NotApplied(_)
            | What::Hang { applied: false }
            | What::ApplyLate(_)
            | What::ForgetKeys
            | What::KeysDown(_)
    )
}

/// Whether it strikes this answer, as it leaves.
fn strikes_on_leaving(what: &What, reply: &fake::Reply) -> bool {
    match what {
        What::LoseResponse(_)
        | What::Hang { applied: true }
        | What::ErrorAfter(_)
        | What::AnswerSlowly(_)
        | What::Partition { way: Way::Back, .. } => true,
        // A refusal names no record that could be left out.
        What::OmitId(Omission::NoId | Omission::Garbled) => named(reply).is_some(),
        _ => false,
    }
}

/// The caller hears nothing, or only a part.
async fn lose(how: Loss, reply: Option<fake::Reply>) -> Result<Response<Answer>, Lost> {
    match (how, reply) {
        (Loss::Truncated, Some(reply)) => Ok(response(reply, Answer::cut)),
        (Loss::Reset | Loss::Truncated, _) => Err(Lost),
        (Loss::Silence, _) => std::future::pending().await,
    }
}

/// The simulated time as the desk counts it.
fn millis() -> Millis {
    Millis(now().millis())
}
