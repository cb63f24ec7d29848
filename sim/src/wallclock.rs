//! The wall clock of the workflow's machine: it can be set, and it can run fast or slow.

use crate::history::Nanos;
use std::time::Duration;

/// What the clock shows when the simulation begins: 2026-01-05T09:00:00Z, in milliseconds since 1970.
const BEGIN_MS: i64 = 1_767_603_600_000;

/// What a clock that is right shows, in milliseconds since 1970.
pub(crate) fn true_ms(now: Nanos) -> i64 {
    BEGIN_MS + i64::try_from(now.0 / 1_000_000).unwrap_or(i64::MAX / 2)
}

/// How far the machine's clock is off.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WallClockState {
    /// By how much it was set, all in all, and what its rate has added up to `since`; in nanoseconds.
    off_ns: i128,
    /// Millionths by which it runs fast.
    ppm: i64,
    /// Since when.
    since: Nanos,
    /// What all steps back, and all spans at a slow rate before `since`, have taken from it; in nanoseconds.
    lost_ns: u64,
}

impl WallClockState {
    /// What it shows, in milliseconds since 1970.
    pub(crate) fn shows_ms(&self, now: Nanos) -> i64 {
        let ns = i128::from(now.0) + self.off_ns + self.gained(now);
        BEGIN_MS + i64::try_from(ns / 1_000_000).unwrap_or(i64::MAX / 2)
    }

    /// Sets it, ahead or back.
    pub(crate) fn step(&mut self, ms: i64) {
        self.off_ns += i128::from(ms) * 1_000_000;
        self.lost_ns += if ms < 0 { ms.unsigned_abs() * 1_000_000 } else { 0 };
    }

    /// Lets it run fast (or slow) from now on.
    pub(crate) fn set_rate(&mut self, now: Nanos, ppm: i64) {
        self.lost_ns = self.lost_until(now);
        self.off_ns += self.gained(now);
        (self.ppm, self.since) = (ppm, now);
    }

    /// How much longer than `span` a waiting time of that length may take, for who goes by this clock.
    pub(crate) fn behind(&self, now: Nanos, span: Duration) -> Duration {
        let until = Nanos(now.0.saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)));
        Duration::from_nanos(self.lost_until(until))
    }

    fn lost_until(&self, until: Nanos) -> u64 {
        self.lost_ns + u64::try_from(-self.gained(until)).unwrap_or(0)
    }

    fn gained(&self, now: Nanos) -> i128 {
        i128::from(now.0.saturating_sub(self.since.0)) * i128::from(self.ppm) / 1_000_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_goes_by_a_clock_that_was_set_back_waits_longer() {
        let minute = Duration::from_secs(60);
        let mut clock = WallClockState::default();
        assert_eq!(clock.behind(Nanos(0), minute), Duration::ZERO);
        clock.step(20_000);
        clock.step(-4_000);
        assert_eq!(clock.behind(Nanos(0), minute), Duration::from_secs(4));
        clock.set_rate(Nanos(0), -1_000);
        assert_eq!(clock.behind(Nanos(0), minute), Duration::from_millis(4_060));
        clock.set_rate(Nanos(60_000_000_000), 1_000);
        assert_eq!(clock.behind(Nanos(60_000_000_000), minute), Duration::from_millis(4_060));
    }

    #[test]
    fn a_clock_is_set_and_runs_fast() {
        let second = |n: u64| Nanos(n * 1_000_000_000);
        let mut clock = WallClockState::default();
        let start = clock.shows_ms(second(0));
        assert_eq!(clock.shows_ms(second(10)) - start, 10_000);
        clock.step(-4_000);
        assert_eq!(clock.shows_ms(second(10)) - start, 6_000);
        clock.set_rate(second(10), 1_000);
        assert_eq!(clock.shows_ms(second(1_010)) - start, 1_006_000 + 1_000);
        clock.set_rate(second(1_010), 0);
        assert_eq!(clock.shows_ms(second(1_020)) - start, 1_017_000);
    }
}
