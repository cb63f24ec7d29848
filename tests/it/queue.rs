//! `cargo workflow` as people type it, against a running service and its store.

use crate::desk::{HelpDesk, Outcome};
use crate::process::{Place, Process, request, text};
use workflow::store::open_file;
use workflow::{Clock, Timestamp, cli};

const R17: &str = "R17:create-ticket:v1";

/// R17 is a case: its answer was lost at a desk that offers nothing. Nothing else there makes a record.
fn asked() -> (Place, HelpDesk, Process) {
    let (place, desk) = (Place::new(), HelpDesk::open("desk_nothing", &[(1, Outcome::Drop)]));
    let process = Process::start(&place, &desk);
    process.deliver("d-1", &request("R17"));
    process.until(R17, "requiring_verification/exception");
    (place, desk, process)
}

/// What a command printed, and its exit code.
fn typed_at(now: Timestamp, line: &[&str]) -> (u8, String) {
    let (mut out, mut err) = (vec![], vec![]);
    let args = ["workflow"].iter().chain(line).map(Into::into);
    let code = cli::run(args, now, &mut out, &mut err);
    let said = String::from_utf8([out, err].concat()).expect("text");
    (code, said)
}

fn typed(line: &[&str]) -> (u8, String) {
    typed_at(Clock::system().now(), line)
}

/// Exit code and words, with times, ports and folders masked.
fn shown(place: &Place, process: &Process, (code, said): (u8, String)) -> String {
    let said =
        said.replace(&process.address.to_string(), "HOST:PORT").replace(&text(place.folder()), "FOLDER");
    let mut masked = String::new();
    for word in said.split_inclusive([' ', '\n', ',', ';']) {
        let is_time = word.len() >= 20 && word.as_bytes()[4] == b'-' && word.as_bytes()[10] == b'T';
        masked += if is_time { "2026-01-05T09:00:00Z" } else { word };
        if is_time {
            masked += &word[20..];
        }
    }
    format!("exit {code}\n{masked}")
}

