//! What decides how a run can go on from a place: two places with the same mark lead to the same ends.

use super::names::Names;
use crate::belief::{Belief, Waiting};
use crate::fault::{Call, Fault, Place, What};
use crate::history::{Event, Kind, Nanos, Step};
use crate::run::{Moment, Run};
use crate::terms::Terms;
use siphasher::sip::SipHasher13;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher as _};
use std::time::Duration;

/// The lane of syncs since the disk last held everything that was written.
const SYNCS: &str = "syncs";

/// The mark of each visit of a traced run, in the order of [`Run::visits`].
///
/// A mark is a hash of
/// - what each node has seen so far, in its own order, and what the workflow's disk held at each crash;
/// - what each node will see, and the places that the run will come by;
/// - on which side of every span that the terms name the ages of each operation's sends are, and the
///   magnitude of these ages and of the run's;
/// - the faults that go on, and what the disk has not made durable.
///
/// There is no other time in it. A killed process and a machine without power are both dead; a pause is
/// nothing but time. Nodes are kept apart: what happens at two of them at once has no order. Exchanges are
/// numbered by what has left, so that one that died before its first byte is none.
pub(super) fn marks(run: &Run, terms: &Terms<'_>) -> Vec<u64> {
    let names = Names::of(run);
    let after = after(run, &names);
    let events = run.history.events();
    let mut before = Lanes::new(&names);
    let mut ages = Ages::new(terms);
    let (mut next, mut beliefs) = (0, crashes(run).peekable());
    let mut met: BTreeSet<&Place> = BTreeSet::new();
    let mut unsynced = false;
    let mut marks = Vec::with_capacity(run.visits.len());
    for (visit, after) in run.visits.iter().zip(after) {
        while next < visit.step.0 as usize {
            before.see(&events[next]);
            ages.see(&events[next]);
            next += 1;
            while let Some((_, belief)) = beliefs.next_if(|(step, _)| *step as usize <= next) {
                // A killed process leaves what it has written; only what was durable must stay.
                let may_go = unsynced && events[next - 1].kind == Kind::Killed;
                before.add("disk", &(belief_hash(belief), may_go));
            }
        }
        unsynced = visit.unsynced;
        if !unsynced {
            before.forget(SYNCS);
        }
        let now = visit.at;
        let mut hasher = SipHasher13::new();
        (before.hash(), after, names.place(&visit.place), ages.at(now), unsynced).hash(&mut hasher);
        going_on(run, visit.step, now, &met).hash(&mut hasher);
        met.insert(&visit.place);
        marks.push(hasher.finish());
    }
    marks
}

/// The hash of what comes after each visit: the places and the events, from the end backwards.
fn after(run: &Run, names: &Names) -> Vec<u64> {
    let events = run.history.events();
    let mut lanes = Lanes::new(names);
    lanes.add("end", &(format!("{:?}", run.end), run.belief().map(belief_hash), run.ledger.records()));
    let mut next = events.len();
    let mut after = vec![0; run.visits.len()];
    for (index, visit) in run.visits.iter().enumerate().rev() {
        while next > visit.step.0 as usize {
            next -= 1;
            lanes.see(&events[next]);
        }
        after[index] = lanes.hash();
        lanes.add("places", &names.place(&visit.place));
    }
    after
}

/// Running hashes, one a node.
struct Lanes<'a> {
    names: &'a Names,
    sums: BTreeMap<&'static str, u64>,
}

impl<'a> Lanes<'a> {
    fn new(names: &'a Names) -> Self {
        Lanes { names, sums: BTreeMap::new() }
    }

    fn add(&mut self, lane: &'static str, what: &impl Hash) {
        let sum = self.sums.entry(lane).or_default();
        let mut hasher = SipHasher13::new();
        (*sum, what).hash(&mut hasher);
        *sum = hasher.finish();
    }

    fn see(&mut self, event: &Event) {
        match &event.kind {
            // What the fault does is seen by itself; time has its own place in the mark; and a journal only
            // repeats what the workflow has heard, and what a crash has left of it.
            Kind::Fault { .. } | Kind::Paused | Kind::Resumed | Kind::Journal { .. } => {}
            Kind::Killed | Kind::PowerCut => self.add(event.node, &"died"),
            Kind::Synced { .. } => self.add(SYNCS, &event.kind),
            kind => self.add(event.node, &self.names.kind(kind)),
        }
    }

    fn forget(&mut self, lane: &'static str) {
        self.sums.remove(lane);
    }

    fn hash(&self) -> u64 {
        let mut hasher = SipHasher13::new();
        self.sums.hash(&mut hasher);
        hasher.finish()
    }
}

