//! Points in time as the store keeps them, and the one place where they come from.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970-01-01 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// This point and `span` after it; saturates at the end of time.
    pub fn after(self, span: Duration) -> Timestamp {
        Timestamp(self.0.saturating_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
    }

    /// This instant and a span earlier; saturates at the beginning of time.
    pub fn before(self, span: Duration) -> Timestamp {
        Timestamp(self.0.saturating_sub(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
    }

    /// How long ago `earlier` was; zero when it lies ahead.
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// How long until this point; zero when it has passed.
    pub fn remaining_at(self, now: Timestamp) -> Duration {
        self.since(now)
    }
}

impl fmt::Display for Timestamp {
    /// As RFC 3339 in UTC, with whole seconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since_1970 = Duration::from_millis(u64::try_from(self.0).unwrap_or(0));
        // A year beyond 9999 has no RFC 3339 form.
        match UNIX_EPOCH.checked_add(since_1970).filter(|_| since_1970.as_secs() < 253_402_300_800) {
            Some(time) => humantime::format_rfc3339_seconds(time).fmt(f),
            None => f.write_str("beyond the year 9999"),
        }
    }
}

/// Where the engine's time comes from: the wall clock, or whatever a test puts in its place.
///
/// The store never judges by this clock alone: it takes the later of it and its own durable high-water mark,
/// so that a clock that steps back cannot make an idempotency key look younger than it is.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// The machine's wall clock.
    pub fn system() -> Clock {
        Clock(Arc::new(wall_clock))
    }

    /// Any other source of time.
    pub fn from_fn(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Clock {
        Clock(Arc::new(now))
    }

    /// Now.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the place that reads the wall clock")]
fn wall_clock() -> Timestamp {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX))
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({})", self.now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_never_go_below_zero() {
        let (early, late) = (Timestamp(1_000), Timestamp(4_000));
        assert_eq!(late.since(early), Duration::from_secs(3));
        assert_eq!(early.since(late), Duration::ZERO);
        assert_eq!(Timestamp(i64::MAX).after(Duration::from_secs(1)), Timestamp(i64::MAX));
    }

    #[test]
    fn times_read_as_dates() {
        assert_eq!(Timestamp(1_700_000_000_123).to_string(), "2023-11-14T22:13:20Z");
        assert_eq!(Timestamp(i64::MAX).to_string(), "beyond the year 9999");
    }
}
