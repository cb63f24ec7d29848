//! The document as Markdown.

use super::gate::ours;
use super::results::{Operations, Sums};
use super::{Entry, Expected, Played, Runbook, span};
use std::fmt::Write as _;

/// The whole document.
pub(super) fn document(book: &Runbook) -> String {
    let definition = book.workflow.definition();
    let mut out = String::new();
    let title = format!("{}, step {}, version {}", definition.name, definition.step, definition.version);
    let _ = writeln!(out, "# Runbook: {}\n", plain(&title));
    out += "Written by `cargo workflow runbook` from the workflow's file, its contract and the simulator's results: \
            change those, not this.\n\n";
    head(&mut out, book);
    gate(&mut out, book);
    let _ = writeln!(out, "## What is guaranteed\n\n```text\n{}\n```\n", guarantee(book));
    out += "## What can happen\n\n";
    for entry in &book.situations {
        section(&mut out, book, entry);
    }
    out += "## Why a person is asked\n\n";
    out += "Each act is a command, `cargo workflow queue ACT KEY --service HOST:PORT --by WHO --reason WHY`; `queue \
            show` tells which are possible at this moment, and what each leads to.\n\n";
    for entry in &book.cases {
        section(&mut out, book, entry);
    }
    decisions(&mut out, book);
    out.truncate(out.trim_end().len());
    out + "\n"
}

fn head(out: &mut String, book: &Runbook) {
    let definition = book.workflow.definition();
    let contract = &definition.contract;
    let simulated = match &book.results {
        None => "no results were given".to_owned(),
        Some(results) => {
            let each = results.summaries.iter().map(|summary| {
                let commit = summary.commit.as_ref().map(|commit| format!(" at commit {commit}"));
                format!("seeds {}{}", summary.seeds, commit.unwrap_or_default())
            });
            let sums = Sums::of(ours(definition, results));
            format!("{}: {} runs of this workflow", each.collect::<Vec<_>>().join("; "), grouped(sums.runs))
        }
    };
    let rows = [
        ("Contract", format!("`{}`: {}, {}", contract.id, contract.system, contract.operation)),
        ("Contract digest", format!("`{}`", contract.digest())),
        ("Workflow digest", format!("`{}`", definition.digest())),
        ("After a send in doubt", book.workflow.recovery().class().to_string()),
        ("Owner", definition.owner.clone()),
        (
            "Deadline of a case",
            format!("{}; then {} is told", span(definition.deadline), definition.escalate_to),
        ),
        ("Simulated", simulated),
    ];
    table(out, ["About", ""], rows.iter().map(|(name, value)| vec![(*name).to_owned(), value.clone()]));
}

fn gate(out: &mut String, book: &Runbook) {
    *out += "## Gate\n\n";
    match book.blockers.is_empty() {
        true => *out += "Open: every decision has an owner, and the results are of this workflow and held.\n",
        false => *out += "Closed:\n\n",
    }
    for blocker in &book.blockers {
        let _ = writeln!(out, "- {}", plain(blocker));
    }
    out.push('\n');
}

/// The guarantee in words; nothing in it ends the block that it stands in.
fn guarantee(book: &Runbook) -> String {
    let definition = book.workflow.definition();
    definition.contract.guarantee(&definition.assumptions).replace("```", "'''")
}

fn section(out: &mut String, book: &Runbook, entry: &Entry) {
    let _ = writeln!(out, "### {}\n", plain(&entry.title));
    let rows = [
        ("Known facts", entry.facts.clone()),
        ("Durable record", entry.record.clone()),
        ("Next action", entry.next.clone()),
        ("Who decides", entry.decides.clone()),
        ("How to reconcile", entry.reconcile.clone()),
        ("Records expected", entry.expected.words().to_owned()),
        ("Simulated", observed(book, entry.played)),
    ];
    table(out, ["", ""], rows.iter().map(|(name, value)| vec![(*name).to_owned(), value.clone()]));
}

impl Expected {
    fn words(self) -> &'static str {
        match self {
            Expected::None => "0",
            Expected::One => "1",
            Expected::OneOrNone => {
                "0 or 1, which is what has to be found out; 1 or 0 once it is closed, never 2"
            }
            Expected::Unchanged => "as many as before",
        }
    }
}

/// What the simulator observed of a situation.
fn observed(book: &Runbook, played: Played) -> String {
    let Some(results) = &book.results else { return "no results were given".to_owned() };
    let definition = book.workflow.definition();
    match played {
        Played::Scenario(name) => {
            let sums = Sums::of(ours(definition, results).filter(|one| one.scenario == name));
            if sums.runs == 0 {
                return format!("`{name}` was not run with this workflow and contract");
            }
            let Operations { none, one, several } = sums.operations;
            let amiss = [
                (sums.violated, "violated"),
                (sums.undecided, "undecided"),
                (sums.harness_errors, "failed in the simulator"),
            ];
            let amiss = amiss.into_iter().filter(|(count, _)| *count > 0);
            let amiss: String = amiss.map(|(count, word)| format!(", {} {word}", grouped(count))).collect();
            format!(
                "`{name}`: {} runs, {} held{amiss}. Operations with no record: {}, with one: {}, with more: {}",
                grouped(sums.runs),
                grouped(sums.held),
                grouped(none),
                grouped(one),
                grouped(several)
            )
        }
        Played::Case(reason) => {
            let sums = Sums::of(ours(definition, results));
            let count = sums.cases.get(reason.code()).copied().unwrap_or_default();
            format!("{} operations came to this in {} runs", grouped(count), grouped(sums.runs))
        }
    }
}

fn decisions(out: &mut String, book: &Runbook) {
    let contract = &book.workflow.definition().contract;
    *out += "## What the contract leaves open\n\n";
    if book.decisions.is_empty() {
        let _ = writeln!(out, "`{}` leaves nothing open.", contract.id);
        return;
    }
    let rows = book.decisions.iter().map(|decision| {
        let owner = decision.owner.clone().unwrap_or_else(|| "**nobody**".into());
        let open = &decision.open;
        vec![format!("`{}`", open.path), open.question.to_owned(), open.meanwhile.clone(), owner]
    });
    table(out, ["Open", "To find out", "Until then", "Owner"], rows);
}

fn table<const N: usize>(out: &mut String, head: [&str; N], rows: impl Iterator<Item = Vec<String>>) {
    let _ = writeln!(out, "| {} |\n|{}", head.join(" | "), "---|".repeat(N));
    for row in rows {
        let cells: Vec<String> = row.iter().map(|cell| plain(cell)).collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    out.push('\n');
}

/// Words that stay in their cell and are no markup: names come from files.
fn plain(words: &str) -> String {
    words.replace('|', "\\|").replace('<', "&lt;").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_stays_a_cell() {
        assert_eq!(plain("a | b\n## c <b>"), "a \\| b ## c &lt;b>");
    }

    #[test]
    fn numbers_can_be_read() {
        let numbers = [0, 999, 1000, 1_234_567].map(grouped);
        assert_eq!(numbers, ["0", "999", "1,000", "1,234,567"]);
    }
}
