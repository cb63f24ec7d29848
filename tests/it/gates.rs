//! The harness's own gates as a person runs them, on the real workflow: the canaries, the second process, the
//! kill matrix.

use crate::explored::{UNREPEATABLE, command, lines, said};

#[test]
fn check_notices_every_canary() {
    let done = command(&["check", "--format", "json"]).output().expect("the system starts this program");
    let printed = lines(&done.stdout);
    assert_eq!(done.status.code(), Some(0), "{printed:#?}{}", said(&done));
    let caught = |line: &&serde_json::Value| {
        line["check"].as_str().is_some_and(|check| check.starts_with("canary "))
            && line["says"].as_str().is_some_and(|says| says.ends_with(" was caught"))
    };
    assert_eq!(printed.iter().filter(caught).count(), 5, "{printed:#?}");
}

#[test]
fn a_second_process_runs_the_same() {
    let done =
        command(&["check", "--against-process", "100"]).output().expect("the system starts this program");
    let out = String::from_utf8_lossy(&done.stdout);
    assert_eq!(done.status.code(), Some(0), "{out}{}", said(&done));
    assert!(out.contains("OK second process    100 seeds run in two processes, equal"), "{out}");
}

/// Broken on purpose: the process's number reaches the run.
#[test]
fn what_differs_in_a_second_process_is_named_to_the_event() {
    let mut gate = command(&["check", "--against-process", "20", "--format", "json"]);
    let done = gate.env(UNREPEATABLE, "1").output().expect("the system starts this program");
    let printed = lines(&done.stdout);
    assert_eq!(done.status.code(), Some(5), "{printed:#?}{}", said(&done));
    let difference = printed.last().expect("it is said");
    assert_eq!(difference["kind"], "difference", "{printed:#?}");
    let case = difference["case"].as_str().expect("text");
    assert!(case.starts_with("one-ticket/") && case.ends_with("@0"), "the first of them: {case}");
    let (a, b) = (difference["a"].as_str().expect("text"), difference["b"].as_str().expect("text"));
    assert!(a.contains("\"kind\":\"sent\"") && b.contains("\"kind\":\"sent\"") && a != b, "{a}\n{b}");
}

#[test]
fn the_kill_matrix_of_two_mutants() {
    let hunt = ["mutants", "fresh-key-per-retry", "skip-fsync", "--starts", "2", "--strategy", "swarm"];
    let arguments = [&hunt[..], &["--budget", "1000", "--format", "json"]].concat();
    let done = command(&arguments).output().expect("the system starts this program");
    let printed = lines(&done.stdout);
    assert_eq!(done.status.code(), Some(0), "{printed:#?}{}", said(&done));
    let mutants: Vec<_> = printed.iter().filter(|line| line["kind"] == "mutant").collect();
    assert_eq!(mutants.len(), 2, "{printed:#?}");
    for mutant in mutants {
        assert_eq!(mutant["killed_by"], mutant["expected"], "{mutant}");
        assert!(mutant["faults_after_shrink"].as_u64().is_some_and(|n| n <= 3), "{mutant}");
        assert!(mutant["plans_to_kill"]["median"].as_u64().is_some_and(|n| n <= 1000), "{mutant}");
    }
    assert_eq!(printed.last().expect("a summary")["killed"], 2);
}
