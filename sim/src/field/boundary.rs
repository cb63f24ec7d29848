//! The points at which a process can die or pause, and at which its disk and its clock go wrong.

use super::{Alive, Field, News, WORKFLOW, now};
use crate::disk::{CrashKeep, DiskHooks, Machine, Side};
use crate::fault::{ExchangeName, Keep, Phase, Place, What, When};
use crate::history::{Kind, Nanos, Step};
use crate::run::Moment;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Microseconds that a disk sync takes at least; each takes up to as much again.
const SYNC_MICROS: u64 = 200;

/// What is wrong with the disk.
#[derive(Default)]
pub(crate) struct DiskTrouble {
    /// Writes fail until then.
    pub(crate) full_until: Nanos,
    /// The next sync fails.
    sync_fails: bool,
    /// The next read fails.
    read_fails: bool,
    /// Syncs are claimed and not done.
    sync_lies: bool,
    /// The disk decays or lies: what is on it may be unreadable, and that is no fault of the harness.
    pub(super) spoiled: bool,
    /// Whether the disk has failed, so that a process may end because of it once.
    pub(crate) failed: bool,
}

impl DiskTrouble {
    /// What had not struck when the storm ended does not strike any more; a disk that lies goes on lying.
    pub(crate) fn calm(&mut self) {
        (self.full_until, self.sync_fails, self.read_fails) = (Nanos(0), false, false);
    }
}

impl Field {
    /// A point of an exchange: the process may die or pause here.
    pub(crate) fn phase(&self, exchange: &ExchangeName, phase: Phase) -> Alive {
        let place = Place::Phase { exchange: exchange.clone(), phase };
        self.boundary(&place)
    }

    fn boundary(&self, place: &Place) -> Alive {
        if !self.lock().up {
            return Alive::No;
        }
        let Some((what, step)) = self.strike(WORKFLOW, place, None) else { return Alive::Yes };
        match what {
            What::Kill(down) => self.die(None, down, step),
            What::PowerCut { down, keep } => self.die(Some(keep), down, step),
            What::Pause(ms) => {
                self.event(WORKFLOW, Kind::Paused, Some(step));
                madsim::runtime::Handle::current().pause(WORKFLOW);
                let _ = self.news.send(News::Paused(ms));
                Alive::Yes
            }
            What::ClockStep(ms) => {
                self.lock().clock.step(ms);
                Alive::Yes
            }
            What::ClockRate(ppm) => {
                self.lock().clock.set_rate(now(), ppm);
                Alive::Yes
            }
            on_disk => {
                self.trouble(&on_disk);
                Alive::Yes
            }
        }
    }

    /// The disk goes wrong from here.
    fn trouble(&self, what: &What) {
        let mut state = self.lock();
        match what {
            What::DiskFull(ms) => state.disk.full_until = Nanos(now().0 + ms * 1_000_000),
            What::SyncError => (state.disk.sync_fails, state.disk.failed) = (true, true),
            What::ReadError => state.disk.read_fails = true,
            What::BitFlip => {
                state.disk.spoiled = true;
                let seed = state.crash_seed(self.disk_draw());
                state.machine.flip_bit(seed);
            }
            What::LyingSync => (state.disk.sync_lies, state.disk.spoiled) = (true, true),
            other => unreachable!("the tape keeps {} away from boundaries", other.kind()),
        }
    }

    /// What the disk's luck is drawn from: each seed has its own.
    fn disk_draw(&self) -> u64 {
        self.reroll.seed().map_or(self.disk_seed, |anew| anew.stream("disk").bits())
    }

    /// The process dies: first its disk and wires stop, then its tasks.
    fn die(&self, power: Option<Keep>, down: u64, cause: Step) -> Alive {
        {
            let mut state = self.lock();
            state.up = false;
            let node_kind = if power.is_some() { Kind::PowerCut } else { Kind::Killed };
            state.history.add(now(), WORKFLOW, node_kind, Some(cause));
            match power {
                None => state.process.kill(),
                Some(keep) => {
                    state.machine.power_off();
                    let seed = state.crash_seed(self.disk_draw());
                    let image = state.machine.crash(&crash_keep(keep, seed));
                    let me = self.me.clone();
                    state.machine = Machine::boot(image, Arc::new(Hooks(me)), seed);
                }
            }
        }
        madsim::runtime::Handle::current().kill(WORKFLOW);
        self.believe(Moment::Crash);
        let _ = self.news.send(News::Down(down));
        Alive::No
    }
}

fn crash_keep(keep: Keep, seed: u64) -> CrashKeep {
    match keep {
        Keep::Nothing => CrashKeep::Nothing,
        Keep::Everything => CrashKeep::Everything,
        Keep::Prefix => CrashKeep::Prefix(seed),
        Keep::Mixed => CrashKeep::Mixed { seed, torn: false },
        Keep::Torn => CrashKeep::Mixed { seed, torn: true },
    }
}

/// The disk's boundaries, reported to the field while it lives.
pub(super) struct Hooks(pub(super) Weak<Field>);

impl DiskHooks for Hooks {
    fn sync(&self, _: &Machine, _: &str, side: Side) {
        let Some(field) = self.0.upgrade() else { return };
        let (boot, nth) = {
            let mut state = field.lock();
            if !state.up {
                return;
            }
            if side == Side::Before {
                state.syncs += 1;
            } else {
                state.all_syncs += 1;
                state.synced.send_replace(state.all_syncs);
            }
            (state.boot, state.syncs)
        };
        let when = if side == Side::Before { When::Before } else { When::After };
        if side == Side::After {
            madsim::time::advance(Duration::from_micros(SYNC_MICROS + u64::from(nth * 37) % SYNC_MICROS));
            field.event(WORKFLOW, Kind::Synced { boot, nth }, None);
            field.journal();
        }
        let _ = field.boundary(&Place::Sync { boot, nth, when });
    }

    fn wrote(&self, _: &str, offset: u64, len: u32) {
        if let Some(field) = self.0.upgrade() {
            let mut state = field.lock();
            state.work.writes += 1;
            state.history.wrote(offset, len);
        }
    }

    fn sync_error(&self, _: &str) -> bool {
        let Some(field) = self.0.upgrade() else { return false };
        let mut state = field.lock();
        state.work.syncs += 1;
        std::mem::take(&mut state.disk.sync_fails)
    }

    fn sync_lies(&self, _: &str) -> bool {
        self.0.upgrade().is_some_and(|field| field.lock().disk.sync_lies)
    }

    fn read_error(&self, _: &str) -> bool {
        let Some(field) = self.0.upgrade() else { return false };
        let mut state = field.lock();
        state.work.reads += u32::from(state.up);
        let fails = state.up && std::mem::take(&mut state.disk.read_fails);
        state.disk.failed |= fails;
        fails
    }

    fn full(&self, _: &str, _: u32) -> bool {
        self.0.upgrade().is_some_and(|field| now() < field.lock().disk.full_until)
    }
}
