//! What all nodes of one run share: the history, the tape, the machine, and what crosses the wire.

use crate::disk::process::Process;
use crate::disk::{CrashKeep, DiskHooks, DiskImage, Machine, Side};
use crate::fault::{Call, ExchangeName, FaultTape, Keep, Phase, Place, What, When};
use crate::history::{History, Kind, Nanos, Step};
use crate::run::{BeliefAt, Moment};
use crate::scenario::{Believes, Serves};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::mpsc;

/// The workflow's node.
pub(crate) const WORKFLOW: &str = "workflow";
/// The destination's node.
pub(crate) const DESK: &str = "helpdesk";
/// The source of requests.
pub(crate) const SOURCE: &str = "source";
/// The people who decide.
pub(crate) const PEOPLE: &str = "people";

/// Why a run with too many steps ends.
pub(crate) const STEP_LIMIT: &str = "the run took more steps than its limit";
/// Microseconds that a disk sync takes at least; each takes up to as much again.
const SYNC_MICROS: u64 = 200;

/// What the supervisor hears.
pub(crate) enum News {
    /// The run has taken as many steps as it may.
    Limit,
    /// The workflow's process is dead; it comes back after so many milliseconds.
    Down(u64),
    /// The process stands still for so many milliseconds.
    Paused(u64),
    /// The process ended by itself on a live machine.
    Exited {
        /// Which start of it.
        boot: u32,
        /// Why.
        error: String,
    },
}

/// Whether the caller of a boundary may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Alive {
    /// It may.
    Yes,
    /// The workflow's process has just died.
    No,
}

/// An answer that is on its way, as the caller's end will note it.
#[derive(Clone, Debug)]
pub(crate) struct OnItsWay {
    pub(crate) status: u16,
    pub(crate) summary: String,
    pub(crate) record: Option<String>,
    pub(crate) empty: bool,
    pub(crate) cause: Step,
}

/// What is behind the lock.
pub(crate) struct State {
    pub(crate) history: History,
    /// Whether the supervisor has heard that the run is over its limit.
    limit_told: bool,
    pub(crate) tape: FaultTape,
    pub(crate) fired: Vec<Option<Step>>,
    /// Whether faults still strike.
    pub(crate) storm: bool,
    /// The storm lasts at least until then.
    pub(crate) storm_until: Nanos,
    counts: BTreeMap<(Call, String), u32>,
    /// What is under way on each connection, by the caller's address.
    in_transit: BTreeMap<SocketAddr, (ExchangeName, Step)>,
    pub(crate) answers: BTreeMap<ExchangeName, OnItsWay>,
    /// Which operation a key belongs to.
    pub(crate) keys: BTreeMap<String, String>,
    pub(crate) machine: Arc<Machine>,
    pub(crate) process: Arc<Process>,
    pub(crate) boot: u32,
    pub(crate) syncs: u32,
    /// Syncs of all boots: whether the belief can have changed.
    pub(crate) all_syncs: u64,
    pub(crate) up: bool,
    pub(crate) full_until: Nanos,
    sync_fails: bool,
    /// Whether the disk has failed in this run, so that a process may end because of it.
    pub(crate) disk_failed: bool,
    pub(crate) beliefs: Vec<BeliefAt>,
    pub(crate) harness_error: Option<String>,
    journal: BTreeMap<String, String>,
}

/// What all nodes share.
pub(crate) struct Field {
    state: Mutex<State>,
    pub(crate) news: mpsc::UnboundedSender<News>,
    pub(crate) believes: Believes,
    pub(crate) serves: Serves,
    steps_max: u32,
    /// Whether a process may begin with a connection that an earlier run has kept.
    keep: bool,
    take_journal: bool,
    me: Weak<Field>,
}

/// What a field is made with.
pub(crate) struct FieldOptions {
    pub(crate) tape: FaultTape,
    pub(crate) believes: Believes,
    pub(crate) serves: Serves,
    pub(crate) steps_max: u32,
    pub(crate) keep: bool,
    pub(crate) journal: bool,
}

pub(crate) fn now() -> Nanos {
    let elapsed = madsim::time::TimeHandle::current().elapsed();
    Nanos(u64::try_from(elapsed.as_nanos()).expect("a run is shorter than 584 years"))
}

