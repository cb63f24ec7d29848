//! The report for people: a status word at column 12, then what it is about.

use super::{Due, Explored, Never, ToldFailure};
use crate::explore::{Failure, ScenarioTally};
use crate::fault::KINDS;
use crate::plan::Case;
use crate::replay::{Answer, Difference};
use crate::shrink::{Ended, Size};
use crate::story::{to_ascii, wrap};
use std::path::Path;

/// Columns of a report; a story is narrower.
const REPORT_WIDTH: usize = 100;
/// Columns before what a status word is about.
const INDENT: usize = 13;
/// Cells that the line about those that were never filled names.
const CELLS_SHOWN: usize = 3;
/// Scenarios that the line about drift names.
const DRIFT_SHOWN: usize = 3;

/// How text looks here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether colours are used; they are never the only sign.
    pub color: bool,
    /// Whether only ASCII is used.
    pub ascii: bool,
}

/// What a status word means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// It is as it must be.
    Good,
    /// It is wrong.
    Bad,
    /// Somebody should look at it.
    Warn,
    /// It is only said.
    Plain,
}

impl Style {
    /// A line with its status word.
    pub fn status(self, tone: Tone, word: &str, rest: &str) -> String {
        let word = format!("{word:>12}");
        self.line(&format!("{} {rest}", self.paint(tone, &word)))
    }

    /// A status word and as many lines as its text needs.
    pub fn status_wrapped(self, tone: Tone, word: &str, rest: &str) -> Vec<String> {
        let mut lines = wrap(rest, INDENT, REPORT_WIDTH).into_iter();
        let first = lines.next().unwrap_or_default();
        let first = self.status(tone, word, first.trim_start());
        std::iter::once(first).chain(lines.map(|line| self.line(&line))).collect()
    }

    /// A line as this place can show it.
    pub fn line(self, text: &str) -> String {
        let text = text.trim_end();
        if self.ascii { to_ascii(text) } else { text.to_owned() }
    }

    /// A line of a story.
    pub fn story_line(self, text: &str) -> String {
        let tone = match text {
            text if text.contains('◀') && text.contains("violation") => Tone::Bad,
            text if text.contains("│ fault ") || text.contains("┤ fault ") || text.contains("✗ fault ") => {
                Tone::Warn
            }
            _ => Tone::Plain,
        };
        self.line(&self.paint(tone, text))
    }

    /// A whole line in a tone.
    pub fn tinted(self, tone: Tone, text: &str) -> String {
        self.line(&self.paint(tone, text.trim_end()))
    }

