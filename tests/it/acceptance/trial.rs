//! One trial of the acceptance script: a plan with an exact tape, run in the simulator, and what it left.

use destinations::{Assumptions, Class, Contract};
use scenarios::access::{Access, ask, delivery, operation};
use scenarios::belief;
use scenarios::stories::one_ticket;
use sim::belief::Belief;
use sim::disk::DiskImage;
use sim::fault::{Fault, FaultTape};
use sim::pipeline::Pipeline;
use sim::plan::{Ask, Case, Delivery, DeskPlan, Expect, Plan, Workload, schedule};
use sim::run::{End, Options};
use sim::scenario::{
    Believes, BoxError, BoxFuture, Choice, Decision, DrawnFaults, Goal, Mutant, Node, Scenario, Serves, Story,
};
use sim::seed::Seed;
use sim::verdict::Verdict;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use workflow::store::Contents;

/// The seed of what no row fixes: latencies and the order of tasks.
const SEED: Seed = Seed(17);
/// Who owns every case of this workflow.
pub(super) const OWNER: &str = "service-desk-lead";

thread_local! {
    /// The image from which the belief was read last: at the end of a run, what the workflow leaves.
    static LAST: RefCell<Option<DiskImage>> = const { RefCell::new(None) };
}

/// The access-request workflow, whose last disk is kept: a belief does not name every case and alert.
struct Kept(&'static Access);

impl Scenario for Kept {
    fn name(&self) -> &'static str {
        "acceptance"
    }
    fn story(&self) -> Story {
        self.0.story()
    }
    fn contracts(&self) -> Vec<Arc<Contract>> {
        self.0.contracts()
    }
    fn assumptions(&self, contract: &Contract) -> Assumptions {
        self.0.assumptions(contract)
    }
    fn workload(&self, _: &Contract, _: Seed) -> Workload {
        Workload::default()
    }
    fn faults(&self, _: &Contract, _: &Workload, _: Seed) -> DrawnFaults {
        DrawnFaults::default()
    }
    fn boot(&self, node: Node) -> BoxFuture<'static, Result<(), BoxError>> {
        self.0.boot(node)
    }
    fn image(&self) -> DiskImage {
        self.0.image()
    }
    fn believes(&self) -> Believes {
        read_and_keep
    }
    fn serves(&self) -> Serves {
        self.0.serves()
    }
    fn decision(&self, operation: &str, choice: &Choice, plan: &Plan) -> Option<Decision> {
        self.0.decision(operation, choice, plan)
    }
    fn settles_within_s(&self, contract: &Contract) -> u64 {
        self.0.settles_within_s(contract)
    }
    fn max_sends(&self) -> u32 {
        self.0.max_sends()
    }
    fn goals(&self) -> Vec<Goal> {
        vec![]
    }
    fn mutants(&self) -> Vec<Mutant> {
        self.0.mutants()
    }
}

fn read_and_keep(image: &DiskImage) -> Result<Belief, BoxError> {
    LAST.set(Some(image.clone()));
    belief::read(image)
}

/// Every contract that is tried, the strongest class first.
pub(super) fn contracts() -> Vec<Arc<Contract>> {
    Kept(&one_ticket::SCENARIO).contracts()
}

/// What a contract permits after a send in doubt, as this workflow is set up.
pub(super) fn class(contract: &Contract) -> Class {
    destinations::recovery(contract, &scenarios::access::assumptions()).class()
}

/// What the trials of a row are made for.
pub(super) struct Setting<'a> {
    pub(super) contract: &'a Contract,
    /// What must come of R17.
    pub(super) expect: Expect,
}

/// What the outside does, and what goes wrong.
pub(super) struct Trial {
    workload: Workload,
    faults: Vec<Fault>,
}

impl Trial {
    /// These requests and deliveries; nobody looks at a case unless [`Trial::with_people`] says so.
    pub(super) fn of(requests: Vec<Ask>, deliveries: Vec<Delivery>, faults: Vec<Fault>) -> Trial {
        let desk = DeskPlan { service_ms: 30, lag_ms: 60_000, seed: 1 };
        let workload = Workload { requests, deliveries, desk, ..Workload::default() };
        Trial { workload, faults }
    }

    /// R17, delivered once.
    pub(super) fn once(setting: &Setting<'_>, faults: Vec<Fault>) -> Trial {
        let ask = ask(0, setting.expect);
        let first = delivery(&ask, 1, 1);
        Trial::of(vec![ask], vec![first], faults)
    }

    /// The owner turns to a case ten minutes after it was opened.
    pub(super) fn with_people(mut self) -> Trial {
        self.workload.person_after_ms = Some(600_000);
        self
    }
}

