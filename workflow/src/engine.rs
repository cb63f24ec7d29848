//! The loop: takes what is due, asks what may be done, does it, and records it before anything is built on
//! it.

use crate::agenda::Agenda;
use crate::clock::Timestamp;
use crate::connector::{Connect, Connector};
use crate::definition::Workflow;
use crate::known::Known;
use crate::licence::{Next, next_step};
use crate::mutant::{Mistake, Mutant};
use crate::operation::OperationKey;
use crate::state::State;
use crate::store::{NewEvidence, Operation, Store, StoreAt, StoreError};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

/// How often the records of what has long ended are removed, at most and at least.
const SOONEST_PURGE: Duration = Duration::from_secs(60);
const LATEST_PURGE: Duration = Duration::from_secs(3600);
/// Operations that are removed in one transaction.
const PURGED_AT_ONCE: u32 = 20;

/// What an engine needs to run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The store.
    pub store: StoreAt,
    /// The destination's `host:port`.
    pub destination: String,
    /// A header line with the destination's credentials; sent, never stored.
    pub credentials: Option<(String, String)>,
    /// How connections are opened.
    pub connect: Connect,
}

/// A running workflow. Cheap to clone; all clones are one engine.
#[derive(Clone)]
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) workflow: Workflow,
    pub(crate) setup: Setup,
    pub(crate) store: Store,
    /// A second connection, opened when a person first asks.
    people: OnceLock<Store>,
    pub(crate) connector: Connector,
    pub(crate) agenda: Agenda,
    /// Held by the one reconciliation that is under way.
    pub(crate) reconciling: tokio::sync::Mutex<()>,
    /// Told when a case was opened.
    pub(crate) cases: Notify,
    stopped: watch::Sender<Option<StoreError>>,
}

impl Engine {
    /// Opens the store, puts every send that a crash interrupted in doubt, and takes up whatever has not
    /// ended.
    ///
    /// # Errors
    /// When the store cannot be opened or read; nothing has been sent then.
    pub async fn open(workflow: Workflow, setup: Setup) -> Result<Engine, StoreError> {
        let workflow = setup.store.mutant.workflow(workflow);
        let store = Store::open(&setup.store)?;
        let policy = &workflow.definition.policy;
        let connector = Connector {
            connect: setup.connect.clone(),
            address: setup.destination.clone(),
            credentials: setup.credentials.clone(),
            answer_limit: policy.answer_limit,
            max_pages: policy.max_pages,
            mutant: setup.store.mutant,
        };
        let shared = Shared {
            agenda: Agenda::new(policy.max_open),
            workflow,
            setup,
            store,
            people: OnceLock::new(),
            connector,
            reconciling: tokio::sync::Mutex::default(),
            cases: Notify::new(),
            stopped: watch::Sender::new(None),
        };
        let engine = Engine { shared: Arc::new(shared) };
        engine.recover().await?;
        Ok(engine)
    }

    /// Live and recovered operations go through the same transition function.
    async fn recover(&self) -> Result<(), StoreError> {
        let mutant = self.shared.mutant();
        if mutant.is(Mistake::ForgetsOpenAtStart) {
            return Ok(());
        }
        for operation in self.shared.store.open_operations().await? {
            if operation.state.recovered() == operation.state || mutant.is(Mistake::CrashReturnsToReady) {
                self.shared.agenda.put(operation.not_before, operation.key, None);
                continue;
            }
            let key = operation.key.clone();
            let why = "the process stopped between intent and evidence";
            self.shared.interrupted(Known::from(operation), why).await?;
            self.shared.agenda.put(Timestamp(0), key, None);
        }
        Ok(())
    }

    /// Works until the store fails. Runs as many operations at once as the policy says; when it is dropped,
    /// they stop.
    ///
    /// # Errors
    /// When the store cannot say what is durable, or a worker has panicked: start again, which reads it anew.
    pub async fn run(&self) -> Result<std::convert::Infallible, StoreError> {
        let worker = || {
            let guard = Guard(self.shared.clone());
            tokio::spawn(async move { guard.0.work().await })
        };
        let workers = self.shared.workflow.definition.policy.workers;
        let guard = Guard(self.shared.clone());
        let watch = tokio::spawn(async move { guard.0.watch_deadlines().await });
        let keep = self.shared.workflow.definition.policy.keep_ended;
        let purge = keep.map(|keep| {
            let guard = Guard(self.shared.clone());
            tokio::spawn(async move { guard.0.purge_ended(keep).await })
        });
        let _workers = Workers((0..workers).map(|_| worker()).chain([watch]).chain(purge).collect());
        let mut stopped = self.shared.stopped.subscribe();
        let failed = stopped.wait_for(Option::is_some).await.expect("the sender lives as long as `self`");
        Err(failed.clone().expect("it was waited for"))
    }

    /// The store's time.
    pub fn now(&self) -> Timestamp {
        self.shared.store.now()
    }
}

/// Stops its tasks when it is dropped.
struct Workers(Vec<JoinHandle<()>>);

impl Drop for Workers {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

/// Stops the engine when the worker that holds it panics: an operation in its hands would be forgotten.
struct Guard(Arc<Shared>);

impl Drop for Guard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop(&StoreError::Unusable("a worker panicked; start again".into()));
        }
    }
}

impl Shared {
    /// The mistake that this engine makes: none, except in the simulator.
    pub(crate) fn mutant(&self) -> Mutant {
        self.setup.store.mutant
    }

