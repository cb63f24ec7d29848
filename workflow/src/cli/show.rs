//! What people read in a terminal: the queue, one operation, and what contradicts the records.

use super::args::command_for;
use crate::clock::Timestamp;
use serde_json::Value;
use std::fmt::Write as _;

/// Columns that a line has.
const WIDTH: usize = 80;

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

fn time(value: &Value, field: &str) -> Option<Timestamp> {
    value[field].as_i64().map(Timestamp)
}

fn rows<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().map_or(&[], Vec::as_slice)
}

fn dated(value: &Value, field: &str) -> String {
    time(value, field).map_or_else(|| "?".into(), |at| at.to_string())
}

fn sends(value: &Value) -> String {
    match value["sends"].as_u64().unwrap_or_default() {
        0 => "not sent".into(),
        1 => "sent once".into(),
        n => format!("sent {n} times"),
    }
}

/// The cases, one in two lines.
pub(super) fn list(cases: &Value, all: bool, now: Timestamp) -> String {
    let cases = rows(cases, "exceptions");
    let rests = |case: &&Value| time(case, "snoozed_until").is_some_and(|until| now < until);
    let shown: Vec<&Value> = cases.iter().filter(|case| all || !rests(case)).collect();
    let mut out = String::new();
    for case in &shown {
        let deadline = dated(case, "deadline");
        let overdue = if time(case, "deadline").is_some_and(|at| at <= now) { "  OVERDUE" } else { "" };
        let rest = if rests(case) {
            format!("  rests until {}", dated(case, "snoozed_until"))
        } else {
            String::new()
        };
        let _ = writeln!(out, "{}{overdue}{rest}", text(case, "operation"));
        let (reason, owner) = (text(case, "reason"), text(case, "owner"));
        let _ = writeln!(out, "  by {deadline}  {owner}  {reason}  {}", sends(case));
    }
    let resting = cases.len() - shown.len();
    let more = if resting > 0 { format!("; {resting} rest (--all shows them)") } else { String::new() };
    let count = match shown.len() {
        0 => "no case".to_owned(),
        1 => "1 case".to_owned(),
        n => format!("{n} cases"),
    };
    out + &format!("{count}{more}\n")
}

/// One operation, all that is known of it, and the commands for what can be done.
pub(super) fn operation(known: &Value) -> String {
    let mut out = String::new();
    let name = text(known, "operation");
    let record = known["external_ref"].as_str().map(|id| format!(", record {id}")).unwrap_or_default();
    let _ = writeln!(out, "{name}\n  {} (version {}){record}", text(known, "detail"), known["version"]);
    fill(&mut out, "  ", text(known, "facts"));
    for (label, field) in [("next", "next_action"), ("licence", "licence"), ("contract", "guarantee")] {
        let earliest = time(known, "earliest").filter(|_| field == "next_action");
        let when = earliest.map(|at| format!(", {at}")).unwrap_or_default();
        if !text(known, field).is_empty() {
            fill(&mut out, &format!("  {label:<9} "), &format!("{}{when}", text(known, field)));
        }
    }
    history(&mut out, known);
    for case in rows(known, "exceptions") {
        let _ = writeln!(out, "\ncase: {}", text(case, "reason"));
        let (owner, escalate) = (text(case, "owner"), text(case, "escalate_to"));
        let _ = writeln!(out, "  {owner} decides by {}; then {escalate} is told", dated(case, "deadline"));
        fill(&mut out, "  ", text(case, "facts"));
        fill(&mut out, "  look-up   ", text(case, "lookup"));
        if let Some(at) = time(case, "key_lapses") {
            let _ = writeln!(out, "  the key lapses at {at}");
        }
        if let Some(at) = time(case, "snoozed_until") {
            let _ = writeln!(out, "  it rests until {at}");
        }
    }
    if known.get("licence").is_none() {
        let words = "Read from the store alone: what the workflow permits, and what can be done, the service tells \
                     (--service).";
        out.push('\n');
        fill(&mut out, "", words);
    }
    offers(&mut out, known, name);
    out
}