    fn paint(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Good => "1;32",
            Tone::Bad => "1;31",
            Tone::Warn => "1;33",
            Tone::Plain => return text.to_owned(),
        };
        if self.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// A number with a comma at every thousand.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `1 run`, `2 runs`.
pub fn count(number: u64, one: &str) -> String {
    format!("{} {one}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// A failure and its story.
pub fn failure(style: Style, told: &ToldFailure<'_>, seeds_run: u64) -> Vec<String> {
    let Failure { invariant, seeds_failing, .. } = told.failure;
    let answer = told.answer;
    let head = format!(
        "{}  {} {}  {} of {}",
        told.failure.example,
        invariant.id,
        invariant.name,
        grouped(*seeds_failing),
        count(seeds_run, "run"),
    );
    let mut lines = vec![style.status(Tone::Bad, "VIOLATED", &head)];
    let seconds = told.seconds.filter(|_| answer.tries > 0);
    let seconds = seconds.map_or(String::new(), |seconds| format!(", {seconds:.1} s"));
    let mut reduced = reduction(answer);
    reduced.last_mut().expect("two lines").push_str(&seconds);
    lines.extend(reduced.iter().map(|line| style.line(line)));
    lines.push(String::new());
    lines.extend(told.story().iter().map(|line| style.story_line(line)));
    if let Some(folder) = told.artifacts {
        lines.push(style.line(&format!("  look    {folder}")));
    }
    if let Some(name) = told.file.as_deref().and_then(|file| Path::new(file).file_stem()) {
        lines.push(style.line(&format!("  commit  cargo sim keep {}", name.display())));
    }
    lines
}

/// The fingerprint, and how the plan was shrunk.
pub fn reduction(answer: &Answer) -> Vec<String> {
    let name = answer.fingerprint().map_or("no failure", |fingerprint| fingerprint.0.as_str());
    let after = Size::of(&answer.ran.run.plan);
    let before = answer.before;
    let mut parts = vec![];
    let mut say = |before: usize, after: usize, one: &str, many: &str| {
        let word = if after == 1 { one } else { many };
        let from = if before == after { String::new() } else { format!("{before} → ") };
        parts.push(format!("{from}{after} {word}"));
    };
    say(before.faults, after.faults, "fault", "faults");
    say(before.operations, after.operations, "operation", "operations");
    if before.deliveries != before.operations || after.deliveries != after.operations {
        say(before.deliveries, after.deliveries, "delivery", "deliveries");
    }
    let ended = match answer.ended {
        Ended::Nothing | Ended::Smallest => "",
        Ended::Runs => ", more runs might make it smaller",
        Ended::Cut => ", more time might make it smaller",
    };
    let word = if before == after { "" } else { "shrunk " };
    let runs = match answer.tries {
        0 => String::new(),
        tries => format!(", {}", count(u64::from(tries), "run")),
    };
    vec![format!("{:13}{name}", ""), format!("{:13}{word}{}{runs}{ended}", "", parts.join(", "))]
}

/// Two runs of one case that differ.
pub fn differ(style: Style, case: &Case, difference: &Difference) -> Vec<String> {
    let Difference { step, a, b } = difference;
    let head = format!("two runs of {case} differ at step {step}");
    let rest = [
        format!("{:13}a: {a}", ""),
        format!("{:13}b: {b}", ""),
        format!("{:13}A value that is not from the seed reached the run. Usual causes: a random id,", ""),
        format!("{:13}the real clock, a HashMap's order, a value kept in a thread or a static.", ""),
    ];
    let head = style.status(Tone::Bad, "DIFFER", &head);
    [head].into_iter().chain(rest.iter().map(|line| style.line(line))).collect()
}

/// One line for each scenario, and what never happened.
pub fn scenarios(style: Style, explored: &Explored<'_>) -> Vec<String> {
    let done = explored.done;
    let width = done.scenarios.iter().map(|scenario| scenario.name.len()).max().unwrap_or(0);
    let mut lines: Vec<String> = done
        .scenarios
        .iter()
        .filter(|scenario| scenario.runs > 0)
        .map(|scenario| scenario_line(style, scenario, width))
        .collect();
    for (case, why) in &done.undecided_examples {
        lines.push(style.status(Tone::Warn, "UNDECIDED", &format!("{case}  {why}")));
    }
    for (case, why) in &done.invalid_examples {
        lines.push(style.status(Tone::Bad, "INVALID", &format!("{case}  {why}")));
    }
    for (case, error) in &done.harness_examples {
        lines.push(style.status(Tone::Bad, "HARNESS", &format!("{case}  {error}")));
    }
    for (case, difference) in &done.difference_examples {
        lines.extend(differ(style, case, difference));
    }
    let (cells, never): (Vec<_>, Vec<_>) =
        explored.never().into_iter().partition(|never| never.due == Due::Cell);
    for never in never {
        let rest = format!(
            "{:<width$}  `{}` happened in 0 of {}",
            never.scenario.unwrap_or(""),
            never.goal,
            count(never.seeds, "run")
        );
        lines.push(style.status(Tone::Warn, "NEVER", rest.trim_start()));
    }
    if !cells.is_empty() {
        lines.extend(style.status_wrapped(Tone::Warn, "NEVER", &unfilled(&cells, done.coverage.counts().0)));
    }
    if let Some(rest) = drift(&done.scenarios) {
        lines.extend(style.status_wrapped(Tone::Warn, "DRIFT", &rest));
    }
    lines
}

fn scenario_line(style: Style, scenario: &ScenarioTally, width: usize) -> String {
    let settles = match scenario.settles_p99_s() {
        // Where something is wrong, what is wrong is said in its place.
        _ if scenario.held < scenario.runs => String::new(),
        Some(seconds) if seconds < 120.0 => format!("   settles in {seconds:.1} s (p99)"),
        Some(seconds) => format!("   settles in {:.0} min (p99)", seconds / 60.0),
        None => String::new(),
    };
    let rest = format!(
        "{:<width$} {:>12} {:>14}{settles}",
        scenario.name,
        count(scenario.runs, "run"),
        count(scenario.fired.iter().sum(), "fault"),
    );
    let undecided = scenario.runs - scenario.held - scenario.violated;
    match (scenario.violated, undecided) {
        (0, 0) => style.status(Tone::Good, "HELD", &rest),
        (0, n) => style.status(Tone::Warn, "UNDECIDED", &format!("{rest}   {n} undecided")),
        (n, _) => style.status(Tone::Bad, "VIOLATED", &format!("{rest}   in {}", count(n, "run"))),
    }
}

/// The cells that no run has filled: the first of them; JSON lists all.
fn unfilled(cells: &[Never], applicable: usize) -> String {
    let shown: Vec<&str> = cells.iter().take(CELLS_SHOWN).map(|never| never.goal.as_str()).collect();
    let more = if cells.len() > CELLS_SHOWN { " …; --format json lists all" } else { "" };
    let (never, all) = (grouped(cells.len() as u64), count(applicable as u64, "cell"));
    format!(
        "in {never} of {all} (fault, boundary, contract class) nothing struck: {}{more}",
        shown.join(", ")
    )
}

/// The faults that never struck: what they were to test was not tested.
fn drift(scenarios: &[ScenarioTally]) -> Option<String> {
    let of = |scenario: &ScenarioTally| {
        let never: u64 = scenario.drifted.iter().sum();
        (never, never + scenario.fired.iter().sum::<u64>())
    };
    let (never, all) = scenarios.iter().map(of).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    if never == 0 {
        return None;
    }
    let mut most: Vec<&ScenarioTally> = scenarios.iter().filter(|scenario| of(scenario).0 > 0).collect();
    most.sort_by_key(|scenario| std::cmp::Reverse(of(scenario).0 * 1000 / of(scenario).1));
    let shown = most.iter().take(DRIFT_SHOWN).map(|scenario| {
        let (never, all) = of(scenario);
        format!("{} {} of {}", scenario.name, grouped(never), grouped(all))
    });
    let most = shown.collect::<Vec<_>>().join(", ");
    Some(format!("{} of {} never struck; the largest shares: {most}", grouped(never), count(all, "fault")))
}

/// Counts by kind, without the kinds that have none.
fn kinds(counts: &[u64; KINDS.len()]) -> String {
    let some = KINDS.iter().zip(counts).filter(|(_, count)| **count > 0);
    some.map(|(kind, count)| format!("{kind} {}", grouped(*count))).collect::<Vec<_>>().join(", ")
}

/// The last lines.
pub fn summary(style: Style, explored: &Explored<'_>) -> Vec<String> {
    let done = explored.done;
    let ran = done.scenarios.iter().filter(|scenario| scenario.runs > 0).count() as u64;
    let never = explored.never().iter().filter(|never| never.due != Due::Cell).count();
    let mut head = format!(
        "[{:>6.1}s] {}, {}: {} held, {} violated, {} undecided",
        explored.wall_s,
        count(ran, "scenario"),
        count(done.runs, "run"),
        grouped(done.held),
        grouped(done.violated),
        grouped(done.undecided),
    );
    if done.invalid > 0 {
        head += &format!(", {} invalid", grouped(done.invalid));
    }
    if done.harness > 0 {
        head += &format!(", {}", count(done.harness, "harness error"));
    }
    if never > 0 {
        head += &format!("; {never} sometimes never");
    }
    let tone = if explored.exit == 0 { Tone::Good } else { Tone::Bad };
    let mut lines = style.status_wrapped(tone, "Summary", &head);
    let mut say = |text: String| {
        lines.extend(wrap(&text, INDENT, REPORT_WIDTH).iter().map(|line| style.line(line)));
    };
    for failure in &done.failures {
        let runs = count(failure.seeds_failing, "run");
        say(format!("{}: {runs}, such as {}", failure.fingerprint, failure.example));
    }
    say(match kinds(&done.fired()) {
        none if none.is_empty() => "no fault struck".into(),
        some => format!("faults: {some}"),
    });
    let hours = done.simulated_ns as f64 / 3.6e12;
    say(format!("{}, {hours:.1} simulated hours{}", count(done.events, "event"), cost(explored)));
    let equal = done.checked - done.differing;
    say(format!("{} run twice, {} equal; hash of all results {:016x}", done.checked, equal, done.hash()));
    if let Some(why) = ended(explored) {
        say(why);
    }
    lines
}

fn cost(explored: &Explored<'_>) -> String {
    let rate =
        explored.runs_per_cpu_s().map(|rate| format!(", {} runs per CPU second", grouped(rate as u64)));
    let memory = explored.peak_rss_bytes.map(|bytes| format!(", {} MB at most", bytes / 1_000_000));
    format!("{}{}", rate.unwrap_or_default(), memory.unwrap_or_default())
}

/// Why not everything was run.
fn ended(explored: &Explored<'_>) -> Option<String> {
    let done = explored.done;
    let why = if done.interrupted {
        "interrupted".to_owned()
    } else if done.out_of_time {
        "the time was over".to_owned()
    } else if done.stopped_early && done.harness > 0 {
        "the harness failed too often".to_owned()
    } else if done.stopped_early {
        let found = count(done.failures.len() as u64, "distinct failure");
        format!("ended after {found}; --keep-going goes on")
    } else {
        return None;
    };
    Some(format!("not everything was run: {why}"))
}

#[cfg(test)]
mod tests;
