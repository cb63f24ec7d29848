//! Repeatability from outside: two processes, the same seeds, the same bytes.

use sim::explore::{Chosen, Request, explore};
use sim::invariants::judge;
use sim::pipeline::Pipeline;
use sim::report::{Explored, json};
use sim::run::Options;
use sim::seed::Seed;
use sim::seeds::Seeds;
use sim::world::run_plan;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Set in the processes that this test starts: the number of threads to explore with.
const JOBS: &str = "INDOUBT_TEST_JOBS";
/// Begins each line that such a process says.
const MARK: &str = "child: ";

/// In a process of its own, says everything that must repeat; in an ordinary run of the tests, nothing.
#[test]
fn child() {
    #[expect(clippy::disallowed_methods, reason = "how this program talks to itself in another process")]
    let Ok(jobs) = std::env::var(JOBS) else { return };
    let jobs = jobs.parse().expect("a number of threads");
    println!();
    for mutant in [None, Some("fresh-key-per-retry")] {
        println!("{MARK}{}", explored(jobs, mutant));
    }
    histories().into_iter().for_each(|line| println!("{MARK}{line}"));
}

/// The summary of an exploration, without what it took.
fn explored(jobs: usize, mutant: Option<&str>) -> String {
    let catalogue = Arc::new(scenarios::catalogue());
    let seeds = Seeds::range(0..150);
    let name = mutant.map(str::to_owned);
    let chosen = Chosen::every(&catalogue, None);
    let request = Request { jobs, mutant: name, ..Request::of(chosen, seeds) };
    let pipeline = Pipeline::real().expect("this build can simulate");
    let interrupted = AtomicBool::new(false);
    let done = explore(&catalogue, pipeline, request.clone(), &interrupted, &mut |_| {});
    assert_eq!((done.runs, done.harness), (150, 0), "{:?}", done.harness_examples);
    assert_eq!(mutant.is_some(), done.violated > 0, "a mistake is found, and only a mistake");
    json::summary(&Explored {
        request: &request,
        done: &done,
        certificates: &[],
        commit: None,
        wall_s: 0.0,
        cpu_s: None,
        peak_rss_bytes: None,
        exit: 0,
        tells_never: mutant.is_none(),
        is_whole: true,
    })
}

/// Whole histories, an event a line.
fn histories() -> Vec<String> {
    let catalogue = scenarios::catalogue();
    let mut lines = vec![];
    for scenario in &catalogue.scenarios {
        let contract = &scenario.contracts()[0];
        let plan = sim::draft::draft(&**scenario, contract, Seed(760), None, None).expect("a plan");
        let run = run_plan(&**scenario, &plan, &Options::default());
        lines.extend(run.history.events().iter().map(json::line));
        lines.push(format!(
            "{} {:016x} {:?}",
            plan.case,
            run.history.hash(),
            judge(&run, &**scenario).verdict
        ));
    }
    lines
}

fn said_by_a_process(jobs: &str) -> Vec<String> {
    let program = std::env::current_exe().expect("the system names this program");
    let told = Command::new(program)
        .args(["--exact", "cross::child", "--nocapture", "--test-threads", "1"])
        .env(JOBS, jobs)
        .output()
        .expect("the system starts this program again");
    let text = String::from_utf8(told.stdout).expect("text");
    assert!(told.status.success(), "{text}\n{}", String::from_utf8_lossy(&told.stderr));
    text.lines().filter_map(|line| line.strip_prefix(MARK)).map(str::to_owned).collect()
}

#[test]
fn two_processes_say_the_same_whatever_the_number_of_threads() {
    let one = said_by_a_process("1");
    assert!(one.len() > 200, "{} lines", one.len());
    for jobs in ["1", "2"] {
        let other = said_by_a_process(jobs);
        let differs = one.iter().zip(&other).find(|(one, other)| one != other);
        assert_eq!(differs, None, "with {jobs} threads");
        assert_eq!(one.len(), other.len());
    }
    // What this process says after other tests have run in it is the same again.
    assert_eq!(explored(2, None), one[0]);
}
