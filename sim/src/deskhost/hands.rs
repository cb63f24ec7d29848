//! What happens to records without a request: people's hands, and a destination that takes a record back.

use super::books::Books;
use super::{DeskHost, millis};
use crate::belief::Standing;
use crate::fault::{Place, What};
use crate::field::{DESK, Field};
use crate::history::{Deed, Kind, Step};
use std::sync::Arc;
use std::time::Duration;

/// A record that something will happen to.
pub(super) struct Doomed {
    /// The place of the fault.
    pub(super) place: Place,
    /// The operation that the record was made for.
    pub(super) about: String,
    pub(super) record: String,
    /// The effect, or the request that made it.
    pub(super) cause: Step,
}

impl DeskHost {
    /// A record was made: what hands do to it is on its way from now on.
    pub(super) fn made(self: &Arc<Self>, about: &str, nth: u32, record: &str, effect: Step) {
        let place = Place::Record { about: about.to_owned(), nth };
        let Some(what) = self.field.foresee(&place) else { return };
        let doomed = Doomed { place, about: about.to_owned(), record: record.to_owned(), cause: effect };
        match what {
            What::EditByHand(ms) => self.by_hand_after(ms, doomed, Deed::Edited),
            What::ArchiveByHand(ms) => self.by_hand_after(ms, doomed, Deed::Archived),
            What::CopyByHand(ms) => self.by_hand_after(ms, doomed, Deed::Copied),
            What::DeleteByHand => self.once_recorded(0, doomed, Deed::Deleted),
            other => unreachable!("the tape keeps {} away from records", other.kind()),
        }
    }

    fn by_hand_after(self: &Arc<Self>, ms: u64, doomed: Doomed, did: Deed) {
        self.field.prolong(ms);
        let host = self.clone();
        tokio::spawn(async move {
            if ms > 0 {
                tokio::time::sleep(Duration::from_millis(ms)).await;
            }
            host.act(&doomed, did);
        });
    }

    /// The record goes so many milliseconds from now, or as soon afterwards as the workflow has recorded it:
    /// before that, no workflow could tell it from a record that never was.
    pub(super) fn once_recorded(self: &Arc<Self>, ms: u64, doomed: Doomed, did: Deed) {
        self.field.prolong(ms);
        let host = self.clone();
        tokio::spawn(async move {
            let mut synced = host.field.synced();
            tokio::time::sleep(Duration::from_millis(ms)).await;
            while !is_recorded(&host.field, &doomed) {
                if synced.changed().await.is_err() || !host.field.lock().storm {
                    return;
                }
            }
            host.act(&doomed, did);
        });
    }

    fn act(self: &Arc<Self>, doomed: &Doomed, did: Deed) {
        let mut books = self.lock();
        let Doomed { place, about, record, cause } = doomed;
        let Some(ticket) = books.desk.ticket(record) else { return };
        let Some(step) = self.field.strikes(DESK, place, Some(*cause)) else { return };
        let mut record = record.clone();
        let is_done = match did {
            Deed::Edited => {
                let title = ticket["title"].as_str().unwrap_or_default();
                books.desk.edit(millis(), &record, "title", format!("{title} (edited by hand)").into())
            }
            Deed::Archived => books.desk.archive(millis(), &record),
            Deed::Deleted | Deed::RolledBack => books.desk.delete(millis(), &record),
            Deed::Copied => {
                record = books.desk.copy(millis(), &record).expect("the ticket is there");
                true
            }
            Deed::Made => unreachable!("what is made for another matter needs no record before it"),
        };
        assert!(is_done, "{record} was there a moment ago");
        self.note(&mut books, &[]);
        self.field.event(DESK, Kind::Hand { about: about.clone(), record, did }, Some(step));
    }

    /// A record that has nothing to do with this operation: of another one, if there is one, else made by
    /// hand.
    pub(super) fn foreign(
        self: &Arc<Self>,
        books: &mut Books,
        about: &str,
        cause: Step,
    ) -> serde_json::Value {
        let effects = books.desk.ledger().effects().iter().zip(&books.made_for);
        let others = effects.filter(|(effect, made_for)| !effect.by_hand && *made_for != about);
        let mut there = others.filter_map(|(effect, _)| books.desk.ticket(&effect.record));
        if let Some(ticket) = there.next() {
            return ticket;
        }
        let id = match books.foreign.clone() {
            Some(id) => id,
            None => {
                let id = books.desk.make(millis(), "another matter", "somebody-else");
                books.foreign = Some(id.clone());
                self.note(books, &[]);
                let kind = Kind::Hand { about: about.to_owned(), record: id.clone(), did: Deed::Made };
                self.field.event(DESK, kind, Some(cause));
                id
            }
        };
        books.desk.ticket(&id).expect("nobody touches it")
    }
}

/// Whether what is durable at the workflow says that the operation is completed with this record.
fn is_recorded(field: &Field, doomed: &Doomed) -> bool {
    let image = field.lock().machine.durable_image();
    let Ok(belief) = (field.believes)(&image) else { return false };
    belief.operation(&doomed.about).is_some_and(|operation| {
        operation.standing == Standing::Completed && operation.record.as_ref() == Some(&doomed.record)
    })
}
