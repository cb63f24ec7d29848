//! `explore` as a person runs it, in a process of its own: broken off, and with a run that does not repeat.

use scenarios::access::{Access, Draw};
use scenarios::stories::one_ticket;
use sim::catalogue::Catalogue;
use sim::plan::Workload;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// Set in the processes that this test starts: the arguments of the command line, a line each.
const ARGUMENTS: &str = "INDOUBT_TEST_ARGUMENTS";
/// Set beside it where the scenario takes a value from outside the seed.
pub(crate) const UNREPEATABLE: &str = "INDOUBT_TEST_UNREPEATABLE";
const MUTANT: &str = "fresh-key-per-retry";

#[expect(clippy::disallowed_methods, reason = "how this program talks to itself in another process")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// In a process of its own, the whole command line; in an ordinary run of the tests, nothing.
#[test]
fn child() {
    let Some(arguments) = variable(ARGUMENTS) else { return };
    let arguments = arguments.lines().map(OsString::from);
    let mut catalogue = scenarios::catalogue();
    catalogue.cases = None;
    if variable(UNREPEATABLE).is_some() {
        let broken = Access { workload: of_this_process, ..one_ticket::SCENARIO };
        catalogue = Catalogue { scenarios: vec![Box::new(broken)], ..catalogue };
    }
    let arguments = std::iter::once("cargo-sim".into()).chain(arguments);
    // The test program has begun a line with the name of this test: what is said is on lines of its own.
    println!();
    let code = sim::cli::main_as(catalogue, arguments, |arguments| Ok(command(arguments)));
    std::process::exit(code.into());
}

/// A workload with a value that no seed draws: the process's number is the same for both runs in it, so that
/// only another process shows the difference.
fn of_this_process(draw: &Draw<'_>) -> Workload {
    let mut workload = (one_ticket::SCENARIO.workload)(draw);
    for delivery in &mut workload.deliveries {
        let mut body: serde_json::Value = serde_json::from_slice(&delivery.body).expect("a delivery is JSON");
        let title = format!("{} for process {}", body["request"]["title"], std::process::id());
        body["request"]["title"] = title.replace('"', "").into();
        delivery.body = body.to_string().into_bytes();
    }
    workload
}

/// Starts this test program as the command line.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the system names this program"));
    command
        .args(["--exact", "explored::child", "--nocapture", "--test-threads", "1"])
        .env(ARGUMENTS, arguments.join("\n"));
    command
}

/// A new folder for artifacts, removed at the end.
struct Here(tempfile::TempDir);

impl Here {
    fn new() -> Self {
        Here(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("artifacts")
    }

    fn explore(&self, arguments: &[&str]) -> Command {
        let path = self.path();
        let folder = path.to_str().expect("text");
        command(
            &[&["explore", "--strategy", "swarm", "--artifacts", folder, "--mutant", MUTANT][..], arguments]
                .concat(),
        )
    }

    fn pending(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.path().join("pending")) else { return vec![] };
        entries.map(|entry| entry.expect("an entry").path()).collect()
    }
}

