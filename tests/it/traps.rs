//! The traps of the simulator underneath: each test notices when its answer goes missing.

use destinations::{Assumptions, Contract};
use sim::belief::Belief;
use sim::fault::{Call, ExchangeName, Fault, FaultTape, Keep, Loss, Phase, Place, What, When};
use sim::history::{Event, Kind};
use sim::plan::{Case, DeskPlan, Plan, Workload};
use sim::run::{End, Options, Run};
use sim::scenario::{
    Believes, BoxError, BoxFuture, Choice, Decision, DrawnFaults, Goal, Node, Scenario, Serves, Story,
};
use sim::seed::Seed;
use sim::verdict::Verdict;
use std::sync::Arc;
use std::time::Duration;

type Boot = fn(Node) -> BoxFuture<'static, Result<(), BoxError>>;

/// A process that does one odd thing.
struct Probe(Boot);

impl Scenario for Probe {
    fn name(&self) -> &'static str {
        "probe"
    }
    fn story(&self) -> Story {
        Story { lines: "", danger: "", holds: "" }
    }
    fn contracts(&self) -> Vec<Arc<Contract>> {
        destinations::named("desk_nothing").map(Arc::new).into_iter().collect()
    }
    fn assumptions(&self, _: &Contract) -> Assumptions {
        Assumptions::default()
    }
    fn workload(&self, _: &Contract, _: Seed) -> Workload {
        Workload::default()
    }
    fn faults(&self, _: &Contract, _: &Workload, _: Seed) -> DrawnFaults {
        DrawnFaults::default()
    }
    fn boot(&self, node: Node) -> BoxFuture<'static, Result<(), BoxError>> {
        (self.0)(node)
    }
    fn believes(&self) -> Believes {
        |_| Ok(Belief::default())
    }
    fn serves(&self) -> Serves {
        |_| None
    }
    fn decision(&self, _: &str, _: &Choice, _: &Plan) -> Option<Decision> {
        None
    }
    fn settles_within_s(&self, _: &Contract) -> u64 {
        60
    }
    fn max_sends(&self) -> u32 {
        5
    }
    fn goals(&self) -> Vec<Goal> {
        vec![]
    }
}

fn probe(boot: Boot, seed: u64) -> Run {
    let plan = Plan {
        case: Case { scenario: "probe".into(), contract: "desk_nothing".into(), seed: Seed(seed) },
        mutant: None,
        workload: Workload { desk: DeskPlan { service_ms: 5, ..DeskPlan::default() }, ..Workload::default() },
        tape: FaultTape::default(),
        own: vec![],
        schedule: seed,
    };
    sim::world::run_plan(&Probe(boot), &plan, &Options::default())
}

fn story(name: &str, contract: &str, faults: Vec<Fault>) -> Run {
    let catalogue = scenarios::catalogue();
    let scenario = catalogue.scenarios.iter().find(|s| s.name() == name).expect("a known story");
    let contract = scenario.contracts().into_iter().find(|c| c.id == contract).expect("a known contract");
    let none: Option<&[String]> = Some(&[]);
    let mut plan = sim::draft::draft(&**scenario, &contract, Seed(3), None, none).expect("a plan");
    plan.tape = FaultTape::new(faults).expect("distinct places");
    let run = sim::world::run_plan(&**scenario, &plan, &Options::default());
    let judgement = sim::invariants::judge(&run, &**scenario);
    assert_eq!(judgement.verdict, Verdict::Held, "{:?}", run.end);
    run
}

fn create(nth: u32) -> ExchangeName {
    ExchangeName { call: Call::Create, about: "R17:create-ticket:v1".into(), nth }
}

fn count(run: &Run, wanted: impl Fn(&Event) -> bool) -> usize {
    run.history.events().iter().filter(|event| wanted(event)).count()
}

/// Every flush of the simulated TCP is a message; empty ones let two HTTP ends answer each other for ever.
#[test]
fn an_exchange_takes_few_messages() {
    let run = story("first-delivery", "zendesk_ticket", vec![]);
    assert!((4..40).contains(&run.messages), "{} messages for two exchanges", run.messages);
}

/// A panic inside the system under test is a finding about it, and the next run starts clean.
#[test]
fn a_panic_in_the_process_is_a_violation_and_ends_one_run_only() {
    let run = probe(|_| Box::pin(async { panic!("the process falls over") }), 1);
    assert!(matches!(&run.end, End::Failed(why) if why.contains("the process falls over")), "{:?}", run.end);
    let verdict = sim::invariants::judge(&run, &Probe(|_| Box::pin(std::future::pending()))).verdict;
    assert!(matches!(&verdict, Verdict::Violated(all) if all[0].invariant.id == "V0"), "{verdict:?}");
    let inside = probe(
        |_| {
            Box::pin(async {
                tokio::spawn(async { panic!("a task falls over") });
                std::future::pending().await
            })
        },
        1,
    );
    assert!(matches!(&inside.end, End::Failed(why) if why.contains("a task falls over")), "{:?}", inside.end);
    let after = probe(|_| Box::pin(std::future::pending()), 1);
    assert_eq!(after.end, End::Finished { settled: true });
}

