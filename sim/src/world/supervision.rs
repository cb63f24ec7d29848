//! What a service manager does: it starts again what has died, and notices what ends by itself.

use super::{RESTART_MS, Supervisor};
use crate::field::{News, STEP_LIMIT, WORKFLOW, now};
use crate::history::Kind;
use crate::run::End;
use madsim::runtime::Handle;
use std::time::Duration;

impl Supervisor<'_> {
    /// Lets time pass, and does what a service manager does meanwhile.
    pub(super) async fn pass(&mut self, span: Duration) -> Option<End> {
        #[expect(clippy::disallowed_methods, reason = "this is the world's own time")]
        let until = tokio::time::Instant::now() + span;
        loop {
            tokio::select! {
                biased;
                news = self.news.recv() => match news.expect("the field keeps a sender") {
                    News::Limit => return Some(End::Limit(STEP_LIMIT.into())),
                    News::Down(ms) => self.restart_after(ms).await,
                    News::Paused(ms) => {
                        tokio::time::sleep(Duration::from_millis(ms)).await;
                        if self.field.lock().up {
                            Handle::current().resume(WORKFLOW);
                            self.field.event(WORKFLOW, Kind::Resumed, None);
                        }
                    }
                    News::Exited { boot, error } => {
                        if let Some(end) = self.exited(boot, error).await {
                            return Some(end);
                        }
                    }
                },
                () = tokio::time::sleep_until(until) => return None,
            }
        }
    }

    async fn restart_after(&mut self, ms: u64) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        if !self.field.lock().up {
            self.start_workflow();
        }
    }

    /// A process that ends by itself has failed, unless its disk had.
    async fn exited(&mut self, boot: u32, error: String) -> Option<End> {
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
        self.restart_after(RESTART_MS).await;
        None
    }
}
