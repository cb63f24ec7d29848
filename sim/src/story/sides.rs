//! Both truths side by side: what the workflow believes, and what the destination holds.

use super::draw::Lanes;
use super::facts::KeyNames;
use super::text::{cut, fit, wrap};
use super::{Tale, WIDTH};
use crate::belief::{Belief, BelievedOperation, Waiting};
use crate::run::Run;
use destinations::EffectKind;

/// Columns of the left side.
const LEFT: usize = 39;
/// The most operations, deliveries or records of one side that are shown.
const ROWS_MAX: usize = 6;

pub(super) fn side_by_side(tale: &Tale<'_>, lanes: &Lanes, keys: &KeyNames) -> Vec<String> {
    let about = tale.violation.map(|violation| violation.about.as_str());
    let left = match tale.run.belief() {
        Some(belief) => believed(belief, about, keys),
        None => vec!["nothing that could be read".into()],
    };
    let right = held(tale.run, about, keys);
    let head =
        fit("  workflow believes", LEFT + 2) + &cut(&format!("{} holds", lanes.desk), WIDTH - LEFT - 2);
    let mut lines = vec![head];
    for n in 0..left.len().max(right.len()) {
        let side = |side: &[String], n: usize| side.get(n).cloned().unwrap_or_default();
        let line = format!("    {}{}", fit(&side(&left, n), LEFT - 2), side(&right, n));
        lines.push(line.trim_end().to_owned());
    }
    lines
}

/// What the workflow believes of an operation or a delivery: the matter first.
fn believed(belief: &Belief, about: Option<&str>, keys: &KeyNames) -> Vec<String> {
    let room = LEFT - 3;
    let mut lines = vec![];
    let delivery = belief.deliveries.iter().find(|delivery| Some(delivery.id.as_str()) == about);
    let operation = delivery.and_then(|delivery| delivery.operation.as_deref()).or(about);
    if let Some(delivery) = delivery {
        let serves = delivery.operation.as_deref().unwrap_or("a recorded rejection");
        lines.extend(entry(&format!("delivery {}: {serves}", delivery.id), room));
    } else if let Some(about) = about.filter(|about| belief.operation(about).is_none()) {
        lines.extend(entry(&format!("{about}: nothing known"), room));
    }
    let (mine, others): (Vec<_>, Vec<_>) =
        belief.operations.iter().partition(|op| Some(op.name.as_str()) == operation);
    let shown = ROWS_MAX.min(mine.len() + others.len());
    for operation in mine.iter().chain(&others).take(shown) {
        lines.extend(entry(&operation_words(operation, keys), room));
    }
    more(&mut lines, belief.operations.len() - shown, "operations");
    if lines.is_empty() {
        lines.push("nothing".into());
    }
    lines
}

fn operation_words(operation: &BelievedOperation, keys: &KeyNames) -> String {
    let mut words = format!("{}  {}", operation.name, operation.words);
    if let Some(record) = operation.record.as_deref().filter(|record| !operation.words.contains(*record)) {
        words += &format!("  {record}");
    }
    let mut sent: Vec<String> = operation.attempts.iter().map(|attempt| keys.short(&attempt.key)).collect();
    let count = sent.len();
    sent.dedup();
    words += &match count {
        0 => ", never sent".to_owned(),
        1 => format!(", sent once with key {}", sent[0]),
        n if sent.len() == 1 => format!(", sent {n} times with key {}", sent[0]),
        n => format!(", sent {n} times with keys {}", sent.join(", ")),
    };
    match &operation.waiting {
        Waiting::Person { owner, reason, .. } => words += &format!(", waits for {owner} ({reason})"),
        Waiting::Nobody => words += ", waits for nobody",
        Waiting::Nothing | Waiting::Engine => {}
    }
    words
}

/// What the destination holds, and whom it was made for.
fn held(run: &Run, about: Option<&str>, keys: &KeyNames) -> Vec<String> {
    let records = run.ledger.records();
    let belief = run.belief();
    let is_known = |record: &str| {
        belief.is_some_and(|b| b.operations.iter().any(|op| op.record.as_deref() == Some(record)))
    };
    let mut entries: Vec<(bool, String)> = vec![];
    for (index, effect) in run.ledger.effects().iter().enumerate() {
        if effect.kind != EffectKind::Created || !records.contains(&effect.record.as_str()) {
            continue;
        }
        let made_for = run.made_for.get(index).map_or("", String::as_str);
        let mut words = match effect.by_hand {
            true => format!("{}  made by hand", effect.record),
            false => format!("{}  for {made_for}", effect.record),
        };
        if let Some(key) = effect.by.key.as_deref().or(effect.by.reference.as_deref()) {
            words += &format!(", key {}", keys.short(key));
        }
        if !is_known(&effect.record) {
            words += ", the workflow does not know of it";
        }
        entries.push((about != Some(made_for), words));
    }
    // Stable: the matter first, else in the order in which the records came to be.
    entries.sort_by_key(|(is_other, _)| *is_other);
    let room = WIDTH - LEFT - 3;
    let mut lines: Vec<String> =
        entries.iter().take(ROWS_MAX).flat_map(|(_, words)| entry(words, room)).collect();
    more(&mut lines, entries.len().saturating_sub(ROWS_MAX), "records");
    if lines.is_empty() {
        lines.push("nothing".into());
    }
    lines
}

fn entry(words: &str, room: usize) -> Vec<String> {
    // Two spaces part a name from what is said of it; wrapping would make them one.
    let (name, rest) = words.split_once("  ").unwrap_or((words, ""));
    let lines = wrap(&format!("{name} {rest}"), 0, room - 2);
    let continued = |(n, line): (usize, String)| if n == 0 { line } else { format!("  {line}") };
    lines.into_iter().enumerate().map(continued).collect()
}

fn more(lines: &mut Vec<String>, count: usize, what: &str) {
    if count > 0 {
        lines.push(format!("and {count} more {what}"));
    }
}
