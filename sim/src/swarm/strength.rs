//! How strong a random fault is: spans around what the contract and the assumptions name.

use super::Draw;
use crate::fault::{Keep, Loss, Omission, Variation, Way, What};
use crate::terms::{FOR_EVER_MS, MOST_PPM, SHORTEST_BLINDNESS_MS, millis};

const LOSSES: [Loss; 3] = [Loss::Silence, Loss::Reset, Loss::Truncated];
const KEEPS: [Keep; 5] = [Keep::Nothing, Keep::Everything, Keep::Prefix, Keep::Mixed, Keep::Torn];
const OMISSIONS: [Omission; 3] = [Omission::NoId, Omission::Garbled, Omission::Accepted];
const WAYS: [Way; 3] = [Way::There, Way::Back, Way::Both];
const ALIKE: [Variation; 3] = [Variation::Same, Variation::NewId, Variation::Volatile];
/// What an undocumented answer looks like: no contract says that these prove anything.
const UNPROVING: [u16; 5] = [500, 502, 503, 504, 409];
/// Milliseconds of a day.
const DAY_MS: u64 = 86_400_000;
/// How far a wall clock is set ahead or back in most draws.
const SMALL_STEP_MS: u64 = 5_000;
/// In so many of a thousand draws a process is down for longer than anything but a key lasts.
const LONG_DOWN: u64 = 50;

impl Draw<'_> {
    /// A fault of this kind; none where the terms leave no strength for it.
    pub(super) fn what(&mut self, kind: &str) -> Option<What> {
        let rng = &mut self.rng;
        Some(match kind {
            "refuse" => What::Refuse,
            "lose-request" => What::LoseRequest(*rng.pick(&LOSSES[..2])),
            "not-applied" => What::NotApplied(rng.chance(700).then(|| *rng.pick(&UNPROVING))),
            "lose-response" => What::LoseResponse(*rng.pick(&LOSSES)),
            "apply-late" => What::ApplyLate(self.late()?),
            "error-after" => What::ErrorAfter(*rng.pick(&UNPROVING)),
            "duplicate" => What::Duplicate(self.soon_or(60_000)),
            "omit-id" => What::OmitId(*rng.pick(&OMISSIONS)),
            "undo" => What::Undo(self.soon_or(60_000)),
            "answer-slowly" => What::AnswerSlowly(rng.within(500..=20_000)),
            "hang" => What::Hang { applied: rng.chance(500) },
            "hang-connecting" => What::HangConnecting,
            "partition" => What::Partition { way: *rng.pick(&WAYS), ms: rng.within(1_000..=120_000) },
            "delay" => What::Delay(rng.within(100..=20_000)),
            "blind" => What::Blind(rng.within(SHORTEST_BLINDNESS_MS..=600_000)),
            "stale" => What::Stale(rng.within(1_000..=300_000)),
            "second-page" => What::SecondPage,
            "foreign" => What::Foreign,
            "forget-keys" => What::ForgetKeys,
            "keys-down" => What::KeysDown(rng.within(1_000..=120_000)),
            "redeliver" => What::Redeliver { how: *rng.pick(&ALIKE), after_ms: self.later() },
            "change-meaning" => What::Redeliver { how: Variation::Meaning, after_ms: self.later() },
            "poison" => What::Redeliver { how: Variation::Poison, after_ms: self.later() },
            "at-once" => What::AtOnce(self.copies()),
            "hold-back" => What::HoldBack(rng.within(100..=60_000)),
            _ => return self.of_process_or_person(kind),
        })
    }

    fn of_process_or_person(&mut self, kind: &str) -> Option<What> {
        let rng = &mut self.rng;
        Some(match kind {
            "kill" => What::Kill(self.down()),
            "power-cut" => What::PowerCut { keep: *rng.pick(&KEEPS), down: self.down() },
            "pause" => What::Pause(self.pause()),
            "clock-step" => What::ClockStep(self.step()),
            "clock-rate" => {
                let ppm = rng.within(1..=MOST_PPM) as i64;
                What::ClockRate(if rng.chance(500) { ppm } else { -ppm })
            }
            "sync-error" => What::SyncError,
            "disk-full" => What::DiskFull(rng.within(1_000..=30_000)),
            "read-error" => What::ReadError,
            "bit-flip" => What::BitFlip,
            "lying-sync" => What::LyingSync,
            "act-late" => What::ActLate(rng.within(60_000..=DAY_MS)),
            "wrong-reference" => What::WrongReference,
            "two-at-once" => What::TwoAtOnce,
            "stale-view" => What::StaleView,
            "edit-by-hand" => What::EditByHand(self.soon_or(60_000)),
            "delete-by-hand" => What::DeleteByHand,
            "archive-by-hand" => What::ArchiveByHand(self.soon_or(60_000)),
            "copy-by-hand" => What::CopyByHand(self.soon_or(60_000)),
            _ => return None,
        })
    }

    /// At once, or up to so many milliseconds later.
    fn soon_or(&mut self, most: u64) -> u64 {
        if self.rng.chance(300) { 0 } else { self.rng.within(1..=most) }
    }

    /// Later than every attempt at times, at times longer than a key is remembered.
    fn later(&mut self) -> u64 {
        if self.rng.chance(LONG_DOWN) { self.long() } else { self.soon_or(60_000) }
    }

    fn late(&mut self) -> Option<u64> {
        let most = self.terms.latest_commit_ms()?;
        Some(if self.rng.chance(200) { most } else { self.rng.within(most.min(1_000)..=most) })
    }

    fn copies(&mut self) -> u32 {
        let most = if self.rng.chance(100) { 50 } else { 8 };
        self.rng.within(2..=most) as u32
    }

    /// Mostly short, at times longer than any key is remembered.
    fn down(&mut self) -> u64 {
        if self.rng.chance(LONG_DOWN) { self.long() } else { self.rng.within(20..=30_000) }
    }

    /// Around the end of the key's life, where it has one, or some hours.
    fn long(&mut self) -> u64 {
        let retention = self.terms.recovery().replay.map(|replay| millis(replay.retention));
        match retention.filter(|retention| *retention < FOR_EVER_MS) {
            Some(retention) if self.rng.chance(700) => {
                let around = self.rng.within(0..=2_000);
                (retention + around).saturating_sub(1_000)
            }
            _ => self.rng.within(7_000_000..=12_000_000),
        }
    }

    fn pause(&mut self) -> u64 {
        let most = millis(self.terms.assumptions.max_pause).max(1);
        // A second pause fits beside a short one only.
        let most = if self.rng.chance(700) { most.div_ceil(2) } else { most };
        self.rng.within(most.min(100)..=most)
    }

    fn step(&mut self) -> i64 {
        let is_back = self.rng.chance(500);
        let assumptions = self.terms.assumptions;
        let most = millis(if is_back { assumptions.clock_skew } else { assumptions.max_transit }).max(1);
        let most = if self.rng.chance(500) { most.min(SMALL_STEP_MS) } else { most };
        let ms = i64::try_from(self.rng.within(1..=most)).unwrap_or(i64::MAX);
        if is_back { -ms } else { ms }
    }
}
