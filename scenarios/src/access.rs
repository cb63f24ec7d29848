//! The access-request workflow bound to the harness: how it starts, what it is asked, what it believes.

use crate::belief;
use destinations::{Assumptions, Contract};
use sim::belief::Belief;
use sim::disk::DiskImage;
use sim::fault::{Call, Fault, Variation};
use sim::plan::{Ask, Delivery, DeskPlan, Expect, Plan, SENTINEL, Workload};
use sim::scenario::{
    Believes, BoxError, BoxFuture, Choice, Decision, DrawnFaults, Goal, Mutant, Node, Scenario, Seen, Serves,
    Story,
};
use sim::seed::Seed;
use sim::swarm;
use sim::terms::Terms;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use workflow::store::{Connections, open_file};
use workflow::{Clock, Connect, Definition, Engine, Policy, Setup, StoreAt};

/// The five contracts, the strongest first.
pub const EVERY: &[&str] =
    &["zendesk_ticket", "desk_unique_ref", "desk_strong_lookup", "jira_cloud_issue", "desk_nothing"];

/// How long an abandoned request may still take effect where the contract says nothing: attested for this
/// workflow, and kept by every plan.
pub const ATTESTED_LATE_COMMIT: Duration = Duration::from_secs(90);

/// What this workflow and its judge take for granted.
pub fn assumptions() -> Assumptions {
    Assumptions { assumed_late_commit: Some(ATTESTED_LATE_COMMIT), ..Assumptions::default() }
}

/// What a scenario draws from: the seed and the contract.
pub struct Draw<'a> {
    /// The contract.
    pub contract: &'a Contract,
    /// The seed.
    pub seed: Seed,
    /// Whether faults beyond the scenario's own strike in this seed.
    pub stormy: bool,
}

/// One scenario of the access-request workflow.
#[derive(Clone, Copy)]
pub struct Access {
    /// Its name.
    pub name: &'static str,
    /// Its story.
    pub story: Story,
    /// How long its workflow keeps the records of what has ended; none: for ever.
    pub keep_ended: Option<Duration>,
    /// Whether its second process runs the next version of the step, and its third the older one again.
    pub upgrades: bool,
    /// The contracts for which it makes sense.
    pub contracts: &'static [&'static str],
    /// What the outside asks for.
    pub workload: fn(&Draw<'_>) -> Workload,
    /// The faults of its dangerous moment.
    pub faults: fn(&Draw<'_>) -> Vec<Fault>,
    /// What some seed must reach.
    pub goals: &'static [Goal],
    /// In how many of a thousand seeds faults beyond the scenario's own strike.
    pub storms: u64,
}

impl Access {
    fn draw<'a>(&self, contract: &'a Contract, seed: Seed) -> Draw<'a> {
        Draw { contract, seed, stormy: seed.stream("stormy").chance(self.storms) }
    }
}

