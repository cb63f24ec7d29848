//! What the workflow's durable state says, read at the moments that count.

use super::{Field, WORKFLOW, now};
use crate::history::{Kind, Step};
use crate::run::{BeliefAt, Moment};

impl Field {
    /// Reads what the workflow believes, from what would survive.
    pub(crate) fn believe(&self, moment: Moment) {
        let (image, step) = {
            let state = self.lock();
            // A killed process leaves its page cache; only what is durable counts while it lives.
            let image = if moment == Moment::Crash {
                state.machine.cache_image()
            } else {
                state.machine.durable_image()
            };
            (image, Step(state.history.events().len() as u32))
        };
        let read = (self.believes)(&image);
        let mut state = self.lock();
        match read {
            Ok(belief) => {
                // A key whose send a crash has kept from leaving may be asked for all the same.
                for operation in &belief.operations {
                    for attempt in &operation.attempts {
                        let known = state.keys.entry(attempt.key.clone());
                        known.or_insert_with(|| operation.name.clone());
                    }
                }
                state.beliefs.push(BeliefAt { moment, step, belief });
            }
            // What a decayed disk says is nobody's belief.
            Err(_) if state.disk.spoiled => {}
            // Everything else that a disk may do, a store must survive.
            Err(error) => {
                state.store_damage = Some(format!("what is left of its store cannot be read: {error}"))
            }
        }
    }

    /// Notes what has become durable, for runs that are told in full.
    pub(super) fn journal(&self) {
        if !self.take_journal {
            return;
        }
        let image = self.lock().machine.durable_image();
        let Ok(belief) = (self.believes)(&image) else { return };
        let mut state = self.lock();
        for operation in belief.operations {
            let record = operation.record.as_deref().map(|r| format!(", record {r}")).unwrap_or_default();
            let sends = match operation.attempts.len() {
                0 => String::new(),
                1 => ", 1 send".to_owned(),
                n => format!(", {n} sends"),
            };
            // The last word says it: `requiring_verification/in_doubt` is in doubt.
            let word = operation.words.rsplit('/').next().unwrap_or_default();
            let words = format!("{word}{sends}{record}");
            if state.journal.get(&operation.name) != Some(&words) {
                state.journal.insert(operation.name.clone(), words.clone());
                state.notes += 1;
                let kind = Kind::Journal { about: operation.name, words };
                state.history.add(now(), WORKFLOW, kind, None);
            }
        }
    }
}
