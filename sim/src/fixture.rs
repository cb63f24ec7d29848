//! A small workflow and runs of it without a simulator, for the tests of explorer, story and reports.

use crate::belief::{Basis, Belief, BelievedAttempt, BelievedDelivery, BelievedOperation, Standing, Waiting};
use crate::catalogue::{Bench, Catalogue};
use crate::explore::{self, Chosen};
use crate::fault::{Call, ExchangeName, Fault, FaultTape, Loss, Place, What, When};
use crate::history::{History, Kind, Nanos, Step};
use crate::pipeline::Pipeline;
use crate::plan::{Ask, Case, Delivery, DeskPlan, Expect, Plan, Workload};
use crate::run::{BeliefAt, End, Moment, Options, Run, Visit, Work};
use crate::scenario::{
    Believes, BoxError, BoxFuture, Choice, Decision, DrawnFaults, Goal, Mutant, Node, Scenario, Seen, Serves,
    Story,
};
use crate::seed::Seed;
use crate::seeds::Seeds;
use crate::verdict::{Fingerprint, InvariantId, Judgement, Verdict, Violation};
use destinations::fake::{Begun, Desk, DeskOptions, Request};
use destinations::{Assumptions, Contract, Millis};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub(crate) const OPERATION: &str = "R17:create-ticket:v1";
/// A scenario of this name has twelve requests.
pub(crate) const CROWD: &str = "crowd";
pub(crate) const MUTANT: &str = "fresh-key-per-retry";
const STABLE: InvariantId = InvariantId {
    id: "V7",
    name: "stable-identity",
    says: "every attempt of an operation carries the same key and the same bytes",
};
const AT_MOST_ONE: InvariantId =
    InvariantId { id: "V1", name: "at-most-one", says: "one operation has at most one effect" };

/// A scenario with a name; runs of it come from [`pipeline`].
pub(crate) struct Toy(pub(crate) &'static str);

impl Scenario for Toy {
    fn name(&self) -> &'static str {
        self.0
    }
    fn story(&self) -> Story {
        Story {
            lines: "R17 must make one ticket.\nThe desk makes T93; the answer is lost.",
            danger: "between the effect and its record",
            holds: "one ticket",
        }
    }
    fn contracts(&self) -> Vec<Arc<Contract>> {
        static BOTH: OnceLock<Vec<Arc<Contract>>> = OnceLock::new();
        let named = |id| Arc::new(destinations::named(id).expect("it comes with the crate"));
        BOTH.get_or_init(|| ["zendesk_ticket", "desk_unique_ref"].map(named).to_vec()).clone()
    }
    fn assumptions(&self, _: &Contract) -> Assumptions {
        Assumptions::default()
    }
    fn workload(&self, _: &Contract, _: Seed) -> Workload {
        let requests = if self.0 == CROWD { 17..29 } else { 17..18 };
        let operation = |n: u32| format!("R{n}:create-ticket:v1");
        let ask = |n| Ask { request: format!("R{n}"), operation: operation(n), expect: Expect::Recorded };
        let delivery =
            |n| Delivery { at_ms: 0, name: format!("R{n}/d-1"), operation: operation(n), body: vec![] };
        Workload {
            requests: requests.clone().map(ask).collect(),
            deliveries: requests.map(delivery).collect(),
            person_after_ms: None,
            made_anew: false,
            cancelled_after_ms: None,
            reconciled_after_ms: None,
            desk: DeskPlan::default(),
        }
    }
    fn faults(&self, _: &Contract, _: &Workload, seed: Seed) -> DrawnFaults {
        let more = if seed.stream("more").chance(300) { both() } else { vec![] };
        DrawnFaults { own: vec![], more }
    }
    fn boot(&self, _: Node) -> BoxFuture<'static, Result<(), BoxError>> {
        Box::pin(async { Ok(()) })
    }
    fn believes(&self) -> Believes {
        |_| Ok(Belief::default())
    }
    fn serves(&self) -> Serves {
        |_| None
    }
    fn max_sends(&self) -> u32 {
        3
    }
    fn decision(&self, _: &str, _: &Choice, _: &Plan) -> Option<Decision> {
        None
    }
    fn settles_within_s(&self, _: &Contract) -> u64 {
        60
    }
    fn goals(&self) -> Vec<Goal> {
        vec![
            Goal { name: "a restart", reached: |run| run.fired.iter().any(Option::is_some) },
            Goal { name: "retry after key expiry", reached: |_| false },
        ]
    }
    fn mutants(&self) -> Vec<Mutant> {
        let mistake = "each attempt gets a key of its own";
        vec![Mutant { name: MUTANT, killed_by: "V7", mistake }]
    }
}

