//! Failures that are kept: pending and committed cases, and what the commands around them do.

use super::*;
use crate::case::read;
use crate::confirm::{Start, Testimony};
use crate::replay::{Question, replay};
use crate::watch::Watch;
use std::fs;
use std::path::PathBuf;
use std::process;

/// A failure that the fixture's mistake has, in two faults.
const CASE: &str = r#"# R17 asked for one ticket and the desk holds two.
schema   = "in-doubt/case/1"
scenario = "one-ticket"
contract = "zendesk_ticket"
seed     = 4
mutant   = "fresh-key-per-retry"
expect   = "held"
found    = "stable-identity/helpdesk/9c1e"

[[fault]]
at   = { exchange = { call = "create", about = "R17:create-ticket:v1", nth = 1 } }
what = { lose-response = "silence" }

[[fault]]
at   = { sync = { boot = 1, nth = 2, when = "after" } }
what = { kill = 100 }
"#;

/// Folders of committed cases and of artifacts, removed at the end.
struct Here(PathBuf);

impl Here {
    fn new(name: &str) -> Self {
        let here = Here(folder(name));
        fs::create_dir_all(here.cases()).unwrap();
        here
    }

    fn cases(&self) -> PathBuf {
        self.0.join("cases")
    }

    fn pending(&self) -> PathBuf {
        self.0.join("artifacts/pending")
    }

