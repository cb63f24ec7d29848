//! How look-ups go wrong: blind, stale, on the second page, with a stranger among the matches.

use super::{Asked, DeskHost, millis};
use crate::fault::What;
use crate::field::now;
use crate::history::Step;
use crate::plan::SENTINEL;
use destinations::LookupBy;
use destinations::fake::{Begun, Reply, Request};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

impl DeskHost {
    /// Answers one page of a look-up; also says what the answer follows from.
    pub(super) fn look(
        self: &Arc<Self>,
        asked: &Asked,
        planned: Option<&What>,
        (by, value, page): (LookupBy, String, u32),
    ) -> (Reply, Step) {
        let mut books = self.lock();
        let strikes =
            |what: &&What| matches!(what, What::Blind(_) | What::Stale(_) | What::SecondPage | What::Foreign);
        let struck = planned.filter(strikes).and_then(|what| Some((what, self.strikes(asked)?)));
        let cause = struck.map_or(asked.arrived, |(_, step)| step);
        if let Some((What::Blind(ms), _)) = struck {
            books.blind_until = books.blind_until.max(now().after_ms(*ms));
        }
        // Who has looked in vain looks for the control next, and must be able to notice why.
        let is_control = value == SENTINEL;
        let is_owed = is_control && books.blind_controls > 0;
        if now() < books.blind_until || is_owed {
            books.blind_controls = match is_control {
                true => books.blind_controls.saturating_sub(1),
                false => books.blind_controls + 1,
            };
            return (one_page(vec![], None), cause);
        }
        let about = &asked.exchange.about;
        // A page that is not after the last one that was put off begins another walk over the pages.
        let put_off = books.put_off.get(about).filter(|(last, _)| page > *last).map_or(0, |(_, by)| *by);
        if let Some((What::SecondPage, _)) = struck {
            books.put_off.insert(about.clone(), (page, put_off + 1));
            return (one_page(vec![], Some(page + 1)), cause);
        }
        if put_off == 0 {
            books.put_off.remove(about);
        }
        let page = page - put_off;
        let mut reply = match struck {
            Some((What::Stale(ms), _)) => {
                books.desk.find_as_it_was(millis(), by, &value, page, Duration::from_millis(*ms))
            }
            _ => match books.desk.begin(millis(), Request::Find { by, value, page }, Duration::ZERO) {
                Begun::Reply(reply) => reply,
                Begun::Working(_) => unreachable!("a look-up is answered at once"),
            },
        };
        if let Some(next) = reply.body["next_page"].as_u64() {
            reply.body["next_page"] = json!(next + u64::from(put_off));
        }
        if let Some((What::Foreign, step)) = struck {
            let foreign = self.foreign(&mut books, about, step);
            if let Some(tickets) = reply.body["tickets"].as_array_mut() {
                tickets.insert(0, foreign);
            }
        }
        (reply, cause)
    }
}

fn one_page(tickets: Vec<Value>, next: Option<u32>) -> Reply {
    Reply { status: 200, headers: vec![], body: json!({ "tickets": tickets, "next_page": next }) }
}
