//! The caller's end of an exchange: names it, reports its phases, and lets the tape decide what becomes of
//! it.

use crate::fault::{Call, ExchangeName, Phase, What};
use crate::field::{Alive, Field, OnItsWay, WORKFLOW, now, short};
use crate::history::{Kind, Step, digest};
use crate::scenario::{BoxFuture, Connect, Seen, Stream};
use destinations::Contract;
use destinations::fake::Request;
use destinations::fake::http::{HttpRequest, parse};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// What a request turned out to be about.
pub(crate) struct Recognised {
    pub(crate) call: Call,
    pub(crate) about: String,
    pub(crate) key: Option<String>,
}

/// Recognises a request to the destination, on both ends alike.
pub(crate) fn recognise(field: &Field, contract: &Contract, request: &HttpRequest) -> Recognised {
    let parsed = parse(contract, request);
    let (call, key) = match &parsed {
        Ok(Request::Create { key, reference, client_id, .. }) => {
            (Call::Create, key.clone().or_else(|| reference.clone()).or_else(|| client_id.clone()))
        }
        Ok(Request::Upsert { key, reference, .. }) => {
            (Call::Create, key.clone().or_else(|| Some(reference.clone())))
        }
        Ok(Request::Find { value, .. }) => (Call::Find, Some(value.clone())),
        Ok(Request::Fetch { id }) => (Call::Fetch, Some(id.clone())),
        Err(_) if request.method == "GET" => (Call::Find, None),
        Err(_) => (Call::Create, None),
    };
    let seen = Seen { call, key: key.as_deref(), body: &request.body };
    let known = key.as_ref().and_then(|key| field.lock().keys.get(key).cloned());
    let about = (field.serves)(seen).or(known).unwrap_or_else(|| "?".into());
    Recognised { call, about, key }
}

/// Opens connections from the workflow to the destination.
pub(crate) fn connect(field: &Arc<Field>, contract: &Arc<Contract>, to: &'static str) -> Connect {
    let (field, contract) = (field.clone(), contract.clone());
    Arc::new(move |address| {
        let (field, contract) = (field.clone(), contract.clone());
        let opening: BoxFuture<'static, io::Result<Box<dyn Stream>>> = Box::pin(async move {
            match field.connects() {
                Some((What::Refuse, cause)) => {
                    field.event(WORKFLOW, Kind::Refused { to }, Some(cause));
                    return Err(io::ErrorKind::ConnectionRefused.into());
                }
                // Whoever connects has to give up.
                Some((What::HangConnecting, _)) => std::future::pending::<()>().await,
                _ => {}
            }
            let stream = TcpStream::connect(address).await?;
            let boot = field.lock().boot;
            let end = Stage::Gathering(vec![]);
            Ok(Box::new(Lane { stream, field, contract, to, boot, stage: end }) as Box<dyn Stream>)
        });
        opening
    })
}

enum Stage {
    /// The request is not whole yet.
    Gathering(Vec<u8>),
    /// It is whole and on its way into the stream below, up to this byte.
    Leaving { bytes: Vec<u8>, done: usize, exchange: ExchangeName },
    /// It has left; the answer has not come.
    Left { exchange: ExchangeName, step: Step },
    /// The answer is coming in.
    Answering,
    /// The process is dead: nothing moves any more.
    Dead,
}

/// One connection from the workflow, for one exchange.
struct Lane {
    stream: TcpStream,
    field: Arc<Field>,
    contract: Arc<Contract>,
    to: &'static str,
    boot: u32,
    stage: Stage,
}

impl Lane {
    /// The process that opened this connection is still the one that runs.
    fn is_current(&self) -> bool {
        let state = self.field.lock();
        state.up && state.boot == self.boot
    }