/// When each operation was first and last sent, and the spans by which its age matters.
struct Ages<'a> {
    spans: BTreeSet<Duration>,
    sends: BTreeMap<&'a str, (Nanos, Nanos)>,
}

impl<'a> Ages<'a> {
    fn new(terms: &Terms<'_>) -> Self {
        let recovery = terms.recovery();
        let replay = recovery.replay.iter().flat_map(|key| [key.safe_for, key.retention, key.wait_between]);
        let converge =
            recovery.converge.iter().flat_map(|identity| [identity.safe_for, identity.wait_between]);
        let look = recovery.lookup.iter().filter_map(|rule| rule.decides_after);
        let late = terms.latest_commit_ms().map(Duration::from_millis);
        Ages { spans: replay.chain(converge).chain(look).chain(late).collect(), sends: BTreeMap::new() }
    }

    fn see(&mut self, event: &'a Event) {
        if let Kind::Sent { exchange, .. } = &event.kind
            && exchange.call == Call::Create
        {
            let sends = self.sends.entry(&exchange.about).or_insert((event.t_ns, event.t_ns));
            sends.1 = event.t_ns;
        }
    }

    fn at(&self, now: Nanos) -> (u32, Vec<[(usize, u32); 2]>) {
        let class = |sent: Nanos| {
            let age = Duration::from_nanos(now.0.saturating_sub(sent.0));
            (self.spans.iter().filter(|span| **span <= age).count(), magnitude(age))
        };
        let each = self.sends.values().map(|(first, last)| [class(*first), class(*last)]);
        (magnitude(Duration::from_nanos(now.0)), each.collect())
    }
}

/// How often a time can be halved before it is shorter than a second.
fn magnitude(span: Duration) -> u32 {
    span.as_secs().checked_ilog2().map_or(0, |log| log + 1)
}

/// What each crash left on the disk, by step.
fn crashes(run: &Run) -> impl Iterator<Item = (u32, &Belief)> {
    let crashes = run.beliefs.iter().filter(|at| at.moment == Moment::Crash);
    crashes.map(|at| (at.step.0, &at.belief))
}

/// A belief without its times.
fn belief_hash(belief: &Belief) -> u64 {
    let mut hasher = SipHasher13::new();
    belief.tampered.is_some().hash(&mut hasher);
    for delivery in &belief.deliveries {
        (&delivery.id, &delivery.operation).hash(&mut hasher);
    }
    for operation in &belief.operations {
        (&operation.name, &operation.words, &operation.record).hash(&mut hasher);
        for attempt in &operation.attempts {
            (&attempt.key, &attempt.digest).hash(&mut hasher);
        }
        match &operation.waiting {
            Waiting::Person { owner, reason, .. } => (owner, reason).hash(&mut hasher),
            other => format!("{other:?}").hash(&mut hasher),
        }
        format!("{:?}", operation.basis).hash(&mut hasher);
        for decision in &operation.decisions {
            (&decision.by, &decision.before, &decision.after).hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// The faults that make a difference which no event has shown yet: they last, or their place was met and they
/// strike later. Where one has struck that lasts does not matter, but for a clock: what was written before
/// goes by another time than what is written after.
fn going_on<'a>(
    run: &'a Run,
    step: Step,
    now: Nanos,
    met: &BTreeSet<&Place>,
) -> Vec<(Option<&'a Place>, &'a What)> {
    let mut all = vec![];
    for (Fault { at, what }, fired) in run.plan.tape.faults().iter().zip(&run.fired) {
        match fired.filter(|fired| *fired <= step) {
            Some(fired) => {
                let until = run.history.event(fired).t_ns.after_ms(what.lasts_ms());
                if matches!(what, What::ClockStep(_) | What::ClockRate(_)) {
                    all.push((Some(at), what));
                } else if until > now || stays(what) || waits_for_a_start(what) && !starts(run, fired, step) {
                    all.push((None, what));
                }
            }
            None if met.contains(at) => all.push((Some(at), what)),
            None => {}
        }
    }
    all
}

/// Whether it changes something for good that no event shows.
fn stays(what: &What) -> bool {
    matches!(
        what,
        What::ForgetKeys
            | What::BitFlip
            | What::LyingSync
            | What::EditByHand(_)
            | What::DeleteByHand
            | What::ArchiveByHand(_)
            | What::CopyByHand(_)
    )
}

/// Whether a process may still meet it, or end because of it.
fn waits_for_a_start(what: &What) -> bool {
    matches!(what, What::ReadError | What::SyncError | What::DiskFull(_))
}

/// Whether a process has started between two steps.
fn starts(run: &Run, from: Step, to: Step) -> bool {
    let between = &run.history.events()[from.0 as usize..to.0 as usize];
    between.iter().any(|event| matches!(event.kind, Kind::Started { .. }))
}
