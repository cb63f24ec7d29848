//! What the destination's node says: answers whole, cut off or unreadable, and what they say in one line.

use crate::fault::Call;
use bytes::Bytes;
use destinations::fake;
use hyper::Response;
use hyper::body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};

/// The connection breaks without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the connection breaks")]
pub(crate) struct Lost;

/// The body of an answer: whole, or cut off in the middle.
pub(crate) enum Answer {
    Whole(Option<Bytes>),
    Cut(Option<Bytes>),
}

impl Answer {
    pub(super) fn whole(bytes: Bytes) -> Answer {
        Answer::Whole(Some(bytes))
    }

    pub(super) fn cut(mut bytes: Bytes) -> Answer {
        bytes.truncate(bytes.len() / 2);
        Answer::Cut(Some(bytes))
    }

    /// A whole answer whose body is no JSON, and names nothing.
    pub(super) fn garbled(bytes: Bytes) -> Answer {
        let noise: Vec<u8> = bytes.iter().map(|byte| byte.reverse_bits() | 0x80).collect();
        Answer::Whole(Some(noise.into()))
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

pub(super) fn response(reply: fake::Reply, body: fn(Bytes) -> Answer) -> Response<Answer> {
    let mut builder = Response::builder().status(reply.status).header("content-type", "application/json");
    for (name, value) in &reply.headers {
        builder = builder.header(name, value);
    }
    builder.body(body(Bytes::from(reply.body.to_string()))).expect("the fake's headers are valid")
}

pub(super) fn error(status: u16) -> fake::Reply {
    let body = serde_json::json!({"error": {"code": "unavailable", "message": "try again later"}});
    fake::Reply { status, headers: vec![], body }
}

/// A success that names no record.
pub(super) fn bare(status: u16) -> fake::Reply {
    let body = if status == 202 {
        serde_json::json!({"job": {"status": "queued"}})
    } else {
        serde_json::json!({"ticket": {}})
    };
    fake::Reply { status, headers: vec![], body }
}

/// The record that a success names.
pub(super) fn named(reply: &fake::Reply) -> Option<&str> {
    reply.body["ticket"]["id"].as_str().filter(|_| (200..300).contains(&reply.status))
}

/// One line of what an answer says: status, words, the record that it names, and whether it says "none".
pub(super) fn summarise(call: Call, reply: &fake::Reply) -> (u16, String, Option<String>, bool) {
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
        None if reply.status == 202 => (reply.status, "accepted, without an id".into(), None, false),
        None => (reply.status, "without an id".into(), None, false),
    }
}
