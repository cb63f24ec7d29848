//! The store of keys: what a second request with the same key gets.

use super::destination::Reply;
use super::race::WorkId;
use crate::contract::{AfterExpiry, Anchor, DedupKey, InFlight, KeyFormat, Mismatch, ReplayKind, Retention};
use crate::contract::{Bound, Saved, Scope, StoreDown};
use crate::ledger::Millis;
use std::collections::BTreeMap;

/// What a key is stored under: the scope that the request reached, and the key.
pub(super) type Slot = (String, String);

#[derive(Clone, Debug)]
struct Entry {
    digest: String,
    began: Millis,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    InFlight(WorkId),
    Done { completed: Millis, reply: Reply, record: Option<String> },
}

/// What the store of keys says of a request.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verdict {
    /// Execute it, and remember it under this key.
    New,
    /// Execute it without the key's protection.
    Unprotected,
    /// Answer as the first time.
    Replay(Reply),
    /// Answer with the record as it is now.
    Current(String),
    /// Answer with this and do nothing.
    Refuse(Reply),
    /// Wait for this one's answer.
    WaitFor(WorkId),
}

/// Keys and what became of their requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Keys {
    entries: BTreeMap<Slot, Entry>,
    pub(super) scope: String,
    pub(super) down: bool,
}

impl Keys {
    pub(super) fn slot(&self, declared: &DedupKey, endpoint: &str, key: &str) -> Slot {
        let by_endpoint = declared.scope.contains(&Scope::Endpoint);
        let endpoint = if by_endpoint { endpoint } else { "" };
        (format!("{}/{endpoint}", self.scope), key.to_owned())
    }

    /// What becomes of a request with this key. `ended` says when a record was deleted, if it was.
    pub(super) fn judge(
        &self,
        declared: &DedupKey,
        slot: &Slot,
        digest: &str,
        now: Millis,
        ended: impl Fn(&str) -> Option<Millis>,
    ) -> Verdict {
        if self.down {
            return match declared.store_down {
                StoreDown::FailClosed { status } => Verdict::Refuse(Reply::error(status, "key_store_down")),
                StoreDown::FailOpen => Verdict::Unprotected,
                StoreDown::Unknown => Verdict::Refuse(Reply::error(503, "key_store_down")),
            };
        }
        let Some(entry) = self.entries.get(slot) else { return Verdict::New };
        if lapsed(declared, entry, now, ended) {
            return match declared.after_expiry {
                AfterExpiry::Rejected => Verdict::Refuse(Reply::error(412, "key_expired")),
                AfterExpiry::ExecutesAsNew | AfterExpiry::Unknown => Verdict::New,
            };
        }
        if entry.digest != digest {
            match &declared.mismatch {
                Mismatch::Error { status, code } => {
                    return Verdict::Refuse(Reply::error(*status, code.as_deref().unwrap_or("key_reused")));
                }
                Mismatch::SilentlyDropped => return Verdict::Refuse(Reply::acknowledged()),
                Mismatch::Executes | Mismatch::MayExecute | Mismatch::Unknown => return Verdict::Unprotected,
                Mismatch::ReplaysOriginal => {}
            }
        }
        match &entry.state {
            State::InFlight(first) => in_flight(declared, *first),
            State::Done { reply, record, .. } => replay(declared, reply, record.as_deref()),
        }
    }

    /// Remembers that a request with this key is in progress.
    pub(super) fn begin(&mut self, slot: Slot, digest: String, now: Millis, work: WorkId) {
        self.entries.insert(slot, Entry { digest, began: now, state: State::InFlight(work) });
    }

    /// Remembers the answer, where such answers are saved; otherwise forgets the key, unless there is a
    /// record.
    pub(super) fn complete(
        &mut self,
        declared: &DedupKey,
        slot: &Slot,
        work: WorkId,
        now: Millis,
        (reply, record): (&Reply, Option<&str>),
    ) {
        let Some(entry) = self.entries.get_mut(slot) else { return };
        match entry.state {
            State::InFlight(first) if first == work => {}
            State::InFlight(_) | State::Done { .. } => return,
        }
        let burnt = declared.burnt_by_failure == Some(true);
        if saves(declared, reply.status) || record.is_some() || burnt {
            entry.state =
                State::Done { completed: now, reply: reply.clone(), record: record.map(str::to_owned) };
        } else {
            self.entries.remove(slot);
        }
    }