/// Two scenarios.
pub(crate) fn catalogue() -> Catalogue {
    let full = Bench { variant: "full", scenario: |_| Box::new(Toy("first-delivery")) };
    let scenarios: Vec<Box<dyn Scenario>> = vec![Box::new(Toy("one-ticket")), Box::new(Toy("lost-ack"))];
    Catalogue { scenarios, deep: "one-ticket", benches: vec![full], cases: None }
}

/// A request for all of it.
pub(crate) fn request(seeds: &str, jobs: usize, mutant: Option<&str>) -> explore::Request {
    let catalogue = catalogue();
    let seeds = Seeds::parse(seeds, &|| Err("no commit".into())).expect("a list of seeds");
    let mutant_name = mutant.map(str::to_owned);
    let chosen = Chosen::every(&catalogue, mutant);
    explore::Request {
        jobs,
        mutant: mutant_name,
        failures_max: Some(5),
        ..explore::Request::of(chosen, seeds)
    }
}

/// A pipeline whose runs follow from the plan alone.
pub(crate) fn pipeline() -> Pipeline {
    Pipeline { draft, run, judge }
}

pub(crate) fn create(nth: u32) -> ExchangeName {
    ExchangeName { call: Call::Create, about: OPERATION.into(), nth }
}

/// Lose the answer, kill at the next sync.
fn both() -> Vec<Fault> {
    let at = Place::Sync { boot: 1, nth: 2, when: When::After };
    vec![
        Fault { at: Place::Exchange(create(1)), what: What::LoseResponse(Loss::Silence) },
        Fault { at, what: What::Kill(5000) },
    ]
}

/// Lose the answer, kill at the next sync, and a fault that never strikes; odd seeds have only the first.
fn draft(
    scenario: &dyn Scenario,
    contract: &Contract,
    seed: Seed,
    mutant: Option<&str>,
    kinds: Option<&[String]>,
) -> Result<Plan, String> {
    let mut faults = both();
    if !seed.0.is_multiple_of(2) {
        faults.truncate(1);
    } else {
        faults.push(Fault { at: Place::Exchange(create(9)), what: What::AnswerSlowly(5000) });
    }
    faults.retain(|fault| fault.what.is_on(kinds));
    Ok(Plan {
        case: Case { scenario: scenario.name().into(), contract: contract.id.clone(), seed },
        mutant: mutant.map(str::to_owned),
        workload: scenario.workload(contract, seed),
        tape: FaultTape::new(faults).map_err(|error| error.to_string())?,
        own: vec![],
        schedule: seed.0,
    })
}

/// A history that is written by hand as it goes.
struct Script {
    history: History,
    serves: Serves,
    desk: Desk,
    fired: Vec<Option<Step>>,
    tape: FaultTape,
    now: u64,
    options: Options,
    visits: Vec<Visit>,
}

/// A visit at which the process has done something since every other step.
pub(crate) fn visit(place: Place, step: Step) -> Visit {
    let n = step.0;
    let work = Work { clock_reads: n, reads: n, writes: n, syncs: n };
    Visit { place, step, at: Nanos(u64::from(n) * 1_000_000_000), work, unsynced: false }
}

impl Script {
    fn add(&mut self, after_ms: u64, node: &'static str, kind: Kind, cause: Option<Step>) -> Step {
        self.now += after_ms * 1_000_000;
        self.history.add(Nanos(self.now), node, kind, cause)
    }

    fn note(&mut self, words: &str) {
        if self.options.journal {
            let kind = Kind::Journal { about: OPERATION.into(), words: words.into() };
            self.add(0, "workflow", kind, None);
        }
    }

