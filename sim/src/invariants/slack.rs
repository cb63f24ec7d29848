//! How far a wall clock that the tape sets can have been from true time: what a judge of ages allows for.
//!
//! The oracle measures in simulated time, and a workflow can only go by its clock. Set back by some minutes,
//! or slow, it believes that a key is younger than it is, and may honestly use it so much later: margins are
//! there for that. Set ahead, or fast, it ends a waiting time so much early. The terms bound both, so the
//! allowance stays far below every retention and every horizon; a key that is used after the destination has
//! forgotten it is never excused.

use crate::fault::What;
use crate::history::Nanos;
use crate::run::Run;
use destinations::recovery::Doubt;
use std::time::Duration;

/// What the clock can have counted less, and more, than truly passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Slack {
    behind: Duration,
    ahead: Duration,
}

impl Slack {
    /// What the clock faults that had struck by then can have made of any span of time.
    pub(super) fn of(run: &Run, now: Nanos) -> Slack {
        let mut slack = Slack::default();
        for (fault, fired) in run.plan.tape.faults().iter().zip(&run.fired) {
            let Some(struck) = fired.map(|step| run.history.event(step).t_ns).filter(|at| *at <= now) else {
                continue;
            };
            let (is_back, by) = match fault.what {
                What::ClockStep(ms) => (ms < 0, Duration::from_millis(ms.unsigned_abs())),
                What::ClockRate(ppm) => {
                    let since = Duration::from_nanos(now.0 - struck.0);
                    (ppm < 0, since * u32::try_from(ppm.unsigned_abs()).unwrap_or(u32::MAX) / 1_000_000)
                }
                _ => continue,
            };
            let side = if is_back { &mut slack.behind } else { &mut slack.ahead };
            *side = side.saturating_add(by);
        }
        slack
    }

    /// The doubt as such a clock can show it: the first intent younger, the waiting times longer. `forgotten`
    /// is the age at which the destination has forgotten the key for certain.
    pub(super) fn widen(self, mut doubt: Doubt, forgotten: Option<Duration>) -> Doubt {
        if forgotten.is_none_or(|age| doubt.first_intent_age < age) {
            doubt.first_intent_age = doubt.first_intent_age.saturating_sub(self.behind);
        }
        // Two waiting times can end early: the one before the first look-up and the one between two.
        let waits = if doubt.misses.len() > 1 { 2 } else { 1 };
        doubt.last_send_age += self.ahead * waits;
        let newest = doubt.misses.iter().map(|miss| miss.age).min().unwrap_or_default();
        for miss in doubt.misses.iter_mut().filter(|miss| miss.age > newest) {
            miss.age += self.ahead;
        }
        doubt
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use destinations::recovery::Miss;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn doubt(misses: &[u64]) -> Doubt {
        let miss = |age: &u64| Miss { age: seconds(*age), complete: true, control_found: true };
        Doubt {
            first_intent_age: seconds(3_500),
            last_send_age: seconds(100),
            sends: 1,
            misses: misses.iter().map(miss).collect(),
            same_key_and_bytes: true,
        }
    }

    #[test]
    fn a_true_clock_changes_nothing() {
        let plain = doubt(&[5, 40]);
        assert_eq!(Slack::default().widen(plain.clone(), Some(HOUR)), plain);
    }

    #[test]
    fn a_clock_that_was_set_back_excuses_a_late_resend_but_not_one_after_the_key_is_forgotten() {
        let slack = Slack { behind: seconds(240), ..Slack::default() };
        assert_eq!(slack.widen(doubt(&[]), Some(HOUR)).first_intent_age, seconds(3_260));
        assert_eq!(slack.widen(doubt(&[]), Some(seconds(3_500))).first_intent_age, seconds(3_500));
        assert_eq!(slack.widen(doubt(&[]), None).last_send_age, seconds(100));
    }

    #[test]
    fn a_clock_that_was_set_ahead_ends_each_waiting_time_early() {
        let slack = Slack { ahead: seconds(20), ..Slack::default() };
        let two = slack.widen(doubt(&[5, 40]), None);
        assert_eq!(two.last_send_age, seconds(140));
        assert_eq!(two.misses.iter().map(|miss| miss.age.as_secs()).collect::<Vec<_>>(), [5, 60]);
        assert_eq!(slack.widen(doubt(&[5]), None).last_send_age, seconds(120));
    }
}