impl Field {
    pub(crate) fn new(
        image: DiskImage,
        options: FieldOptions,
        news: mpsc::UnboundedSender<News>,
    ) -> Arc<Field> {
        Arc::new_cyclic(|me: &Weak<Field>| {
            let machine = Machine::boot(image, Arc::new(Hooks(me.clone())), 0);
            let state = State {
                history: History::default(),
                limit_told: false,
                fired: vec![None; options.tape.faults().len()],
                tape: options.tape,
                storm: true,
                storm_until: Nanos(0),
                counts: BTreeMap::new(),
                in_transit: BTreeMap::new(),
                answers: BTreeMap::new(),
                keys: BTreeMap::new(),
                process: Process::start(machine.clone()),
                machine,
                boot: 0,
                syncs: 0,
                all_syncs: 0,
                up: false,
                full_until: Nanos(0),
                sync_fails: false,
                disk_failed: false,
                beliefs: vec![],
                harness_error: None,
                journal: BTreeMap::new(),
            };
            Field {
                state: Mutex::new(state),
                news,
                believes: options.believes,
                serves: options.serves,
                steps_max: options.steps_max,
                keep: options.keep,
                take_journal: options.journal,
                me: me.clone(),
            }
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event to the history.
    pub(crate) fn event(&self, node: &'static str, kind: Kind, cause: Option<Step>) -> Step {
        let mut state = self.lock();
        let step = state.history.add(now(), node, kind, cause);
        // Not every event comes this way, so the limit may have been passed before.
        if step.0 > self.steps_max && !std::mem::replace(&mut state.limit_told, true) {
            // Told, not thrown: a panic inside SQLite's calls would end the program.
            let _ = self.news.send(News::Limit);
        }
        step
    }

    /// Names the next exchange of this kind about this operation or delivery.
    pub(crate) fn name_exchange(&self, call: Call, about: &str) -> ExchangeName {
        let mut state = self.lock();
        let count = state.counts.entry((call, about.to_owned())).or_default();
        *count += 1;
        ExchangeName { call, about: about.to_owned(), nth: *count }
    }

    /// Notes that a request is under way, for the other side to recognise by the caller's address.
    pub(crate) fn departs(&self, caller: SocketAddr, exchange: &ExchangeName, step: Step) {
        self.lock().in_transit.insert(caller, (exchange.clone(), step));
    }

    /// The exchange that a request which arrives belongs to, and the step at which it left.
    pub(crate) fn arrives(&self, caller: SocketAddr) -> Option<(ExchangeName, Step)> {
        self.lock().in_transit.remove(&caller)
    }

    /// The outcome that the tape has for an exchange, if faults still strike.
    pub(crate) fn outcome(
        &self,
        node: &'static str,
        exchange: &ExchangeName,
        cause: Step,
    ) -> Option<(What, Step)> {
        self.strike(node, &Place::Exchange(exchange.clone()), Some(cause))
    }

    /// Whether the tape refuses the connection for this exchange.
    pub(crate) fn is_refused(&self, exchange: &ExchangeName) -> bool {
        let state = self.lock();
        let planned = state.tape.at(&Place::Exchange(exchange.clone()));
        planned.is_some_and(|(_, what)| *what == What::Refuse)
    }

    /// Takes the fault at a place off the tape.
    fn strike(&self, node: &'static str, place: &Place, cause: Option<Step>) -> Option<(What, Step)> {
        let mut state = self.lock();
        if !state.storm {
            return None;
        }
        let (index, what) = state.tape.at(place).map(|(index, what)| (index, what.clone()))?;
        if state.fired[index].is_some() {
            return None;
        }
        let kind = Kind::Fault { n: index as u32 + 1, what: what.kind(), words: what.to_string() };
        let step = state.history.add(now(), node, kind, cause);
        state.fired[index] = Some(step);
        let lasts = match &what {
            What::Kill(ms)
            | What::Pause(ms)
            | What::DiskFull(ms)
            | What::ApplyLate(ms)
            | What::AnswerSlowly(ms) => *ms,
            What::PowerCut { down, .. } => *down,
            _ => 0,
        };
        state.storm_until = state.storm_until.max(Nanos(now().0 + lasts * 1_000_000));
        Some((what, step))
    }

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
                return Alive::Yes;
            }
            What::DiskFull(ms) => {
                let mut state = self.lock();
                state.full_until = Nanos(now().0 + ms * 1_000_000);
                return Alive::Yes;
            }
            What::SyncError => {
                let mut state = self.lock();
                (state.sync_fails, state.disk_failed) = (true, true);
                return Alive::Yes;
            }
            outcome => unreachable!("the tape keeps {} away from boundaries", outcome.kind()),
        }
        Alive::No
    }

    /// The process dies: first its disk and wires stop, then its tasks.
    fn die(&self, power: Option<Keep>, down: u64, cause: Step) {
        {
            let mut state = self.lock();
            state.up = false;
            let node_kind = if power.is_some() { Kind::PowerCut } else { Kind::Killed };
            state.history.add(now(), WORKFLOW, node_kind, Some(cause));
            match power {
                None => state.process.kill(),
                Some(keep) => {
                    state.machine.power_off();
                    let seed = u64::from(state.boot) << 32 | u64::from(state.syncs);
                    let image = state.machine.crash(&crash_keep(keep, seed));
                    let me = self.me.clone();
                    state.machine = Machine::boot(image, Arc::new(Hooks(me)), seed);
                }
            }
        }
        madsim::runtime::Handle::current().kill(WORKFLOW);
        self.believe(Moment::Crash);
        let _ = self.news.send(News::Down(down));
    }

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
            Ok(belief) => state.beliefs.push(BeliefAt { moment, step, belief }),
            Err(error) => state.harness_error = Some(format!("the durable image cannot be read: {error}")),
        }
    }

    /// Notes what has become durable, for runs that are told in full.
    fn journal(&self) {
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
                let kind = Kind::Journal { about: operation.name, words };
                state.history.add(now(), WORKFLOW, kind, None);
            }
        }
    }

    /// Gives the workflow its next process on the machine as it is.
    pub(crate) fn start_process(&self) -> (String, u32) {
        let mut state = self.lock();
        assert!(!state.up, "a process runs already");
        state.boot += 1;
        state.syncs = 0;
        state.up = true;
        let start = if self.keep { Process::start_kept } else { Process::start };
        state.process = start(state.machine.clone());
        (state.process.uri("db"), state.boot)
    }
}

/// The first characters of a key: enough to tell two apart.
pub(crate) fn short(key: &str) -> &str {
    key.get(..12).unwrap_or(key)
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
struct Hooks(Weak<Field>);

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
            field.lock().history.wrote(offset, len);
        }
    }

    fn sync_error(&self, _: &str) -> bool {
        let Some(field) = self.0.upgrade() else { return false };
        std::mem::take(&mut field.lock().sync_fails)
    }

    fn full(&self, _: &str, _: u32) -> bool {
        self.0.upgrade().is_some_and(|field| now() < field.lock().full_until)
    }
}