    fn commit(&self, name: &str, text: &str) -> PathBuf {
        let path = self.cases().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn did(&self, line: &str) -> Did {
        self.did_with(None, line)
    }

    fn did_with(&self, start: Option<Start>, line: &str) -> Did {
        let (cases, artifacts) = (self.cases(), self.0.join("artifacts"));
        let line = format!("{line} --cases {} --artifacts {}", cases.display(), artifacts.display());
        super::did_with(Some(pipeline()), &Place { start, ..Place::default() }, &line)
    }

    /// What is shown, without where this test put it.
    fn plain(&self, text: &str) -> String {
        let mut plain = String::new();
        for line in text.replace(&self.0.display().to_string(), "HERE").lines() {
            // Wall-clock time stands at the end of a line in brackets.
            plain += line.split(" [").next().unwrap().trim_end();
            plain.push('\n');
        }
        plain
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn files(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return vec![] };
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// What another process of this program would say.
fn elsewhere(arguments: &[&str]) -> Result<process::Command, String> {
    testify(arguments, true)
}

/// What a process would say to which another value came.
fn otherwise(arguments: &[&str]) -> Result<process::Command, String> {
    testify(arguments, false)
}

/// A process that says what `again` would say.
fn testify(arguments: &[&str], mistaken: bool) -> Result<process::Command, String> {
    let ["again", file, "--steps-max", steps_max] = arguments else { return Err(format!("{arguments:?}")) };
    let (file, steps_max) = (Path::new(file), steps_max.parse().map_err(|_| "no number".to_owned())?);
    let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
    let kept = read("case.toml", &text, &catalogue()).map_err(|error| error.to_string())?;
    let mutant = kept.recipe.mutant.clone().filter(|_| mistaken);
    let mut recipe = kept.recipe;
    recipe.mutant = mutant.clone();
    let written = crate::replay::Written { recipe: recipe.clone(), path: String::new() };
    let question =
        Question { mutant, steps_max, written: Some(written), ..Question::about(recipe.case.clone()) };
    let known = catalogue();
    let scenario = &**known.scenarios.iter().find(|one| one.name() == recipe.case.scenario).unwrap();
    let contract = scenario.contracts().into_iter().find(|one| one.id == recipe.case.contract).unwrap();
    let answer = replay(pipeline(), scenario, &contract, &question, &Watch::default());
    let answer = answer.map_err(|error| error.to_string())?;
    let said = file.with_extension("said");
    let lines = Testimony::of(&answer.ran, answer.fingerprint()).lines().join("\n");
    fs::write(&said, lines).map_err(|error| error.to_string())?;
    let mut command = process::Command::new("cat");
    command.arg(said);
    Ok(command)
}

#[test]
fn committed_cases_run_first_and_each_says_what_came_of_it() {
    let here = Here::new("cases");
    let known = CASE.replace("\"held\"", "\"violated\"\nissue    = \"issue 17\"");
    here.commit("a-held.toml", &CASE.replace("mutant   = \"fresh-key-per-retry\"\n", ""));
    here.commit("b-known.toml", &known);
    let committed = here.did("explore --strategy swarm --seeds 0..3");
    assert_eq!(committed.code, exit::HELD, "{}{}", committed.out, committed.err);
    here.commit("c-failed.toml", CASE);
    let fixed = known.replace("mutant   = \"fresh-key-per-retry\"\n", "");
    here.commit("d-fixed.toml", &fixed);
    here.commit("e-other.toml", &known.replace("stable-identity/", "no-limbo/"));
    let late = "what = { kill = 100 }\n\n[[fault]]\nat = { connection = { nth = 7 } }\nwhat = \"refuse\"\n";
    let stale = CASE.replace("mutant   = \"fresh-key-per-retry\"\n", "");
    here.commit("f-stale.toml", &stale.replace("what = { kill = 100 }\n", late));
    let all = here.did("explore --strategy swarm --seeds 0..3");
    assert_eq!(all.code, exit::VIOLATED);
    let before_the_rest = all.out.split("        HELD ").next().unwrap();
    let cases = all.err.lines().find(|line| line.contains("committed case")).unwrap();
    insta::assert_snapshot!("cases", here.plain(&format!("{cases}\n{before_the_rest}")));
    let printed = lines(&here.did("explore --strategy swarm --seeds 0..3 --format json").out);
    let results: Vec<(&str, u64)> = (printed.iter().filter(|line| line["kind"] == "case"))
        .map(|line| (line["result"].as_str().unwrap(), line["exit"].as_u64().unwrap()))
        .collect();
    let expected = [("held", 0), ("known", 0), ("failed", 1), ("fixed", 6), ("failed", 1), ("stale", 0)];
    assert_eq!(results, expected);
}

#[test]
fn each_result_of_a_case_has_its_code() {
    let plain = CASE.replace("mutant   = \"fresh-key-per-retry\"\n", "");
    let fixed = plain.replace("\"held\"", "\"violated\"\nissue = \"17\"");
    let here = Here::new("codes");
    let path = here.commit("case.toml", &fixed);
    assert_eq!(here.did("explore --strategy swarm --seeds 0..3").code, exit::UNEXPECTED);
    let stale = format!("{plain}\n[[fault]]\nat = {{ connection = {{ nth = 7 }} }}\nwhat = \"refuse\"\n");
    fs::write(&path, stale).unwrap();
    assert_eq!(here.did("explore --strategy swarm --seeds 0..3").code, exit::HELD, "a warning");
    let strict = here.did("explore --strategy swarm --seeds 0..3 --strict --format json");
    let case = lines(&strict.out).remove(0);
    assert_eq!((strict.code, &case["exit"]), (exit::GAP, &Value::from(7)));
    assert!(case["never_struck"][0].as_str().unwrap().contains("connection"), "{case}");
    fs::write(&path, CASE).unwrap();
    assert_eq!(
        here.did("explore --strategy swarm --seeds 0..3 lost-ack").code,
        exit::HELD,
        "another scenario"
    );
    assert_eq!(
        here.did("explore --strategy swarm --seeds 0..3 --faults pause").code,
        exit::HELD,
        "other kinds"
    );
    fs::write(&path, CASE.replace("seed ", "sede ")).unwrap();
    let wrong = here.did("explore --strategy swarm --seeds 0..3");
    assert_eq!((wrong.code, wrong.out.as_str()), (exit::USAGE, ""));
    assert!(wrong.err.contains("case.toml: sede\n  line 5, column 1\n"), "{}", wrong.err);
}

#[test]
fn a_failure_is_pending_until_it_holds_three_times_or_is_kept() {
    let here = Here::new("pending");
    let found = here.did(&format!("explore --strategy swarm --seeds 0..50 --mutant {MUTANT} --format json"));
    let failure = lines(&found.out).into_iter().find(|line| line["kind"] == "failure").unwrap();
    let names = files(&here.pending());
    assert_eq!(names.len(), 1, "{names:?}");
    let file = here.pending().join(&names[0]);
    assert_eq!(failure["file"].as_str().unwrap(), file.display().to_string());
    assert_eq!(failure["shrunk"]["faults"], serde_json::json!([3, 2]));
    assert!(failure["shrunk"]["runs"].as_u64().unwrap() > 2 && failure["shrunk"]["seconds"].is_f64());
    // What a mistake has left is no failure of the workflow without it.
    let without = here.did("explore --strategy swarm --seeds 1..2");
    assert_eq!((without.code, without.err.contains("pending case")), (exit::HELD, false), "{}", without.out);
    // It runs first next time, with the mistake only.
    let again = here.did(&format!("explore --strategy swarm --seeds 1..2 --mutant {MUTANT}"));
    assert!(again.err.contains("1 pending case: 1 failed"), "{}", again.err);
    assert_eq!(again.code, exit::VIOLATED);
    assert!(again.out.contains(" still stable-identity/helpdesk/9c1e"), "{}", again.out);
    // Where it holds three times in a row it is forgotten.
    let text = fs::read_to_string(&file).unwrap().replace(&format!("mutant     = \"{MUTANT}\"\n"), "");
    let text = text.replace(&format!("mutant   = \"{MUTANT}\"\n"), "");
    assert!(!text.contains("mutant "), "{text}");
    fs::write(&file, &text).unwrap();
    for held in 1..=3 {
        assert!(file.exists());
        let ran = here.did("explore --strategy swarm --seeds 1..2");
        assert_eq!(ran.code, exit::HELD, "{}", ran.out);
        assert!(ran.out.contains(&format!("held {held} of 3 times in a row")), "{}", ran.out);
    }
    assert_eq!(files(&here.pending()), [""; 0]);
}

#[test]
fn a_replay_line_of_a_file_gives_the_same_run() {
    let here = Here::new("file");
    let path = here.commit("one.toml", CASE);
    for line in [path.display().to_string(), "one".into(), "one.toml".into()] {
        let told = here.did(&format!("replay {line}"));
        assert_eq!(told.code, exit::VIOLATED, "{}{}", told.out, told.err);
        assert!(told.out.contains("Both faults are needed"), "{}", told.out);
        assert!(
            told.out.ends_with(&format!("replay  cargo sim replay {}\n", path.display())),
            "{}",
            told.out
        );
    }
    let once = here.did("replay one --once --all-faults --format json");
    let twice = here.did("replay one --format json");
    let history = |out: &str| out.trim_end().rsplit_once('\n').map(|(history, _)| history.to_owned());
    assert_eq!(history(&once.out), history(&twice.out));
    assert_eq!(here.did("replay one --without-fault 2").code, exit::HELD);
}

#[test]
fn commands_around_cases() {
    let here = Here::new("commands");
    let mut shown = String::new();
    let mut say = |line: &str| {
        let did = here.did(line);
        shown += &format!("$ cargo sim {line}\n{}{}exit {}\n\n", did.out, did.err, did.code);
    };
    say(&format!("shrink one-ticket/zendesk_ticket@0 --mutant {MUTANT}"));
    say("shrink one-ticket/zendesk_ticket@0");
    say("keep one-ticket-fresh-key-per-retry-stable-identity-9c1e --as New_Key");
    say("keep one-ticket-fresh-key-per-retry-stable-identity-9c1e --as new-key");
    say("keep new-key");
    say("keep one-ticket/zendesk_ticket@1");
    say(&format!("keep one-ticket/zendesk_ticket@2 --mutant {MUTANT} --as new-key"));
    say(&format!("keep one-ticket/zendesk_ticket@2 --mutant {MUTANT} --as known --issue 17"));
    say("drop new-key");
    say("drop nothing");
    say("drop one-ticket/zendesk_ticket@2");
    say("show new-key");
    say("show one-ticket");
    say("replay new-kee");
    say("replay new-key --mutant other");
    say("replay new-key --faults kill");
    say(&format!("shrink {}", here.cases().join("known.toml").display()));
    say("drop one-ticket-fresh-key-per-retry-stable-identity-9c1e");
    insta::assert_snapshot!("commands", here.plain(&shown));
    assert_eq!(
        (files(&here.cases()), files(&here.pending())),
        (vec!["known.toml".into(), "new-key.toml".into()], vec![])
    );
    insta::assert_snapshot!("kept", fs::read_to_string(here.cases().join("known.toml")).unwrap());
}

#[test]
fn committed_cases_are_listed() {
    let here = Here::new("list");
    here.commit("known.toml", &CASE.replace("\"held\"", "\"violated\"\nissue    = \"issue 17\""));
    let mut shown = String::new();
    for line in ["list", "list --format json"] {
        let args = Args::try_parse_from(std::iter::once("cargo-sim").chain(line.split_whitespace())).unwrap();
        let (mut out, mut err) = (vec![], vec![]);
        let catalogue = Catalogue { cases: Some(here.cases()), ..catalogue() };
        let place = Place::default();
        let code = run(catalogue, Some(pipeline()), &args, &place, Terminals::default(), &mut out, &mut err);
        assert_eq!(code, exit::HELD);
        let out = String::from_utf8(out).unwrap();
        shown += out.lines().rev().find(|line| line.contains("known")).unwrap();
        shown.push('\n');
    }
    insta::assert_snapshot!("list", here.plain(&shown));
}

#[test]
fn a_finished_run_is_shown_from_its_files() {
    let here = Here::new("show");
    let found = here.did(&format!("explore --strategy swarm --seeds 0..50 --mutant {MUTANT}"));
    assert_eq!(found.code, exit::VIOLATED);
    let latest = here.0.join("artifacts/latest");
    let story = here.did(&format!("show {}", latest.display()));
    assert_eq!(story.code, exit::HELD, "{}", story.err);
    assert!(found.out.contains(story.out.trim_end()), "{}", story.out);
    let mut shown = String::new();
    for line in ["--ledger", "--step 13", "--step 99", "--ledger --format json"] {
        let did = here.did(&format!("show {} {line}", latest.display()));
        shown += &format!("$ cargo sim show latest {line}\n{}{}exit {}\n\n", did.out, did.err, did.code);
    }
    insta::assert_snapshot!("show", here.plain(&shown));
    let history = here.did(&format!("show {} --history --format json", latest.display()));
    let command = story.out.lines().find_map(|line| line.trim().strip_prefix("replay  cargo sim ")).unwrap();
    let replayed = here.did(&format!("{command} --format json"));
    assert!(replayed.out.starts_with(&history.out) && lines(&history.out).len() > 20);
    let case = command.split_whitespace().nth(1).unwrap();
    assert_eq!(here.did(&format!("show {case}")).out, story.out);
}

#[test]
fn a_failure_is_confirmed_by_a_fresh_process() {
    let here = Here::new("confirm");
    let line = format!("explore --strategy swarm --seeds 0..50 --mutant {MUTANT}");
    let same = here.did_with(Some(elsewhere), &line);
    assert_eq!(same.code, exit::VIOLATED, "{}{}", same.out, same.err);
    let differs = Here::new("differs").did_with(Some(otherwise), &line);
    assert_eq!(differs.code, exit::DIFFERS, "{}{}", differs.out, differs.err);
    assert!(!differs.out.contains(" cargo sim replay "), "what does not repeat is not told: {}", differs.out);
    let from = differs.out.lines().skip_while(|line| !line.contains("DIFFER")).take(5);
    insta::assert_snapshot!("differs", from.collect::<Vec<_>>().join("\n"));
    let none = here.did_with(Some(|_| Err("no process can be started: too many".into())), &line);
    assert_eq!(none.code, exit::HARNESS);
    assert!(none.err.contains("could not be run again in a fresh process: no process"), "{}", none.err);
}

#[test]
fn shrinking_is_a_choice() {
    let here = Here::new("choice");
    let line = format!("explore --strategy swarm --seeds 20..21 --mutant {MUTANT} --format json");
    let whole = lines(&here.did(&format!("{line} --no-shrink")).out).remove(0);
    assert_eq!(whole["shrunk"]["faults"], serde_json::json!([3, 3]));
    let command = whole["replay"].as_str().unwrap();
    assert!(command.ends_with("--all-faults"), "{command}");
    let replayed = here.did(command.strip_prefix("cargo sim ").unwrap());
    assert_eq!(replayed.code, exit::VIOLATED);
    // No time at all: what is written is what was found, and that file is what repeats it.
    fs::remove_dir_all(here.pending()).unwrap();
    let cut = lines(&here.did(&format!("{line} --shrink-time 0s")).out).remove(0);
    assert_eq!((cut["shrunk"]["ended"].as_str(), &cut["shrunk"]["runs"]), (Some("cut"), &Value::from(2)));
    let command = cut["replay"].as_str().unwrap().strip_prefix("cargo sim ").unwrap();
    assert!(command.starts_with("replay ") && command.ends_with(".toml"), "{command}");
    let replayed = here.did(&format!("{command} --format json"));
    let verdict = lines(&replayed.out).pop().unwrap();
    assert_eq!(verdict["fingerprint"], cut["fingerprint"]);
    assert_eq!(verdict["history_hash"], cut["history_hash"]);
}
