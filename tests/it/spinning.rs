//! A workflow that goes nowhere is told from one that is slow: what it waits for is said, and one that spins
//! is given up.

use destinations::{Assumptions, Contract};
use scenarios::stories::first_delivery::SCENARIO;
use sim::catalogue::Catalogue;
use sim::disk::DiskImage;
use sim::explore::{Chosen, Exploration, Request, explore};
use sim::pipeline::Pipeline;
use sim::plan::{Plan, Workload};
use sim::run::{End, Options};
use sim::scenario::{
    Believes, BoxError, BoxFuture, Choice, Decision, DrawnFaults, Goal, Node, Scenario, Serves, Story,
};
use sim::seed::Seed;
use sim::seeds::Seeds;
use sim::verdict::Verdict;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Once the run was given up, the thread that is left behind must not burn on.
static GIVEN_UP: AtomicBool = AtomicBool::new(false);

/// What the process does instead of its work.
type Instead = fn(Node) -> BoxFuture<'static, Result<(), BoxError>>;

/// The story of a first delivery with another process.
struct Stuck(Instead);

impl Scenario for Stuck {
    fn name(&self) -> &'static str {
        SCENARIO.name()
    }
    fn story(&self) -> Story {
        SCENARIO.story()
    }
    fn contracts(&self) -> Vec<Arc<Contract>> {
        SCENARIO.contracts()
    }
    fn assumptions(&self, contract: &Contract) -> Assumptions {
        SCENARIO.assumptions(contract)
    }
    fn workload(&self, contract: &Contract, seed: Seed) -> Workload {
        SCENARIO.workload(contract, seed)
    }
    fn faults(&self, _: &Contract, _: &Workload, _: Seed) -> DrawnFaults {
        DrawnFaults::default()
    }
    fn boot(&self, node: Node) -> BoxFuture<'static, Result<(), BoxError>> {
        (self.0)(node)
    }
    fn image(&self) -> DiskImage {
        SCENARIO.image()
    }
    fn believes(&self) -> Believes {
        SCENARIO.believes()
    }
    fn serves(&self) -> Serves {
        SCENARIO.serves()
    }
    fn decision(&self, operation: &str, choice: &Choice, plan: &Plan) -> Option<Decision> {
        SCENARIO.decision(operation, choice, plan)
    }
    fn settles_within_s(&self, contract: &Contract) -> u64 {
        SCENARIO.settles_within_s(contract)
    }
    fn max_sends(&self) -> u32 {
        SCENARIO.max_sends()
    }
    fn goals(&self) -> Vec<Goal> {
        vec![]
    }
}

fn explored(instead: Instead, run_max: Duration) -> Exploration {
    let scenarios: Vec<Box<dyn Scenario>> = vec![Box::new(Stuck(instead))];
    let catalogue = Catalogue { scenarios, deep: "", benches: vec![], cases: None };
    let mut chosen = Chosen::every(&catalogue, None);
    chosen[0].contracts.truncate(1);
    let request = Request { run_max, ..Request::of(chosen, Seeds::range(0..1)) };
    let pipeline = Pipeline::real().expect("this build can simulate");
    explore(&Arc::new(catalogue), pipeline, request, &AtomicBool::new(false), &mut |_| {})
}

/// No event and no time passes in it: only who looks at it from outside can see that it spins.
#[test]
fn a_process_that_yields_for_ever_is_given_up() {
    let yields: Instead = |_| {
        Box::pin(async {
            while !GIVEN_UP.load(Ordering::Relaxed) {
                tokio::task::yield_now().await;
            }
            Ok(())
        })
    };
    let done = explored(yields, Duration::from_secs(2));
    GIVEN_UP.store(true, Ordering::Relaxed);
    assert!(done.hung);
    assert_eq!((done.runs, done.undecided, done.held), (1, 1, 0));
    let (_, why) = &done.undecided_examples[0];
    assert_eq!(why, "it took more than 2 s of wall clock");
}

/// Time passes, and nothing gets done: the budget of steps ends it.
#[test]
fn a_process_that_makes_events_for_ever_is_undecided() {
    let knocks: Instead = |node| {
        Box::pin(async move {
            loop {
                let mut stream = (node.connect)(node.desk.clone()).await?;
                use tokio::io::AsyncWriteExt as _;
                stream.write_all(b"GET /tickets/T1 HTTP/1.1\r\nhost: desk\r\n\r\n").await?;
                stream.flush().await?;
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
    };
    let stuck = Stuck(knocks);
    let contract = stuck.contracts().swap_remove(0);
    let plan = sim::draft::draft(&stuck, &contract, Seed(1), None, None).expect("a plan");
    let run = sim::world::run_plan(&stuck, &plan, &Options { steps_max: 5_000, ..Options::default() });
    assert!(matches!(&run.end, End::Limit(_)), "{:?}", run.end);
    assert!(run.history.events().len() < 5_100, "it ends at once: {} events", run.history.events().len());
    let verdict = sim::invariants::judge(&run, &stuck).verdict;
    assert!(matches!(&verdict, Verdict::Undecided(why) if why.contains("more steps")), "{verdict:?}");
}

/// A process that hears nobody: the violation says what the run was waiting for.
#[test]
fn what_never_settles_says_what_it_waits_for() {
    let stuck = Stuck(|_| Box::pin(std::future::pending()));
    let contract = stuck.contracts().swap_remove(0);
    let plan = sim::draft::draft(&stuck, &contract, Seed(1), None, None).expect("a plan");
    let run = sim::world::run_plan(&stuck, &plan, &Options::default());
    assert_eq!(run.end, End::Finished { settled: false });
    let Verdict::Violated(all) = sim::invariants::judge(&run, &stuck).verdict else { panic!("it held") };
    let converges = all.iter().find(|violation| violation.invariant.id == "V18").expect("V18");
    insta::assert_snapshot!(
        converges.message,
        @"R17:create-ticket:v1 ended as unknown to the workflow with no record at the destination; expected was one record, recorded. It had not settled in time: delivery R17/1 was never acknowledged."
    );
}
