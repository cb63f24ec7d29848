//! Places between which nothing happened that a fault could have changed: it is tried at the first of them.

use crate::fault::{Phase, Place, What, When};
use crate::history::{Event, Kind};
use crate::run::{Run, Visit};

/// Two places are at one time when no more lies between them, in nanoseconds: no wait of a workflow is that
/// short.
const AT_ONCE_NS: u64 = 10_000_000;

/// What a fault acts on, and so what tells two places apart for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ActsOn {
    /// On the place itself: no other place is like it.
    Place,
    /// The process ends: what is left is the disk, and what others have seen.
    Process,
    /// The process stands still. A sync is one call, so before and after it are one moment.
    Tasks,
    /// The wall clock, which matters when it is read.
    Clock,
    /// The next read of the disk.
    Read,
    /// The next sync of the disk.
    Sync,
    /// The next writes to the disk.
    Write,
}

impl ActsOn {
    const ALL: [ActsOn; 7] = [
        ActsOn::Place,
        ActsOn::Process,
        ActsOn::Tasks,
        ActsOn::Clock,
        ActsOn::Read,
        ActsOn::Sync,
        ActsOn::Write,
    ];

    fn of(what: &What) -> ActsOn {
        match what {
            What::Kill(_) | What::PowerCut { .. } => ActsOn::Process,
            What::Pause(_) => ActsOn::Tasks,
            What::ClockStep(_) | What::ClockRate(_) => ActsOn::Clock,
            What::ReadError => ActsOn::Read,
            What::SyncError => ActsOn::Sync,
            What::DiskFull(_) => ActsOn::Write,
            _ => ActsOn::Place,
        }
    }

    /// Whether a fault at the later place does what it would have done at the earlier one, next to it.
    fn cannot_tell(self, between: &[Event], earlier: &Visit, later: &Visit) -> bool {
        let lives = |kind: &Kind| !matches!(kind, Kind::Killed | Kind::PowerCut | Kind::Started { .. });
        if later.at.0 - earlier.at.0 > AT_ONCE_NS || !between.iter().all(|event| lives(&event.kind)) {
            return false;
        }
        let (one, other) = (earlier.work, later.work);
        match self {
            ActsOn::Place => false,
            ActsOn::Process => {
                let unchanged = (one.writes, one.syncs) == (other.writes, other.syncs);
                between.is_empty() && unchanged && !is_heard(&later.place)
            }
            ActsOn::Tasks => is_one_sync(&earlier.place, &later.place),
            ActsOn::Clock => one.clock_reads == other.clock_reads,
            ActsOn::Read => one.reads == other.reads,
            ActsOn::Sync => one.syncs == other.syncs,
            ActsOn::Write => one.writes == other.writes,
        }
    }
}

/// Whether somebody who asked the workflow has its answer here: the event that says so comes after the place.
fn is_heard(place: &Place) -> bool {
    let Place::Phase { exchange, phase: Phase::Answered } = place else { return false };
    !exchange.call.is_to_destination()
}

fn is_one_sync(earlier: &Place, later: &Place) -> bool {
    match (earlier, later) {
        (Place::Sync { boot: b1, nth: n1, when: When::Before }, Place::Sync { boot: b2, nth: n2, .. }) => {
            (b1, n1) == (b2, n2)
        }
        _ => false,
    }
}

/// For each sort of fault, the first place of those that are as good as a visit's.
pub(super) struct Earlier(Vec<(ActsOn, Vec<usize>)>);

impl Earlier {
    pub(super) fn of(run: &Run) -> Earlier {
        let each = ActsOn::ALL.map(|acts| {
            let mut first: Vec<usize> = Vec::with_capacity(run.visits.len());
            for (index, visit) in run.visits.iter().enumerate() {
                let is_like = |before: &usize| {
                    let earlier = &run.visits[*before];
                    let between = &run.history.events()[earlier.step.0 as usize..visit.step.0 as usize];
                    acts.cannot_tell(between, earlier, visit)
                };
                let before = index.checked_sub(1).filter(is_like);
                first.push(before.map_or(index, |before| first[before]));
            }
            (acts, first)
        });
        Earlier(each.into())
    }

