//! Everything outside: the source that delivers until it is answered, and the people who decide.

use crate::fault::{Call, ExchangeName, Loss, Phase, Place, Variation, What};
use crate::field::{Alive, Field, PEOPLE, SOURCE, WORKFLOW, now};
use crate::history::{Act, Kind, Step, digest};
use crate::io::Io;
use crate::plan::Delivery;
use crate::scenario::Decision;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;

/// How long the source and people wait for an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The source's pause after a delivery that was not answered; doubled up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// What the workflow answered.
struct Answered {
    status: u16,
    body: serde_json::Value,
}

/// Whether an answer is the last word on a delivery: it is taken, or its refusal is recorded.
fn is_settled(answer: &Answered) -> bool {
    match answer.status {
        200..=299 => true,
        400 | 409 | 422 => answer.body["recorded"] == true,
        _ => false,
    }
}

/// How often a source offers what is refused without being recorded, before somebody puts it aside.
const POISONED_TRIES: u32 = 3;

/// The source of requests.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) field: Arc<Field>,
    pub(crate) address: &'static str,
    /// Deliveries that are not answered for good.
    pub(crate) open: Arc<AtomicUsize>,
}

impl Source {
    /// Sends a delivery off at its time, with what the tape has for it: `further` are the deliveries that it
    /// asks for.
    pub(crate) async fn send_off(self, delivery: Delivery, further: Vec<Delivery>) {
        tokio::time::sleep(Duration::from_millis(delivery.at_ms)).await;
        let place = Place::Delivery(delivery.name.clone());
        if let Some(planned) = self.field.foresee(&place) {
            match planned {
                What::HoldBack(ms) => {
                    self.field.strikes(SOURCE, &place, None);
                    tokio::time::sleep(Duration::from_millis(ms)).await;
                }
                What::AtOnce(_) => {
                    self.field.strikes(SOURCE, &place, None);
                    for copy in further {
                        self.field.lock().further.push(copy.clone());
                        self.open.fetch_add(1, Ordering::Relaxed);
                        tokio::spawn(self.clone().until_answered(copy));
                    }
                }
                What::Redeliver { how, after_ms } => {
                    self.field.prolong(after_ms);
                    for again in further {
                        tokio::spawn(self.clone().again(again, place.clone(), how, after_ms));
                    }
                }
                other => unreachable!("the tape keeps {} away from deliveries", other.kind()),
            }
        }
        self.until_answered(delivery).await;
    }

    /// One more delivery, later.
    async fn again(self, delivery: Delivery, place: Place, how: Variation, after_ms: u64) {
        let poisoned = how == Variation::Poison;
        if !poisoned {
            self.open.fetch_add(1, Ordering::Relaxed);
        }
        tokio::time::sleep(Duration::from_millis(after_ms)).await;
        self.field.strikes(SOURCE, &place, None);
        self.field.lock().further.push(delivery.clone());
        if poisoned { self.until_put_aside(delivery).await } else { self.until_answered(delivery).await }
    }

