//! The runbook of a workflow, its gate, and `cargo workflow serve`: as people type them, on real files and
//! sockets.

use crate::client;
use crate::desk::{HelpDesk, Outcome};
use crate::process::{Place, delivery, request, text, wait_for};
use serde_json::{Value, json};
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use workflow::file::{FileError, WorkflowFile};
use workflow::runbook::{Results, Runbook, blockers};
use workflow::{Clock, Connect, Engine, Setup, StoreAt, cli};

const EXAMPLE: &str = include_str!("../../workflow/examples/access_request.toml");
const SCENARIOS: [&str; 6] = [
    "first-delivery",
    "repeated-delivery",
    "concurrent-delivery",
    "time-out-after-effect",
    "crash-between-steps",
    "permanent-validation-failure",
];

/// The example with another contract: a desk that offers nothing.
fn nothing() -> String {
    let (definition, _) = EXAMPLE.split_once("# Who finds out").expect("the example has decisions");
    let definition = definition.replace("zendesk_ticket", "desk_nothing").replace("\"replay\"", "\"owner\"");
    definition
        + "[decisions]\ndedup_key = \"integration-team\"\nlookup = \"integration-team\"\n\
           \"time.late_commit_bound\" = \"integration-team\"\n"
}

fn read(text: &str) -> Result<WorkflowFile, FileError> {
    WorkflowFile::from_toml("access.toml", text, &|name| {
        destinations::named(name).ok_or_else(|| format!("there is no contract `{name}`"))
    })
}

fn file(text: &str) -> WorkflowFile {
    read(text).unwrap_or_else(|why| panic!("{why}"))
}

/// One result as the simulator prints it, of this workflow.
fn result(file: &WorkflowFile, scenario: &str) -> Value {
    let definition = file.workflow.definition();
    let refused = scenario == "permanent-validation-failure";
    let (none, one) = if refused { (120, 0) } else { (0, 120) };
    json!({
        "kind": "result", "schema": "in-doubt/report/1", "scenario": scenario,
        "contract": definition.contract.id, "contract_digest": definition.contract.digest(),
        "workflow_digest": definition.digest(), "mutant": null,
        "runs": 120, "held": 120, "violated": 0, "undecided": 0, "invalid": 0, "harness_errors": 0,
        "operations": {"none": none, "one": one, "several": 0}, "cases": {"ref_missing": 3},
    })
}

fn summary() -> Value {
    json!({
        "kind": "summary", "schema": "in-doubt/report/1", "seeds": "0..2000", "commit": "4f1c2aa",
        "interrupted": false, "determinism": {"checked": 20, "differing": 0, "examples": []},
    })
}

/// The lines of an exploration in which all went well.
fn lines(file: &WorkflowFile) -> Vec<Value> {
    SCENARIOS.iter().map(|scenario| result(file, scenario)).chain([summary()]).collect()
}