    fn strikes(&mut self, place: &Place, node: &'static str) -> Option<Step> {
        if self.options.places {
            let step = Step(self.history.events().len() as u32);
            self.visits.push(Visit { at: Nanos(self.now), ..visit(place.clone(), step) });
        }
        let (index, what) = self.tape.at(place).map(|(index, what)| (index, what.clone()))?;
        let kind = Kind::Fault { n: index as u32 + 1, what: what.kind(), words: what.to_string() };
        let step = self.add(0, node, kind, None);
        self.fired[index] = Some(step);
        Some(step)
    }

    /// One create; true when its answer came back.
    fn create(&mut self, nth: u32, key: &str) -> bool {
        let exchange = create(nth);
        let raw = br#"{"title":"access for R17"}"#.to_vec();
        let kind = Kind::Sent {
            exchange: exchange.clone(),
            to: "helpdesk",
            key: Some(key.into()),
            digest: "7c1e".into(),
            summary: format!("POST /tickets, {}", &key[..12]),
        };
        let sent = self.add(4, "workflow", kind, None);
        let arrived = self.add(3, "helpdesk", Kind::Arrived { exchange: exchange.clone() }, Some(sent));
        let request = Request::Create {
            key: Some(key.into()),
            reference: Some(OPERATION.into()),
            client_id: None,
            condition: false,
            body: serde_json::from_slice(&raw).expect("the body is JSON"),
            raw,
        };
        let before = self.desk.ledger().effects().len();
        let at = Millis(self.now / 1_000_000);
        let reply = match self.desk.begin(at, request, Duration::from_millis(1)) {
            Begun::Reply(reply) => reply,
            Begun::Working(_) => self.desk.advance(Millis(at.0 + 1)).pop().expect("it is due").1,
        };
        let mut cause = arrived;
        if let Some(effect) = self.desk.ledger().effects().get(before).cloned() {
            let seen = Seen { call: Call::Create, key: Some(key), body: &[] };
            let kind = Kind::Effect {
                about: (self.serves)(seen).unwrap_or_else(|| OPERATION.into()),
                record: effect.record,
                key: Some(key.into()),
                late: false,
            };
            cause = self.add(1, "helpdesk", kind, Some(arrived));
        }
        let record = self.desk.ledger().effects().last().map(|effect| effect.record.clone());
        let summary = record.clone().unwrap_or_default();
        let status = reply.status;
        if self.strikes(&Place::Exchange(exchange.clone()), "helpdesk").is_some() {
            self.add(10_000, "workflow", Kind::Broken { exchange }, Some(sent));
            return false;
        }
        let kind = Kind::Answered { exchange: exchange.clone(), status, summary: summary.clone() };
        let answered = self.add(0, "helpdesk", kind, Some(cause));
        let kind = Kind::Received { exchange, status, summary, record, empty: false };
        self.add(3, "workflow", kind, Some(answered));
        true
    }
}

