//! One run: the nodes, the storm, the calm, the quiet, and what is left at the end.

use crate::deskhost::DeskHost;
use crate::field::{DESK, Field, FieldOptions, News, PEOPLE, SOURCE, STEP_LIMIT, State, WORKFLOW, now};
use crate::history::{Kind, Nanos};
use crate::outside;
use crate::pipeline::caught;
use crate::plan::Plan;
use crate::run::{End, Moment, Options, Run};
use crate::scenario::{BoxError, BoxFuture, Node, Scenario};
use destinations::Contract;
use madsim::runtime::{Handle, NodeHandle, Runtime};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

const SOURCE_IP: [u8; 4] = [10, 0, 0, 1];
const WORKFLOW_IP: [u8; 4] = [10, 0, 0, 2];
const DESK_IP: [u8; 4] = [10, 0, 0, 3];
const PEOPLE_IP: [u8; 4] = [10, 0, 0, 4];
const WORKFLOW_ADDRESS: &str = "10.0.0.2:80";
const DESK_ADDRESS: &str = "10.0.0.3:80";
/// The storm lasts so long after the last delivery and the last fault, unless all has settled before.
const STORM_TAIL: Duration = Duration::from_secs(1800);
/// Late effects are waited for at least so long.
const QUIET: Duration = Duration::from_secs(120);
/// A process that ended by itself is started again after so long, as a service manager does.
const RESTART_MS: u64 = 100;

/// Runs a plan on this thread.
pub fn run_plan(scenario: &dyn Scenario, plan: &Plan, options: &Options) -> Run {
    crate::vfs::register();
    let Some(contract) = scenario.contracts().into_iter().find(|c| c.id == plan.case.contract) else {
        panic!("the scenario {} does not offer the contract {}", plan.case.scenario, plan.case.contract);
    };
    let seed = plan.schedule;
    let mut config = madsim::Config::default();
    config.net.send_latency = Duration::from_micros(300)..Duration::from_millis(3);
    let mut runtime = Runtime::with_seed_and_config(seed, config);
    runtime.set_time_limit(Duration::from_secs(400 * 24 * 3600));
    // Entering a real tokio runtime seeds its `select!`; `unconstrained` lifts its budget of polls.
    let rng_seed = real_tokio::runtime::RngSeed::from_bytes(&seed.to_le_bytes());
    let tokio = real_tokio::runtime::Builder::new_current_thread().rng_seed(rng_seed).build();
    let tokio = tokio.expect("a runtime without drivers needs nothing of the machine");
    let shared: Arc<Mutex<Option<World>>> = Arc::default();
    let outcome = caught(|| {
        let world = async { runtime.block_on(live(scenario, plan, options, &contract, &shared)) };
        tokio.handle().block_on(real_tokio::task::unconstrained(world))
    });
    let world = shared.lock().unwrap_or_else(PoisonError::into_inner).take();
    let world = world.expect("the world stands before anything can fail");
    let end = match outcome {
        Ok(end) => end,
        Err(panic) if panic.is_ours => End::Harness(panic.to_string()),
        Err(panic) => End::Failed(panic.to_string()),
    };
    world.finish(plan, end)
}

/// The lasting parts of a run.
struct World {
    field: Arc<Field>,
    desk: Arc<DeskHost>,
    messages: Arc<AtomicU64>,
}

impl World {
    fn finish(self, plan: &Plan, end: End) -> Run {
        let (ledger, made_for) = self.desk.ledger();
        let mut state = self.field.lock();
        let State { history, beliefs, fired, visits, harness_error, .. } = &mut *state;
        let history = std::mem::take(history);
        let elapsed = history.events().last().map_or(Nanos(0), |event| event.t_ns);
        let end = harness_error.take().map_or(end, End::Harness);
        Run {
            plan: plan.clone(),
            history,
            ledger,
            made_for,
            beliefs: std::mem::take(beliefs),
            fired: std::mem::take(fired),
            visits: std::mem::take(visits),
            end,
            elapsed,
            messages: self.messages.load(Ordering::Relaxed),
        }
    }
}

type Process = BoxFuture<'static, Result<(), BoxError>>;

/// The workflow's node: each start takes the process that the supervisor has put in its slot.
struct Host {
    slot: Arc<Mutex<Option<(u32, Process)>>>,
    node: NodeHandle,
}

impl Host {
    fn new(field: &Arc<Field>) -> Host {
        let slot: Arc<Mutex<Option<(u32, Process)>>> = Arc::default();
        let (field, inside) = (field.clone(), slot.clone());
        let init = move || {
            let started = inside.lock().unwrap_or_else(PoisonError::into_inner).take();
            let field = field.clone();
            async move {
                let Some((boot, process)) = started else { return };
                let error = match process.await {
                    Ok(()) => "it ended without an error".to_owned(),
                    Err(error) => error.to_string(),
                };
                let _ = field.news.send(News::Exited { boot, error });
                std::future::pending::<()>().await;
            }
        };
        let node = Handle::current().create_node().name(WORKFLOW).ip(WORKFLOW_IP.into()).init(init).build();
        Host { slot, node }
    }
}