impl Scenario for Access {
    fn name(&self) -> &'static str {
        self.name
    }

    fn story(&self) -> Story {
        self.story
    }

    fn contracts(&self) -> Vec<Arc<Contract>> {
        static ALL: OnceLock<Vec<Arc<Contract>>> = OnceLock::new();
        let all = ALL.get_or_init(|| destinations::builtin().into_iter().map(Arc::new).collect());
        let offered = self.contracts.iter().filter_map(|id| all.iter().find(|contract| contract.id == *id));
        offered.cloned().collect()
    }

    fn assumptions(&self, _: &Contract) -> Assumptions {
        assumptions()
    }

    fn workflow_digest(&self, told: &Contract) -> Option<String> {
        Some(kept_for(definition(told, self.assumptions(told)), self.keep_ended).digest())
    }

    fn workload(&self, contract: &Contract, seed: Seed) -> Workload {
        (self.workload)(&self.draw(contract, seed))
    }

    fn faults(&self, contract: &Contract, workload: &Workload, seed: Seed) -> DrawnFaults {
        let draw = self.draw(contract, seed);
        let own = (self.faults)(&draw);
        let assumptions = self.assumptions(contract);
        let terms = Terms { contract, assumptions: &assumptions };
        let more = if draw.stormy { swarm::faults(&terms, workload, &own, seed) } else { vec![] };
        DrawnFaults { own, more }
    }

    fn redelivery(&self, delivery: &Delivery, how: Variation, copy: u32) -> Option<Delivery> {
        crate::redelivery::of(delivery, how, copy)
    }

    fn boot(&self, node: Node) -> BoxFuture<'static, Result<(), BoxError>> {
        let version = if self.upgrades && node.boot.is_multiple_of(2) { 2 } else { 1 };
        Box::pin(boot(node, version, self.keep_ended))
    }

    fn image(&self) -> DiskImage {
        belief::fresh_store()
    }

    fn believes(&self) -> Believes {
        read_belief
    }

    fn serves(&self) -> Serves {
        serves
    }

    fn decision(&self, operation: &str, choice: &Choice, _: &Plan) -> Option<Decision> {
        Some(crate::people::decision(operation, choice))
    }

    fn settles_within_s(&self, contract: &Contract) -> u64 {
        let recovery = destinations::recovery(contract, &self.assumptions(contract));
        let policy = Policy::default();
        let between = recovery.replay.map(|replay| replay.wait_between).unwrap_or_default();
        let horizon = recovery.lookup.and_then(|rule| rule.decides_after).unwrap_or_default();
        // Each send may be followed by the longest wait that the contract asks for.
        (policy.settles_within() + (between.max(horizon) + policy.longest_pause) * policy.max_sends).as_secs()
    }

    fn max_sends(&self) -> u32 {
        Policy::default().max_sends
    }

    fn goals(&self) -> Vec<Goal> {
        self.goals.to_vec()
    }

    fn mutants(&self) -> Vec<Mutant> {
        let known = workflow::mutant::MISTAKES.iter();
        known.map(|(name, _, killed_by, mistake)| Mutant { name, killed_by, mistake }).collect()
    }
}

/// The workflow as it is defined for a contract: in the simulator and in its documentation alike.
pub fn definition(contract: &Contract, assumptions: Assumptions) -> Definition {
    Definition {
        request_id: "id".into(),
        intent: vec!["title".into(), "requester".into()],
        required: vec!["title".into(), "requester".into()],
        assumptions,
        sentinel: Some(SENTINEL.into()),
        owner: "service-desk-lead".into(),
        deadline: Duration::from_secs(4 * 3600),
        escalate_to: "it-duty".into(),
        ..Definition::new("access-request", "create-ticket", contract.clone())
    }
}

/// The same workflow, which keeps the records of what has ended for so long.
fn kept_for(mut definition: Definition, keep_ended: Option<Duration>) -> Definition {
    definition.policy.keep_ended = keep_ended;
    definition
}

async fn boot(node: Node, version: u32, keep_ended: Option<Duration>) -> Result<(), BoxError> {
    let usual = Definition { version, ..definition(&node.contract, node.assumptions.clone()) };
    let workflow = kept_for(usual, keep_ended).build()?;
    let (open, clock) = (node.connect.clone(), node.clock.clone());
    let connect = Connect::from_fn(move |address| {
        let opening = open(address);
        Box::pin(async move {
            let stream = opening.await?;
            Ok(Box::new(stream) as Box<dyn workflow::connector::Stream>)
        })
    });
    let setup = Setup {
        store: StoreAt {
            path: node.store,
            connections: connections(node.mutant.is_none()),
            clock: Clock::from_fn(move || workflow::Timestamp(clock())),
            mutant: mutant(node.mutant.as_deref())?,
        },
        destination: node.desk,
        credentials: None,
        connect,
    };
    let engine = Engine::open(workflow, setup).await?;
    let listener = tokio::net::TcpListener::bind(&node.listen).await?;
    tokio::select! {
        biased;
        stopped = engine.run() => match stopped? {},
        stopped = engine.serve(listener) => match stopped? {},
    }
}