/// With the mistake, the process that starts again after the kill makes a new key.
fn run(scenario: &dyn Scenario, plan: &Plan, options: &Options) -> Run {
    let contracts = scenario.contracts();
    let contract = contracts.iter().find(|contract| contract.id == plan.case.contract);
    let contract = contract.expect("the scenario offers it");
    let mut script = Script {
        history: History::default(),
        serves: scenario.serves(),
        desk: Desk::new((**contract).clone(), DeskOptions::default()),
        fired: vec![None; plan.tape.faults().len()],
        tape: plan.tape.clone(),
        now: 0,
        options: options.clone(),
        visits: vec![],
    };
    let delivery = ExchangeName { call: Call::Deliver, about: "R17/d-1".into(), nth: 1 };
    let summary = "POST /deliveries".to_owned();
    script.add(0, "workflow", Kind::Started { boot: 1 }, None);
    let kind =
        Kind::Sent { exchange: delivery.clone(), to: "workflow", key: None, digest: "1a2b".into(), summary };
    let sent = script.add(0, "source", kind, None);
    script.add(1, "workflow", Kind::Arrived { exchange: delivery.clone() }, Some(sent));
    script.add(0, "workflow", Kind::Synced { boot: 1, nth: 1 }, None);
    script.note("sending, 1 sends counted");
    let (first, second) = ("K7d0f3a91c2e84b5d", "K19ab77e0d4c65f21");
    let mut keys = vec![first];
    if !script.create(1, first) {
        script.add(0, "workflow", Kind::Synced { boot: 1, nth: 2 }, None);
        script.note("in doubt, 1 sends counted");
        let after = Place::Sync { boot: 1, nth: 2, when: When::After };
        let killed = script.strikes(&after, "workflow");
        if let Some(fault) = killed {
            script.add(0, "workflow", Kind::Killed, Some(fault));
            let down = script.tape.at(&after).map_or(0, |(_, what)| what.lasts_ms());
            script.add(down, "workflow", Kind::Started { boot: 2 }, None);
        }
        let is_wrong = killed.is_some() && plan.mutant.is_some();
        keys.push(if is_wrong { second } else { first });
        script.create(2, keys[1]);
    }
    script.note("completed");
    let summary = "accepted".to_owned();
    script.add(
        0,
        "source",
        Kind::Received { exchange: delivery, status: 202, summary, record: None, empty: false },
        None,
    );
    script.add(0, "source", Kind::Calm, None);
    script.add(1500, "source", Kind::Quiet, None);
    let records = script.desk.ledger().records().len() as u32;
    let last = script.add(100, "source", Kind::End { records }, None);
    let belief = belief(&script, &keys);
    Run {
        plan: plan.clone(),
        made_for: script.desk.ledger().effects().iter().map(|_| OPERATION.to_owned()).collect(),
        ledger: script.desk.ledger().clone(),
        beliefs: vec![BeliefAt { moment: Moment::End, step: last, belief }],
        fired: script.fired,
        further: vec![],
        visits: script.visits,
        end: End::Finished { settled: true },
        elapsed: Nanos(script.now),
        messages: 0,
        history: script.history,
    }
}

fn belief(script: &Script, keys: &[&str]) -> Belief {
    let attempts =
        keys.iter().map(|key| BelievedAttempt { key: (*key).into(), digest: "7c1e".into() }).collect();
    let operation = BelievedOperation {
        purged: false,
        name: OPERATION.into(),
        standing: Standing::Completed,
        words: "completed".into(),
        record: script.desk.ledger().effects().last().map(|effect| effect.record.clone()),
        attempts,
        waiting: Waiting::Nothing,
        basis: Basis::Confirmed,
        decisions: vec![],
    };
    let delivery = BelievedDelivery { id: "R17/d-1".into(), operation: Some(OPERATION.into()) };
    Belief { deliveries: vec![delivery], operations: vec![operation], ..Belief::default() }
}

fn judge(run: &Run, scenario: &dyn Scenario) -> Judgement {
    let steps = |wanted: &dyn Fn(&Kind) -> bool| -> Vec<Step> {
        run.history.events().iter().filter(|event| wanted(&event.kind)).map(|event| event.step).collect()
    };
    let effects = steps(&|kind| matches!(kind, Kind::Effect { .. }));
    let mut all = vec![];
    let about = OPERATION.to_owned();
    if effects.len() > 1 {
        let message = "R17 asked for one ticket and the desk holds two.".to_owned();
        all.push(Violation { invariant: AT_MOST_ONE, about: about.clone(), blame: effects, message });
        let blame =
            steps(&|kind| matches!(kind, Kind::Sent { exchange, .. } if exchange.call == Call::Create));
        let message = "R17:create-ticket:v1 was sent with two different keys.".to_owned();
        all.push(Violation { invariant: STABLE, about, blame, message });
    }
    let fingerprints = all
        .iter()
        .map(|violation| Fingerprint(format!("{}/helpdesk/9c1e", violation.invariant.name)))
        .collect();
    let verdict = if all.is_empty() { Verdict::Held } else { Verdict::Violated(all) };
    let goals = scenario.goals().iter().map(|goal| (goal.reached)(run)).collect();
    Judgement { verdict, fingerprints, evaluated: vec![1; crate::invariants::INVARIANTS.len()], goals }
}
