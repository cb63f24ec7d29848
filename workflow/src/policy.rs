//! How patient a workflow is: time-outs, back-off, budgets and limits, each with its default.

use std::time::Duration;

/// How patient a workflow is. Every limit is a number; there is no "for ever".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// From the first byte of a send to giving up on its answer. 10 s.
    pub send_timeout: Duration,
    /// Sends that one operation may make without a person. 5.
    pub max_sends: u32,
    /// Look-ups that one doubt may make without a person. 8.
    pub max_checks: u32,
    /// The pause after the first failed send or look-up; each further one doubles it. 2 s.
    pub first_pause: Duration,
    /// The longest pause between two sends or look-ups. 5 min.
    pub longest_pause: Duration,
    /// How old a declaration that there is no record may be when another record is permitted. 1 h.
    pub absence_max_age: Duration,
    /// How long a person's permission to send lasts. 15 min.
    pub authorisation_for: Duration,
    /// How long the records of an ended operation are kept; a tombstone stays for ever. None: for ever.
    /// Longer than any source delivers again and anybody asks.
    pub keep_ended: Option<Duration>,
    /// Operations handled at one time. 4.
    pub workers: usize,
    /// Bytes of a request's body at the intake. 64 KiB.
    pub body_limit: usize,
    /// From a request's head to the end of its body. 30 s.
    pub body_timeout: Duration,
    /// Connections that the intake serves at one time; further ones wait to be accepted. 512.
    pub max_connections: usize,
    /// Operations that have not ended; beyond them the intake answers 503. 100,000.
    pub max_open: usize,
    /// Pages of one look-up; more is an incomplete look-up. 50.
    pub max_pages: u32,
    /// Bytes of an answer from a destination; more is a broken answer. 1 MiB.
    pub answer_limit: usize,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            send_timeout: Duration::from_secs(10),
            max_sends: 5,
            max_checks: 8,
            first_pause: Duration::from_secs(2),
            longest_pause: Duration::from_secs(300),
            absence_max_age: Duration::from_secs(3600),
            authorisation_for: Duration::from_secs(15 * 60),
            keep_ended: None,
            workers: 4,
            body_limit: 64 * 1024,
            body_timeout: Duration::from_secs(30),
            max_connections: 512,
            max_open: 100_000,
            max_pages: 50,
            answer_limit: 1024 * 1024,
        }
    }
}

impl Policy {
    /// The pause after the `n`-th failure, from 1: doubling up to the longest. No jitter: one operation never
    /// has two sends in flight, and different operations start at different times.
    pub fn pause(&self, n: u32) -> Duration {
        let factor = 2_u32.saturating_pow(n.saturating_sub(1).min(20));
        self.first_pause.saturating_mul(factor).min(self.longest_pause)
    }

    /// The longest time in which an operation ends or falls to a person, when nothing fails from here on
    /// except the destination's answers: every send and every look-up with its time-out and its pause.
    pub fn settles_within(&self) -> Duration {
        let tries = self.max_sends + self.max_checks;
        let pauses: Duration = (1..=tries).map(|n| self.pause(n)).sum();
        // A look-up may walk pages and ask for its control record: a few exchanges each.
        self.send_timeout * tries * 4 + pauses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let policy = Policy::default();
        let pauses: Vec<u64> = (1..=9).map(|n| policy.pause(n).as_secs()).collect();
        assert_eq!(pauses, [2, 4, 8, 16, 32, 64, 128, 256, 300]);
        assert_eq!(policy.pause(u32::MAX), policy.longest_pause);
    }
}