    /// Forgets a request that came to nothing.
    pub(super) fn abandon(&mut self, work: WorkId) {
        self.entries.retain(|_, entry| !matches!(entry.state, State::InFlight(first) if first == work));
    }

    /// Forgets every key.
    pub(super) fn lose(&mut self) {
        self.entries.clear();
    }
}

/// Whether a key is one that the declaration allows.
pub(super) fn well_formed(declared: &DedupKey, key: &str) -> bool {
    let length = !key.is_empty() && declared.max_len.is_none_or(|most| key.chars().count() <= most);
    let hex = |part: &str, len: usize| part.len() == len && part.chars().all(|c| c.is_ascii_hexdigit());
    let form = match declared.format {
        KeyFormat::Any | KeyFormat::Unknown => true,
        KeyFormat::Ascii => key.is_ascii(),
        KeyFormat::SfString => key.is_ascii() && key.len() > 2 && key.starts_with('"') && key.ends_with('"'),
        KeyFormat::Uuid4 => {
            let parts: Vec<&str> = key.split('-').collect();
            parts.len() == 5
                && parts.iter().zip([8, 4, 4, 4, 12]).all(|(part, len)| hex(part, len))
                && parts[2].starts_with('4')
        }
    };
    length && form
}

/// A key lapses at the end of its retention, not after it.
fn lapsed(declared: &DedupKey, entry: &Entry, now: Millis, ended: impl Fn(&str) -> Option<Millis>) -> bool {
    let Retention::For(retention) = declared.retention else { return false };
    let anchor = match (&entry.state, declared.retention_anchor) {
        (State::InFlight(_), Anchor::FirstCompletion | Anchor::ResourceEnd) => return false,
        (State::Done { completed, .. }, Anchor::FirstCompletion) => *completed,
        (State::Done { record: Some(record), .. }, Anchor::ResourceEnd) => match ended(record) {
            Some(at) => at,
            None => return false,
        },
        _ => entry.began,
    };
    now >= anchor.after(retention)
}

fn in_flight(declared: &DedupKey, first: WorkId) -> Verdict {
    match &declared.in_flight {
        InFlight::Error { status, code, retry_after } => {
            let mut reply = Reply::error(*status, code.as_deref().unwrap_or("in_progress"));
            if let Bound::Known(wait) = retry_after {
                reply.headers.push(("retry-after".to_owned(), wait.as_secs().to_string()));
            }
            Verdict::Refuse(reply)
        }
        InFlight::Waits => Verdict::WaitFor(first),
        InFlight::Transient => Verdict::Refuse(Reply::error(503, "in_progress")),
        InFlight::SecondMayFail => Verdict::Refuse(Reply::error(409, "in_progress")),
        InFlight::ExecutesBoth | InFlight::Unknown => Verdict::Unprotected,
    }
}

fn replay(declared: &DedupKey, reply: &Reply, record: Option<&str>) -> Verdict {
    let marked = |reply: Reply| Verdict::Replay(reply.marked(declared, "hit"));
    match (declared.replay, record) {
        (ReplayKind::AckOnly, _) => marked(Reply::acknowledged()),
        (ReplayKind::CurrentState | ReplayKind::RetriesToCompletion, Some(record)) => {
            Verdict::Current(record.to_owned())
        }
        (ReplayKind::RetriesToCompletion, None) => Verdict::New,
        (_, Some(record)) if !saves(declared, reply.status) => Verdict::Current(record.to_owned()),
        _ => marked(reply.clone()),
    }
}

/// Whether an answer after execution is saved; where nothing is documented, successes are.
fn saves(declared: &DedupKey, status: u16) -> bool {
    let class = match status {
        200..300 => Saved::Success,
        400..500 => Saved::ClientError,
        _ => Saved::ServerError,
    };
    declared.saved.contains(&class) || (declared.saved.is_empty() && class == Saved::Success)
}
