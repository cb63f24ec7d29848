//! What the wire showed, put in order by operation.

use crate::belief::BelievedOperation;
use crate::fault::{Call, ExchangeName};
use crate::history::{Act, Deed, Kind, Nanos, Step};
use crate::run::{BeliefAt, Moment, Run};
use std::collections::BTreeMap;
use std::time::Duration;

/// One create that left the workflow, and what was heard of it.
pub(super) struct Send<'a> {
    /// Its number among the operation's creates, refused connections included.
    nth: u32,
    pub(super) step: Step,
    pub(super) at: Nanos,
    pub(super) key: Option<&'a str>,
    pub(super) digest: &'a str,
    /// The status that came back, with the summary's first word, and when.
    pub(super) heard: Option<(u16, &'a str, Nanos)>,
}

/// One look-up that was answered.
pub(super) struct Look<'a> {
    pub(super) about: &'a str,
    pub(super) step: Step,
    pub(super) sent: Nanos,
    pub(super) heard: Nanos,
    pub(super) empty: bool,
}

/// One look-up that left.
pub(super) struct Asked<'a> {
    pub(super) about: &'a str,
    pub(super) step: Step,
    pub(super) at: Nanos,
}

/// What a person wanted, and what they heard of it, try by try.
pub(super) struct Wanted<'a> {
    pub(super) about: &'a str,
    pub(super) act: Act,
    pub(super) step: Step,
    tries: Vec<(Step, Option<(u16, Step)>)>,
}

impl Wanted<'_> {
    /// When they heard that it was taken.
    pub(super) fn taken(&self) -> Option<Step> {
        let heard = self.tries.iter().filter_map(|(_, heard)| *heard);
        heard.filter(|(status, _)| (200..300).contains(status)).map(|(_, step)| step).next()
    }

    /// Whether it can have been taken. What was not heard may have been, and what failed on the way, too;
    /// nobody knows of it better than its author.
    pub(super) fn may_be_taken(&self) -> bool {
        let refused =
            |heard: &Option<(u16, Step)>| heard.is_some_and(|(status, _)| (400..500).contains(&status));
        !self.tries.iter().all(|(_, heard)| refused(heard))
    }
}

/// One effect of the ledger.
pub(super) struct Made<'a> {
    pub(super) step: Step,
    pub(super) record: &'a str,
}

/// What the wire showed.
pub(super) struct Facts<'a> {
    pub(super) sends: BTreeMap<&'a str, Vec<Send<'a>>>,
    pub(super) looks: Vec<Look<'a>>,
    /// Look-ups that left, answered or not.
    pub(super) asked: Vec<Asked<'a>>,
    pub(super) made: BTreeMap<&'a str, Vec<Made<'a>>>,
    /// What happened to records without a request: operation, record, what.
    pub(super) hands: Vec<(&'a str, &'a str, Deed)>,
    /// What people wanted, in the order in which they came.
    pub(super) wanted: Vec<Wanted<'a>>,
    /// Deliveries that the source knows to be taken: name, step.
    pub(super) acknowledged: Vec<(&'a str, Step)>,
    /// Records that some answer named, by operation.
    pub(super) named: BTreeMap<&'a str, Vec<&'a str>>,
}

