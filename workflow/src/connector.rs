//! One HTTP exchange with a destination, observed: no retry, no redirect, no pool, and proof of what was
//! sent.

use crate::evidence::{LookupReport, Observed, Record, record_of};
use crate::http::Io;
use crate::mutant::{Mistake, Mutant};
use crate::operation::FrozenRequest;
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{Request, Response};
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

/// A byte stream to a destination.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection that is being opened.
pub type Opening = Pin<Box<dyn Future<Output = io::Result<Box<dyn Stream>>> + Send>>;

/// How connections are opened: TCP, or what a caller wraps around it (TLS, a proxy, a simulated wire).
#[derive(Clone)]
pub struct Connect(Arc<dyn Fn(String) -> Opening + Send + Sync>);

impl Connect {
    /// Plain TCP to `host:port`.
    pub fn tcp() -> Connect {
        Connect::from_fn(|address| {
            Box::pin(async move {
                let stream = tokio::net::TcpStream::connect(address).await?;
                Ok(Box::new(stream) as Box<dyn Stream>)
            })
        })
    }

    /// Whatever opens a stream to an address.
    pub fn from_fn(open: impl Fn(String) -> Opening + Send + Sync + 'static) -> Connect {
        Connect(Arc::new(open))
    }
}

impl fmt::Debug for Connect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connect")
    }
}

/// The way to one destination: a fresh connection for each exchange, so that nothing below the engine can
/// resend.
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    pub(crate) connect: Connect,
    /// `host:port`.
    pub(crate) address: String,
    /// A header line with credentials, added to what is frozen, never stored.
    pub(crate) credentials: Option<(String, String)>,
    pub(crate) answer_limit: usize,
    pub(crate) max_pages: u32,
    pub(crate) mutant: Mutant,
}

impl Connector {
    /// Sends a frozen request once and observes what comes of it within `patience`.
    pub(crate) async fn exchange(&self, request: &FrozenRequest, patience: Duration) -> Observed {
        let request = match self.build(request) {
            Ok(request) => request,
            Err(why) => return Observed::NotSent { why },
        };
        let sent = Arc::new(AtomicU64::new(0));
        // The whole exchange is this one future: when it is dropped, no byte can leave any more, so the
        // counter is final.
        let again = self.mutant.is(Mistake::ClientRetries).then(|| request.clone());
        let outcome = tokio::time::timeout(patience, self.attempt(request, sent.clone())).await;
        let outcome = match (outcome, again) {
            (Ok(Err(_)), Some(again)) if again.method() != "GET" => {
                tokio::time::timeout(patience, self.attempt(again, sent.clone())).await
            }
            (outcome, _) => outcome,
        };
        let why = match outcome {
            Ok(Ok((status, body))) => return Observed::Answer { status, body },
            Ok(Err(why)) => why,
            Err(_) => format!("no answer within {}", humantime::format_duration(patience)),
        };
        if sent.load(Ordering::Relaxed) == 0 { Observed::NotSent { why } } else { Observed::Broken { why } }
    }

    fn build(&self, frozen: &FrozenRequest) -> Result<Request<Full<Bytes>>, String> {
        let mut builder = Request::builder()
            .method(frozen.method.as_str())
            .uri(frozen.target.as_str())
            .header("host", self.address.as_str());
        for (name, value) in frozen.headers.iter().chain(&self.credentials) {
            builder = builder.header(name.as_str(), value.as_str());
        }
        let body = Full::new(Bytes::from(frozen.body.clone()));
        builder.body(body).map_err(|e| format!("the request cannot be put on the wire: {e}"))
    }

    async fn attempt(
        &self,
        request: Request<Full<Bytes>>,
        sent: Arc<AtomicU64>,
    ) -> Result<(u16, Bytes), String> {
        let stream = (self.connect.0)(self.address.clone()).await.map_err(|e| e.to_string())?;
        let io = Io::counting(stream, sent);
        let (mut sender, connection) = http1::handshake(io).await.map_err(|e| e.to_string())?;
        let mut connection = std::pin::pin!(connection);
        let mut answer = std::pin::pin!(async {
            let response = sender.send_request(request).await.map_err(|e| text(&e))?;
            self.read(response).await
        });
        let mut closed = false;
        std::future::poll_fn(|cx| {
            if let std::task::Poll::Ready(done) = answer.as_mut().poll(cx) {
                return std::task::Poll::Ready(done);
            }
            if !closed && connection.as_mut().poll(cx).is_ready() {
                closed = true;
                return answer.as_mut().poll(cx);
            }
            answer.as_mut().poll(cx)
        })
        .await
    }

