//! The destination's books: what is under way, what was made for whom, and what is out of order until when.

use super::{DeskHost, millis};
use crate::fault::{Call, ExchangeName};
use crate::field::{DESK, now};
use crate::history::{Kind, Nanos, Step};
use crate::run::BY_HAND;
use crate::scenario::Seen;
use destinations::EffectKind;
use destinations::fake::{self, Begun, Desk, DeskOptions, Request, WorkId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

pub(super) struct Books {
    pub(super) desk: Desk,
    /// Effects of the ledger that are in the history: the desk also commits what is due when a request
    /// begins.
    noted: usize,
    /// The operation that each effect was made for.
    pub(super) made_for: Vec<String>,
    /// Records that were made for each operation.
    records: BTreeMap<String, u32>,
    /// Whoever waits for a commit, with the operation and the step at which the request arrived.
    waiting: BTreeMap<WorkId, Waiting>,
    /// Until then requests do not arrive.
    pub(super) there_until: Nanos,
    /// Until then answers do not come back.
    pub(super) back_until: Nanos,
    /// Until then look-ups find nothing.
    pub(super) blind_until: Nanos,
    /// Look-ups that were answered blindly and whose control was not asked for yet.
    pub(super) blind_controls: u32,
    /// Until then the store of keys is down.
    pub(super) keys_down_until: Nanos,
    /// Look-ups whose matches stand further on: the last page that was put off, and how many were.
    pub(super) put_off: BTreeMap<String, (u32, u32)>,
    /// The record that was made by hand to be found by mistake.
    pub(super) foreign: Option<String>,
}

struct Waiting {
    about: String,
    cause: Step,
    reply: oneshot::Sender<fake::Reply>,
}

impl Books {
    pub(super) fn new(desk: Desk) -> Books {
        Books {
            desk,
            noted: 0,
            made_for: vec![],
            records: BTreeMap::new(),
            waiting: BTreeMap::new(),
            there_until: Nanos(0),
            back_until: Nanos(0),
            blind_until: Nanos(0),
            blind_controls: 0,
            keys_down_until: Nanos(0),
            put_off: BTreeMap::new(),
            foreign: None,
        }
    }
}

impl DeskHost {
    /// The truth, and the operation behind each effect.
    pub(crate) fn ledger(&self) -> (destinations::Ledger, Vec<String>) {
        let books = self.lock();
        (books.desk.ledger().clone(), books.made_for.clone())
    }

    /// The record that a person finds for an operation: they search the desk by hand and see everything that
    /// is there.
    pub(crate) fn record_of(&self, about: &str) -> Option<String> {
        let books = self.lock();
        let effects = books.desk.ledger().effects().iter().zip(&books.made_for);
        let mut made = effects.filter(|(_, made_for)| *made_for == about).map(|(effect, _)| &effect.record);
        made.find(|record| books.desk.ticket(record).is_some()).cloned()
    }

    /// Whether work is under way that will commit.
    pub(crate) fn busy(&self) -> bool {
        self.lock().desk.due().is_some()
    }

    /// Begins to work on a request; what the desk commits later stands even when nobody waits any more.
    ///
    /// # Errors
    /// The answer, where the desk has one at once.
    pub(super) fn begin(
        self: &Arc<Self>,
        request: Request,
        exchange: &ExchangeName,
        cause: Step,
        takes: Duration,
    ) -> Result<oneshot::Receiver<fake::Reply>, fake::Reply> {
        let mut books = self.lock();
        let are_down = now() < books.keys_down_until;
        books.desk.set_keys_down(are_down);
        let work = match books.desk.begin(millis(), request, takes) {
            Begun::Reply(reply) => return Err(reply),
            Begun::Working(work) => work,
        };
        let (reply, answer) = oneshot::channel();
        books.waiting.insert(work, Waiting { about: exchange.about.clone(), cause, reply });
        let host = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(takes).await;
            host.commit_due();
        });
        Ok(answer)
    }

    /// Commits what is due, notes the effects, and answers whoever waits.
    fn commit_due(self: &Arc<Self>) {
        let mut books = self.lock();
        let done = books.desk.advance(millis());
        let mut finished = vec![];
        for (work, reply) in done {
            if let Some(waiting) = books.waiting.remove(&work) {
                finished.push((waiting, reply));
            }
        }
        let causes: Vec<(&str, Step)> =
            finished.iter().map(|(waiting, _)| (waiting.about.as_str(), waiting.cause)).collect();
        self.note(&mut books, &causes);
        for (waiting, reply) in finished {
            // Whoever asked may have given up.
            let _ = waiting.reply.send(reply);
        }
    }

    /// Takes the ledger's new effects into the history, each with the operation that it was made for and the
    /// step that led to it.
    pub(super) fn note(self: &Arc<Self>, books: &mut Books, causes: &[(&str, Step)]) {
        let effects = books.desk.ledger().effects()[books.noted..].to_vec();
        books.noted += effects.len();
        for effect in effects {
            if effect.by_hand {
                // Whose hand it was says what it did.
                books.made_for.push(BY_HAND.into());
                continue;
            }
            let key = effect.by.key.clone().or_else(|| effect.by.reference.clone());
            let seen = Seen { call: Call::Create, key: key.as_deref(), body: effect.by.body.as_bytes() };
            let about = (self.field.serves)(seen).unwrap_or_else(|| "?".into());
            let cause = causes.iter().find(|(made_for, _)| *made_for == about).map(|(_, step)| *step);
            books.made_for.push(about.clone());
            let record = effect.record.clone();
            // Whoever asks for the record by its id asks about this operation.
            self.field.lock().keys.entry(record.clone()).or_insert_with(|| about.clone());
            let late = effect.late || cause.is_some_and(|step| self.is_long_ago(step));
            let kind = Kind::Effect { about: about.clone(), record, key, late };
            let step = self.field.event(DESK, kind, cause);
            if effect.kind == EffectKind::Created {
                let nth = books.records.entry(about.clone()).or_default();
                *nth += 1;
                self.made(&about, *nth, &effect.record, step);
            }
        }
    }

    /// Whether nobody waits any more for what began at this step.
    fn is_long_ago(&self, step: Step) -> bool {
        let began = self.field.lock().history.event(step).t_ns;
        let patience = DeskOptions::default().late_after;
        u128::from(now().0.saturating_sub(began.0)) > patience.as_nanos()
    }
}
