//! One run: the nodes, the storm, the calm, the quiet, and what is left at the end.

mod people;
mod supervision;

use crate::deskhost::DeskHost;
use crate::fault::{Place, Variation, What};
use crate::field::{DESK, Field, FieldOptions, News, PEOPLE, SOURCE, STEP_LIMIT, State, WORKFLOW, now};
use crate::history::{Kind, Nanos};
use crate::outside::Source;
use crate::pipeline::caught;
use crate::plan::{Delivery, Plan};
use crate::run::{End, Moment, Options, Run};
use crate::scenario::{BoxError, BoxFuture, Node, Scenario};
use destinations::Contract;
use madsim::runtime::{Handle, NodeHandle, Runtime};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use supervision::Due;
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
/// How often the world looks whether all has settled, at first; less and less often from there.
const FIRST_STEP: Duration = Duration::from_millis(500);
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
        let State { history, beliefs, fired, further, visits, store_damage, .. } = &mut *state;
        let history = std::mem::take(history);
        let elapsed = history.events().last().map_or(Nanos(0), |event| event.t_ns);
        let end = store_damage.take().map_or(end, End::Failed);
        Run {
            plan: plan.clone(),
            history,
            ledger,
            made_for,
            beliefs: std::mem::take(beliefs),
            fired: std::mem::take(fired),
            further: std::mem::take(further),
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
    due: Due,
    /// The syncs at the last reading of the belief.
    read_at: Option<u64>,
    /// The cases that people have turned to.
    decided: BTreeSet<String>,
    /// Those of them in which nobody found anything to decide on.
    empty_handed: BTreeSet<String>,
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
        reroll: options.reroll,
        disk_seed: plan.case.seed.stream("disk").bits(),
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
        due: Due::default(),
        read_at: None,
        decided: BTreeSet::new(),
        empty_handed: BTreeSet::new(),
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
        self.start_cancelling(&people);
        self.start_reconciling(&people);
        let last = self.plan.workload.deliveries.iter().map(|d| d.at_ms).max().unwrap_or(0);
        self.field.lock().storm_until = Nanos(last * 1_000_000);
        if let Some(end) = self.until_settled(None, &people).await {
            return end;
        }
        self.calm();
        let bound = Duration::from_secs(self.scenario.settles_within_s(self.contract));
        let bound = bound + self.field.lock().clock.behind(now(), bound);
        let deadline = Nanos(now().0 + nanos(bound));
        if let Some(end) = self.until_settled(Some(deadline), &people).await {
            return end;
        }
        let settled = self.is_settled();
        self.field.event("world", Kind::Quiet, None);
        if let Some(end) = self.quiet().await {
            return end;
        }
        if let Err(end) = self.reconcile_twice(&people).await {
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
            contract: self.scenario.told(self.contract),
            assumptions: self.scenario.assumptions(self.contract),
            clock: self.field.wall_clock(),
            mutant: self.plan.mutant.clone(),
        };
        let process = self.scenario.boot(node);
        self.field.event(WORKFLOW, Kind::Started { boot }, None);
        *self.host.slot.lock().unwrap_or_else(PoisonError::into_inner) = Some((boot, process));
        Handle::current().restart(self.host.node.id());
    }

    /// From here nothing goes wrong any more.
    fn calm(&mut self) {
        {
            let mut state = self.field.lock();
            state.storm = false;
            state.disk.calm();
        }
        // Who found nothing looks once more: what was late may have come.
        let empty_handed = std::mem::take(&mut self.empty_handed);
        self.decided.retain(|name| !empty_handed.contains(name));
        self.field.event("world", Kind::Calm, None);
        self.believe_again(Moment::Calm);
    }

    fn start_source(&self) {
        let node = Handle::current().create_node().name(SOURCE).ip(SOURCE_IP.into()).build();
        let source = Source {
            field: self.field.clone(),
            address: WORKFLOW_ADDRESS,
            open: self.open_deliveries.clone(),
        };
        for delivery in &self.plan.workload.deliveries {
            node.spawn(source.clone().send_off(delivery.clone(), self.further(delivery)));
        }
    }

    /// The deliveries that the tape has besides this one.
    fn further(&self, delivery: &Delivery) -> Vec<Delivery> {
        let again = |how, copy| self.scenario.redelivery(delivery, how, copy);
        match self.plan.tape.at(&Place::Delivery(delivery.name.clone())) {
            Some((_, What::Redeliver { how, .. })) => again(*how, 1).into_iter().collect(),
            Some((_, What::AtOnce(copies))) => (1..*copies)
                .filter_map(|copy| again(Variation::NewId, copy).or_else(|| again(Variation::Same, copy)))
                .collect(),
            _ => vec![],
        }
    }

    /// Waits until every delivery is answered and every operation has ended or is owned. In the storm (no
    /// deadline) also until its faults had their time. People decide on what is theirs in the storm, and on
    /// what is left of it in the calm.
    async fn until_settled(&mut self, deadline: Option<Nanos>, people: &NodeHandle) -> Option<End> {
        let mut step = FIRST_STEP;
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
            let in_storm = deadline.is_none() && now() < self.field.lock().storm_until;
            // Who only confirms what is there can wait for it; who declares that there is nothing can be too
            // early.
            if in_storm && !self.plan.workload.made_anew {
                continue;
            }
            self.believe_again(if deadline.is_some() { Moment::Calm } else { Moment::Storm });
            if !self.is_settled() {
                continue;
            }
            match self.people_decide(people).await {
                Ok(true) => step = FIRST_STEP,
                Ok(false) if in_storm => {}
                Ok(false) => return None,
                Err(end) => return Some(end),
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
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
