//! What all nodes of one run share: the history, the tape, the machine, and what crosses the wire.

mod boundary;
mod knowledge;

use crate::disk::process::Process;
use crate::disk::{DiskImage, Machine};
use crate::fault::{Call, ExchangeName, Fault, FaultTape, Phase, Place, What};
use crate::history::{History, Kind, Nanos, Step};
use crate::plan::Delivery;
use crate::reroll::Rerolling;
use crate::run::{BeliefAt, Reroll, Visit, Work};
use crate::scenario::{Believes, Serves, WallClock};
use crate::wallclock::WallClockState;
use boundary::{DiskTrouble, Hooks};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

pub(crate) use crate::history::WORKFLOW;
/// The destination's node.
pub(crate) const DESK: &str = "helpdesk";
/// The source of requests.
pub(crate) const SOURCE: &str = "source";
/// The people who decide.
pub(crate) const PEOPLE: &str = "people";

/// Why a run with too many steps ends.
pub(crate) const STEP_LIMIT: &str = "the run took more steps than its limit";

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
    /// Notes of the journal among its events.
    pub(crate) notes: u32,
    /// Whether the supervisor has heard that the run is over its limit.
    limit_told: bool,
    pub(crate) tape: FaultTape,
    pub(crate) fired: Vec<Option<Step>>,
    /// The deliveries that faults have made.
    pub(crate) further: Vec<Delivery>,
    /// The places at which faults could have struck, where they are noted.
    pub(crate) visits: Vec<Visit>,
    pub(crate) work: Work,
    /// Whether faults still strike.
    pub(crate) storm: bool,
    /// The storm lasts at least until then.
    pub(crate) storm_until: Nanos,
    counts: BTreeMap<(Call, String), u32>,
    /// Connections that the workflow has opened to its destination.
    connections: u32,
    /// What is under way on each connection, by the caller's address.
    in_transit: BTreeMap<SocketAddr, (ExchangeName, Step)>,
    pub(crate) answers: BTreeMap<ExchangeName, OnItsWay>,
    /// Which operation a key, a reference or the id of a record belongs to.
    pub(crate) keys: BTreeMap<String, String>,
    pub(crate) machine: Arc<Machine>,
    pub(crate) process: Arc<Process>,
    pub(crate) boot: u32,
    pub(crate) syncs: u32,
    /// Syncs of all boots: whether the belief can have changed.
    pub(crate) all_syncs: u64,
    /// The same number, for those who wait for the next one.
    synced: watch::Sender<u64>,
    pub(crate) up: bool,
    pub(crate) clock: WallClockState,
    pub(crate) disk: DiskTrouble,
    pub(crate) beliefs: Vec<BeliefAt>,
    pub(crate) store_damage: Option<String>,
    journal: BTreeMap<String, String>,
}

