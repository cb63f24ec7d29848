//! The picture: time flows down, the workflow left, the destination right, one event a row.

use super::facts::KeyNames;
use super::text::{cut, fit, width, wrap};
use super::{Tale, WIDTH};
use crate::fault::{Call, ExchangeName, Fault, Way, What};
use crate::history::{Event, Kind, Nanos, Step};
use crate::run::Run;
use std::collections::BTreeSet;

/// Columns of the workflow's lane.
const LANES_WIDTH: usize = 34;
/// A gap is shown from so many events on.
const GAP_MIN: u32 = 5;

/// Which node stands on which side.
pub(super) struct Lanes {
    pub(super) workflow: &'static str,
    pub(super) desk: &'static str,
}

impl Lanes {
    pub(super) fn of(run: &Run) -> Self {
        let events = run.history.events();
        let to_desk = events.iter().find_map(|event| match &event.kind {
            Kind::Sent { exchange, to, .. } if is_to_desk(exchange.call) => Some((event.node, *to)),
            _ => None,
        });
        let effect = events.iter().find(|event| matches!(event.kind, Kind::Effect { .. }));
        let started = events.iter().find(|event| matches!(event.kind, Kind::Started { .. }));
        let workflow = to_desk.map(|(from, _)| from).or(started.map(|event| event.node));
        let desk = to_desk.map(|(_, to)| to).or(effect.map(|event| event.node));
        Lanes { workflow: workflow.unwrap_or("workflow"), desk: desk.unwrap_or("desk") }
    }
}

fn is_to_desk(call: Call) -> bool {
    matches!(call, Call::Create | Call::Find | Call::Fetch)
}

/// One event as a row: the workflow's lane, the destination's line, and what is said beside it.
struct Row {
    left: Left,
    line: char,
    right: String,
    /// Whether it is blamed.
    mark: &'static str,
}

/// What stands in the workflow's lane.
enum Left {
    /// Nothing happens there.
    Idle,
    /// A mark and words.
    Says(String),
    /// An arrow to the right with a label.
    Sends(String),
    /// An arrow to the left with a label.
    Gets(String),
    /// An arrow to the right that does not arrive.
    SendsInVain,
    /// An arrow to the left that does not arrive.
    GetsNothing,
}

/// The rows of the picked steps, with a note for each larger gap.
pub(super) fn draw(tale: &Tale<'_>, lanes: &Lanes, steps: &[Step], keys: &KeyNames) -> Vec<String> {
    let run = tale.run;
    let time_width = steps.last().map_or(5, |step| seconds(run.history.event(*step).t_ns).len()).max(5);
    let blame: &[Step] = tale.violation.map_or(&[], |violation| &violation.blame);
    let bodies = bodies(run, steps);
    let contract = format!("{} ({})", lanes.desk, run.plan.case.contract);
    let indent = time_width + 6;
    let head = fit("  time", indent) + &fit(lanes.workflow, LANES_WIDTH);
    let mut lines = vec![head + &cut(&contract, WIDTH - indent - LANES_WIDTH)];
    let mut before = Step(0);
    for step in steps {
        let skipped = step.0 - before.0 - 1;
        if skipped >= GAP_MIN && before.0 > 0 {
            lines.push(format!("{:indent$}… {skipped} events …", ""));
        }
        before = *step;
        let event = run.history.event(*step);
        let mut row = row(run, event, lanes, keys, bodies.len() > 1);
        row.mark = if blame.last() == Some(step) {
            "◀ violation"
        } else if blame.contains(step) {
            "◀"
        } else {
            ""
        };
        lines.extend(row.lines(&seconds(event.t_ns), time_width));
    }
    let all = run.history.events().len();
    if all > steps.len() {
        lines.push(format!("  {} of {all} events; --verbose shows all of them", steps.len()));
    }
    lines
}

/// The different bodies that the told creates carry.
fn bodies(run: &Run, steps: &[Step]) -> BTreeSet<String> {
    let digest = |step: &Step| match &run.history.event(*step).kind {
        Kind::Sent { exchange, digest, .. } if exchange.call == Call::Create => Some(digest.clone()),
        _ => None,
    };
    steps.iter().filter_map(digest).collect()
}

fn seconds(time: Nanos) -> String {
    format!("{}.{:03}", time.millis() / 1000, time.millis() % 1000)
}

impl Row {
    fn new(left: Left, line: char, right: String) -> Self {
        Row { left, line, right, mark: "" }
    }

    fn lines(&self, time: &str, time_width: usize) -> Vec<String> {
        let indent = time_width + 6;
        let left = match &self.left {
            Left::Idle => vec!["│".to_owned()],
            Left::Says(text) => {
                let lines = wrap(text, 0, LANES_WIDTH - 3);
                let continued =
                    |(n, line): (usize, String)| if n == 0 { line } else { format!("│ {line}") };
                lines.into_iter().enumerate().map(continued).collect()
            }
            Left::Sends(label) => vec![arrow("├──", label, '─', "▶")],
            Left::Gets(label) => vec![arrow("│◀──", label, '─', "")],
            Left::SendsInVain => vec![arrow("├╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌", "", '╌', "✗   ")],
            Left::GetsNothing => vec![arrow("│   ✗╌╌╌", "", '╌', "")],
        };
        let room = WIDTH - indent - LANES_WIDTH - 2;
        let mut right = wrap(&self.right, 0, room);
        match right.last_mut() {
            _ if self.mark.is_empty() => {}
            Some(last) if width(last) + 1 + width(self.mark) <= room => {
                *last = format!("{last} {}", self.mark)
            }
            _ => right.push(self.mark.to_owned()),
        }
        let count = left.len().max(right.len()).max(1);
        let row = |n: usize| {
            let time = if n == 0 { format!("  {time:>time_width$} s  ") } else { " ".repeat(indent) };
            let left = fit(left.get(n).map_or("│", String::as_str), LANES_WIDTH);
            let line = if n == 0 { self.line } else { '│' };
            let right = right.get(n).map_or("", String::as_str);
            format!("{time}{left}{line} {right}").trim_end().to_owned()
        };
        (0..count).map(row).collect()
    }
}