/// An error that nobody handles ends the process: on a live machine that is a finding too.
#[test]
fn a_process_that_gives_up_is_a_violation() {
    let run = probe(|_| Box::pin(async { Err("gives up".into()) }), 1);
    assert!(matches!(&run.end, End::Failed(why) if why.contains("gives up")), "{:?}", run.end);
}

/// tokio's `select!` without `biased` draws from a generator of its own: it must follow from the seed too.
#[test]
fn select_without_biased_repeats() {
    async fn draws() -> String {
        let mut drawn = String::new();
        for _ in 0..64 {
            {
                tokio::select! {
                    () = std::future::ready(()) => drawn.push('a'),
                    () = std::future::ready(()) => drawn.push('b'),
                }
            }
        }
        drawn
    }
    let boot: Boot = |_| Box::pin(async { Err(draws().await.into()) });
    let on_fresh_thread =
        move |seed| std::thread::scope(|s| s.spawn(|| probe(boot, seed).end).join().expect("ran"));
    let (one, other) = (on_fresh_thread(7), on_fresh_thread(7));
    assert_eq!(one, other);
    assert_ne!(one, on_fresh_thread(8), "the draws do not depend on the seed at all");
    let warm = probe(boot, 3);
    assert_ne!(warm.end, one);
    assert_eq!(probe(boot, 7).end, one, "what ran before on this thread shows");
}