/// What was sent and seen, in the order in which it became durable.
fn history(out: &mut String, known: &Value) {
    let sent = rows(known, "attempts").iter().map(|row| {
        let key = row["wire_key"].as_str().unwrap_or_default();
        let words = format!("attempt {} with key {key}: {}", row["n"], text(row, "licence"));
        (row["seq"].as_i64(), dated(row, "intent_at"), words)
    });
    let seen = rows(known, "evidence").iter().map(|row| {
        let (source, class, detail) = (text(row, "source"), text(row, "class"), text(row, "detail"));
        let (before, after) = (text(row, "before"), text(row, "after"));
        let stands = if before == after { String::new() } else { format!("; {before} -> {after}") };
        (row["seq"].as_i64(), dated(row, "observed"), format!("{source} {class}: {detail}{stands}"))
    });
    let mut all: Vec<_> = sent.chain(seen).collect();
    all.sort();
    if !all.is_empty() {
        out.push('\n');
    }
    for (_, at, words) in all {
        fill(out, &format!("  {at}  "), &words);
    }
}

fn offers(out: &mut String, known: &Value, name: &str) {
    for (n, offer) in rows(known, "actions").iter().enumerate() {
        let Some((command, options)) = command_for(text(offer, "action")) else { continue };
        let risk = if offer["at_risk"] == true { " --accept-risk" } else { "" };
        if n == 0 {
            let _ = writeln!(out, "\nwhat you can do (each with --service ADDRESS --by WHO --reason WHY)");
        }
        let bound = |field: &str, word: &str| {
            time(offer, field).map(|at| format!(" {word} {at}.")).unwrap_or_default()
        };
        let (from, until) = (bound("earliest", "Not before"), bound("latest", "Not after"));
        let _ = writeln!(out, "  queue {command} {name} --version {}{options}{risk}", known["version"]);
        fill(out, "      ", &format!("{}{from}{until}", text(offer, "consequence")));
    }
}

/// What a reconciliation saw: its sums as equations, and what they leave open.
pub(super) fn reconciliation(report: &Value) -> String {
    let of = |name: &str| report["balance"][name].as_u64().unwrap_or_default();
    let mut out = String::new();
    let _ = writeln!(
        out,
        "completed here  {} = {} matched + {} missing there + {} linked wrongly + {} unread",
        of("completed"),
        of("matched"),
        of("missing_there"),
        of("wrong_link"),
        of("unread")
    );
    let _ = writeln!(
        out,
        "seen there      {} = {} matched + {} more of completed ones + {} of others",
        of("records"),
        of("matched"),
        of("duplicate_extra"),
        of("exists_but")
    );
    if let Some(moved) = report["moved"].as_u64().filter(|moved| *moved > 0) {
        let _ = writeln!(out, "left to the next run  {moved} under way");
    }
    for one in rows(report, "unread") {
        fill(&mut out, "unread  ", &format!("{}: {}", text(one, "operation"), text(one, "why")));
    }
    for words in report["not_observable"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        fill(&mut out, "not observable here  ", words);
    }
    out + &discrepancies(report)
}

/// What contradicts the records.
pub(super) fn discrepancies(body: &Value) -> String {
    let found = rows(body, "discrepancies");
    let mut out = String::new();
    for one in found {
        let _ = writeln!(
            out,
            "{} {} ({}) {}, found {}",
            text(one, "id"),
            text(one, "kind"),
            text(one, "severity"),
            text(one, "status"),
            dated(one, "found")
        );
        fill(&mut out, "  ", &format!("{}: {}", text(one, "operation"), text(one, "detail")));
        fill(&mut out, "  ", text(one, "proposal"));
    }
    let count = match found.len() {
        0 => "nothing contradicts the records".to_owned(),
        1 => "1 discrepancy".to_owned(),
        n => format!("{n} discrepancies"),
    };
    out + &count + "\n"
}

/// Writes words in lines, the first behind a label, the others indented as far.
fn fill(out: &mut String, label: &str, words: &str) {
    let indent = " ".repeat(label.chars().count());
    let mut line = label.to_owned();
    let mut is_empty = true;
    for word in words.split_whitespace() {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            out.push_str(line.trim_end());
            out.push('\n');
            line = indent.clone();
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    if !words.trim().is_empty() {
        out.push_str(line.trim_end());
        out.push('\n');
    }
}
