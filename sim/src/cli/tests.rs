use super::*;
use crate::fixture::{MUTANT, catalogue, pipeline};
use clap::CommandFactory as _;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

mod kept;

/// What a command did.
struct Did {
    code: u8,
    out: String,
    err: String,
}

fn did_with(pipeline: Option<Pipeline>, place: &Place, line: &str) -> Did {
    let args = Args::try_parse_from(std::iter::once("cargo-sim").chain(line.split_whitespace())).unwrap();
    let (mut out, mut err) = (vec![], vec![]);
    let code = run(catalogue(), pipeline, &args, place, Terminals::default(), &mut out, &mut err);
    Did { code, out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap() }
}

fn did(line: &str) -> Did {
    did_with(Some(pipeline()), &Place::default(), line)
}

fn explored(folder: &Path, line: &str) -> Did {
    did(&format!("explore --strategy swarm --artifacts {} {line}", folder.display()))
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
}

fn folder(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("in-doubt-cli-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

#[test]
fn help_pages() {
    let mut shown = String::new();
    let mut command = Args::command().term_width(100);
    command.build();
    shown += &format!("{}\n", command.render_long_help());
    for sub in command.get_subcommands_mut() {
        shown +=
            &format!("======== {}\n{}\n", sub.get_name(), sub.clone().term_width(100).render_long_help());
    }
    insta::assert_snapshot!("help", shown);
}

#[test]
fn alone_it_explains_itself_even_where_it_cannot_simulate() {
    let said = did_with(None, &Place::default(), "");
    assert_eq!(said.code, exit::HELD);
    insta::assert_snapshot!("alone", said.out);
}

#[test]
fn a_build_that_cannot_simulate_refuses_every_command() {
    for line in ["explore", "replay a/b@1", "list", "mutants", "check", "bench"] {
        let refused = did_with(None, &Place::default(), line);
        assert_eq!((refused.code, refused.out.as_str()), (exit::HARNESS, ""));
        assert!(refused.err.starts_with("error: this program was built without "), "{}", refused.err);
    }
}

#[test]
fn errors_name_the_place_and_the_nearest_name() {
    let mut shown = String::new();
    for line in [
        "explore one-tiket",
        "explore quite-different",
        "explore one-ticket/zendesk",
        "explore --mutant fresh-key",
        "explore --faults lose-responce",
        "explore --seeds 3,x",
        "explore --seeds 5..5",
        "explore --strategy swarm --seeds 0..2 --shard 3/3",
        "replay one-ticket",
        "replay one-ticket/zendesk_ticket@0 --without-fault 9",
        "replay one-ticket/zendesk_ticket@0 --mutant nonsense",
        "list nothing",
        "mutants fresh-key",
        "mutants --strategy swam",
        "bench --variants no-stor",
    ] {
        let failed = did(line);
        assert_eq!(failed.out, "", "{line}");
        shown += &format!("$ cargo sim {line}\n{}exit {}\n\n", failed.err, failed.code);
    }
    insta::assert_snapshot!("errors", shown);
}

#[test]
fn explore_prints_only_json_on_stdout() {
    let folder = folder("json");
    let held = explored(&folder, "--seeds 0..1000 --format json");
    let printed = lines(&held.out);
    let summary = printed.last().unwrap();
    assert_eq!(summary["kind"], "summary");
    assert_eq!((held.code, &summary["exit"]), (exit::HELD, &Value::from(0)));
    assert_eq!((&summary["runs"], &summary["held"]), (&Value::from(1_000), &Value::from(1_000)));
    assert_eq!(summary["determinism"]["differing"], 0);
    let kinds = printed[..printed.len() - 1].iter().map(|line| line["kind"].as_str().unwrap());
    assert_eq!(kinds.collect::<BTreeSet<_>>(), BTreeSet::from(["excluded", "never", "result"]));
    assert!(held.err.contains("First ") && held.err.contains("Explore 1,000/1,000 (100 %)"), "{}", held.err);
    assert!(!held.out.contains('\u{1b}') && !held.err.contains('\u{1b}'));
    assert!(!folder.exists(), "no failure, no files");
    assert_eq!(explored(&folder, "--seeds 0..200 --format json --strict").code, exit::GAP);
}

#[test]
fn a_replay_line_gives_the_same_failure_byte_for_byte() {
    let folder = folder("replay");
    let found = explored(&folder, &format!("--seeds 0..200 --mutant {MUTANT} --format json"));
    assert_eq!(found.code, exit::VIOLATED);
    let failure = lines(&found.out).remove(0);
    assert_eq!((&failure["kind"], &failure["invariant"]), (&Value::from("failure"), &Value::from("V7")));
    let command = failure["replay"].as_str().unwrap().strip_prefix("cargo sim ").unwrap();
    let replayed = did(&format!("{command} --format json"));
    assert_eq!(replayed.code, exit::VIOLATED);
    let (history, verdict) = replayed.out.trim_end().rsplit_once('\n').unwrap();
    let verdict: Value = serde_json::from_str(verdict).unwrap();
    assert_eq!(verdict["fingerprint"], failure["fingerprint"]);
    assert_eq!(verdict["history_hash"], failure["history_hash"]);
    let files = Path::new(failure["artifacts"].as_str().unwrap());
    assert_eq!(std::fs::read_to_string(files.join("history.jsonl")).unwrap(), format!("{history}\n"));
    let story = std::fs::read_to_string(files.join("story.txt")).unwrap();
    assert!(story.lines().all(|line| line.chars().count() <= 80 || line.starts_with("  replay  ")));
    assert_eq!(story.matches("cargo sim replay").count(), 1);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn replay_tells_a_run_in_full() {
    let told = did(&format!("replay one-ticket/zendesk_ticket@0 --mutant {MUTANT} --verbose"));
    assert_eq!((told.code, told.err.as_str()), (exit::VIOLATED, ""));
    insta::assert_snapshot!("replay", told.out);
    let held = did("replay one-ticket/zendesk_ticket@0 --once");
    assert_eq!(held.code, exit::HELD);
    assert!(held.out.starts_with("        HELD one-ticket/zendesk_ticket@0\n"), "{}", held.out);
    let without = did(&format!("replay one-ticket/zendesk_ticket@0 --mutant {MUTANT} --without-fault 2"));
    assert_eq!(without.code, exit::HELD, "both faults are needed");
}

#[test]
fn ascii_is_ascii_and_colour_is_only_asked_for() {
    let line = format!("replay one-ticket/zendesk_ticket@0 --mutant {MUTANT} --ascii");
    assert!(did(&line).out.is_ascii());
    let colored = did(&format!("{line} --color always"));
    assert!(colored.out.contains("\u{1b}[1;31m"));
    let place = Place { wants_ascii: true, ..Place::default() };
    let line = format!("replay one-ticket/zendesk_ticket@0 --mutant {MUTANT}");
    assert!(did_with(Some(pipeline()), &place, &line).out.is_ascii());
}

#[test]
fn github_gets_groups_and_one_annotation_a_fingerprint() {
    let folder = folder("github");
    let place = Place { is_github: true, ..Place::default() };
    let line =
        format!("explore --strategy swarm --seeds 0..100 --mutant {MUTANT} --artifacts {}", folder.display());
    let found = did_with(Some(pipeline()), &place, &line);
    assert_eq!(found.out.matches("::group::").count(), 1);
    assert_eq!(found.out.matches("::endgroup::").count(), 1);
    assert_eq!(found.out.matches("::error ").count(), 1);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn list_tells_what_there_is() {
    insta::assert_snapshot!("list", did("list").out);
    insta::assert_snapshot!("list_one", did("list one-ticket").out);
    insta::assert_snapshot!("list_json", did("list --format json").out);
}

#[test]
fn a_canary_that_nobody_notices_is_a_failure() {
    let (unnoticed, _, _) = with_context(Format::Text, |cx| canaries::tests::unnoticed(cx));
    assert!(unnoticed.iter().all(|(code, _)| *code == exit::UNEXPECTED), "{unnoticed:?}");
    let says: Vec<&str> = unnoticed.iter().map(|(_, says)| says.as_str()).collect();
    insta::assert_snapshot!("canaries_unnoticed", says.join("\n"));
}

/// Does something with a context of the fixture: what that gives, and what it printed.
fn with_context<T>(format: Format, work: impl FnOnce(&mut Context<'_>) -> T) -> (T, String, String) {
    let (mut out, mut err) = (vec![], vec![]);
    let plain = Style { color: false, ascii: false };
    let mut cx = Context {
        catalogue: Arc::new(catalogue()),
        pipeline: pipeline(),
        format,
        out_style: plain,
        err_style: plain,
        err_is_terminal: false,
        start: None,
        out: &mut out,
        err: &mut err,
        out_error: None,
    };
    let done = work(&mut cx);
    (done, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

/// The gate with a second process that runs this pipeline.
fn gate(format: Format, other: Pipeline) -> Did {
    let other_process = move |args: &[&str]| -> Result<Box<dyn std::io::BufRead>, String> {
        let there = did_with(Some(other), &Place::default(), &args.join(" "));
        Ok(Box::new(std::io::Cursor::new(there.out)))
    };
    let (code, out, err) = with_context(format, |cx| {
        let code = twin::against(cx, 40, &other_process);
        code.unwrap_or_else(|error| {
            complain(cx.err, cx.err_style, &error);
            error.code
        })
    });
    Did { code, out, err }
}

#[test]
fn two_processes_are_compared_to_the_event() {
    let equal = gate(Format::Text, pipeline());
    assert_eq!((equal.code, equal.err.as_str()), (exit::HELD, ""));
    // The other process has one event more in every run with a restart, as a leak of its own would make it.
    let leaking = Pipeline {
        run: |scenario, plan, options| {
            let mut run = (pipeline().run)(scenario, plan, options);
            let last = run.history.events().last().map_or(crate::history::Nanos(0), |event| event.t_ns);
            if run.history.events().iter().any(|event| event.kind == crate::history::Kind::Killed) {
                run.history.add(last, "world", crate::history::Kind::Quiet, None);
            }
            run
        },
        ..pipeline()
    };
    let differs = gate(Format::Text, leaking);
    assert_eq!(differs.code, exit::DIFFERS, "{}{}", differs.out, differs.err);
    insta::assert_snapshot!("second_process", format!("{}----\n{}", equal.out, differs.out));
    let told = lines(&gate(Format::Json, leaking).out);
    assert_eq!((&told[1]["kind"], told[1]["b"] != told[1]["a"]), (&"difference".into(), true));
    let silent = Pipeline { run: |_, _, _| panic!("the other world fell over"), ..pipeline() };
    let broken = gate(Format::Text, silent);
    assert_eq!(broken.code, exit::HARNESS);
    assert!(broken.err.contains("the second process said less than it must"), "{}", broken.err);
}

#[test]
fn the_moment_of_no_return_is_told() {
    let case = format!("replay one-ticket/zendesk_ticket@0 --mutant {MUTANT}");
    let told = did(&format!("{case} --likelihood"));
    assert_eq!((told.code, told.err.as_str()), (exit::VIOLATED, ""));
    insta::assert_snapshot!("replay_likelihood", told.out);
    let json = lines(&did(&format!("{case} --likelihood=7 --format json")).out);
    assert_eq!((&json[0]["kind"], &json[0]["runs"]), (&"likelihood".into(), &7.into()));
    assert_eq!(did("replay one-ticket/zendesk_ticket@0 --likelihood").code, exit::USAGE);
}

#[test]
fn check_passes_and_says_what_fails() {
    let checked = did("check");
    assert_eq!(checked.code, exit::HELD, "{}{}", checked.out, checked.err);
    insta::assert_snapshot!("check", checked.out);
    let broken = Pipeline { run: |_, _, _| panic!("the world fell over"), ..pipeline() };
    let failed = did_with(Some(broken), &Place::default(), "check");
    assert_eq!(failed.code, exit::HARNESS);
    assert!(failed.out.contains("the world fell over"), "{}", failed.out);
}

/// The time that it took is another each time.
fn timeless(text: &str) -> String {
    let without = text.lines().map(|line| match line.split_once("[ ") {
        Some((before, after)) if line.contains("Summary") => {
            format!("{before}[TIME{}", &after[after.find(']').unwrap_or(0)..])
        }
        _ => line.to_owned(),
    });
    without.collect::<Vec<_>>().join("\n")
}

#[test]
fn mutants_prints_the_kill_matrix() {
    let hunted = did("mutants --starts 3 --budget 50 --strategy swarm --show-progress counter");
    assert_eq!(hunted.code, exit::HELD, "{}{}", hunted.out, hunted.err);
    assert!(hunted.err.contains("        Hunt 3/3 (100 %)"), "{}", hunted.err);
    insta::assert_snapshot!("mutants", timeless(&hunted.out));
    let printed = lines(&did(&format!("mutants {MUTANT} --starts 3 --strategy swarm --format json")).out);
    assert_eq!(printed.len(), 2);
    assert_eq!((&printed[0]["kind"], &printed[0]["killed_by"]), (&"mutant".into(), &"V7".into()));
    assert_eq!((&printed[0]["kills"], &printed[0]["faults_after_shrink"]), (&3.into(), &2.into()));
    assert_eq!((&printed[1]["killed"], &printed[1]["exit"]), (&1.into(), &0.into()));
}

#[test]
fn any_number_of_threads_hunts_the_same() {
    let one = did("mutants --starts 7 --strategy swarm --jobs 1");
    let four = did("mutants --starts 7 --strategy swarm --jobs 4");
    assert_eq!(timeless(&one.out), timeless(&four.out));
}

#[test]
fn a_mutant_that_nobody_kills_is_a_failure() {
    let blind = Pipeline {
        judge: |run, scenario| {
            let judged = (pipeline().judge)(run, scenario);
            crate::verdict::Judgement {
                verdict: crate::verdict::Verdict::Held,
                fingerprints: vec![],
                ..judged
            }
        },
        ..pipeline()
    };
    let line = "mutants --starts 2 --budget 30 --strategy swarm";
    let hunted = did_with(Some(blind), &Place::default(), line);
    assert_eq!(hunted.code, exit::VIOLATED, "{}{}", hunted.out, hunted.err);
    insta::assert_snapshot!("mutants_survived", timeless(&hunted.out));
    let broken = Pipeline { run: |_, _, _| panic!("the world fell over"), ..pipeline() };
    let failed = did_with(Some(broken), &Place::default(), line);
    assert_eq!(failed.code, exit::HARNESS);
    assert!(failed.err.contains("the world fell over") && failed.out.contains("  -  "), "{}", failed.err);
}

#[test]
fn bench_measures() {
    let measured = did("bench --time 1ms --requests 1,100 --format json");
    let printed = lines(&measured.out);
    assert_eq!((measured.code, printed.len()), (exit::HELD, 3));
    assert_eq!((&printed[1]["kind"], &printed[1]["requests"]), (&Value::from("bench"), &Value::from(100)));
    assert!(did("bench --time 1ms --requests 1").out.contains("runs/CPU s"));
}

#[test]
fn the_worst_code_wins() {
    assert_eq!(exit::worst(&[]), exit::HELD);
    assert_eq!(exit::worst(&[exit::UNDECIDED, exit::VIOLATED]), exit::VIOLATED);
    assert_eq!(exit::worst(&[exit::VIOLATED, exit::HARNESS, exit::DIFFERS]), exit::DIFFERS);
    assert_eq!(exit::worst(&[exit::NOTHING, exit::GAP, exit::UNDECIDED]), exit::GAP);
    assert_eq!(exit::worst(&[exit::USAGE]), exit::USAGE, "a plan that nobody could survive");
}

#[test]
fn the_arguments_are_consistent() {
    Args::command().debug_assert();
}
