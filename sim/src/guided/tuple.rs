//! What a run covered: what the workflow believed, what the destination held, and what had gone wrong.

use crate::fault::Place;
use crate::history::{Event, Kind};
use crate::run::Run;
use destinations::Class;
use std::collections::{BTreeMap, BTreeSet};

/// More records, keys or late requests than this are as many.
const MANY: usize = 3;

/// A state of both sides under a fault.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tuple {
    /// What the contract permits.
    pub class: Class,
    /// What the workflow's durable state said of the operation, or of all where the fault strikes the whole
    /// process.
    pub believed: String,
    /// Records that the destination held for it, up to 3.
    pub records: usize,
    /// Keys and references with which they were made, up to 3.
    pub keys: usize,
    /// Requests of which the effect was still to come, up to 3.
    pub late: usize,
    /// The last fault, and the kind of its place; none before the first.
    pub fault: Option<(&'static str, String)>,
}

/// The destination's side of one operation.
#[derive(Default)]
struct Held {
    records: BTreeSet<String>,
    keys: BTreeSet<String>,
    late: usize,
}

/// Follows a history.
struct Reader<'a> {
    run: &'a Run,
    class: Class,
    believed: BTreeMap<String, String>,
    held: BTreeMap<String, Held>,
    fault: Option<(&'static str, String)>,
}

/// What a traced run covered: a tuple each time a fault struck, and each time the durable state changed.
pub fn tuples(run: &Run, class: Class) -> BTreeSet<Tuple> {
    let mut reader = Reader { run, class, believed: BTreeMap::new(), held: BTreeMap::new(), fault: None };
    run.history.events().iter().filter_map(|event| reader.read(event)).collect()
}

impl Reader<'_> {
    fn read(&mut self, event: &Event) -> Option<Tuple> {
        match &event.kind {
            Kind::Effect { about, record, key, late, .. } => {
                let held = self.held.entry(about.clone()).or_default();
                held.records.insert(record.clone());
                held.keys.extend(key.clone());
                held.late -= usize::from(*late && held.late > 0);
                None
            }
            Kind::Fault { n, what, .. } => {
                let at = self.run.plan.tape.faults().get(*n as usize - 1)?.at.clone();
                let about = self.operation(&at);
                self.fault = Some((*what, at.kind()));
                let tuple = self.tuple(about.as_deref());
                if let (Some(about), "apply-late") = (about, *what) {
                    self.held.entry(about).or_default().late += 1;
                }
                Some(tuple)
            }
            Kind::Journal { about, words } => {
                // Which record it is says nothing about where it stands.
                let state = words.split(", record ").next().unwrap_or_default();
                self.believed.insert(about.clone(), state.to_owned());
                Some(self.tuple(Some(about)))
            }
            _ => None,
        }
    }

    /// The operation that a place belongs to.
    fn operation(&self, at: &Place) -> Option<String> {
        let about = at.about()?;
        if !at.is_of_delivery() {
            return Some(about.to_owned());
        }
        self.run
            .deliveries()
            .find(|delivery| delivery.name == about)
            .map(|delivery| delivery.operation.clone())
    }

    fn tuple(&self, about: Option<&str>) -> Tuple {
        let believed = match about {
            Some(about) => self.believed.get(about).cloned().unwrap_or_default(),
            None => {
                let states: BTreeSet<&str> = self.believed.values().map(String::as_str).collect();
                states.into_iter().collect::<Vec<_>>().join(" + ")
            }
        };
        let held: Vec<&Held> = match about {
            Some(about) => self.held.get(about).into_iter().collect(),
            None => self.held.values().collect(),
        };
        let most = |count: fn(&Held) -> usize| held.iter().map(|one| count(one)).max().unwrap_or(0).min(MANY);
        Tuple {
            class: self.class,
            believed,
            records: most(|held| held.records.len()),
            keys: most(|held| held.keys.len()),
            late: most(|held| held.late),
            fault: self.fault.clone(),
        }
    }
}