    /// The visit at which this fault does what it would do at this one.
    pub(super) fn place_for(&self, what: &What, visit: usize) -> usize {
        let acts = ActsOn::of(what);
        let of = self.0.iter().find(|(one, _)| *one == acts);
        of.expect("every sort is there").1[visit]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{Call, ExchangeName};
    use crate::fixture::{self, create};
    use crate::history::{History, Nanos, Step};
    use crate::run::Work;
    use ActsOn as A;

    fn at(when: When) -> Visit {
        let place = Place::Sync { boot: 1, nth: 4, when };
        Visit { at: Nanos(0), ..fixture::visit(place, Step(1)) }
    }

    /// What cannot tell two places apart when the process did this much more between them.
    fn blind(between: Option<Kind>, more: fn(&mut Work), ms: u64) -> Vec<ActsOn> {
        let (earlier, mut later) = (at(When::After), at(When::After));
        more(&mut later.work);
        later.at = Nanos(ms * 1_000_000);
        let mut history = History::default();
        between.map(|kind| history.add(Nanos(0), "workflow", kind, None));
        let all = ActsOn::ALL.into_iter();
        all.filter(|acts| acts.cannot_tell(history.events(), &earlier, &later)).collect()
    }

    #[test]
    fn a_fault_sees_only_what_it_acts_on() {
        let nothing: fn(&mut Work) = |_| {};
        assert_eq!(blind(None, nothing, 0), [A::Process, A::Clock, A::Read, A::Sync, A::Write]);
        assert_eq!(blind(None, |work| work.writes += 1, 0), [A::Clock, A::Read, A::Sync]);
        assert_eq!(blind(None, |work| work.syncs += 1, 0), [A::Clock, A::Read, A::Write]);
        assert_eq!(blind(None, |work| work.reads += 1, 0), [A::Process, A::Clock, A::Sync, A::Write]);
        assert_eq!(blind(None, |work| work.clock_reads += 1, 0), [A::Process, A::Read, A::Sync, A::Write]);
        let arrived = Kind::Arrived { exchange: create(1) };
        assert_eq!(blind(Some(arrived), nothing, 0), [A::Clock, A::Read, A::Sync, A::Write]);
        for end in [Kind::Killed, Kind::PowerCut, Kind::Started { boot: 2 }] {
            assert_eq!(blind(Some(end), nothing, 0), [], "another process");
        }
        assert_eq!(blind(None, nothing, 11), [], "another time");
    }

    #[test]
    fn who_has_an_answer_has_it_before_the_event_that_says_so() {
        let answered = |call| {
            let exchange = ExchangeName { call, ..create(1) };
            let place = Place::Phase { exchange, phase: Phase::Answered };
            A::Process.cannot_tell(&[], &at(When::After), &Visit { place, ..at(When::After) })
        };
        assert!(!answered(Call::Deliver) && !answered(Call::Decide));
        assert!(answered(Call::Create), "what the process has heard dies with it");
    }

    #[test]
    fn before_and_after_a_sync_a_process_stands_still_alike() {
        let one = at(When::Before);
        assert!(A::Tasks.cannot_tell(&[], &one, &at(When::After)));
        assert!(!A::Tasks.cannot_tell(&[], &at(When::After), &one), "the next sync is another one");
        let mut other = at(When::After);
        other.place = Place::Sync { boot: 1, nth: 5, when: When::After };
        assert!(!A::Tasks.cannot_tell(&[], &one, &other));
    }

    #[test]
    fn every_kind_at_a_boundary_says_what_it_acts_on() {
        let sync = Place::Sync { boot: 1, nth: 1, when: When::Before };
        let contract = destinations::named("zendesk_ticket").unwrap();
        let assumptions = destinations::Assumptions::default();
        let terms = crate::terms::Terms { contract: &contract, assumptions: &assumptions };
        for what in crate::menu::menu(&sync, &terms) {
            assert_ne!(ActsOn::of(&what), ActsOn::Place, "{what}");
        }
    }
}