/// A process that never stops doing something is cut off: nothing can be said of it.
#[test]
fn a_flood_of_events_is_undecided() {
    let boot: Boot = |node| {
        Box::pin(async move {
            loop {
                let mut stream = (node.connect)(node.desk.clone()).await?;
                use tokio::io::AsyncWriteExt as _;
                stream.write_all(b"GET /tickets/T1 HTTP/1.1\r\nhost: desk\r\n\r\n").await?;
                stream.flush().await?;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
    };
    let run = probe(boot, 1);
    assert!(matches!(&run.end, End::Limit(_)), "{:?}", run.end);
}

/// The limit is told and not thrown: a panic inside SQLite's own calls would end the program.
#[test]
fn a_limit_that_is_reached_inside_a_sync_ends_the_run_alone() {
    let catalogue = scenarios::catalogue();
    let scenario = &catalogue.scenarios[0];
    let contract = scenario.contracts()[0].clone();
    for steps_max in 1..40 {
        let plan = sim::draft::draft(&**scenario, &contract, Seed(5), None, Some(&[])).expect("a plan");
        let run = sim::world::run_plan(&**scenario, &plan, &Options { steps_max, ..Options::default() });
        let all = run.history.events().len() as u32;
        assert_eq!(matches!(run.end, End::Limit(_)), all > steps_max, "{steps_max} of {all}: {:?}", run.end);
    }
}

/// After a failed sync the page cache shows a commit that the disk does not hold, and the log on the disk
/// ends before it: what can be read at the next start has to be made durable, log and all, even when that
/// fails at first.
#[test]
fn a_failed_sync_is_survived() {
    let fails =
        |boot, nth| Fault { at: Place::Sync { boot, nth, when: When::Before }, what: What::SyncError };
    let clean = story("first-delivery", "desk_nothing", vec![]);
    // The last sync of a run without faults is the one of the evidence.
    let last = count(&clean, |event| matches!(event.kind, Kind::Synced { .. })) as u32;
    assert!(last > 3, "{last} syncs");
    let again = (1..=3).map(|nth| vec![fails(1, last), fails(2, nth)]);
    for faults in again.chain([vec![fails(1, last)]]) {
        let run = story("first-delivery", "desk_nothing", faults);
        assert!(run.fired[0].is_some());
        let belief = run.belief().expect("read at the end");
        let ended = &belief.operations[0];
        assert_eq!(run.ledger.effects().len(), 1);
        assert!(ended.standing.is_terminal() || ended.waiting.is_owned(), "{ended:?}");
    }
}

/// Tasks that have not ended keep themselves alive unless their node is killed at the end of the run.
#[test]
fn memory_does_not_grow_with_runs() {
    let rss = || -> u64 {
        let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
        statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("pages")
    };
    let run = |seed| {
        let catalogue = scenarios::catalogue();
        let scenario = &catalogue.scenarios[0];
        let contract = scenario.contracts()[0].clone();
        let plan = sim::draft::draft(&**scenario, &contract, Seed(seed), None, None).expect("a plan");
        sim::world::run_plan(&**scenario, &plan, &Options::default())
    };
    (0..300).for_each(|seed| drop(run(seed)));
    let before = rss();
    (300..1_500).for_each(|seed| drop(run(seed)));
    let grown_kib = rss().saturating_sub(before) * 4;
    assert!(grown_kib < 24 * 1024, "1,200 runs left {grown_kib} KiB");
}

/// When a node is killed the simulator closes its connections at once: the dead must not be seen to hang up.
#[test]
fn the_dead_do_not_speak() {
    let kill =
        Fault { at: Place::Phase { exchange: create(1), phase: Phase::Sent }, what: What::Kill(60_000) };
    let run = story("first-delivery", "zendesk_ticket", vec![kill]);
    let died = run.history.events().iter().find(|e| e.kind == Kind::Killed).expect("it was killed");
    let woke =
        run.history.events().iter().find(|e| matches!(e.kind, Kind::Started { boot: 2 })).expect("restart");
    let between = |event: &Event| (died.step..woke.step).contains(&event.step) && event.node == "workflow";
    let words: Vec<String> =
        run.history.events().iter().filter(|e| between(e)).map(|e| e.kind.to_string()).collect();
    assert_eq!(words, ["killed"]);
}

/// What was not synced can be lost, and is lost with the right fault: the disk underneath loses nothing by
/// itself.
#[test]
fn a_power_cut_takes_what_no_sync_has_covered() {
    let cut = |keep| Fault {
        // The sync of the delivery: the log's header and the opening are the first two.
        at: Place::Sync { boot: 1, nth: 3, when: When::Before },
        what: What::PowerCut { down: 1_000, keep },
    };
    let known_after = |keep| {
        let run = story("first-delivery", "zendesk_ticket", vec![cut(keep)]);
        let crash = run.beliefs.iter().find(|at| at.moment == sim::run::Moment::Crash).expect("it crashed");
        crash.belief.operations.len()
    };
    assert_eq!(known_after(Keep::Nothing), 0);
    assert_eq!(known_after(Keep::Everything), 1);
}

/// Packet loss and clogging only delay the simulated TCP: outcomes are made at the exchange, each as it says.
#[test]
fn each_outcome_does_what_it_says() {
    let outcomes: [(What, usize, bool); 10] = [
        (What::Refuse, 1, false),
        (What::LoseRequest(Loss::Silence), 1, false),
        (What::NotApplied(Some(502)), 1, true),
        (What::NotApplied(None), 1, false),
        (What::LoseResponse(Loss::Reset), 1, false),
        (What::LoseResponse(Loss::Truncated), 1, false),
        (What::ApplyLate(20_000), 1, false),
        (What::ErrorAfter(504), 1, true),
        (What::AnswerSlowly(2_000), 1, true),
        (What::Hang { applied: true }, 1, false),
    ];
    for (what, records, answered) in outcomes {
        let run = story(
            "first-delivery",
            "desk_unique_ref",
            vec![Fault { at: Place::Exchange(create(1)), what: what.clone() }],
        );
        assert_eq!(run.ledger.effects().len(), records, "{what}");
        assert!(run.fired[0].is_some(), "{what} did not strike");
        let heard =
            |event: &Event| matches!(&event.kind, Kind::Received { exchange, .. } if *exchange == create(1));
        assert_eq!(count(&run, heard), usize::from(answered), "{what}");
        let sent =
            |event: &Event| matches!(&event.kind, Kind::Sent { exchange, .. } if *exchange == create(1));
        assert_eq!(count(&run, sent), usize::from(what != What::Refuse), "{what}");
    }
}

/// A pause stops the process and nothing else; afterwards it goes on where it was.
#[test]
fn a_pause_stops_the_process_alone() {
    let pause =
        Fault { at: Place::Phase { exchange: create(1), phase: Phase::Applied }, what: What::Pause(8_000) };
    let run = story("first-delivery", "zendesk_ticket", vec![pause]);
    let at = |wanted: &dyn Fn(&Kind) -> bool| {
        run.history
            .events()
            .iter()
            .find(|event| wanted(&event.kind))
            .map(|event| event.t_ns.millis())
            .expect("it happened")
    };
    let (paused, resumed) = (at(&|k| *k == Kind::Paused), at(&|k| *k == Kind::Resumed));
    assert!((7_990..8_100).contains(&(resumed - paused)));
    let answered = at(&|k| matches!(k, Kind::Answered { exchange, .. } if *exchange == create(1)));
    let received = at(&|k| matches!(k, Kind::Received { exchange, .. } if *exchange == create(1)));
    assert!(answered < resumed && received >= resumed, "{answered} {received} {resumed}");
}