    /// The whole request is here: name it, let the tape refuse it, and report that it is about to leave.
    fn depart(&mut self, bytes: Vec<u8>, request: &HttpRequest) -> io::Result<Stage> {
        let known = recognise(&self.field, &self.contract, request);
        let exchange = self.field.name_exchange(known.call, &known.about);
        if let Some(key) = known.key.as_ref().filter(|_| known.call == Call::Create) {
            self.field.lock().keys.insert(key.clone(), known.about.clone());
        }
        if self.field.phase(&exchange, Phase::BeforeSend) == Alive::No {
            return Ok(Stage::Dead);
        }
        let here = Step(self.field.lock().history.events().len() as u32);
        if self.field.is_refused(&exchange)
            && let Some((_, cause)) = self.field.outcome(self.to, &exchange, here)
        {
            self.field.event(WORKFLOW, Kind::Refused { to: self.to }, Some(cause));
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let key = known.key.clone();
        let carried = key.as_deref().map(|key| format!(", {}", short(key))).unwrap_or_default();
        let kind = Kind::Sent {
            exchange: exchange.clone(),
            to: self.to,
            digest: digest(&request.body),
            summary: format!(
                "{} {}{carried}",
                request.method,
                request.target.split('?').next().unwrap_or_default()
            ),
            key,
        };
        let step = self.field.event(WORKFLOW, kind, None);
        self.field.departs(self.stream.local_addr()?, &exchange, step);
        Ok(Stage::Leaving { bytes, done: 0, exchange })
    }

    /// Moves what has gathered into the stream below.
    fn poll_leave(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Stage::Leaving { bytes, done, exchange } = &mut self.stage {
            while *done < bytes.len() {
                *done += ready!(Pin::new(&mut self.stream).poll_write(cx, &bytes[*done..]))?;
            }
            let exchange = exchange.clone();
            ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
            let step = Step(self.field.lock().history.events().len() as u32);
            self.stage = match self.field.phase(&exchange, Phase::Sent) {
                Alive::Yes => Stage::Left { exchange, step },
                Alive::No => Stage::Dead,
            };
        }
        if matches!(self.stage, Stage::Dead) { Poll::Pending } else { Poll::Ready(Ok(())) }
    }

    /// The first bytes of the answer are here.
    fn answered(&mut self) -> Alive {
        let Stage::Left { exchange, .. } = &self.stage else { return Alive::Yes };
        let exchange = exchange.clone();
        if self.field.phase(&exchange, Phase::Answered) == Alive::No {
            self.stage = Stage::Dead;
            return Alive::No;
        }
        let answer = self.field.lock().answers.remove(&exchange);
        if let Some(OnItsWay { status, summary, record, empty, cause }) = answer {
            self.stage = Stage::Answering;
            let kind = Kind::Received { exchange, status, summary, record, empty };
            self.field.event(WORKFLOW, kind, Some(cause));
        }
        Alive::Yes
    }
}

impl AsyncWrite for Lane {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if !this.is_current() {
            return Poll::Pending;
        }
        let Stage::Gathering(gathered) = &mut this.stage else {
            return Poll::Ready(Err(io::Error::other("one exchange a connection")));
        };
        gathered.extend_from_slice(bytes);
        if let Some(request) = whole_request(gathered) {
            let all = std::mem::take(gathered);
            this.stage = this.depart(all, &request)?;
            if matches!(this.stage, Stage::Dead) {
                return Poll::Pending;
            }
            // The stream below takes it at the flush that follows every write.
            if let Poll::Ready(left) = this.poll_leave(cx) {
                left?;
            }
            if matches!(this.stage, Stage::Dead) {
                return Poll::Pending;
            }
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_leave(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl AsyncRead for Lane {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if matches!(this.stage, Stage::Dead) || !this.is_current() {
            return Poll::Pending;
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buf))?;
        if buf.filled().len() > before && this.answered() == Alive::No {
            buf.set_filled(before);
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for Lane {
    /// The caller gave up, or its connection broke. A dead process notes nothing.
    fn drop(&mut self) {
        if let Stage::Left { exchange, step } = &self.stage
            && self.is_current()
            && madsim::time::TimeHandle::try_current().is_some()
        {
            let kind = Kind::Broken { exchange: exchange.clone() };
            self.field.lock().history.add(now(), WORKFLOW, kind, Some(*step));
        }
    }
}

/// The request in `bytes`, if all of it is there.
fn whole_request(bytes: &[u8]) -> Option<HttpRequest> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length: usize = length.map_or(Some(0), |(_, value)| value.parse().ok())?;
    let body = &bytes[end + 4..];
    (body.len() >= length).then(|| HttpRequest { method, target, headers, body: body[..length].to_vec() })
}