    /// The second connection, for people.
    pub(crate) fn people(&self) -> Result<&Store, StoreError> {
        if let Some(store) = self.people.get() {
            return Ok(store);
        }
        let store = Store::open_beside(&self.setup.store)?;
        Ok(self.people.get_or_init(|| store))
    }

    /// Stops the engine: what is durable is not known any more.
    pub(crate) fn stop(&self, error: &StoreError) {
        if !matches!(error, StoreError::Transient(_)) {
            tracing::error!(%error, "the store failed; the engine stops");
            self.stopped.send_replace(Some(error.clone()));
        }
    }

    /// Tells somebody when a case has not been decided in time.
    async fn watch_deadlines(&self) {
        let policy = &self.workflow.definition.policy;
        loop {
            let escalated = match self.store.next_deadline().await {
                Ok(None) => {
                    self.cases.notified().await;
                    continue;
                }
                Ok(Some(deadline)) if self.store.now() >= deadline => self.store.escalate().await.map(|_| ()),
                Ok(Some(deadline)) => {
                    // A wall clock that is set ahead is noticed by then.
                    let sleep = deadline.remaining_at(self.store.now()).min(policy.longest_pause);
                    tokio::time::sleep(sleep).await;
                    continue;
                }
                Err(error) => Err(error),
            };
            match escalated {
                Ok(()) => {}
                Err(StoreError::Transient(why)) => {
                    tracing::warn!(%why, "overdue cases are told of when the store can be used again");
                    tokio::time::sleep(policy.first_pause).await;
                }
                Err(error) => return self.stop(&error),
            }
        }
    }

    /// Removes the records of what has long ended.
    async fn purge_ended(&self, keep: Duration) {
        let between = (keep / 8).clamp(SOONEST_PURGE, LATEST_PURGE);
        loop {
            match self.store.purge(self.store.now().before(keep), PURGED_AT_ONCE).await {
                // There may be more; others write meanwhile.
                Ok(removed) if removed >= PURGED_AT_ONCE => {
                    tokio::time::sleep(self.workflow.definition.policy.first_pause).await;
                    continue;
                }
                Ok(_) => {}
                Err(StoreError::Transient(why)) => tracing::warn!(%why, "nothing is removed at the moment"),
                Err(error) => return self.stop(&error),
            }
            tokio::time::sleep(between).await;
        }
    }

    async fn work(&self) {
        loop {
            let (key, fresh) = self.agenda.take(&self.store).await;
            match self.handle(&key, fresh).await {
                Ok(Some(due)) => self.agenda.give_back(key, Some(due)),
                Ok(None) => self.agenda.give_back(key, None),
                Err(error) => {
                    self.stop(&error);
                    if !matches!(error, StoreError::Transient(_)) {
                        return;
                    }
                    let due = self.store.now().after(self.workflow.definition.policy.first_pause);
                    let due = Some(due).filter(|_| !self.mutant().is(Mistake::GivenUpWhenFull));
                    self.agenda.give_back(key, due);
                }
            }
        }
    }

    /// Brings one operation as far as it can go now; says when to come back, if ever.
    async fn handle(
        &self,
        key: &OperationKey,
        fresh: Option<Box<Operation>>,
    ) -> Result<Option<Timestamp>, StoreError> {
        let mut known = match fresh {
            Some(operation) => Known::from(*operation),
            None => match self.load(key).await? {
                Some(known) => known,
                None => return Ok(None),
            },
        };
        let policy = &self.workflow.definition.policy;
        // Every turn ends, waits, or is counted against a budget; the bound only catches a bug.
        for _ in 0..1_000 {
            let now = self.store.now();
            let facts = self.mutant().facts(known.facts());
            let step = next_step(&facts, &self.workflow.recovery, policy, now);
            #[cfg(feature = "mutants")]
            let step =
                crate::licence::mutated(step, &facts, &self.workflow.recovery, policy, (self.mutant(), now));
            let state = match step {
                // A send that is in nobody's hands was left by a worker that met a failing store.
                Next::Nothing if known.operation.state.recovered() != known.operation.state => {
                    self.interrupted(known, "the send was left without evidence").await?
                }
                Next::Nothing => return Ok(None),
                Next::Wait(due) => return Ok(Some(due)),
                Next::Send(licence) => self.send(known, licence).await?,
                Next::Look => self.look(known).await?,
                Next::AcceptNegative => self.accept_negative(known).await?,
                Next::Person(reason) => self.hand_over(known, reason).await?,
                Next::Lapsed => self.lapse(known).await?,
                Next::Withdraw => self.withdraw(known).await?,
            };
            if state.is_terminal() || state.is_exception() {
                return Ok(None);
            }
            // What is durable decides what comes next.
            let Some(durable) = self.load(key).await? else { return Ok(None) };
            known = durable;
        }
        unreachable!("an operation turned a thousand times without ending, waiting or being counted")
    }

    /// A send was begun and nobody knows what came of it: it is in doubt from here on.
    async fn interrupted(&self, known: Known, why: &str) -> Result<State, StoreError> {
        let evidence = NewEvidence { class: "unknown", source: "recovery".into(), detail: why.into() };
        self.record(known, self.mutant().interrupted(), evidence, None).await
    }

    async fn load(&self, key: &OperationKey) -> Result<Option<Known>, StoreError> {
        Ok(self.store.load(key.clone()).await?.map(Known::from))
    }
}
