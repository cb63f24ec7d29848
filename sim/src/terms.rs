//! What a workflow is promised, by contract and by assumption: faults beyond it are no test of any workflow.

use crate::fault::{Call, Fault, FaultTape, Omission, Place, What};
use destinations::contract::{Atomic, Complete, Consistency, RetentionKind, Staleness, StoreDown};
use destinations::{Assumptions, Bound, Contract, Recovery};
use std::time::Duration;

/// The shortest blindness that outlasts a look-up and its control: each takes at most the time-out of an
/// exchange, several pages included.
pub const SHORTEST_BLINDNESS_MS: u64 = 60_000;
/// A key that is remembered for so long lapses for nobody who waits, in milliseconds: four hundred days.
pub const FOR_EVER_MS: u64 = 400 * 86_400_000;
/// The most by which a clock runs fast or slow, in millionths.
pub const MOST_PPM: u64 = 1_000;
/// Copies of one request at one instant.
const MOST_COPIES: u32 = 200;

/// Contract and assumptions of one run.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// What the destination promises.
    pub contract: &'a Contract,
    /// What is taken for granted about machines and links.
    pub assumptions: &'a Assumptions,
}

impl Terms<'_> {
    /// What they permit after a send in doubt.
    pub fn recovery(&self) -> Recovery {
        destinations::recovery(self.contract, self.assumptions)
    }

    /// The latest commit after a request has arrived, in milliseconds: the smaller of what is documented and
    /// what is attested; none where there is no bound at all.
    pub fn latest_commit_ms(&self) -> Option<u64> {
        let documented = match self.contract.time.late_commit_bound {
            Bound::Known(bound) => Some(bound),
            Bound::Unknown => None,
        };
        [documented, self.assumptions.assumed_late_commit].into_iter().flatten().min().map(millis)
    }

    /// Why no correct workflow could survive these faults; none where one could.
    pub fn unsurvivable(&self, tape: &FaultTape) -> Option<String> {
        let faults = tape.faults();
        if let Some((fault, why)) = faults.iter().find_map(|fault| Some((fault, self.forbids(fault)?))) {
            return Some(format!("{} ({}): {why}", fault.what.kind(), fault.at));
        }
        self.forbids_together(faults).map(str::to_owned)
    }

    /// Why one fault, alone, goes beyond the terms.
    pub fn forbids(&self, fault: &Fault) -> Option<&'static str> {
        let key = self.contract.dedup_key.as_ref();
        let forbidden = |is: bool, why: &'static str| is.then_some(why);
        match &fault.what {
            What::BitFlip | What::LyingSync => {
                Some("no program on one disk survives a disk that lies or decays")
            }
            What::Pause(ms) => forbidden(
                *ms > millis(self.assumptions.max_pause),
                "longer than the longest pause that is assumed",
            ),
            What::ClockStep(ms) if *ms < 0 => forbidden(
                ms.unsigned_abs() > millis(self.assumptions.clock_skew),
                "further back than the skew that is assumed",
            ),
            What::ClockStep(ms) => forbidden(
                ms.unsigned_abs() > millis(self.assumptions.max_transit),
                "further ahead than the slack of every waiting time",
            ),
            What::ClockRate(ppm) => {
                forbidden(ppm.unsigned_abs() > MOST_PPM, "a clock that is off by more than 1,000 ppm")
            }
            What::ApplyLate(ms) | What::Delay(ms) => forbidden(
                self.is_create(&fault.at) && self.latest_commit_ms().is_none_or(|most| *ms > most),
                "later than the latest commit that is promised or attested",
            ),
            What::ErrorAfter(status) => forbidden(
                self.contract.not_executed(*status, UNAVAILABLE),
                "the contract says that this answer proves that nothing was done",
            ),
            What::Duplicate(ms) => self.forbids_duplicate(*ms),
            What::Blind(ms) => forbidden(
                *ms < SHORTEST_BLINDNESS_MS,
                "a blindness that ends between a look-up and its control cannot be noticed",
            ),
            What::Stale(ms) => self.forbids_stale(*ms),
            What::SecondPage => forbidden(
                self.contract.lookup.iter().any(|lookup| matches!(lookup.complete, Complete::Truncated(_))),
                "the look-up does not show every match",
            ),
            What::ForgetKeys => forbidden(
                key.is_none_or(|key| key.retention_kind != RetentionKind::BestEffort),
                "the contract does not say that keys may be forgotten early",
            ),
            What::KeysDown(_) => forbidden(
                key.is_none_or(|key| key.store_down == StoreDown::FailOpen),
                "there is no store of keys that says when it is down",
            ),
            What::AtOnce(copies) => {
                forbidden(!(2..=MOST_COPIES).contains(copies), "2 to 200 copies can arrive at once")
            }
            _ => None,
        }
    }

    fn is_create(&self, at: &Place) -> bool {
        at.exchange().is_some_and(|exchange| exchange.call == Call::Create)
    }

    /// A request that is sent twice on the way has one effect only where the destination recognises it.
    fn forbids_duplicate(&self, after_ms: u64) -> Option<&'static str> {
        let atomic = self
            .contract
            .converge
            .iter()
            .any(|identity| identity.atomic == Atomic::Yes && identity.only_on.is_none());
        let replay = self.recovery().replay;
        let remembered = replay.is_some_and(|replay| after_ms < millis(replay.retention) / 2);
        (!atomic && !remembered).then_some("the destination does not recognise a request that it has seen")
    }

    fn forbids_stale(&self, ms: u64) -> Option<&'static str> {
        let allowed =
            self.contract.lookup.iter().any(|lookup| match (lookup.consistency, lookup.max_staleness) {
                (Consistency::ReadYourWrites, _) => false,
                (_, Staleness::Known(most)) => ms <= millis(most),
                (_, Staleness::None | Staleness::Unknown) => true,
            });
        (!allowed).then_some("an index older than the contract allows")
    }

    fn forbids_together(&self, faults: &[Fault]) -> Option<&'static str> {
        let any = |wanted: fn(&What) -> bool| faults.iter().any(|fault| wanted(&fault.what));
        let pauses: u64 =
            faults.iter().map(|fault| if let What::Pause(ms) = fault.what { ms } else { 0 }).sum();
        let steps = |back: bool| -> u64 {
            let each = faults.iter().map(|fault| match fault.what {
                What::ClockStep(ms) if (ms < 0) == back => ms.unsigned_abs(),
                _ => 0,
            });
            each.sum()
        };
        if any(|what| *what == What::SyncError) && any(|what| matches!(what, What::PowerCut { .. })) {
            return Some("after a failed sync and a power cut no SQLite file is sure to be whole");
        }
        if pauses > millis(self.assumptions.max_pause) {
            return Some("the pauses together are longer than the longest that is assumed");
        }
        if steps(true) > millis(self.assumptions.clock_skew)
            || steps(false) > millis(self.assumptions.max_transit)
        {
            return Some("the clock's steps together go beyond what is assumed");
        }
        // A request that is still on its way when its record goes makes the record again.
        let goes = |what: &What| matches!(what, What::Undo(_) | What::DeleteByHand);
        let lingers = |what: &What| {
            let is_late = matches!(what, What::Duplicate(_) | What::ApplyLate(_) | What::Delay(_));
            is_late || matches!(what, What::AnswerSlowly(_) | What::OmitId(Omission::Accepted))
        };
        if let Some(most) = self.latest_commit_ms()
            && faults.iter().any(|fault| self.is_create(&fault.at) && late_in_all(faults, &fault.at) > most)
        {
            return Some("one create is held up and applied later than the latest commit");
        }
        if any(goes) && any(lingers) {
            return Some("a record that is gone is no longer recognised by its identity");
        }
        None
    }
}

