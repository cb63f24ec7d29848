//! What decides how a run can go on from a place: two places with the same mark lead to the same ends.

use crate::belief::{Belief, Waiting};
use crate::fault::{Fault, Place, What};
use crate::history::{Event, Kind, Nanos, Step};
use crate::run::{Moment, Run};
use siphasher::sip::SipHasher13;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher as _};

/// Simulated time is compared in these: what waits for minutes must not be taken for what waits for a second.
const TICK_NS: u64 = 1_000_000_000;

/// The mark of each visit of a traced run, in the order of [`Run::visits`].
///
/// A mark is a hash of
/// - what each node has seen so far, in its own order, and what the workflow's disk held at each crash;
/// - what each node will see, and the places that the run will come by;
/// - the simulated time in whole seconds, and the faults that go on.
///
/// No times and no faults are in the events themselves. A killed process and a machine without power are both
/// dead; a pause is nothing but time. Nodes are kept apart: what happens at two of them at once has no order.
pub(super) fn marks(run: &Run) -> Vec<u64> {
    let after = after(run);
    let events = run.history.events();
    let mut before = Lanes::default();
    let (mut next, mut beliefs) = (0, crashes(run).peekable());
    let mut met: BTreeSet<&Place> = BTreeSet::new();
    let mut marks = Vec::with_capacity(run.visits.len());
    for (visit, after) in run.visits.iter().zip(after) {
        while next < visit.step.0 as usize {
            before.see(&events[next]);
            next += 1;
            while let Some((step, belief)) = beliefs.next_if(|(step, _)| *step as usize <= next) {
                before.add("disk", &(step > 0, belief_hash(belief)));
            }
        }
        let now = next.checked_sub(1).map_or(Nanos(0), |last| events[last].t_ns);
        let mut hasher = SipHasher13::new();
        (before.hash(), after, &visit.place, now.0 / TICK_NS).hash(&mut hasher);
        going_on(run, visit.step, now, &met).hash(&mut hasher);
        met.insert(&visit.place);
        marks.push(hasher.finish());
    }
    marks
}

/// The hash of what comes after each visit: the places and the events, from the end backwards.
fn after(run: &Run) -> Vec<u64> {
    let events = run.history.events();
    let mut lanes = Lanes::default();
    lanes.add("end", &(format!("{:?}", run.end), run.belief().map(belief_hash), run.ledger.records()));
    let mut next = events.len();
    let mut after = vec![0; run.visits.len()];
    for (index, visit) in run.visits.iter().enumerate().rev() {
        while next > visit.step.0 as usize {
            next -= 1;
            lanes.see(&events[next]);
        }
        after[index] = lanes.hash();
        lanes.add("places", &visit.place);
    }
    after
}

/// Running hashes, one a node.
#[derive(Default)]
struct Lanes(BTreeMap<&'static str, u64>);

impl Lanes {
    fn add(&mut self, lane: &'static str, what: &impl Hash) {
        let sum = self.0.entry(lane).or_default();
        let mut hasher = SipHasher13::new();
        (*sum, what).hash(&mut hasher);
        *sum = hasher.finish();
    }

    fn see(&mut self, event: &Event) {
        match &event.kind {
            // What the fault does is seen by itself; time is in the mark.
            Kind::Fault { .. } | Kind::Paused | Kind::Resumed => {}
            Kind::Killed | Kind::PowerCut => self.add(event.node, &"died"),
            kind => self.add(event.node, kind),
        }
    }

    fn hash(&self) -> u64 {
        let mut hasher = SipHasher13::new();
        self.0.hash(&mut hasher);
        hasher.finish()
    }
}

/// What each crash left on the disk, by step.
fn crashes(run: &Run) -> impl Iterator<Item = (u32, &Belief)> {
    let crashes = run.beliefs.iter().filter(|at| at.moment == Moment::Crash);
    crashes.map(|at| (at.step.0, &at.belief))
}

/// A belief without its times.
fn belief_hash(belief: &Belief) -> u64 {
    let mut hasher = SipHasher13::new();
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
    }
    hasher.finish()
}

/// The faults that make a difference which no event has shown yet: they last, or their place was met and they
/// strike later. Where one has struck that lasts does not matter.
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
                if stays(what) || until > now {
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
        What::ClockStep(_)
            | What::ClockRate(_)
            | What::ForgetKeys
            // Until something is read nobody sees that the read will fail.
            | What::ReadError
            // It excuses one exit, at any time.
            | What::SyncError
            | What::BitFlip
            | What::LyingSync
            | What::EditByHand(_)
            | What::DeleteByHand
            | What::ArchiveByHand(_)
            | What::CopyByHand(_)
    )
}
