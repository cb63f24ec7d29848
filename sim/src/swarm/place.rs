//! Where a random fault strikes: a place that a run of the workload is likely to come by.

use super::Draw;
use crate::fault::{Call, ExchangeName, Phase, Place, What, When};

/// Where a process, its disk or its clock can be struck within an exchange.
const PHASES: [Phase; 5] = [Phase::BeforeSend, Phase::Sent, Phase::Arrived, Phase::Applied, Phase::Answered];
/// The workflow's own points of a call that comes from outside: nothing of it stands at the far end.
const OF_OURS: [Phase; 3] = [Phase::BeforeSend, Phase::Sent, Phase::Answered];
/// Syncs of a process that is doing something.
const LAST_SYNC: u64 = 8;

impl Draw<'_> {
    /// A place where this fault can strike, most of the time one that exists.
    pub(super) fn place(&mut self, what: &What) -> Place {
        match what {
            What::Redeliver { .. } | What::AtOnce(_) | What::HoldBack(_) => Place::Delivery(self.delivery()),
            What::HangConnecting => self.connection(),
            What::Refuse if self.rng.chance(400) => self.connection(),
            What::LoseRequest(_) | What::LoseResponse(_) => {
                let call = *self.rng.pick(&[
                    Call::Create,
                    Call::Create,
                    Call::Create,
                    Call::Find,
                    Call::Deliver,
                    Call::Fetch,
                    Call::Decide,
                ]);
                Place::Exchange(self.exchange(call))
            }
            What::Refuse
            | What::NotApplied(_)
            | What::AnswerSlowly(_)
            | What::Hang { .. }
            | What::Partition { .. } => {
                let call = *self.rng.pick(&[Call::Create, Call::Create, Call::Find, Call::Fetch]);
                Place::Exchange(self.exchange(call))
            }
            What::ApplyLate(_)
            | What::ErrorAfter(_)
            | What::Duplicate(_)
            | What::OmitId(_)
            | What::Undo(_)
            | What::ForgetKeys
            | What::KeysDown(_) => Place::Exchange(self.exchange(Call::Create)),
            What::Blind(_) | What::Stale(_) | What::SecondPage | What::Foreign => {
                Place::Exchange(self.exchange(Call::Find))
            }
            What::Delay(_) => self.wait(),
            What::SyncError | What::DiskFull(_) | What::LyingSync => self.sync(When::Before),
            What::BitFlip => self.sync(When::After),
            What::ReadError if self.rng.chance(700) => self.sync(When::After),
            What::EditByHand(_) | What::DeleteByHand | What::ArchiveByHand(_) | What::CopyByHand(_) => {
                Place::Record { about: self.operation(), nth: 1 }
            }
            What::ActLate(_) | What::WrongReference | What::TwoAtOnce | What::StaleView => {
                Place::Case(self.operation())
            }
            What::ReadError
            | What::Kill(_)
            | What::PowerCut { .. }
            | What::Pause(_)
            | What::ClockStep(_)
            | What::ClockRate(_) => self.of_process(),
        }
    }

    /// The steps that can be held up.
    fn wait(&mut self) -> Place {
        if self.rng.chance(250) {
            let call = if self.rng.chance(800) { Call::Deliver } else { Call::Decide };
            return Place::Phase { exchange: self.exchange(call), phase: Phase::BeforeSend };
        }
        let call = *self.rng.pick(&[Call::Create, Call::Create, Call::Find, Call::Fetch]);
        let phase = *self.rng.pick(&[Phase::Arrived, Phase::Applied]);
        Place::Phase { exchange: self.exchange(call), phase }
    }

    /// A sync, or a point of an exchange.
    fn of_process(&mut self) -> Place {
        if self.rng.chance(400) {
            let when = if self.rng.chance(500) { When::Before } else { When::After };
            return self.sync(when);
        }
        let call = *self.rng.pick(&[
            Call::Create,
            Call::Create,
            Call::Create,
            Call::Deliver,
            Call::Deliver,
            Call::Find,
            Call::Fetch,
            Call::Decide,
        ]);
        let phases = if call.is_to_destination() { &PHASES[..] } else { &OF_OURS[..] };
        let phase = *self.rng.pick(phases);
        Place::Phase { exchange: self.exchange(call), phase }
    }

    fn sync(&mut self, when: When) -> Place {
        let boot = match self.rng.below(10) {
            0..7 => 1,
            7..9 => 2,
            _ => 3,
        };
        Place::Sync { boot, nth: self.rng.within(1..=LAST_SYNC) as u32, when }
    }

    fn connection(&mut self) -> Place {
        let most = self.workload.requests.len() as u64 + 2;
        Place::Connection { nth: self.rng.within(1..=most) as u32 }
    }

    fn exchange(&mut self, call: Call) -> ExchangeName {
        let about = if call == Call::Deliver { self.delivery() } else { self.operation() };
        ExchangeName { call, about, nth: self.nth() }
    }

    /// Mostly the first of its kind: a later one exists only where an earlier one failed.
    fn nth(&mut self) -> u32 {
        match self.rng.below(10) {
            0..7 => 1,
            7..9 => 2,
            _ => 3,
        }
    }

    fn operation(&mut self) -> String {
        self.rng.pick(&self.workload.requests).operation.clone()
    }

    fn delivery(&mut self) -> String {
        self.rng.pick(&self.workload.deliveries).name.clone()
    }
}
