//! What decides how a run can go on from a place: two places with the same mark lead to the same ends.

use super::names::Names;
use crate::belief::{Belief, Waiting};
use crate::fault::{Call, Fault, Place, What, When};
use crate::history::{Event, Kind, Nanos, Step, WORKFLOW};
use crate::run::{Moment, Run, Work};
use crate::terms::Terms;
use siphasher::sip::SipHasher13;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher as _};
use std::time::Duration;

/// The lane of syncs since the disk last held everything that was written.
const SYNCS: &str = "syncs";

/// The lane of what the last crash has left.
const DISK: LaneName<'_> = ("disk", "");

/// The mark of each visit of a traced run, in the order of [`Run::visits`].
///
/// A mark is a hash of
/// - the state that the past has led to: what the process that lives has seen since it started, what the disk
///   held when the last one died, what the destination has seen, and what is outstanding at those who ask;
/// - what each node will see, and the places that the run will come by;
/// - on which side of every span that the terms name the ages of each operation's sends are, and the
///   magnitude of these ages;
/// - the faults that go on, and what the disk has not made durable.
///
/// There is no other time in it, and no number of rounds: what repeats itself is the same state, so a fault
/// is tried in the first round, in one of those between, and in the last. A killed process and a machine
/// without power are both dead; a pause is nothing but time. Nodes are kept apart: what happens at two of
/// them at once has no order. Creates are numbered by what has left, so that one that died before its first
/// byte is none.
pub(super) fn marks(run: &Run, terms: &Terms<'_>) -> Vec<u64> {
    let names = Names::of(run);
    let after = after(run, &names);
    let events = run.history.events();
    let eras = eras(run);
    let mut before = Lanes::new(&names);
    before.add(DISK, &belief_hash(&Belief::default()));
    let mut ages = Ages::new(terms);
    let (mut next, mut beliefs) = (0, crashes(run).peekable());
    let mut met: BTreeSet<&Place> = BTreeSet::new();
    let (mut unsynced, mut commits) = (false, 0);
    let mut marks = Vec::with_capacity(run.visits.len());
    for (visit, after) in run.visits.iter().zip(after) {
        while next < visit.step.0 as usize {
            before.remember(&events[next]);
            commits = if is_spoken(&events[next]) { 0 } else { commits };
            ages.see(&events[next]);
            next += 1;
            while let Some((_, belief)) = beliefs.next_if(|(step, _)| *step as usize <= next) {
                // A killed process leaves what it has written; only what was durable must stay.
                if unsynced && events[next - 1].kind == Kind::Killed {
                    before.add((SYNCS, ""), &"left");
                }
                before.forget(DISK);
                before.add(DISK, &belief_hash(belief));
            }
        }
        unsynced = visit.unsynced;
        if !unsynced {
            before.forget((SYNCS, ""));
        }
        let now = visit.at;
        let mut hasher = SipHasher13::new();
        if matches!(visit.place, Place::Sync { when: When::Before, .. }) {
            commits += 1;
        }
        // Commits in a row look alike from outside, and each leaves another disk.
        (before.hash(), after, names.place(&visit.place), ages.at(now), unsynced, commits).hash(&mut hasher);
        going_on(run, &eras, visit.step, now, &met).hash(&mut hasher);
        met.insert(&visit.place);
        marks.push(hasher.finish());
    }
    marks
}

/// Whether the workflow has begun, heard or said something by it.
fn is_spoken(event: &Event) -> bool {
    event.node == WORKFLOW
        && (event.kind.exchange().is_some()
            || matches!(event.kind, Kind::Started { .. } | Kind::Refused { .. }))
}

/// The hash of what comes after each visit: the places and the events, from the end backwards.
fn after(run: &Run, names: &Names) -> Vec<u64> {
    let events = run.history.events();
    let mut lanes = Lanes::new(names);
    lanes.add(("end", ""), &(format!("{:?}", run.end), run.belief().map(belief_hash), run.ledger.records()));
    let mut next = events.len();
    let mut after = vec![0; run.visits.len()];
    for (index, visit) in run.visits.iter().enumerate().rev() {
        while next > visit.step.0 as usize {
            next -= 1;
            lanes.see(&events[next]);
        }
        after[index] = lanes.hash();
        lanes.add(("places", ""), &names.place(&visit.place));
    }
    after
}

/// A node, and what it asks of the workflow.
type LaneName<'a> = (&'static str, &'a str);

/// What was seen, one lane a node.
struct Lanes<'a> {
    names: &'a Names,
    lanes: BTreeMap<LaneName<'a>, Lane>,
}

/// A sequence of things seen, in which what repeats itself is there once.
#[derive(Clone, Debug, Default)]
struct Lane {
    /// Each thing, with the hash of everything up to it.
    seen: Vec<(u64, u64)>,
}

impl Lane {
    /// The longest round that is known again, in things.
    const ROUND_MAX: usize = 24;

    fn add(&mut self, what: u64) {
        let mut hasher = SipHasher13::new();
        (self.hash(), what).hash(&mut hasher);
        self.seen.push((what, hasher.finish()));
        let length = self.seen.len();
        let is_round = |round: &usize| {
            let (before, last) = self.seen[length - 2 * round..].split_at(*round);
            before.iter().map(|(what, _)| what).eq(last.iter().map(|(what, _)| what))
        };
        if let Some(round) = (1..=Self::ROUND_MAX.min(length / 2)).find(is_round) {
            self.seen.truncate(length - round);
        }
    }

    fn hash(&self) -> u64 {
        self.seen.last().map_or(0, |(_, sum)| *sum)
    }
}