struct Supervisor<'a> {
    scenario: &'a dyn Scenario,
    plan: &'a Plan,
    contract: &'a Arc<Contract>,
    field: Arc<Field>,
    desk: Arc<DeskHost>,
    host: Host,
    news: mpsc::UnboundedReceiver<News>,
    open_deliveries: Arc<AtomicUsize>,
    /// The syncs at the last reading of the belief.
    read_at: Option<u64>,
    decided: BTreeSet<String>,
}

async fn live(
    scenario: &dyn Scenario,
    plan: &Plan,
    options: &Options,
    contract: &Arc<Contract>,
    shared: &Mutex<Option<World>>,
) -> End {
    let (sender, news) = mpsc::unbounded_channel();
    let field_options = FieldOptions {
        tape: plan.tape.clone(),
        believes: scenario.believes(),
        serves: scenario.serves(),
        steps_max: options.steps_max,
        // A known mistake can leave its mark on a connection: it gets its own.
        keep: plan.mutant.is_none(),
        journal: options.journal,
        places: options.places,
    };
    let field = Field::new(scenario.image(), field_options, sender);
    crate::vfs::seed_randomness(plan.schedule, 0);
    let desk = DeskHost::new(contract.clone(), plan.workload.desk.clone(), field.clone());
    let messages = Arc::new(AtomicU64::new(0));
    let world = World { field: field.clone(), desk: desk.clone(), messages: messages.clone() };
    *shared.lock().unwrap_or_else(PoisonError::into_inner) = Some(world);
    start_desk(&desk).await;
    let open_deliveries = Arc::new(AtomicUsize::new(plan.workload.deliveries.len()));
    let host = Host::new(&field);
    let mut supervisor = Supervisor {
        scenario,
        plan,
        contract,
        field,
        desk,
        host,
        news,
        open_deliveries,
        read_at: None,
        decided: BTreeSet::new(),
    };
    let end = supervisor.run().await;
    let steps = supervisor.field.lock().history.events().len();
    let end = if steps > options.steps_max as usize { End::Limit(STEP_LIMIT.into()) } else { end };
    messages.store(madsim::net::NetSim::current().stat().msg_count, Ordering::Relaxed);
    supervisor.field.lock().machine.power_off();
    // Tasks that have not ended keep themselves alive; the killed are dropped when they are next scheduled.
    for node in [WORKFLOW, SOURCE, DESK, PEOPLE] {
        Handle::current().kill(node);
    }
    tokio::time::sleep(Duration::from_millis(1)).await;
    end
}

async fn start_desk(desk: &Arc<DeskHost>) {
    let (ready, listening) = tokio::sync::oneshot::channel();
    let (desk, ready) = (desk.clone(), Mutex::new(Some(ready)));
    let node = Handle::current().create_node().name(DESK).ip(DESK_IP.into()).build();
    node.spawn(async move {
        let listener = TcpListener::bind(DESK_ADDRESS).await.expect("a fresh node has free ports");
        if let Some(ready) = ready.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = ready.send(());
        }
        let _ = desk.serve(listener).await;
    });
    let _ = listening.await;
}