    /// Delivers until the workflow has answered for good: at least once, as real sources do.
    async fn until_answered(self, delivery: Delivery) {
        let mut pause = FIRST_PAUSE;
        while !self.deliver(&delivery).await.as_ref().is_some_and(is_settled) {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    /// Delivers what nobody can read: it is never acknowledged, and nothing waits for it.
    async fn until_put_aside(self, delivery: Delivery) {
        let mut pause = FIRST_PAUSE;
        let mut refused = 0;
        while refused < POISONED_TRIES {
            match self.deliver(&delivery).await {
                Some(answer) if is_settled(&answer) => return,
                Some(answer) if answer.status < 500 => refused += 1,
                _ => {}
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn deliver(&self, delivery: &Delivery) -> Option<Answered> {
        let exchange = self.field.name_exchange(Call::Deliver, &delivery.name);
        post(&self.field, SOURCE, &exchange, self.address, ("/deliveries", &delivery.body), None).await
    }
}

/// A person's decision: tried until the workflow has taken or refused it; the status of its answer.
pub(crate) async fn decide(
    field: &Arc<Field>,
    address: &'static str,
    about: &str,
    (act, decision): (Act, Decision),
) -> Option<u16> {
    let kind = Kind::Person { about: about.to_owned(), act, words: decision.words };
    let wanted = Some(field.event(PEOPLE, kind, None));
    for _ in 0..20 {
        let exchange = field.name_exchange(Call::Decide, about);
        let message = (decision.path.as_str(), &*decision.body);
        let answer = post(field, PEOPLE, &exchange, address, message, wanted).await;
        // What is cancelled before it has arrived is cancelled again.
        let is_early = |status| act == Act::Cancel && status == 404;
        if let Some(answer) = answer.filter(|answer| answer.status < 500 && !is_early(answer.status)) {
            return Some(answer.status);
        }
        tokio::time::sleep(LONGEST_PAUSE).await;
    }
    None
}

/// One exchange with the workflow; none where no answer was heard.
async fn post(
    field: &Arc<Field>,
    from: &'static str,
    exchange: &ExchangeName,
    address: &'static str,
    (path, body): (&str, &[u8]),
    cause: Option<Step>,
) -> Option<Answered> {
    match field.held_up(from, exchange, Phase::BeforeSend, None) {
        Some(wait) => tokio::time::sleep(wait).await,
        None => drop(field.phase(exchange, Phase::BeforeSend)),
    }
    let kind = Kind::Sent {
        exchange: exchange.clone(),
        to: WORKFLOW,
        key: None,
        digest: digest(body),
        summary: format!("POST {path}"),
    };
    let sent = field.event(from, kind, cause);
    let outcome = field.outcome(from, exchange, sent).map(|(what, _)| what);
    let began = now();
    let answer = match outcome {
        Some(What::LoseRequest(_)) => None,
        _ => tokio::time::timeout(PATIENCE, exchange_bytes(field, exchange, address, path, body))
            .await
            .ok()
            .flatten(),
    };
    let lost = matches!(outcome, Some(What::LoseResponse(_)));
    if let Some(What::LoseRequest(Loss::Silence) | What::LoseResponse(Loss::Silence)) = outcome {
        // Who hears nothing waits until the end of its patience.
        let waited = Duration::from_nanos(now().0 - began.0);
        tokio::time::sleep(PATIENCE.saturating_sub(waited)).await;
    }
    match answer.filter(|_| !lost) {
        Some(answer) if field.phase(exchange, Phase::Answered) == Alive::Yes || answer.status < 500 => {
            let delivery = answer.body["delivery"].as_str().or(answer.body["error"].as_str());
            let kind = Kind::Received {
                exchange: exchange.clone(),
                status: answer.status,
                summary: delivery.unwrap_or_default().to_owned(),
                record: None,
                empty: !is_settled(&answer),
            };
            field.event(from, kind, Some(sent));
            Some(answer)
        }
        _ => {
            field.event(from, Kind::Broken { exchange: exchange.clone() }, Some(sent));
            None
        }
    }
}

async fn exchange_bytes(
    field: &Arc<Field>,
    exchange: &ExchangeName,
    address: &'static str,
    path: &str,
    body: &[u8],
) -> Option<Answered> {
    let stream = TcpStream::connect(address).await.ok()?;
    let (mut sender, connection) = http1::handshake(Io::new(stream)).await.ok()?;
    let request = hyper::Request::post(path)
        .header("host", address)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::copy_from_slice(body)))
        .ok()?;
    let answer = async {
        let response = sender.send_request(request).await.ok()?;
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.ok()?.to_bytes();
        Some(Answered { status, body: serde_json::from_slice(&bytes).unwrap_or_default() })
    };
    let mut sent = false;
    let mut answer = std::pin::pin!(answer);
    let mut connection = std::pin::pin!(connection);
    std::future::poll_fn(|cx| {
        use std::future::Future as _;
        use std::task::Poll;
        let mut ready = answer.as_mut().poll(cx);
        if ready.is_pending() && connection.as_mut().poll(cx).is_ready() {
            ready = answer.as_mut().poll(cx);
            if ready.is_pending() {
                return Poll::Ready(None);
            }
        }
        if !sent {
            sent = true;
            // The first turn has put the request on the wire.
            let _ = field.phase(exchange, Phase::Sent);
        }
        if ready.is_pending() {
            ready = answer.as_mut().poll(cx);
        }
        ready
    })
    .await
}
