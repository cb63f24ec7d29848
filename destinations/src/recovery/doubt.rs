//! A send in doubt, and whether what is known of it permits another.

use super::{LookupRule, Recovery};
use std::time::Duration;

/// What is known, at one instant, of an operation that was sent and is in doubt. All ages are measured on one
/// clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doubt {
    /// Since the first intent was committed: a lower bound of the first receipt.
    pub first_intent_age: Duration,
    /// Since the last instant at which a byte of the last attempt may have left us.
    pub last_send_age: Duration,
    /// How many attempts there were; with none there is nothing to resend.
    pub sends: u32,
    /// Look-ups that found nothing, newest first.
    pub misses: Vec<Miss>,
    /// Whether the next attempt would carry the same key, the same reference and the same bytes.
    pub same_key_and_bytes: bool,
}

/// A look-up that found nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Miss {
    /// Since the look-up began.
    pub age: Duration,
    /// Whether every page was read to the end, without a filter or a cap.
    pub complete: bool,
    /// Whether the same query, in the same pass, found a record that is known to exist.
    pub control_found: bool,
}

/// Why another send is permitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ground {
    /// The destination still remembers the key.
    Key,
    /// The destination enforces the identity.
    Identity,
    /// A trusted look-up found nothing, when nothing could come any more.
    TrustedMiss,
}

impl Recovery {
    /// Why the operation may be sent again at this instant; `None` where it must not.
    ///
    /// - [`Ground::Key`]: same key and bytes, the first intent younger than `safe_for` (at that age it is too
    ///   late), and the last send at least `wait_between` ago;
    /// - [`Ground::Identity`]: same identity, the first intent younger than its `safe_for`, and the last send
    ///   at least its `wait_between` ago;
    /// - [`Ground::TrustedMiss`]: see [`Recovery::trusted_negative`]. The look-up counts for one send: the
    ///   next one makes `last_send_age` young again.
    ///
    /// The first send is no resend and needs none of these: `None` for it too.
    pub fn may_resend(&self, doubt: &Doubt) -> Option<Ground> {
        if doubt.sends == 0 {
            return None;
        }
        let key = self.replay.as_ref().is_some_and(|replay| {
            doubt.first_intent_age < replay.safe_for && doubt.last_send_age >= replay.wait_between
        });
        let identity = self.converge.as_ref().is_some_and(|converge| {
            doubt.first_intent_age < converge.safe_for && doubt.last_send_age >= converge.wait_between
        });
        match () {
            () if key && doubt.same_key_and_bytes => Some(Ground::Key),
            () if identity && doubt.same_key_and_bytes => Some(Ground::Identity),
            () if self.trusted_negative(doubt) => Some(Ground::TrustedMiss),
            () => None,
        }
    }

    /// Whether "not found" is proof that the operation has no effect and will have none.
    ///
    /// A miss counts where it read every page, its positive control was found, and it began at least
    /// `decides_after` after the last possible send. One such miss is enough where the look-up is never
    /// stale; otherwise two, at least `lag` apart.
    pub fn trusted_negative(&self, doubt: &Doubt) -> bool {
        let Some(LookupRule { decides_after: Some(horizon), lag, .. }) = &self.lookup else { return false };
        let began_late_enough = |miss: &Miss| {
            doubt.last_send_age.checked_sub(miss.age).is_some_and(|after_the_send| after_the_send >= *horizon)
        };
        let counting = doubt.misses.iter().filter(|miss| miss.complete && miss.control_found);
        let ages: Vec<Duration> =
            counting.filter(|miss| began_late_enough(miss)).map(|miss| miss.age).collect();
        match (ages.iter().min(), ages.iter().max()) {
            (Some(newest), Some(oldest)) => lag.is_zero() || *oldest - *newest >= *lag,
            _ => false,
        }
    }
}
