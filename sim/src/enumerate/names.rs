//! Names of exchanges that do not count what never left: a process that dies before the first byte leaves a
//! gap in the numbers, and nothing else.

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

    /// The exchange under its number among those that have left.
    fn exchange(&self, exchange: &ExchangeName) -> ExchangeName {
        let left = self.0.get(&(exchange.call, exchange.about.clone()));
        let earlier = left.map_or(0, |left| left.iter().filter(|nth| **nth < exchange.nth).count());
        ExchangeName { nth: earlier as u32 + 1, ..exchange.clone() }
    }

    /// The place under such a name. Connections are told apart by their order only.
    pub(super) fn place(&self, place: &Place) -> Place {
        match place {
            Place::Connection { .. } => Place::Connection { nth: 1 },
            Place::Exchange(exchange) => Place::Exchange(self.exchange(exchange)),
            Place::Phase { exchange, phase } => {
                Place::Phase { exchange: self.exchange(exchange), phase: *phase }
            }
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
}