impl<'a> Facts<'a> {
    pub(super) fn of(run: &'a Run) -> Facts<'a> {
        let mut facts = Facts {
            sends: BTreeMap::new(),
            looks: vec![],
            asked: vec![],
            made: BTreeMap::new(),
            hands: vec![],
            wanted: vec![],
            acknowledged: vec![],
            named: BTreeMap::new(),
        };
        let mut left: BTreeMap<&ExchangeName, Nanos> = BTreeMap::new();
        for event in run.history.events() {
            match &event.kind {
                Kind::Sent { exchange, key, digest, .. } => {
                    left.insert(exchange, event.t_ns);
                    if let Some(wanted) =
                        facts.wanted.iter_mut().find(|wanted| Some(wanted.step) == event.cause)
                    {
                        wanted.tries.push((event.step, None));
                    }
                    if exchange.call == Call::Find {
                        facts.asked.push(Asked { about: &exchange.about, step: event.step, at: event.t_ns });
                    }
                    if exchange.call == Call::Create {
                        let send = Send {
                            nth: exchange.nth,
                            step: event.step,
                            at: event.t_ns,
                            key: key.as_deref(),
                            digest,
                            heard: None,
                        };
                        facts.sends.entry(&exchange.about).or_default().push(send);
                    }
                }
                Kind::Effect { about, record, .. } => {
                    facts.made.entry(about).or_default().push(Made { step: event.step, record });
                }
                Kind::Person { about, act, .. } => {
                    facts.wanted.push(Wanted { about, act: *act, step: event.step, tries: vec![] });
                }
                Kind::Hand { about, record, did } => facts.hands.push((about, record, *did)),
                Kind::Received { exchange, status, summary, record, empty } => {
                    let mut tries = facts.wanted.iter_mut().flat_map(|wanted| &mut wanted.tries);
                    if let Some((_, heard)) = tries.find(|(sent, _)| Some(*sent) == event.cause) {
                        *heard = Some((*status, event.step));
                    }
                    let sent = left.get(exchange).copied().unwrap_or(event.t_ns);
                    facts.heard(
                        exchange,
                        *status,
                        summary,
                        record.as_deref(),
                        *empty,
                        (sent, event.t_ns, event.step),
                    );
                }
                _ => {}
            }
        }
        facts
    }

    fn heard(
        &mut self,
        exchange: &'a ExchangeName,
        status: u16,
        summary: &'a str,
        record: Option<&'a str>,
        empty: bool,
        (sent, heard, step): (Nanos, Nanos, Step),
    ) {
        let about = exchange.about.as_str();
        match exchange.call {
            Call::Create => {
                let sends = self.sends.entry(about).or_default();
                if let Some(send) = sends.iter_mut().find(|send| send.nth == exchange.nth) {
                    send.heard = Some((status, summary, heard));
                }
            }
            Call::Find if status == 200 => self.looks.push(Look { about, step, sent, heard, empty }),
            // Taken, or refused on record: the source will not deliver it again.
            Call::Deliver if !empty => self.acknowledged.push((about, step)),
            _ => {}
        }
        if let Some(record) = record {
            self.named.entry(about).or_default().push(record);
        }
        if exchange.call == Call::Find {
            // A look-up names every match in its words, and the first as its record.
            self.named.entry(about).or_default().extend(summary.split(", "));
        }
    }

    pub(super) fn sends(&self, operation: &str) -> &[Send<'a>] {
        self.sends.get(operation).map_or(&[], Vec::as_slice)
    }

    /// The other records that people can have had made.
    pub(super) fn creations(&self, operation: &str) -> impl Iterator<Item = &Wanted<'a>> {
        let of_it =
            move |wanted: &&Wanted<'_>| wanted.about == operation && wanted.act == Act::AuthoriseCreation;
        self.wanted.iter().filter(of_it).filter(|wanted| wanted.may_be_taken())
    }

    /// How many sends people can have permitted beyond the budget, up to a step.
    pub(super) fn permitted(&self, operation: &str, until: Step) -> usize {
        self.creations(operation).filter(|wanted| wanted.step <= until).count()
    }

    /// The sends of an operation, a slice for each record that people had made: what came before one is
    /// settled by a person's word.
    pub(super) fn generations(&self, operation: &str) -> Vec<&[Send<'a>]> {
        let wanted_between =
            |a: Step, b: Step| self.creations(operation).any(|one| (a..=b).contains(&one.step));
        self.sends(operation).chunk_by(|a, b| !wanted_between(a.step, b.step)).collect()
    }

    /// Whether a person can have ended an operation.
    pub(super) fn decided(&self, operation: &str) -> bool {
        let mut ends = self.wanted.iter().filter(|wanted| wanted.about == operation && wanted.act.ends());
        ends.any(Wanted::may_be_taken)
    }

    /// When somebody had it cancelled, as far as they know.
    pub(super) fn cancelled(&self, operation: &str) -> Option<&Wanted<'a>> {
        self.wanted.iter().find(|wanted| wanted.about == operation && wanted.act == Act::Cancel)
    }

    /// Whether a person made this record like the operation's own.
    pub(super) fn is_copy(&self, operation: &str, record: &str) -> bool {
        self.hands.contains(&(operation, record, Deed::Copied))
    }

    /// Whether a record went without a request, once it was recorded: reconciliation has to report that.
    pub(super) fn is_gone(&self, record: &str) -> bool {
        self.hands.iter().any(|(_, gone, did)| *gone == record && did.ends_record())
    }

    pub(super) fn made(&self, operation: &str) -> &[Made<'a>] {
        self.made.get(operation).map_or(&[], Vec::as_slice)
    }
}

/// A belief, to be looked into by name.
pub(super) struct Believed<'a> {
    pub(super) step: Step,
    /// Whether it was read from what a crash left, and not from a living process.
    pub(super) crashed: bool,
    pub(super) operations: BTreeMap<&'a str, &'a BelievedOperation>,
    pub(super) deliveries: BTreeMap<&'a str, Option<&'a str>>,
}

impl<'a> Believed<'a> {
    fn of(at: &'a BeliefAt) -> Believed<'a> {
        let belief = &at.belief;
        Believed {
            step: at.step,
            crashed: at.moment == Moment::Crash,
            operations: belief.operations.iter().map(|op| (op.name.as_str(), op)).collect(),
            deliveries: (belief.deliveries.iter())
                .map(|delivery| (delivery.id.as_str(), delivery.operation.as_deref()))
                .collect(),
        }
    }
}

/// The beliefs that count: what a crash left, and what stands after the storm and at the end.
pub(super) fn lasting(run: &Run) -> Vec<Believed<'_>> {
    let lasting = run.beliefs.iter().filter(|at| at.moment != Moment::Storm);
    lasting.map(Believed::of).collect()
}

pub(super) fn between(later: Nanos, earlier: Nanos) -> Duration {
    Duration::from_nanos(later.0.saturating_sub(earlier.0))
}
