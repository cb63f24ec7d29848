//! The HTTP side: deliveries come in, people ask and decide; nothing is acknowledged before it is durable.

use crate::definition::{InvalidRequest, ReadRequest};
use crate::engine::Engine;
use crate::explain::{CHANGED, CHANGED_AFTER_REJECTION};
use crate::http::Io;
use crate::licence::Reason;
use crate::mutant::{Mistake, Mutant};
use crate::operation::{OperationKey, sha256_hex};
use crate::people::{ACTIONS, DecisionError, SAID, read, read_said};
use crate::reconcile::ReconcileError;
use crate::state::State;
use crate::store::{Accepted, NewDelivery, NewException, NewOperation, Operation, StoreError};
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use serde_json::{Map, Value, json};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// A connection that sends no request for so long is closed.
const IDLE: Duration = Duration::from_secs(60);

/// An answer: a status and a JSON body.
type Answer = (StatusCode, Value);

impl Engine {
    /// Serves deliveries and people until the listener fails.
    ///
    /// # Errors
    /// When the listener fails.
    pub async fn serve(&self, listener: TcpListener) -> std::io::Result<Infallible> {
        let places = Arc::new(Semaphore::new(self.shared.workflow.definition.policy.max_connections));
        loop {
            let place = places.clone().acquire_owned().await.expect("the semaphore is never closed");
            let (stream, _) = match listener.accept().await {
                Ok(accepted) => accepted,
                // One client's broken connection, or no file handle left for a moment.
                Err(error) if is_passing(&error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let engine = self.clone();
            tokio::spawn(async move {
                engine.serve_connection(stream).await;
                drop(place);
            });
        }
    }

    async fn serve_connection(&self, stream: TcpStream) {
        let service = hyper::service::service_fn(move |request| {
            let engine = self.clone();
            async move { Ok::<_, Infallible>(engine.answer(request).await) }
        });
        let mut http = hyper::server::conn::http1::Builder::new();
        http.timer(crate::http::Timer).header_read_timeout(IDLE).auto_date_header(false);
        if let Err(error) = http.serve_connection(Io::new(stream), service).await {
            tracing::debug!(%error, "a connection ended early");
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (status, body) = match self.route(request).await {
            Ok(answer) | Err(answer) => answer,
        };
        let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
        *response.status_mut() = status;
        let json = hyper::header::HeaderValue::from_static("application/json");
        response.headers_mut().insert("content-type", json);
        response
    }

    async fn route(&self, request: Request<Incoming>) -> Result<Answer, Answer> {
        let method = request.method().clone();
        let path = request.uri().path().to_owned();
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        match (&method, parts.as_slice()) {
            (&Method::POST, ["deliveries"]) => {
                let body = self.read_json(request).await?;
                // A source that hangs up must not cut this short: what is durable has to get on the agenda.
                let engine = self.clone();
                if self.mutant().is(Mistake::HangUpCutsShort) {
                    return engine.deliver(&body).await;
                }
                let taken = tokio::spawn(async move { engine.deliver(&body).await });
                taken.await.expect("taking a delivery does not panic and is never aborted")
            }
            (&Method::GET, ["operations", key]) => self.get_operation(&decode(key)?).await,
            (&Method::POST, ["operations", key, action]) if ACTIONS.contains(action) => {
                let key = decode(key)?;
                let body = self.read_json(request).await?;
                self.post_decision(&key, action, &body).await
            }
            (&Method::GET, ["exceptions"]) => match self.exceptions().await {
                Ok(cases) => Ok((StatusCode::OK, json!({ "exceptions": cases }))),
                Err(error) => Err(self.unavailable(&error)),
            },
            (&Method::GET, ["discrepancies"]) => match self.discrepancies().await {
                Ok(all) => Ok((StatusCode::OK, json!({ "discrepancies": all }))),
                Err(error) => Err(self.unavailable(&error)),
            },
            (&Method::POST, ["discrepancies", id, says]) if SAID.iter().any(|(word, _)| word == says) => {
                let body = self.read_json(request).await?;
                self.post_said(id, says, &body).await
            }
            (&Method::POST, ["reconcile"]) => {
                // Whoever asks says so in JSON: a page in a browser cannot do that without leave.
                self.read_json(request).await?;
                // Who hangs up does not stop it half way.
                let engine = self.clone();
                let done = tokio::spawn(async move { engine.reconcile().await });
                match done.await.expect("reconciling does not panic and is never aborted") {
                    Ok(report) => {
                        let body = serde_json::to_value(report).expect("a report is plain data");
                        Ok((StatusCode::OK, body))
                    }
                    Err(ReconcileError::UnderWay) => {
                        Err(refusal(StatusCode::CONFLICT, ReconcileError::UnderWay.to_string()))
                    }
                    Err(ReconcileError::Store(error)) => Err(self.unavailable(&error)),
                }
            }
            (
                _,
                ["deliveries"]
                | ["exceptions"]
                | ["discrepancies"]
                | ["reconcile"]
                | ["operations", _]
                | ["discrepancies", _, _],
            ) => Err(refusal(StatusCode::METHOD_NOT_ALLOWED, format!("{method} is not possible on {path}"))),
            (_, ["operations", _, action]) if ACTIONS.contains(action) => {
                Err(refusal(StatusCode::METHOD_NOT_ALLOWED, format!("{method} is not possible on {path}")))
            }
            _ => Err(refusal(StatusCode::NOT_FOUND, format!("there is nothing at {path}"))),
        }
    }

    async fn read_json(&self, request: Request<Incoming>) -> Result<Bytes, Answer> {
        let content_type = request.headers().get("content-type").and_then(|value| value.to_str().ok());
        let essence = content_type.and_then(|value| value.split(';').next()).unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case("application/json") {
            let why = format!("the content type must be application/json, not {essence:?}");
            return Err(refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
        }
        let policy = &self.shared.workflow.definition.policy;
        let patience = policy.body_timeout;
        let body = self.read_body(request.into_body(), policy.body_limit);
        tokio::time::timeout(patience, body).await.unwrap_or_else(|_| {
            let why = format!("the body did not come within {}", humantime::format_duration(patience));
            Err(refusal(StatusCode::REQUEST_TIMEOUT, why))
        })
    }

    async fn read_body(&self, mut body: Incoming, limit: usize) -> Result<Bytes, Answer> {
        let mut bytes = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame =
                frame.map_err(|e| refusal(StatusCode::BAD_REQUEST, format!("the body broke off: {e}")))?;
            let Some(data) = frame.data_ref() else { continue };
            if bytes.len() + data.len() > limit {
                let why = format!("the body is longer than {limit} bytes");
                return Err(refusal(StatusCode::PAYLOAD_TOO_LARGE, why));
            }
            bytes.extend_from_slice(data);
        }
        Ok(bytes.freeze())
    }

    /// Takes a delivery in: what is answered 202 is durable.
    async fn deliver(&self, body: &[u8]) -> Result<Answer, Answer> {
        let envelope = serde_json::from_slice::<Map<String, Value>>(body);
        let trusting = self.mutant().is(Mistake::PanicOnPoison);
        assert!(!trusting || envelope.is_ok(), "a delivery is a JSON object");
        let envelope = envelope.map_err(|e| unrecorded(format!("the body is not a JSON object: {e}")))?;
        let delivery = read_delivery(&envelope, body).map_err(unrecorded)?;
        let Some(Value::Object(request)) = envelope.get("request") else {
            return Err(self.refuse(delivery, "`request` must be an object".into()).await);
        };
        let read = match self.read(request, &delivery) {
            Ok(read) => read,
            Err(invalid) => return Err(self.refuse(delivery, invalid.to_string()).await),
        };
        if self.shared.agenda.is_full() {
            return Err(refusal(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many operations have not ended".into(),
            ));
        }
        let key = read.operation.key.clone();
        let engine = self.clone();
        let on_change = move |operation: &Operation| engine.shared.changed_request(operation);
        if self.mutant().is(Mistake::AcknowledgedBeforeDurable) {
            return Ok(self.acknowledge_early(key, delivery, read.operation, on_change));
        }
        let accepted = self.shared.store.accept(delivery, read.operation, on_change).await;
        let accepted = accepted.map_err(|error| self.unavailable(&error))?;
        if let Some(invalid) = read.invalid {
            let body = json!({"error": invalid.to_string(), "recorded": true, "operation": key});
            return Err((StatusCode::BAD_REQUEST, body));
        }
        Ok(self.acknowledge(&key, accepted))
    }

    fn read(
        &self,
        request: &Map<String, Value>,
        delivery: &NewDelivery,
    ) -> Result<ReadRequest, InvalidRequest> {
        let workflow = &self.shared.workflow;
        if self.mutant().is(Mistake::DeliveryIdInKey) {
            let field = &workflow.definition.request_id;
            let name = request.get(field).and_then(Value::as_str).unwrap_or_default();
            let mut request = request.clone();
            request.insert(field.clone(), format!("{name} {}", delivery.delivery_id).into());
            return workflow.read(&request);
        }
        let read = workflow.read(request)?;
        Ok(ReadRequest { operation: self.mutant().operation(read.operation), ..read })
    }

    /// The mistake of an engine that answers before it has written.
    fn acknowledge_early(
        &self,
        key: OperationKey,
        delivery: NewDelivery,
        operation: NewOperation,
        on_change: impl Fn(&Operation) -> NewException + Send + 'static,
    ) -> Answer {
        let (engine, answered) = (self.clone(), key.clone());
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            if let Ok(accepted) = engine.shared.store.accept(delivery, operation, on_change).await {
                engine.acknowledge(&key, accepted);
            }
        });
        (StatusCode::ACCEPTED, json!({"operation": answered, "delivery": "new"}))
    }

    fn mutant(&self) -> Mutant {
        self.shared.mutant()
    }

    fn acknowledge(&self, key: &OperationKey, accepted: Accepted) -> Answer {
        let answer = |status, key: &OperationKey, delivery: &str| {
            (status, json!({"operation": key, "delivery": delivery}))
        };
        match accepted {
            Accepted::New(operation) => {
                self.shared.agenda.put(crate::clock::Timestamp(0), key.clone(), Some(operation));
                answer(StatusCode::ACCEPTED, key, "new")
            }
            Accepted::Same { key, state } => {
                if self.mutant().is(Mistake::LookupThenCreate) && !state.is_terminal() {
                    self.shared.agenda.put(crate::clock::Timestamp(0), key.clone(), None);
                }
                answer(StatusCode::ACCEPTED, &key, "same")
            }
            Accepted::Changed { key } => {
                self.shared.cases.notify_one();
                let (status, mut body) = answer(StatusCode::CONFLICT, &key, "changed");
                body["error"] =
                    "this request was delivered before with another meaning; a person decides".into();
                body["recorded"] = true.into();
                (status, body)
            }
        }
    }

    /// Records that a delivery was refused, then says so.
    async fn refuse(&self, delivery: NewDelivery, why: String) -> Answer {
        match self.shared.store.refuse(delivery, format!("refused: {why}")).await {
            Ok(()) => (StatusCode::BAD_REQUEST, json!({"error": why, "recorded": true})),
            Err(error) => self.unavailable(&error),
        }
    }

    fn unavailable(&self, error: &StoreError) -> Answer {
        self.shared.stop(error);
        refusal(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
    }

    async fn get_operation(&self, key: &OperationKey) -> Result<Answer, Answer> {
        match self.explain(key).await {
            Ok(Some(explanation)) => {
                let body = serde_json::to_value(explanation).expect("an explanation is plain data");
                Ok((StatusCode::OK, body))
            }
            Ok(None) => self.get_tombstone(key).await,
            Err(error) => Err(self.unavailable(&error)),
        }
    }

    /// An operation whose records were removed is told apart from one that never was.
    async fn get_tombstone(&self, key: &OperationKey) -> Result<Answer, Answer> {
        match self.tombstone(key).await {
            Ok(Some(stone)) => {
                let (ended, purged) = (stone.ended, stone.purged);
                let why = format!("`{key}` ended on {ended}; its records were removed on {purged}");
                let body = json!({"error": why, "operation": key, "detail": stone.state.as_str(),
                    "external_ref": stone.external_ref});
                Err((StatusCode::GONE, body))
            }
            Ok(None) => Err(refusal(StatusCode::NOT_FOUND, format!("there is no operation `{key}`"))),
            Err(error) => Err(self.unavailable(&error)),
        }
    }

    async fn post_said(&self, id: &str, says: &str, body: &[u8]) -> Result<Answer, Answer> {
        let said = read_said(body).map_err(|why| refusal(StatusCode::BAD_REQUEST, why))?;
        let (_, status) = SAID.iter().find(|(word, _)| *word == says).expect("it was looked for before");
        match self.settle_discrepancy(id, status, said).await {
            Ok(Some(found)) => {
                Ok((StatusCode::OK, serde_json::to_value(found).expect("a discrepancy is plain data")))
            }
            Ok(None) => {
                let why = format!("there is no open discrepancy `{id}`");
                Err(refusal(StatusCode::NOT_FOUND, why))
            }
            Err(DecisionError::Store(error)) => Err(self.unavailable(&error)),
            Err(error) => Err(refusal(StatusCode::BAD_REQUEST, error.to_string())),
        }
    }

    async fn post_decision(&self, key: &OperationKey, action: &str, body: &[u8]) -> Result<Answer, Answer> {
        let (verdict, decider) = read(action, body).map_err(|why| refusal(StatusCode::BAD_REQUEST, why))?;
        match self.decide(key, verdict, decider).await {
            Ok(()) => Ok((StatusCode::OK, json!({"operation": key, "decision": action}))),
            Err(error) => {
                let status = match &error {
                    DecisionError::NoOperation(_) => StatusCode::NOT_FOUND,
                    DecisionError::Unsigned(_) | DecisionError::Invalid(_) => StatusCode::BAD_REQUEST,
                    DecisionError::NotFound(_) => StatusCode::UNPROCESSABLE_ENTITY,
                    DecisionError::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
                    DecisionError::NothingToDecide { .. }
                    | DecisionError::Stale { .. }
                    | DecisionError::MayExist
                    | DecisionError::TooEarly(_)
                    | DecisionError::NotPermitted(_) => StatusCode::CONFLICT,
                };
                let mut body = json!({ "error": error.to_string() });
                if let DecisionError::Stale { version, .. } = &error {
                    body["version"] = (*version).into();
                }
                Err((status, body))
            }
        }
    }
}

impl crate::engine::Shared {
    /// The case that opens when the request of this operation is delivered with another meaning.
    fn changed_request(&self, operation: &Operation) -> NewException {
        let rejected = operation.state == State::Invalid;
        let facts = if rejected { CHANGED_AFTER_REJECTION } else { CHANGED };
        NewException { facts: facts.into(), ..self.exception(operation, Reason::ChangedRequest) }
    }
}

/// Who delivers what: both must be there before anything can be recorded.
fn read_delivery(envelope: &Map<String, Value>, body: &[u8]) -> Result<NewDelivery, String> {
    let text = |field: &str| match envelope.get(field).and_then(Value::as_str) {
        Some(text) if !text.trim().is_empty() && text.chars().count() <= 200 => Ok(text.to_owned()),
        _ => Err(format!("`{field}` must be a non-empty text of at most 200 characters")),
    };
    Ok(NewDelivery { source: text("source")?, delivery_id: text("delivery_id")?, digest: sha256_hex(body) })
}

fn decode(part: &str) -> Result<OperationKey, Answer> {
    // A key contains percent signs of its own where a request's name needed escaping; in a URL they are
    // escaped again.
    percent_encoding::percent_decode_str(part)
        .decode_utf8()
        .map(|key| OperationKey::from_printed(key.into_owned()))
        .map_err(|_| refusal(StatusCode::BAD_REQUEST, "the operation's key is not UTF-8".into()))
}

fn refusal(status: StatusCode, why: String) -> Answer {
    (status, json!({ "error": why }))
}

fn unrecorded(why: String) -> Answer {
    (StatusCode::BAD_REQUEST, json!({"error": why, "recorded": false}))
}

fn is_passing(error: &std::io::Error) -> bool {
    use std::io::ErrorKind as E;
    // 23 and 24: no file handle left, in the system or in this process.
    matches!(error.kind(), E::ConnectionReset | E::ConnectionAborted | E::Interrupted)
        || matches!(error.raw_os_error(), Some(23 | 24))
}