    async fn read(&self, response: Response<Incoming>) -> Result<(u16, Bytes), String> {
        let status = response.status().as_u16();
        let mut body = response.into_body();
        let mut bytes = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|e| text(&e))?;
            let Some(data) = frame.data_ref() else { continue };
            if bytes.len() + data.len() > self.answer_limit {
                return Err(format!("the answer is longer than {} bytes", self.answer_limit));
            }
            bytes.extend_from_slice(data);
        }
        Ok((status, bytes.freeze()))
    }

    /// Reads a record by the destination's own id. `Ok(None)` only where the destination says that there is
    /// none.
    pub(crate) async fn fetch(&self, id: &str, patience: Duration) -> Result<Option<Record>, String> {
        let id = percent_encoding::utf8_percent_encode(id, percent_encoding::NON_ALPHANUMERIC);
        match self.exchange(&get(format!("/tickets/{id}")), patience).await {
            Observed::Answer { status: 200, body } => {
                crate::evidence::read_record(&body).map(Some).ok_or_else(|| "the record is unreadable".into())
            }
            Observed::Answer { status: 404, .. } => Ok(None),
            Observed::Answer { status, .. } => Err(format!("the destination answered {status}")),
            Observed::NotSent { why } | Observed::Broken { why } => Err(why),
        }
    }

    /// Walks every page of a look-up.
    pub(crate) async fn find(&self, parameter: &str, value: &str, patience: Duration) -> LookupReport {
        let value =
            percent_encoding::utf8_percent_encode(value, percent_encoding::NON_ALPHANUMERIC).to_string();
        let mut matches = vec![];
        let mut page = 1;
        for pages in 1..=self.max_pages {
            let target = format!("/tickets?{parameter}={value}&page={page}");
            let body = match self.exchange(&get(target), patience).await {
                Observed::Answer { status: 200, body } => body,
                Observed::Answer { status, .. } => {
                    return LookupReport::Incomplete(format!("page {page} was answered {status}"));
                }
                Observed::NotSent { why } | Observed::Broken { why } => return LookupReport::Incomplete(why),
            };
            let Some((mut found, next)) = read_page(&body) else {
                return LookupReport::Incomplete(format!("page {page} is unreadable"));
            };
            matches.append(&mut found);
            match next {
                None => return LookupReport::Complete { matches, pages },
                Some(_) if self.mutant.is(Mistake::FirstPageOnly) => {
                    return LookupReport::Complete { matches, pages };
                }
                Some(next) => page = next,
            }
        }
        LookupReport::Incomplete(format!("more than {} pages", self.max_pages))
    }
}

fn get(target: String) -> FrozenRequest {
    let headers = vec![("accept".into(), "application/json".into())];
    FrozenRequest { method: "GET".into(), target, headers, body: String::new() }
}

/// One page: its records, and the number of the next one. None when any of it is unreadable.
fn read_page(body: &[u8]) -> Option<(Vec<Record>, Option<u64>)> {
    let value: serde_json::Value = serde_json::from_slice(body).ok()?;
    let records = value.get("tickets")?.as_array()?.iter().map(record_of).collect::<Option<Vec<_>>>()?;
    let next = match value.get("next_page")? {
        serde_json::Value::Null => None,
        next => Some(next.as_u64()?),
    };
    Some((records, next))
}

/// An error of hyper with its cause, which hyper's own text leaves out.
fn text(error: &hyper::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_whole_or_unreadable() {
        let page = |text: &str| read_page(text.as_bytes()).map(|(found, next)| (found.len(), next));
        assert_eq!(page(r#"{"tickets":[{"id":"T1"}],"next_page":2}"#), Some((1, Some(2))));
        assert_eq!(page(r#"{"tickets":[],"next_page":null}"#), Some((0, None)));
        for broken in ["", "{}", r#"{"tickets":[]}"#, r#"{"tickets":[{}],"next_page":null}"#, "[]"] {
            assert_eq!(page(broken), None, "{broken}");
        }
    }
}