#[test]
fn a_case_is_listed_shown_and_decided() {
    let (place, _desk, process) = asked();
    let service = process.address.to_string();
    let store = text(&place.store());
    let show = |line: &[&str]| shown(&place, &process, typed(line));
    insta::assert_snapshot!("list", show(&["queue", "list", "--service", &service]));
    insta::assert_snapshot!("show", show(&["queue", "show", R17, "--service", &service]));
    assert_eq!(show(&["queue", "list", "--store", &store]), show(&["queue", "list", "--service", &service]));
    insta::assert_snapshot!("show_store", show(&["queue", "show", R17, "--store", &store]));
    let (code, json) = typed(&["queue", "list", "--service", &service, "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON and nothing else");
    assert_eq!((code, json["exceptions"][0]["operation"].as_str()), (0, Some(R17)));
    let deadline = json["exceptions"][0]["deadline"].as_i64().expect("a time");
    let late = typed_at(Timestamp(deadline + 1), &["queue", "list", "--service", &service]);
    assert!(late.1.contains("OVERDUE"), "{}", late.1);

    let signed = ["--service", &service, "--by", "c42", "--reason", "found by its marker"];
    let act = |line: &[&str]| show(&[line, &signed[..]].concat());
    let rest = Timestamp(deadline - 60_000).to_string();
    let acts = [
        act(&["queue", "assign", R17, "--owner", "c77"]),
        act(&["queue", "evidence", R17, "--kind", "call", "--note", "the desk says T93"]),
        act(&["queue", "snooze", R17, "--until", &rest]),
        show(&["queue", "list", "--service", &service]),
        show(&["queue", "list", "--service", &service, "--all"]),
        act(&["queue", "absent", R17, "--how", "every page", "--checked-at", "2026-01-05T09:00:00Z"]),
        act(&["queue", "create", R17]),
        act(&["queue", "resend", R17]),
        act(&["queue", "reject", R17]),
        act(&["queue", "confirm", R17, "--ref", "T93", "--version", "3"]),
        act(&["queue", "confirm", R17, "--ref", "T94"]),
        act(&["queue", "confirm", R17, "--ref", "T93"]),
        act(&["queue", "confirm", R17, "--ref", "T93"]),
        show(&["queue", "list", "--service", &service]),
        show(&["discrepancies", "--service", &service]),
    ];
    insta::assert_snapshot!("acts", acts.join("\n"));
    insta::assert_snapshot!("show_done", show(&["queue", "show", R17, "--service", &service]));
}

#[test]
fn records_are_verified_beside_their_service() {
    let (place, _desk, process) = asked();
    let store = text(&place.store());
    let (code, said) = typed(&["verify", "--store", &store]);
    assert_eq!(code, 0, "{said}");
    assert!(said.starts_with("ok: 4 rows, head "), "{said}");
    let db = open_file(&store).expect("a store");
    db.execute("update evidence set detail = 'not at all' where n = 2", []).expect("ours");
    let wrong = shown(&place, &process, typed(&["verify", "--store", &store]));
    insta::assert_snapshot!("tampered", wrong);
}

/// Looking changes no byte, not even when nobody else has the store open.
#[test]
fn looking_writes_nothing() {
    let (place, _desk, process) = asked();
    process.crash();
    let files = || {
        let names = ["store.db", "store.db-wal"].map(|name| place.folder().join(name));
        names.map(|name| std::fs::read(name).unwrap_or_default())
    };
    let before = files();
    let store = text(&place.store());
    assert_eq!(typed(&["verify", "--store", &store]).0, 0);
    assert_eq!(typed(&["queue", "list", "--store", &store]).0, 0);
    assert!(before == files());
}

#[test]
fn words_from_outside_do_not_move_the_cursor() {
    let (_place, _desk, process) = asked();
    let service = process.address.to_string();
    let note = "red \u{1b}[31m and back\r";
    let line =
        ["queue", "evidence", R17, "--kind", "mail", "--note", note, "--service", &service, "--by", "c42"];
    assert_eq!(typed(&[&line[..], &["--reason", "it came"]].concat()).0, 0);
    let (_, shown) = typed(&["queue", "show", R17, "--service", &service]);
    assert!(shown.contains("\u{fffd}[31m"), "{shown}");
    assert!(shown.chars().all(|c| c == '\n' || !c.is_control()));
}

#[test]
fn what_is_typed_wrong_is_told() {
    let (place, _desk, process) = asked();
    let service = process.address.to_string();
    let nothing = text(&place.folder().join("nothing.db"));
    let garbage = place.folder().join("garbage.db");
    std::fs::write(&garbage, "no database ".repeat(100)).expect("there is room");
    let show = |line: &[&str]| shown(&place, &process, typed(line));
    let signed = ["--service", &service, "--by", "c42", "--reason", "needed"];
    let act = |line: &[&str]| show(&[line, &signed[..]].concat());
    let all = [
        show(&["queue", "list"]),
        show(&["queue", "list", "--service", &service, "--store", "x"]),
        show(&["queue", "list", "--store", &nothing]),
        show(&["queue", "list", "--store", &text(&garbage)]),
        show(&["queue", "show", "R99:create-ticket:v1", "--service", &service]),
        show(&["queue", "show", "R99:create-ticket:v1", "--store", &text(&place.store())]),
        act(&["queue", "snooze", R17, "--until", "tomorrow"]),
        act(&["queue", "absent", R17, "--how", "every page"]),
        act(&["queue", "assign", R17, "--owner", " "]),
        show(&["queue", "confirm", R17, "--ref", "T93", "--service", &service, "--by", "", "--reason", "x"]),
        show(&["queue", "resend", R17, "--store", "x", "--by", "c42", "--reason", "x"]),
        show(&["verify", "--store", &nothing]),
    ];
    insta::assert_snapshot!("wrong", all.join("\n"));
    assert!(!std::path::Path::new(&nothing).exists(), "nothing is made by looking");
    let address = process.address;
    process.crash();
    let gone = typed(&[&["queue", "resend", R17, "--service", &address.to_string()], &signed[2..]].concat());
    assert_eq!(gone.0, 3, "{}", gone.1);
    assert!(gone.1.contains("nothing was sent: ") && !gone.1.contains("look whether"), "{}", gone.1);
    // Somebody who takes the connection and says nothing more: now it may have been taken.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = silent.local_addr().expect("it was bound").to_string();
    let broken = std::thread::scope(|both| {
        both.spawn(|| {
            let (mut stream, _) = silent.accept().expect("somebody comes");
            let _ = std::io::Read::read(&mut stream, &mut [0; 16]);
        });
        typed(&[&["queue", "resend", R17, "--service", &address], &signed[2..]].concat())
    });
    assert_eq!(broken.0, 3, "{}", broken.1);
    assert!(broken.1.contains("look whether it was taken before you decide again"), "{}", broken.1);
    let help = ["queue list", "queue absent", "queue", "verify", ""].map(|words| {
        let line: Vec<&str> = words.split_whitespace().chain(["--help"]).collect();
        typed(&line).1
    });
    insta::assert_snapshot!("help", help.join("\n"));
}