/// What a process printed that is JSON: the rest is said by the test program around it.
pub(crate) fn lines(printed: &[u8]) -> Vec<serde_json::Value> {
    let text = String::from_utf8_lossy(printed);
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_failure_is_repeated_by_a_fresh_process_byte_for_byte() {
    let here = Here::new();
    let done = here.explore(&["one-ticket", "--seeds", "0..200", "--format", "json"]).output();
    let done = done.expect("the system starts this program");
    assert_eq!(done.status.code(), Some(1), "{}", said(&done));
    let printed = lines(&done.stdout);
    let failure = printed.iter().find(|line| line["kind"] == "failure").expect("the mistake is found");
    assert!(failure["shrunk"]["faults"][1].as_u64().is_some_and(|n| n <= 2), "{failure}");
    assert!(failure["shrunk"]["operations"][1].as_u64().is_some_and(|n| n <= 2), "{failure}");
    assert!(failure["shrunk"]["seconds"].as_f64().is_some_and(|s| s < 10.0), "{failure}");
    let replay = failure["replay"].as_str().expect("text");
    let arguments = replay.strip_prefix("cargo sim ").expect("a command").split(' ');
    let arguments: Vec<&str> = arguments.chain(["--format", "json"]).collect();
    let replayed = command(&arguments).output().expect("the system starts this program");
    let told = lines(&replayed.stdout);
    let verdict = told.last().expect("a verdict");
    assert_eq!(
        (&verdict["fingerprint"], &verdict["history_hash"]),
        (&failure["fingerprint"], &failure["history_hash"])
    );
    let history = Path::new(failure["artifacts"].as_str().expect("text")).join("history.jsonl");
    let history = std::fs::read_to_string(history).expect("it was written");
    assert!(String::from_utf8_lossy(&replayed.stdout).contains(&history), "each event to the byte");
}

#[test]
fn what_only_another_process_shows_is_not_deterministic() {
    let here = Here::new();
    let done = here.explore(&["--seeds", "0..200"]).env(UNREPEATABLE, "1").output();
    let done = done.expect("the system starts this program");
    let out = String::from_utf8_lossy(&done.stdout);
    assert_eq!(done.status.code(), Some(5), "{out}{}", said(&done));
    let differ = out.lines().find(|line| line.contains("DIFFER")).expect("it is said");
    assert!(differ.contains("two runs of one-ticket/") && differ.contains(" differ at step "), "{differ}");
    assert!(out.contains("Usual causes: a random id,"), "{out}");
    assert!(out.contains("run twice, "), "the summary says how many were compared: {out}");
}

/// Waits for a line on standard error; the rest of it is read in the background of the process's end.
fn wait_for(child: &mut Child, word: &str) -> (String, BufReader<std::process::ChildStderr>) {
    let mut err = BufReader::new(child.stderr.take().expect("it is piped"));
    let mut said = String::new();
    while !said.lines().last().unwrap_or("").contains(word) {
        let read = err.read_line(&mut said).expect("it can be read");
        assert!(read > 0, "it ended before it said {word}: {said}");
    }
    (said, err)
}

#[test]
fn an_interruption_loses_no_failure_that_was_found() {
    for signal in ["INT", "TERM"] {
        let here = Here::new();
        let endless = ["--seeds", "0..1000000000", "--keep-going", "--jobs", "1", "--format", "json"];
        let mut child = here
            .explore(&endless)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the system starts this program");
        let (mut said, mut err) = wait_for(&mut child, "VIOLATED");
        // It is written down the moment it is found.
        assert!(!here.pending().is_empty(), "{said}");
        // Twice at once, as `timeout` does: somebody who is impatient takes longer.
        let id = child.id().to_string();
        let killed = Command::new("kill").args([&format!("-{signal}"), &id, &id]).status();
        assert!(killed.expect("there is a kill").success());
        err.read_to_string(&mut said).expect("text");
        let done = child.wait_with_output().expect("it ends");
        assert_eq!(done.status.code(), Some(1), "SIG{signal}: {said}");
        let printed = lines(&done.stdout);
        let summary = printed.last().expect("a summary");
        assert_eq!((&summary["kind"], &summary["interrupted"]), (&"summary".into(), &true.into()));
        let ran = summary["runs"].as_u64().expect("a number");
        assert!(ran > 0 && summary["held"].as_u64() < Some(ran), "{summary}");
        let failures: Vec<_> = printed.iter().filter(|line| line["kind"] == "failure").collect();
        assert_eq!(failures.len() as u64, summary["failures"].as_u64().expect("a number"));
        for failure in failures {
            let file = Path::new(failure["file"].as_str().expect("it was written"));
            let read = std::fs::read_to_string(file).expect("it is there");
            assert!(read.contains(failure["fingerprint"].as_str().expect("text")), "{read}");
        }
    }
}