impl<'a> Lanes<'a> {
    fn new(names: &'a Names) -> Self {
        Lanes { names, lanes: BTreeMap::new() }
    }

    fn add(&mut self, lane: LaneName<'a>, what: &impl Hash) {
        let mut hasher = SipHasher13::new();
        what.hash(&mut hasher);
        self.lanes.entry(lane).or_default().add(hasher.finish());
    }

    fn see(&mut self, event: &'a Event) {
        match &event.kind {
            // What the fault does is seen by itself; time has its own place in the mark; and a journal only
            // repeats what the workflow has heard, and what a crash has left of it.
            Kind::Fault { .. } | Kind::Paused | Kind::Resumed | Kind::Journal { .. } => {}
            Kind::Killed | Kind::PowerCut => self.add((event.node, ""), &"dead"),
            Kind::Synced { .. } => self.add((SYNCS, ""), &"synced"),
            Kind::Started { .. } => self.add((event.node, ""), &"started"),
            kind => self.add((event.node, ""), &self.names.kind(kind)),
        }
    }

    /// Sees what has happened. What a process has heard dies with it: its disk is in the mark, and what it
    /// has said is with those who heard it. Who asks the workflow, and asks again when no answer came, is as
    /// before.
    fn remember(&mut self, event: &'a Event) {
        match &event.kind {
            Kind::Killed | Kind::PowerCut | Kind::Started { .. } => self.forget((event.node, "")),
            kind => {
                let asked = kind.exchange().filter(|exchange| !exchange.call.is_to_destination());
                if let Some(about) = asked.map(|exchange| exchange.about.as_str()) {
                    match kind {
                        Kind::Sent { .. } => self.forget((event.node, about)),
                        Kind::Broken { .. } => return self.forget((event.node, about)),
                        Kind::Received { .. } => {}
                        _ => return self.see(event),
                    }
                    return self.add((event.node, about), &self.names.kind(kind));
                }
            }
        }
        self.see(event);
    }

    /// What was seen in a lane has no part in what comes.
    fn forget(&mut self, lane: LaneName<'a>) {
        self.lanes.remove(&lane);
    }

    fn hash(&self) -> u64 {
        let mut hasher = SipHasher13::new();
        for (lane, seen) in &self.lanes {
            (lane, seen.hash()).hash(&mut hasher);
        }
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

    fn at(&self, now: Nanos) -> Vec<[(usize, u32); 2]> {
        let class = |sent: Nanos| {
            let age = Duration::from_nanos(now.0.saturating_sub(sent.0));
            (self.spans.iter().filter(|span| **span <= age).count(), magnitude(age))
        };
        self.sends.values().map(|(first, last)| [class(*first), class(*last)]).collect()
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
    for found in &belief.discrepancies {
        (found.kind as u8, &found.operation, &found.record, found.stands).hash(&mut hasher);
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
    eras: &[Option<u32>],
    step: Step,
    now: Nanos,
    met: &BTreeSet<&Place>,
) -> Vec<(Option<u32>, Option<&'a Place>, &'a What)> {
    let mut all = vec![];
    let struck = run.plan.tape.faults().iter().zip(&run.fired).zip(eras);
    for ((Fault { at, what }, fired), era) in struck {
        match fired.filter(|fired| *fired <= step) {
            Some(fired) => {
                let until = run.history.event(fired).t_ns.after_ms(what.lasts_ms());
                if matches!(what, What::ClockStep(_) | What::ClockRate(_)) {
                    all.push((*era, None, what));
                } else if until > now || stays(what) || waits_for_a_start(what) && !starts(run, fired, step) {
                    all.push((None, None, what));
                }
            }
            None if met.contains(at) => all.push((None, Some(at), what)),
            None => {}
        }
    }
    all
}

/// Of each fault that struck, how often the workflow had looked at its clock and written since: between two
/// such times a clock that is set is set for the same records.
fn eras(run: &Run) -> Vec<Option<u32>> {
    let (mut era, mut last, mut has_looked) = (0, Work::default(), false);
    let mut since = vec![];
    for visit in &run.visits {
        has_looked |= visit.work.clock_reads != last.clock_reads;
        if has_looked && visit.work.writes != last.writes {
            (era, has_looked) = (era + 1, false);
        }
        last = visit.work;
        since.push((visit.step, era));
    }
    let at = |fired: Step| since.iter().rfind(|(step, _)| *step < fired).map_or(0, |(_, era)| *era);
    run.fired.iter().map(|fired| fired.map(at)).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(seen: &str) -> (String, u64) {
        let mut lane = Lane::default();
        seen.bytes().for_each(|what| lane.add(u64::from(what)));
        let left = lane.seen.iter().map(|(what, _)| char::from(u8::try_from(*what).unwrap())).collect();
        (left, lane.hash())
    }

    #[test]
    fn what_repeats_itself_is_there_once() {
        for (seen, left) in [
            ("", ""),
            ("abcabcabc", "abc"),
            ("abca", "abca"),
            ("aab", "ab"),
            ("sllle", "sle"),
            ("abab", "ab"),
        ] {
            assert_eq!(lane(seen), lane(left), "{seen}");
            assert_eq!(lane(seen).0, left);
        }
        assert_ne!(lane("ab").1, lane("ba").1, "the order counts");
        let long: String = (0..=Lane::ROUND_MAX as u8).map(|n| char::from(b'!' + n)).collect();
        assert_eq!(lane(&long.repeat(2)).0, long.repeat(2), "nobody compares rounds of any length");
    }
}