/// What a trial left on both sides.
pub(super) struct Left {
    pub(super) verdict: Verdict,
    /// The workflow's whole store.
    store: Contents,
    /// The records that the desk holds, each with the operation that it was made for.
    held: BTreeMap<String, String>,
    /// The bodies of the requests that made or changed a record.
    pub(super) bodies: Vec<String>,
    /// Faults of the tape that did not strike.
    pub(super) drift: Vec<String>,
    pub(super) settled: bool,
}

/// Both sides of the books.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Balance {
    pub(super) completed: usize,
    pub(super) records: usize,
    /// What stands on one side only, or elsewhere on the other.
    pub(super) unmatched: Vec<String>,
}

/// Runs a trial with a contract, and with one known mistake or none.
pub(super) fn run(trial: Trial, contract: &Contract, mutant: Option<&str>) -> Left {
    let scenario = Kept(&one_ticket::SCENARIO);
    let case = Case { scenario: scenario.name().into(), contract: contract.id.clone(), seed: SEED };
    let plan = Plan {
        case,
        mutant: mutant.map(str::to_owned),
        workload: trial.workload,
        tape: FaultTape::new(trial.faults.clone()).expect("the faults of a row can strike where they stand"),
        own: trial.faults,
        schedule: schedule(SEED),
    };
    let pipeline = Pipeline::real().expect("this build can simulate");
    let ran = pipeline.once(&scenario, &plan, &Options::default()).expect("the harness does not panic");
    // A run that a panic ends at its start has left what it was given.
    let image = LAST.take().unwrap_or_else(|| scenario.image());
    let struck = ran.run.fired.iter().zip(plan.tape.faults());
    let drift = struck.filter(|(fired, _)| fired.is_none()).map(|(_, fault)| fault.at.to_string()).collect();
    let ledger = &ran.run.ledger;
    let records = ledger.records();
    let effects = ledger.effects().iter().zip(&ran.run.made_for);
    let held = effects.filter(|(effect, _)| records.contains(&&*effect.record));
    Left {
        verdict: ran.judgement.verdict,
        store: belief::contents(&image).expect("the store can be read"),
        held: held.map(|(effect, made_for)| (effect.record.clone(), made_for.clone())).collect(),
        bodies: ledger.effects().iter().map(|effect| effect.by.body.clone()).collect(),
        drift,
        settled: ran.run.end == End::Finished { settled: true },
    }
}

impl Left {
    /// The records that the desk holds for R17.
    pub(super) fn records(&self) -> usize {
        self.held.values().filter(|made_for| **made_for == operation("R17")).count()
    }

    /// Where R17 stands in the workflow's own words.
    pub(super) fn words(&self) -> &'static str {
        let found = self.store.operations.iter().find(|op| op.key.as_str() == operation("R17"));
        found.map_or("unknown to the workflow", |op| op.state.as_str())
    }

    /// Sends of R17, each counted before its first byte.
    pub(super) fn attempts(&self) -> usize {
        self.store.attempts.iter().filter(|(about, _)| *about == operation("R17")).count()
    }

    /// Deliveries that the workflow recorded for R17.
    pub(super) fn deliveries(&self) -> usize {
        let about = operation("R17");
        self.store.deliveries.iter().filter(|stored| stored.operation.as_ref() == Some(&about)).count()
    }

    /// The reasons of the cases that wait for a person.
    pub(super) fn open_cases(&self) -> Vec<&str> {
        self.store.exceptions.iter().map(|case| &*case.reason).collect()
    }

    /// The reasons of which the owner was told when a case was opened.
    pub(super) fn alerts(&self) -> Vec<&str> {
        let told = self.store.alerts.iter().filter(|alert| alert.kind != "overdue");
        told.filter(|alert| alert.owner == OWNER).map(|alert| &*alert.kind).collect()
    }

    /// Whether each open case is R17's and has its owner and a deadline in the future of its opening.
    pub(super) fn cases_are_owned(&self) -> bool {
        let mut cases = self.store.exceptions.iter();
        let about = operation("R17");
        cases.all(|case| case.operation == about && case.owner == OWNER && case.deadline > case.opened)
    }

    /// What the workflow completed against what the desk holds. A reconciliation of the workflow's own can be
    /// run before this, and compared with it.
    pub(super) fn balance(&self) -> Balance {
        let mut unmatched = vec![];
        let mut completed = 0;
        for op in &self.store.operations {
            if !op.state.as_str().starts_with("completed/") {
                continue;
            }
            completed += 1;
            let record = op.external_ref.as_deref().unwrap_or("no record");
            if self.held.get(record).map(String::as_str) != Some(op.key.as_str()) {
                unmatched.push(format!("{} completed with {record}, which the desk lacks", op.key));
            }
        }
        for (record, made_for) in &self.held {
            let is_known = self.store.refs.iter().any(|(known, about)| known == record && about == made_for);
            if !is_known {
                unmatched.push(format!("the desk holds {record} of {made_for}, which nobody recorded"));
            }
        }
        Balance { completed, records: self.held.len(), unmatched }
    }
}