/// A mutant may leave its mark on a connection, so its connections are not kept.
pub(crate) fn connections(keep: bool) -> Connections {
    if keep { Connections::new(keep_or_open, sim::vfs::keep) } else { Connections::plain() }
}

/// The connection that this process kept from an earlier run, or a new one.
fn keep_or_open(path: &str) -> rusqlite::Result<rusqlite::Connection> {
    sim::vfs::kept(path).map_or_else(|| open_file(path), Ok)
}

#[cfg(madsim)]
fn mutant(name: Option<&str>) -> Result<workflow::mutant::Mutant, BoxError> {
    match name {
        None => Ok(workflow::mutant::Mutant::default()),
        Some(name) => workflow::mutant::Mutant::named(name).ok_or_else(|| format!("no mutant {name}").into()),
    }
}

#[cfg(not(madsim))]
fn mutant(name: Option<&str>) -> Result<workflow::mutant::Mutant, BoxError> {
    match name {
        None => Ok(workflow::mutant::Mutant::default()),
        Some(name) => Err(format!("the mutant {name} exists in the simulated build only").into()),
    }
}

fn read_belief(image: &DiskImage) -> Result<Belief, BoxError> {
    belief::read(image)
}

/// A create serves the request that its title names: business content, whatever key or reference comes with
/// it.
fn serves(seen: Seen<'_>) -> Option<String> {
    match seen.call {
        Call::Create => {
            let body: serde_json::Value = serde_json::from_slice(seen.body).ok()?;
            let (request, _) = body.get("title")?.as_str()?.split_once(':')?;
            Some(operation(request))
        }
        Call::Find if seen.key == Some(SENTINEL) => Some("control".into()),
        _ => None,
    }
}

/// The operation that serves a request.
pub fn operation(request: &str) -> String {
    format!("{request}:create-ticket:v1")
}

/// A request of this workflow, `R17`, `R18` …
pub fn ask(n: u32, expect: Expect) -> Ask {
    let request = format!("R{}", 17 + n);
    Ask { operation: operation(&request), request, expect }
}

/// A delivery of a request, complete and valid.
pub fn delivery(ask: &Ask, nth: u32, at_ms: u64) -> Delivery {
    let title = format!("{}: access to the archive", ask.request);
    delivery_of(ask, nth, at_ms, &serde_json::json!({"id": ask.request, "title": title, "requester": "c17"}))
}

/// A delivery with any request in it.
pub fn delivery_of(ask: &Ask, nth: u32, at_ms: u64, request: &serde_json::Value) -> Delivery {
    let name = format!("{}/{nth}", ask.request);
    let body = serde_json::json!({"source": "forms", "delivery_id": name, "request": request});
    Delivery { at_ms, name, operation: ask.operation.clone(), body: body.to_string().into_bytes() }
}

/// A workload of these requests and deliveries, with the desk's own pace drawn from the seed.
pub fn workload(draw: &Draw<'_>, requests: Vec<Ask>, deliveries: Vec<Delivery>) -> Workload {
    let mut rng = draw.seed.stream("desk");
    let desk =
        DeskPlan { service_ms: rng.within(5..=60), lag_ms: rng.within(1_000..=240_000), seed: rng.bits() };
    let person_after_ms = Some(rng.within(60_000..=7_200_000));
    Workload { requests, deliveries, person_after_ms, desk, ..Workload::default() }
}

/// One request, delivered once.
pub fn once(draw: &Draw<'_>, expect: Expect) -> Workload {
    let ask = ask(0, expect);
    let first = delivery(&ask, 1, draw.seed.stream("arrivals").within(1..=50));
    workload(draw, vec![ask], vec![first])
}
