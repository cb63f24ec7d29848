//! Faults that have nothing to do with each other: two exchanges of two operations, as observed and not as
//! assumed.

use crate::fault::{Fault, Place, What};
use crate::history::Kind;
use crate::plan::Workload;
use crate::run::Run;
use siphasher::sip::SipHasher13;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash as _, Hasher as _};

/// What the runs with one added fault showed of each operation.
#[derive(Clone, Debug, Default)]
pub(super) struct Observed {
    /// The operation of each delivery.
    operations: BTreeMap<String, String>,
    clean: BTreeMap<String, u64>,
    single: BTreeMap<u32, BTreeMap<String, u64>>,
    /// The operations that some key was sent for.
    keys: BTreeMap<String, BTreeSet<String>>,
}

impl Observed {
    /// Takes in the clean run.
    pub(super) fn clean(&mut self, run: &Run) {
        self.operations = operations(&run.plan.workload);
        self.clean = self.shapes(run);
    }

    /// Takes in the run with this fault added.
    pub(super) fn single(&mut self, number: u32, run: &Run) {
        let shapes = self.shapes(run);
        self.single.insert(number, shapes);
    }

    /// Whether neither of two faults changes anything about the other's operation, and no key serves both.
    pub(super) fn are_apart(&self, (a, first): (u32, &Fault), (b, second): (u32, &Fault)) -> bool {
        let (Some(one), Some(other)) = (self.strikes(first), self.strikes(second)) else { return false };
        let leaves_alone = |number: u32, operation: &str| {
            let shape = self.single.get(&number).and_then(|shapes| shapes.get(operation));
            shape.is_some() && shape == self.clean.get(operation)
        };
        let shared = |both: &BTreeSet<String>| both.contains(one) && both.contains(other);
        one != other && leaves_alone(a, other) && leaves_alone(b, one) && !self.keys.values().any(shared)
    }

    /// The one operation that a fault strikes; none where it strikes more than one exchange.
    fn strikes<'a>(&'a self, fault: &'a Fault) -> Option<&'a str> {
        let about = match &fault.at {
            Place::Exchange(exchange) if is_local(&fault.what) => &exchange.about,
            Place::Phase { exchange, .. } if matches!(fault.what, What::Delay(_)) => &exchange.about,
            _ => return None,
        };
        let operation = self.operations.get(about).unwrap_or(about);
        // A control look-up is about no operation.
        self.clean.contains_key(operation).then_some(operation.as_str())
    }

    /// A hash of everything about each operation, one node at a time, without times.
    fn shapes(&mut self, run: &Run) -> BTreeMap<String, u64> {
        let mut lanes: BTreeMap<(&str, &str), SipHasher13> = BTreeMap::new();
        for event in run.history.events() {
            let Some(about) = event.kind.about() else { continue };
            let operation = self.operations.get(about).map_or(about, String::as_str);
            event.kind.hash(lanes.entry((operation, event.node)).or_default());
            if let Kind::Sent { key: Some(key), .. } = &event.kind {
                self.keys.entry(key.clone()).or_default().insert(operation.to_owned());
            }
        }
        let mut shapes: BTreeMap<String, SipHasher13> = BTreeMap::new();
        for ask in &run.plan.workload.requests {
            let standing = run.belief().and_then(|belief| belief.operation(&ask.operation));
            let standing = standing.map(|operation| (&operation.words, &operation.record));
            standing.hash(shapes.entry(ask.operation.clone()).or_default());
        }
        for ((operation, node), lane) in lanes {
            if let Some(shape) = shapes.get_mut(operation) {
                (node, lane.finish()).hash(shape);
            }
        }
        shapes.into_iter().map(|(operation, shape)| (operation, shape.finish())).collect()
    }
}

fn operations(workload: &Workload) -> BTreeMap<String, String> {
    workload.deliveries.iter().map(|delivery| (delivery.name.clone(), delivery.operation.clone())).collect()
}

/// Whether it is over with the one exchange that it strikes.
fn is_local(what: &What) -> bool {
    matches!(
        what,
        What::Refuse
            | What::LoseRequest(_)
            | What::NotApplied(_)
            | What::LoseResponse(_)
            | What::ApplyLate(_)
            | What::ErrorAfter(_)
            | What::Duplicate(_)
            | What::OmitId(_)
            | What::Undo(_)
            | What::AnswerSlowly(_)
            | What::Hang { .. }
    )
}