/// An arrow across the lane with a label in it.
fn arrow(from: &str, label: &str, dash: char, to: &str) -> String {
    let room = LANES_WIDTH - width(from) - width(to);
    if label.is_empty() {
        return format!("{from}{}{to}", dash.to_string().repeat(room));
    }
    let label = cut(label, room - 5);
    let dashes = dash.to_string().repeat(room - width(&label) - 2);
    format!("{from} {label} {dashes}{to}")
}

fn row(run: &Run, event: &Event, lanes: &Lanes, keys: &KeyNames, show_body: bool) -> Row {
    let at_desk = event.node == lanes.desk;
    let says = |text: String| Row::new(Left::Says(text), '│', String::new());
    match &event.kind {
        Kind::Sent { exchange, to, key, digest, summary } if *to == lanes.desk => {
            let mut right = key.as_deref().map_or(String::new(), |key| format!("key {}", keys.short(key)));
            if show_body && exchange.call == Call::Create {
                right = format!("{right} body {}", digest.get(..4).unwrap_or(digest)).trim_start().to_owned();
            }
            Row::new(Left::Sends(without_key(summary, key.as_deref())), '│', right)
        }
        Kind::Sent { exchange, summary, .. } => says(format!("● {}", incoming(exchange, summary))),
        Kind::Received { exchange, status, summary, .. } if is_to_desk(exchange.call) => {
            let label = format!("{status} {summary}");
            Row::new(Left::Gets(label.trim_end().to_owned()), '┤', String::new())
        }
        Kind::Received { exchange, status, .. } | Kind::Answered { exchange, status, .. } if !at_desk => {
            says(format!("● answered {status} to {} {}", exchange.call, exchange.about))
        }
        Kind::Broken { exchange } if is_to_desk(exchange.call) => {
            says(format!("✗ no answer to the {}", nth(exchange)))
        }
        Kind::Effect { about, record, key, late } => {
            let late = if *late { " late," } else { "" };
            let key = key.as_deref().map_or(String::new(), |key| format!(", key {}", keys.short(key)));
            Row::new(Left::Idle, '●', format!("{record}{late} for {about}{key}"))
        }
        Kind::Fault { n, words, .. } => fault_row(run, *n, words, at_desk),
        Kind::Journal { words, .. } => says(format!("● journal: {words}")),
        Kind::Started { boot: 1 } => says("● starts".into()),
        Kind::Started { boot } => says(format!("● starts again (boot {boot})")),
        Kind::Killed | Kind::PowerCut | Kind::Paused if !at_desk => says(format!("✗ {}", event.kind)),
        Kind::Person { words, .. } => says(format!("● person: {words}")),
        kind if at_desk => Row::new(Left::Idle, '●', kind.to_string()),
        kind => says(format!("● {kind}")),
    }
}

/// The summary without the beginning of the key, which stands beside the arrow.
fn without_key(summary: &str, key: Option<&str>) -> String {
    match (summary.rsplit_once(", "), key) {
        (Some((rest, start)), Some(key)) if key.starts_with(start) => rest.to_owned(),
        _ => summary.to_owned(),
    }
}

fn nth(exchange: &ExchangeName) -> String {
    let text = exchange.to_string();
    text.split_once(" of ").map_or(text.clone(), |(nth, _)| nth.to_owned())
}

fn incoming(exchange: &ExchangeName, summary: &str) -> String {
    match exchange.call {
        Call::Deliver => format!("delivery {}", exchange.about),
        call => format!("{call}: {summary}"),
    }
}

/// A fault is drawn where it strikes: across the lane, or at the process.
fn fault_row(run: &Run, n: u32, words: &str, at_desk: bool) -> Row {
    let fault = (n as usize).checked_sub(1).and_then(|index| run.plan.tape.faults().get(index));
    let beside = |left: Left, line: char| Row::new(left, line, format!("fault {n}: {words}"));
    let Some(Fault { at, what }) = fault else { return beside(Left::Idle, '│') };
    let call = match at {
        crate::fault::Place::Exchange(name) => Some(name.call),
        _ => None,
    };
    match what {
        _ if call.is_some_and(|call| !is_to_desk(call)) => {
            Row::new(Left::Says(format!("✗ {words}")), '│', format!("fault {n}: {at}"))
        }
        What::Refuse | What::HangConnecting | What::LoseRequest(_) | What::NotApplied(None) => {
            beside(Left::SendsInVain, '│')
        }
        What::Partition { way: Way::There | Way::Both, .. } => beside(Left::SendsInVain, '│'),
        What::Partition { way: Way::Back, .. } => beside(Left::GetsNothing, '┤'),
        What::LoseResponse(_) | What::ApplyLate(_) | What::Hang { .. } => beside(Left::GetsNothing, '┤'),
        What::NotApplied(Some(_)) | What::ErrorAfter(_) | What::OmitId(_) | What::AnswerSlowly(_) => {
            beside(Left::Idle, '✗')
        }
        _ if at_desk => beside(Left::Idle, '✗'),
        _ => Row::new(Left::Says(format!("✗ {words}")), '│', format!("fault {n}: {at}")),
    }
}