fn printed(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn results(lines: &[Value]) -> Results {
    Results::read(&printed(lines)).expect("what the simulator prints")
}

#[test]
fn the_whole_runbook_under_a_contract_with_a_key() {
    let file = file(EXAMPLE);
    let book = Runbook::of(&file, Some(results(&lines(&file))));
    insta::assert_snapshot!(book.markdown());
}

#[test]
fn the_whole_runbook_under_a_contract_that_offers_nothing() {
    insta::assert_snapshot!(Runbook::of(&file(&nothing()), None).markdown());
}

/// The digests that the gate compares: what is simulated is what the example's file says.
#[test]
fn the_example_is_the_workflow_that_is_simulated() {
    let contract = destinations::named("zendesk_ticket").expect("built in");
    let simulated = scenarios::access::definition(&contract, scenarios::access::assumptions());
    assert_eq!(file(EXAMPLE).workflow.definition().digest(), simulated.digest());
}

/// A change of results.
type Change = fn(&mut Vec<Value>);

#[test]
fn the_gate_opens_when_all_is_well_and_each_reason_alone_closes_it() {
    let file = file(EXAMPLE);
    let well = lines(&file);
    assert_eq!(blockers(&file, Some(&results(&well))), [""; 0]);
    let mut told = vec![format!("no results: {:#?}", blockers(&file, None))];
    let unowned = read(&EXAMPLE.replace("\"dedup_key.scope\" = \"integration-team\"\n", ""));
    let unowned = unowned.expect("an owner may be missing until the gate");
    told.push(format!("no owner: {:#?}", blockers(&unowned, Some(&results(&well)))));
    let changes: [(&str, Change); 10] = [
        ("violated", |all| (all[3]["violated"], all[3]["held"]) = (2.into(), 118.into())),
        ("undecided", |all| all[4]["undecided"] = 1.into()),
        ("harness", |all| all[5]["harness_errors"] = 1.into()),
        ("another contract", |all| {
            all.iter_mut().for_each(|one| {
                (one["contract"], one["contract_digest"]) = ("desk_nothing".into(), "00".into());
            })
        }),
        ("another version of the contract", |all| {
            all.iter_mut().for_each(|one| one["contract_digest"] = "00".into());
        }),
        ("another workflow version", |all| {
            all.iter_mut().for_each(|one| one["workflow_digest"] = "00".into());
        }),
        ("a workflow that does not say", |all| {
            all.iter_mut().for_each(|one| one["workflow_digest"] = Value::Null);
        }),
        ("a mutant", |all| all.iter_mut().for_each(|one| one["mutant"] = "fresh-key-per-retry".into())),
        ("a scenario is missing", |all| drop(all.remove(2))),
        ("broken off", |all| all.last_mut().expect("a summary")["interrupted"] = true.into()),
    ];
    for (name, change) in changes {
        let mut changed = well.clone();
        change(&mut changed);
        told.push(format!("{name}: {:#?}", blockers(&file, Some(&results(&changed)))));
    }
    let mut unsteady = well.clone();
    unsteady.last_mut().expect("a summary")["determinism"]["differing"] = 1.into();
    told.push(format!("not deterministic: {:#?}", blockers(&file, Some(&results(&unsteady)))));
    insta::assert_snapshot!(told.join("\n"));
}

/// What another workflow's runs came to does neither help nor harm.
#[test]
fn results_of_others_do_not_count() {
    let file = file(EXAMPLE);
    let mut mixed = lines(&file);
    let mut other = result(&file, "first-delivery");
    (other["contract"], other["contract_digest"]) = ("desk_nothing".into(), "00".into());
    other["violated"] = 120.into();
    mixed.insert(0, other);
    assert_eq!(blockers(&file, Some(&results(&mixed))), [""; 0]);
}

#[test]
fn each_mistake_in_a_file_is_explained_at_its_place() {
    let with = |from: &str, to: &str| {
        assert!(EXAMPLE.contains(from), "{from}");
        EXAMPLE.replacen(from, to, 1)
    };
    let wrong = [
        ("no TOML", with("version = 1", "version = ")),
        ("another schema", with("workflow/1", "workflow/2")),
        ("no schema", with("schema = \"workflow/1\"", "")),
        ("unknown fields", with("request_id", "request_di").replace("assumed_late", "assumd_late")),
        (
            "wrong types",
            with("version = 1", "version = \"1\"")
                .replace("\"4h\"", "4")
                .replace("[\"title\", \"requester\"]", "\"title\""),
        ),
        (
            "wrong values",
            with("\"4h\"", "\"four\"")
                .replace("\"replay\"", "\"reply\"")
                .replace("\"it-duty\"", "\" \"")
                .replace("version = 1", "version = -1"),
        ),
        ("no such contract", with("\"zendesk_ticket\"", "\"zendesk\"")),
        ("too weak a contract", with("assumed_late_commit = \"90s\"", "")),
        (
            "two problems",
            with("\"4h\"", "\"0s\"")
                .replace("required = [\"title\", \"requester\"]", "required = [\"title\", \"age\"]"),
        ),
        (
            "a decision about nothing",
            with("dedup_key.scope", "dedup_key.scop").replace("conflict =", "conflit ="),
        ),
        (
            "an owner without a name",
            with("\"dedup_key.scope\" = \"integration-team\"", "\"dedup_key.scope\" = \"\""),
        ),
        ("a case of another owner's", with("conflict =", "creation_failed =")),
        ("almost nothing", "schema = \"workflow/1\"\n".to_owned()),
    ];
    let told = wrong.into_iter().map(|(name, text)| match read(&text) {
        Ok(_) => panic!("{name} is taken for a workflow"),
        Err(why) => format!("== {name}\n{why}\n"),
    });
    insta::assert_snapshot!(told.collect::<Vec<_>>().join("\n"));
}

/// A folder with these files, and what a command about them printed and ended with.
struct Desk {
    place: Place,
}

impl Desk {
    fn with(files: &[(&str, &str)]) -> Desk {
        let place = Place::new();
        for (name, text) in files {
            std::fs::write(place.folder().join(name), text).expect("a file of the test");
        }
        Desk { place }
    }

    fn path(&self, name: &str) -> String {
        text(&self.place.folder().join(name))
    }

    fn typed(&self, line: &[&str]) -> (u8, String, String) {
        let (mut out, mut err) = (vec![], vec![]);
        let args = ["workflow"].iter().chain(line).map(Into::into);
        let code = cli::run(args, Clock::system().now(), &mut out, &mut err);
        let plain = |said: Vec<u8>| {
            let folder = text(self.place.folder());
            String::from_utf8(said).expect("text").replace(&format!("{folder}/"), "")
        };
        (code, plain(out), plain(err))
    }
}

#[test]
fn the_runbook_is_written_and_the_gate_is_an_exit_code() {
    let file = file(EXAMPLE);
    let well = printed(&lines(&file));
    let desk = Desk::with(&[("access.toml", EXAMPLE), ("results.json", &well)]);
    let (access, results, out) =
        (desk.path("access.toml"), desk.path("results.json"), desk.path("RUNBOOK.md"));
    let (code, document, err) = desk.typed(&["runbook", &access, "--results", &results, "--gate"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(document, Runbook::of(&file, Some(Results::read(&well).expect("lines"))).markdown());
    let (code, said, err) = desk.typed(&["runbook", &access, "--gate", "--out", &out]);
    let closed = "error: the gate is closed\n  - there are no simulation results\n";
    assert_eq!((code, said.as_str(), err.as_str()), (1, "RUNBOOK.md is written\n", closed));
    let written = std::fs::read_to_string(&out).expect("it is written all the same");
    assert!(written.contains("- there are no simulation results\n"), "{written}");
    assert_eq!(desk.typed(&["runbook", &access]).0, 0, "without --gate it only tells");
    let (code, _, err) = desk.typed(&["runbook", &access, "--results", &access]);
    assert_eq!(code, 3, "{err}");
    assert!(err.starts_with("error: access.toml: line 1: no JSON"), "{err}");
}

#[test]
fn check_prints_the_guarantee_or_what_is_wrong() {
    let broken = EXAMPLE.replace("deadline", "dedline");
    let contract = destinations::builtin_text()[0].1.replace("desk_nothing", "desk_of_ours");
    let named = nothing().replace("\"desk_nothing\"", "\"ours.toml\"");
    let files = [
        ("access.toml", EXAMPLE),
        ("broken.toml", &*broken),
        ("ours.toml", &contract),
        ("named.toml", &named),
    ];
    let desk = Desk::with(&files);
    let (code, out, _) = desk.typed(&["check", &desk.path("access.toml")]);
    assert_eq!(code, 0);
    assert!(out.starts_with("access-request, step create-ticket, version 1: every decision has an owner\n"));
    assert!(out.contains("after a send in doubt: replay"), "{out}");
    let (code, _, err) = desk.typed(&["check", &desk.path("broken.toml")]);
    assert!(code == 2 && err.contains("did you mean `deadline`?"), "{code} {err}");
    let (code, out, err) = desk.typed(&["check", &desk.path("named.toml")]);
    assert!(code == 0 && out.contains("desk_of_ours"), "a path from the file's folder: {out}{err}");
    let (code, _, err) = desk.typed(&["check", &desk.path("missing.toml")]);
    assert!(code == 3 && err.starts_with("error: missing.toml: "), "{code} {err}");
}

#[test]
fn serve_refuses_to_start_while_the_gate_is_closed() {
    let desk = Desk::with(&[("access.toml", EXAMPLE)]);
    let (access, store) = (desk.path("access.toml"), desk.path("wf.db"));
    let line = ["serve", &access, "--store", &store, "--destination", "127.0.0.1:9", "--require-gate"];
    let (code, out, err) = desk.typed(&line);
    let closed = "error: the gate is closed\n  - there are no simulation results\n";
    assert_eq!((code, out.as_str(), err.as_str()), (1, "", closed));
    assert!(!std::path::Path::new(&store).exists(), "nothing was opened");
    let (code, _, err) = desk.typed(&[&line[..6], &["--credentials-env", "IN_DOUBT_NO_SUCH_NAME"]].concat());
    assert!(code == 2 && err.contains("there is no such variable"), "{code} {err}");
    let (code, _, err) = desk.typed(&[&line[..5], &["nowhere"]].concat());
    assert!(code == 2 && err.contains("HOST:PORT"), "{code} {err}");
}

/// Who the runbook says decides is who the engine gives the case to.
#[test]
fn a_case_is_owned_by_whom_the_file_names_for_its_reason() {
    let named = nothing() + "[decisions.cases]\nnothing_permitted = \"night-shift\"\n";
    let (place, help_desk) = (Place::new(), HelpDesk::open("desk_nothing", &[(1, Outcome::Drop)]));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("the system gives a thread");
    let setup = Setup {
        store: StoreAt::file(text(&place.store())),
        destination: help_desk.address(),
        credentials: None,
        connect: Connect::tcp(),
    };
    let engine = runtime.block_on(Engine::open(file(&named).workflow, setup)).expect("a new store");
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a free port");
    let address = listener.local_addr().expect("it was bound");
    let (serving, working) = (engine.clone(), engine);
    runtime.spawn(async move { serving.serve(listener).await });
    runtime.spawn(async move { working.run().await });
    client::post(address, "/deliveries", &delivery("d-1", &request("R17")));
    let case = wait_for("a case", || {
        let listed = client::get(address, "/exceptions").body;
        listed["exceptions"].get(0).cloned()
    });
    let (reason, owner) = (case["reason"].as_str(), case["owner"].as_str());
    assert_eq!((reason, owner), (Some("nothing_permitted"), Some("night-shift")));
}

/// Passes on what a command prints while it runs.
struct Heard(Sender<String>);

impl Write for Heard {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        // Nobody has to listen to the end.
        let _ = self.0.send(String::from_utf8_lossy(bytes).into_owned());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn address(heard: &Receiver<String>) -> SocketAddr {
    let mut said = String::new();
    while !said.ends_with('\n') {
        said += &heard.recv().expect("it prints where it listens");
    }
    let address =
        said.trim_end().strip_prefix("access-request listens on ").unwrap_or_else(|| panic!("{said}"));
    address.parse().expect("an address")
}

/// A delivery over a real socket makes a record; Ctrl-C ends the service.
#[test]
fn serve_takes_a_delivery_and_ends_at_ctrl_c() {
    let help_desk = HelpDesk::open("desk_nothing", &[]);
    let nothing = nothing();
    let well = printed(&lines(&file(&nothing)));
    let desk = Desk::with(&[("access.toml", &nothing), ("results.json", &well)]);
    let files: Vec<PathBuf> =
        ["access.toml", "wf.db", "results.json"].map(|name| desk.path(name).into()).into();
    let destination = help_desk.address();
    let (sender, heard) = channel();
    let serving = std::thread::Builder::new().spawn(move || {
        let [access, store, results] = [0, 1, 2].map(|n| text(&files[n]));
        let line = ["workflow", "serve", &access, "--store", &store, "--destination", &destination];
        let gate = ["--require-gate", "--results", &results];
        let mut err = vec![];
        let args = line.iter().chain(&gate).map(Into::into);
        let code = cli::run(args, Clock::system().now(), &mut Heard(sender), &mut err);
        (code, String::from_utf8(err).expect("text"))
    });
    let serving = serving.expect("the system gives a thread");
    let address = address(&heard);
    assert!(address.ip().is_loopback(), "{address}");
    let answer = client::post(address, "/deliveries", &delivery("d-1", &request("R17")));
    assert_eq!(answer.status, 202, "{}", answer.body);
    let path = client::operation_path("R17:create-ticket:v1");
    let known = wait_for("completed", || {
        Some(client::get(address, &path).body).filter(|known| known["detail"] == "completed/confirmed")
    });
    assert_eq!((known["external_ref"].as_str(), help_desk.records()), (Some("T93"), vec!["T93".to_owned()]));
    // It has listened for the signal since before it took the delivery in.
    let asked = std::process::Command::new("kill").args(["-INT", &std::process::id().to_string()]).status();
    assert!(asked.expect("the system has `kill`").success());
    let (code, err) = serving.join().expect("it ends");
    assert_eq!((code, err.as_str()), (0, ""));
}
