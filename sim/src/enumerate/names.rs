//! Names of exchanges without what is only a count: a create that never left is none, since a process that
//! dies before the first byte leaves a gap in the numbers and nothing else; and look-ups, syncs, deliveries
//! and their copies are told apart by their order.

use crate::fault::{Call, ExchangeName, Place};
use crate::history::Kind;
use crate::run::Run;
use std::collections::BTreeMap;

/// The numbers under which requests have left in a run.
pub(super) struct Names(BTreeMap<(Call, String), Vec<u32>>);

impl Names {
    pub(super) fn of(run: &Run) -> Names {
        let mut left: BTreeMap<(Call, String), Vec<u32>> = BTreeMap::new();
        for event in run.history.events() {
            if let Kind::Sent { exchange, .. } = &event.kind {
                left.entry((exchange.call, exchange.about.clone())).or_default().push(exchange.nth);
            }
        }
        Names(left)
    }

    /// A create under its number among those that have left; anything else without a number.
    fn exchange(&self, exchange: &ExchangeName) -> ExchangeName {
        if exchange.call != Call::Create {
            let about = exchange.about.split_inclusive('+').next().unwrap_or_default().to_owned();
            return ExchangeName { nth: 1, about, ..exchange.clone() };
        }
        let left = self.0.get(&(exchange.call, exchange.about.clone()));
        let earlier = left.map_or(0, |left| left.iter().filter(|nth| **nth < exchange.nth).count());
        ExchangeName { nth: earlier as u32 + 1, ..exchange.clone() }
    }

    /// The place under such a name.
    pub(super) fn place(&self, place: &Place) -> Place {
        match place {
            Place::Connection { .. } => Place::Connection { nth: 1 },
            Place::Exchange(exchange) => Place::Exchange(self.exchange(exchange)),
            Place::Phase { exchange, phase } => {
                Place::Phase { exchange: self.exchange(exchange), phase: *phase }
            }
            Place::Sync { when, .. } => Place::Sync { boot: 1, nth: 1, when: *when },
            other => other.clone(),
        }
    }

    /// The event's kind under such a name.
    pub(super) fn kind(&self, kind: &Kind) -> Kind {
        let mut named = kind.clone();
        if let Kind::Sent { exchange, .. }
        | Kind::Arrived { exchange }
        | Kind::Answered { exchange, .. }
        | Kind::Received { exchange, .. }
        | Kind::Broken { exchange } = &mut named
        {
            *exchange = self.exchange(exchange);
        }
        named
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::When;
    use crate::fixture::{OPERATION, create};
    use crate::history::{History, Nanos};

    #[test]
    fn what_never_left_is_not_counted() {
        let mut names = Names(BTreeMap::new());
        names.0.insert((Call::Create, OPERATION.into()), vec![2, 5]);
        let numbers: Vec<u32> = (1..=6).map(|nth| names.exchange(&create(nth)).nth).collect();
        assert_eq!(numbers, [1, 1, 2, 2, 2, 3]);
        let mut history = History::default();
        let arrived = Kind::Arrived { exchange: create(5) };
        history.add(Nanos(0), "helpdesk", arrived, None);
        assert_eq!(names.kind(&history.events()[0].kind), Kind::Arrived { exchange: create(2) });
        assert_eq!(names.place(&Place::Connection { nth: 7 }), Place::Connection { nth: 1 });
    }

    #[test]
    fn rounds_and_copies_have_one_name() {
        let names = Names(BTreeMap::new());
        let exchange = |call, about: &str, nth| ExchangeName { call, about: about.into(), nth };
        assert_eq!(names.exchange(&exchange(Call::Find, OPERATION, 7)), exchange(Call::Find, OPERATION, 1));
        let copy = |n: u32| names.exchange(&exchange(Call::Deliver, &format!("R17/1+{n}"), n));
        assert_eq!(copy(2), copy(7));
        assert_ne!(copy(2), names.exchange(&exchange(Call::Deliver, "R17/1", 1)), "the first is not a copy");
        let sync = |nth, when| Place::Sync { boot: nth, nth, when };
        assert_eq!(names.place(&sync(4, When::Before)), sync(1, When::Before));
        assert_ne!(names.place(&sync(4, When::Before)), names.place(&sync(4, When::After)));
    }
}