impl State {
    /// What chooses what a power cut or a decay of the disk does here.
    fn crash_seed(&self, drawn: u64) -> u64 {
        drawn ^ (u64::from(self.boot) << 32 | u64::from(self.syncs))
    }
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
    note_places: bool,
    pub(crate) reroll: Rerolling,
    disk_seed: u64,
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
    pub(crate) places: bool,
    pub(crate) reroll: Option<Reroll>,
    /// Draws what a power cut leaves of unsynced writes, and which bit decays.
    pub(crate) disk_seed: u64,
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
                notes: 0,
                limit_told: false,
                fired: vec![None; options.tape.faults().len()],
                further: vec![],
                visits: vec![],
                work: Work::default(),
                tape: options.tape,
                storm: true,
                storm_until: Nanos(0),
                counts: BTreeMap::new(),
                connections: 0,
                in_transit: BTreeMap::new(),
                answers: BTreeMap::new(),
                keys: BTreeMap::new(),
                process: Process::start(machine.clone()),
                machine,
                boot: 0,
                syncs: 0,
                all_syncs: 0,
                synced: watch::Sender::new(0),
                up: false,
                clock: WallClockState::default(),
                disk: DiskTrouble::default(),
                beliefs: vec![],
                store_damage: None,
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
                note_places: options.places,
                reroll: Rerolling::new(options.reroll),
                disk_seed: options.disk_seed,
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
        // A run that is told in full has notes beside its steps, and must end where it ends without.
        if step.0 - state.notes > self.steps_max && !std::mem::replace(&mut state.limit_told, true) {
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

    /// Takes the fault at a place off the tape, and lets it strike now.
    pub(crate) fn strike(
        &self,
        node: &'static str,
        place: &Place,
        cause: Option<Step>,
    ) -> Option<(What, Step)> {
        let what = self.foresee(place)?;
        let step = self.strikes(node, place, cause)?;
        Some((what, step))
    }

    /// What the tape has in store for a place that the run comes by, if faults still strike. It strikes when
    /// [`Field::strikes`] says so: an answer can be lost only once there is one.
    pub(crate) fn foresee(&self, place: &Place) -> Option<What> {
        let mut state = self.lock();
        if !state.storm {
            return None;
        }
        self.reroll.came_by();
        if self.note_places {
            let step = Step(state.history.events().len() as u32);
            let (work, unsynced) = (state.work, state.machine.has_unsynced());
            state.visits.push(Visit { place: place.clone(), step, at: now(), work, unsynced });
        }
        let (index, what) = state.tape.at(place)?;
        state.fired[index].is_none().then(|| what.clone())
    }

    /// The fault that is planned for a place strikes now, unless the storm is over.
    pub(crate) fn strikes(&self, node: &'static str, place: &Place, cause: Option<Step>) -> Option<Step> {
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
        state.storm_until = state.storm_until.max(Nanos(now().0 + what.lasts_ms() * 1_000_000));
        Some(step)
    }

    /// A fault is on its way and strikes after so many milliseconds: the storm lasts longer than that.
    pub(crate) fn prolong(&self, ms: u64) {
        let mut state = self.lock();
        state.storm_until = state.storm_until.max(Nanos(now().0 + (ms + 1_000) * 1_000_000));
    }

    /// How long a step of an exchange waits at this point, if the tape has it wait.
    pub(crate) fn held_up(
        &self,
        node: &'static str,
        exchange: &ExchangeName,
        phase: Phase,
        cause: Option<Step>,
    ) -> Option<Duration> {
        let place = Place::Phase { exchange: exchange.clone(), phase };
        let ms = match self.lock().tape.at(&place) {
            Some((_, What::Delay(ms))) => *ms,
            _ => return None,
        };
        self.strike(node, &place, cause).map(|_| Duration::from_millis(ms))
    }

    /// The next connection that the workflow opens, and what the tape has in store for it.
    pub(crate) fn connects(&self) -> Option<(What, Step)> {
        let nth = {
            let mut state = self.lock();
            state.connections += 1;
            state.connections
        };
        self.strike(WORKFLOW, &Place::Connection { nth }, None)
    }

    /// Tells of each sync.
    pub(crate) fn synced(&self) -> watch::Receiver<u64> {
        self.lock().synced.subscribe()
    }

    /// The wall clock of the workflow's machine.
    pub(crate) fn wall_clock(&self) -> WallClock {
        let me = self.me.clone();
        Arc::new(move || {
            let field = me.upgrade().expect("the field outlives its nodes");
            let mut state = field.lock();
            state.work.clock_reads += 1;
            state.clock.shows_ms(now())
        })
    }

    /// Gives the workflow its next process on the machine as it is.
    pub(crate) fn start_process(&self) -> (String, u32) {
        let mut state = self.lock();
        assert!(!state.up, "a process runs already");
        state.boot += 1;
        state.syncs = 0;
        state.up = true;
        let spoils = |fault: &Fault| matches!(fault.what, What::BitFlip | What::LyingSync);
        let decays = state.tape.faults().iter().any(spoils);
        let start = if self.keep && !decays { Process::start_kept } else { Process::start };
        state.process = start(state.machine.clone());
        if decays {
            state.process.never_keep();
        }
        (state.process.uri("db"), state.boot)
    }
}

/// The first characters of a key: enough to tell two apart.
pub(crate) fn short(key: &str) -> &str {
    key.get(..12).unwrap_or(key)
}