impl Supervisor<'_> {
    async fn run(&mut self) -> End {
        self.start_workflow();
        self.start_source();
        let people = Handle::current().create_node().name(PEOPLE).ip(PEOPLE_IP.into()).build();
        let last = self.plan.workload.deliveries.iter().map(|d| d.at_ms).max().unwrap_or(0);
        self.field.lock().storm_until = Nanos(last * 1_000_000);
        if let Some(end) = self.until_settled(None, &people).await {
            return end;
        }
        self.field.lock().storm = false;
        self.field.event("world", Kind::Calm, None);
        self.believe_again(Moment::Calm);
        let bound = Duration::from_secs(self.scenario.settles_within_s(self.contract));
        let deadline = Nanos(now().0 + nanos(bound));
        if let Some(end) = self.until_settled(Some(deadline), &people).await {
            return end;
        }
        let settled = self.is_settled();
        self.field.event("world", Kind::Quiet, None);
        if let Some(end) = self.quiet().await {
            return end;
        }
        self.believe_again(Moment::End);
        let records = self.desk.ledger().0.records().len() as u32;
        self.field.event("world", Kind::End { records }, None);
        End::Finished { settled }
    }

    fn start_workflow(&self) {
        let (store, boot) = self.field.start_process();
        let node = Node {
            name: WORKFLOW,
            boot,
            store,
            listen: WORKFLOW_ADDRESS.into(),
            desk: DESK_ADDRESS.into(),
            connect: crate::wire::connect(&self.field, self.contract, DESK),
            contract: self.contract.clone(),
            assumptions: self.scenario.assumptions(self.contract),
            clock: self.field.wall_clock(),
            mutant: self.plan.mutant.clone(),
        };
        let process = self.scenario.boot(node);
        self.field.event(WORKFLOW, Kind::Started { boot }, None);
        *self.host.slot.lock().unwrap_or_else(PoisonError::into_inner) = Some((boot, process));
        Handle::current().restart(self.host.node.id());
    }

    fn start_source(&self) {
        let node = Handle::current().create_node().name(SOURCE).ip(SOURCE_IP.into()).build();
        for delivery in &self.plan.workload.deliveries {
            let (field, open) = (self.field.clone(), self.open_deliveries.clone());
            node.spawn(outside::deliver(field, WORKFLOW_ADDRESS, delivery.clone(), open));
        }
    }

    /// Waits until every delivery is answered and every operation has ended or is owned. In the storm (no
    /// deadline) also until its faults had their time; in the calm people decide.
    async fn until_settled(&mut self, deadline: Option<Nanos>, people: &NodeHandle) -> Option<End> {
        let mut step = Duration::from_millis(500);
        loop {
            if let Some(end) = self.pass(step).await {
                return Some(end);
            }
            step = (step * 2).min(Duration::from_secs(60));
            let quiet_storm = {
                let state = self.field.lock();
                deadline.is_none() && now().0 >= state.storm_until.0 + nanos(STORM_TAIL)
            };
            if quiet_storm || deadline.is_some_and(|deadline| now() >= deadline) {
                return None;
            }
            if self.open_deliveries.load(Ordering::Relaxed) > 0 || !self.field.lock().up {
                continue;
            }
            if deadline.is_none() && now() < self.field.lock().storm_until {
                continue;
            }
            self.believe_again(if deadline.is_some() { Moment::Calm } else { Moment::Storm });
            if !self.is_settled() {
                continue;
            }
            if deadline.is_none() || !self.people_decide(people).await {
                return None;
            }
        }
    }

    async fn quiet(&mut self) -> Option<End> {
        let mut waited = Duration::ZERO;
        while waited < QUIET || self.desk.busy() {
            if let Some(end) = self.pass(QUIET).await {
                return Some(end);
            }
            waited += QUIET;
        }
        None
    }

    /// Lets time pass, and does what a service manager does meanwhile.
    async fn pass(&mut self, span: Duration) -> Option<End> {
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
            let full = now() < state.full_until;
            if !std::mem::take(&mut state.disk_failed) && !full {
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

    /// Reads the belief where the disk has changed since the last reading.
    fn believe_again(&mut self, moment: Moment) {
        let syncs = self.field.lock().all_syncs;
        if self.read_at == Some(syncs) && moment != Moment::Storm {
            let mut state = self.field.lock();
            if let Some(mut last) = state.beliefs.last().cloned() {
                last.moment = moment;
                last.step = crate::history::Step(state.history.events().len() as u32);
                state.beliefs.push(last);
                return;
            }
        }
        if self.read_at != Some(syncs) {
            self.read_at = Some(syncs);
            self.field.believe(moment);
        }
    }

    fn is_settled(&self) -> bool {
        let state = self.field.lock();
        let unanswered = self.open_deliveries.load(Ordering::Relaxed) > 0;
        !unanswered && state.beliefs.last().is_some_and(|last| last.belief.is_settled())
    }

    /// People look at what they own and decide; true when somebody has.
    async fn people_decide(&mut self, people: &NodeHandle) -> bool {
        let Some(after) = self.plan.workload.person_after_ms else { return false };
        let owned: Vec<String> = {
            let state = self.field.lock();
            let belief = state.beliefs.last().map(|last| &last.belief);
            let owned = belief.into_iter().flat_map(|belief| &belief.operations);
            owned.filter(|op| op.waiting.is_owned()).map(|op| op.name.clone()).collect()
        };
        let mut acted = false;
        for name in owned {
            if !self.decided.insert(name.clone()) {
                continue;
            }
            if let Some(End::Failed(_)) = self.pass(Duration::from_millis(after)).await {
                return false;
            }
            let found = self.desk.record_of(&name);
            let Some(decision) = self.scenario.decision(&name, found.as_deref(), self.plan) else { continue };
            acted = true;
            let field = self.field.clone();
            let task =
                people.spawn(async move { outside::decide(&field, WORKFLOW_ADDRESS, &name, decision).await });
            let _ = task.await;
        }
        acted
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
