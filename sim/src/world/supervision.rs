//! What a service manager does: it starts again what has died, and notices what ends by itself.

use super::{RESTART_MS, Supervisor};
use crate::field::{News, STEP_LIMIT, WORKFLOW, now};
use crate::history::Kind;
use crate::run::End;
use madsim::runtime::Handle;
use std::time::Duration;
use tokio::time::Instant;

/// When the process goes on, and when it is started again.
#[derive(Default)]
pub(super) struct Due {
    resume: Option<Instant>,
    restart: Option<Instant>,
}

/// So many milliseconds from now.
#[expect(clippy::disallowed_methods, reason = "this is the world's own time")]
fn after(ms: u64) -> Instant {
    Instant::now() + Duration::from_millis(ms)
}

impl Supervisor<'_> {
    /// Lets time pass, and does what a service manager does meanwhile. It takes longer where the process
    /// stands still or is down longer.
    pub(super) async fn pass(&mut self, span: Duration) -> Option<End> {
        let until = after(0) + span;
        loop {
            let due = self.due.resume.into_iter().chain(self.due.restart).min();
            tokio::select! {
                biased;
                news = self.news.recv() => match news.expect("the field keeps a sender") {
                    News::Limit => return Some(End::Limit(STEP_LIMIT.into())),
                    News::Down(ms) => self.restart_after(ms),
                    // Of two pauses at once the one that ends last counts.
                    News::Paused(ms) => self.due.resume = self.due.resume.max(Some(after(ms))),
                    News::Exited { boot, error } => {
                        if let Some(end) = self.exited(boot, error) {
                            return Some(end);
                        }
                    }
                },
                () = tokio::time::sleep_until(due.unwrap_or(until)) => match due {
                    Some(due) => self.act(due),
                    None => return None,
                },
            }
        }
    }

    /// Does what is due.
    fn act(&mut self, now: Instant) {
        if self.due.resume.take_if(|at| *at <= now).is_some() && self.field.lock().up {
            Handle::current().resume(WORKFLOW);
            self.field.event(WORKFLOW, Kind::Resumed, None);
        }
        if self.due.restart.take_if(|at| *at <= now).is_some() && !self.field.lock().up {
            self.start_workflow();
        }
    }

    /// A process that is dead stands still no more.
    fn restart_after(&mut self, ms: u64) {
        self.due = Due { resume: None, restart: Some(after(ms)) };
    }

    /// A process that ends by itself has failed, unless its disk had.
    fn exited(&mut self, boot: u32, error: String) -> Option<End> {
        {
            let mut state = self.field.lock();
            if !state.up || state.boot != boot {
                return None;
            }
            // A disk that failed excuses one exit; a store cannot be opened on a full one.
            let full = now() < state.disk.full_until;
            if !std::mem::take(&mut state.disk.failed) && !full {
                return Some(End::Failed(format!("the workflow's process ended: {error}")));
            }
            state.up = false;
            state.process.kill();
        }
        self.field.event(WORKFLOW, Kind::Killed, None);
        Handle::current().kill(WORKFLOW);
        self.restart_after(RESTART_MS);
        None
    }
}