/// By how much the exchange at a place is held up and applied late, in milliseconds.
fn late_in_all(faults: &[Fault], at: &Place) -> u64 {
    let same = faults.iter().filter(|fault| fault.at.exchange() == at.exchange());
    let late = same.map(|fault| match fault.what {
        What::ApplyLate(ms) | What::Delay(ms) => ms,
        _ => 0,
    });
    late.sum()
}

/// The body of an error that says nothing.
const UNAVAILABLE: &[u8] = br#"{"error":{"code":"unavailable","message":"try again later"}}"#;

/// Whole milliseconds; the most that there is where it is more.
pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{ExchangeName, Keep, Phase, When};

    fn create() -> Place {
        Place::Exchange(ExchangeName { call: Call::Create, about: "R17".into(), nth: 1 })
    }

    fn forbidden(id: &str, faults: &[(Place, What)]) -> Option<String> {
        let contract = destinations::named(id).expect("it comes with the crate");
        let assumptions =
            Assumptions { assumed_late_commit: Some(Duration::from_secs(90)), ..Assumptions::default() };
        let faults = faults.iter().map(|(at, what)| Fault { at: at.clone(), what: what.clone() });
        let tape = FaultTape::new(faults.collect()).expect("a tape");
        Terms { contract: &contract, assumptions: &assumptions }.unsurvivable(&tape)
    }

    #[test]
    fn what_is_held_up_and_applied_late_is_late_by_both() {
        let arrived = |about: &str| {
            let exchange = ExchangeName { call: Call::Create, about: about.into(), nth: 1 };
            Place::Phase { exchange, phase: Phase::Arrived }
        };
        let late = (create(), What::ApplyLate(50_000));
        assert_eq!(forbidden("zendesk_ticket", &[late.clone(), (arrived("R17"), What::Delay(40_000))]), None);
        assert!(
            forbidden("zendesk_ticket", &[late.clone(), (arrived("R17"), What::Delay(40_001))]).is_some()
        );
        assert_eq!(forbidden("zendesk_ticket", &[late, (arrived("R18"), What::Delay(60_000))]), None);
    }

    #[test]
    fn a_late_commit_stays_within_what_is_promised() {
        for (id, latest) in [("desk_strong_lookup", 60_000), ("zendesk_ticket", 90_000)] {
            assert_eq!(forbidden(id, &[(create(), What::ApplyLate(latest))]), None);
            assert!(forbidden(id, &[(create(), What::ApplyLate(latest + 1))]).is_some());
        }
    }

    #[test]
    fn a_duplicate_needs_a_destination_that_recognises_it() {
        for (id, survives) in [("zendesk_ticket", true), ("desk_unique_ref", true), ("desk_nothing", false)] {
            assert_eq!(forbidden(id, &[(create(), What::Duplicate(500))]).is_none(), survives, "{id}");
        }
        assert!(forbidden("zendesk_ticket", &[(create(), What::Duplicate(7_200_000))]).is_some());
    }

    #[test]
    fn an_answer_that_proves_that_nothing_was_done_is_not_given_after_the_effect() {
        assert!(forbidden("desk_nothing", &[(create(), What::ErrorAfter(429))]).is_some());
        assert_eq!(forbidden("desk_nothing", &[(create(), What::ErrorAfter(409))]), None);
    }

    #[test]
    fn some_faults_can_be_survived_alone_and_not_together() {
        let sync = |nth, when| Place::Sync { boot: 1, nth, when };
        let error = (sync(1, When::Before), What::SyncError);
        let cut = (sync(2, When::Before), What::PowerCut { down: 1, keep: Keep::Nothing });
        assert_eq!(forbidden("desk_nothing", std::slice::from_ref(&error)), None);
        assert_eq!(forbidden("desk_nothing", std::slice::from_ref(&cut)), None);
        assert!(forbidden("desk_nothing", &[error, cut]).is_some());
        let pause = |nth| (sync(nth, When::After), What::Pause(6_000));
        assert_eq!(forbidden("desk_nothing", &[pause(1)]), None);
        assert!(forbidden("desk_nothing", &[pause(1), pause(2)]).is_some());
    }

    #[test]
    fn a_disk_that_lies_is_no_test() {
        let at = Place::Sync { boot: 1, nth: 1, when: When::Before };
        assert!(forbidden("desk_unique_ref", &[(at, What::LyingSync)]).is_some());
    }
}
