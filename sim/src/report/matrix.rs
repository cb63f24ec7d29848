//! The kill matrix for people, as a table, and for machines, as JSON Lines.

use super::json::{SCHEMA, line as json_line};
use super::text::{Style, Tone, count, grouped};
use crate::matrix::{CLEAN_TIMES, Cell, Matrix, Plans, Row, clean_command};
use serde::Serialize;

/// The strategy that has an end of its own, and a bar to reach.
const ENUMERATE: &str = "enumerate";

/// What is known beside the matrix.
#[derive(Clone, Copy, Debug)]
pub struct Closing {
    /// Wall-clock seconds.
    pub wall_s: f64,
    /// Whether somebody ended it.
    pub interrupted: bool,
    /// The exit code.
    pub exit: u8,
}

/// The table and the sums, a line each.
pub fn text(style: Style, matrix: &Matrix, closing: Closing) -> Vec<String> {
    let mut lines: Vec<String> = legend(matrix).iter().map(|line| style.line(line)).collect();
    lines.push(String::new());
    lines.extend(table(matrix).iter().map(|line| style.line(line)));
    lines.push(String::new());
    for row in matrix.survivors() {
        lines.extend(style.status_wrapped(Tone::Bad, "SURVIVED", &survived(row)));
    }
    lines.extend(summary(style, matrix, closing));
    lines
}

fn legend(matrix: &Matrix) -> Vec<String> {
    let starts = match matrix.starts {
        1 => "from one start".to_owned(),
        n => format!("median / p95 of {n} starts"),
    };
    let budget = grouped(matrix.budget);
    vec![
        format!("  Plans until the named invariant breaks: {starts}, each of at most {budget}."),
        "  Of a search that draws nothing: the place in its order. Faults: what a kill needs, reduced."
            .to_owned(),
    ]
}

/// Columns of equal width; numbers to the right.
fn table(matrix: &Matrix) -> Vec<String> {
    let strategies: Vec<&str> =
        matrix.rows.first().map_or(vec![], |row| row.cells.iter().map(|cell| cell.strategy).collect());
    let head = ["mutant", "must break"].into_iter().chain(strategies).chain(["faults"]);
    let mut rows: Vec<Vec<String>> = vec![head.map(str::to_owned).collect()];
    for row in &matrix.rows {
        let start = [row.mutant.name.to_owned(), row.mutant.killed_by.to_owned()];
        let faults = row.faults().map_or("-".into(), |faults| faults.to_string());
        rows.push(start.into_iter().chain(row.cells.iter().map(figure)).chain([faults]).collect());
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let shown = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate();
        let padded = cells.map(|(column, (text, width))| match column {
            0 | 1 => format!("{text:<width$}"),
            _ => format!("{text:>width$}"),
        });
        format!("  {}", padded.collect::<Vec<_>>().join("  "))
    };
    rows.iter().map(shown).collect()
}

/// `4 / 17`, `812 / >2,000`, `3`, `none`; `-` where nothing is known.
fn figure(cell: &Cell) -> String {
    let of = |plans: Plans| match (plans, cell.budget) {
        (Plans::Took(plans), _) => grouped(plans),
        (Plans::Beyond, Some(budget)) => format!(">{}", grouped(budget)),
        (Plans::Beyond, None) => "none".to_owned(),
    };
    match (cell.median(), cell.p95()) {
        (Some(median), Some(p95)) if cell.starts.len() > 1 => format!("{} / {}", of(median), of(p95)),
        (Some(median), _) => of(median),
        (None, _) => "-".to_owned(),
    }
}

fn survived(row: &Row) -> String {
    let mut said = format!(
        "{}: {}. No plan of {} breaks {}",
        row.mutant.name,
        row.mutant.mistake,
        row.cells.iter().map(|cell| cell.strategy).collect::<Vec<_>>().join(", "),
        row.mutant.killed_by,
    );
    let also: Vec<&str> = row.also().iter().map(|id| id.id).collect();
    if !also.is_empty() {
        said += &format!("; its plans break {}", also.join(", "));
    }
    said
}

fn summary(style: Style, matrix: &Matrix, closing: Closing) -> Vec<String> {
    let all = matrix.rows.len() as u64;
    let mut head = format!(
        "[{:>6.1}s] {} of {} killed in {}",
        closing.wall_s,
        grouped(matrix.killed()),
        count(all, "mutant"),
        count(matrix.runs, "run"),
    );
    if closing.interrupted {
        head += "; interrupted, so `-` and a missing kill say nothing";
    }
    let tone = if closing.exit == 0 { Tone::Good } else { Tone::Bad };
    let mut lines = style.status_wrapped(tone, "Summary", &head);
    let mut say = |said: String| lines.push(style.line(&format!("{:13}{said}", "")));
    if let Some(killed) = matrix.killed_by(ENUMERATE) {
        let share = killed * 100 / all.max(1);
        let bar = if matrix.enumeration_suffices() == Some(false) { ", fewer than must be" } else { "" };
        say(format!("{killed} of {all} ({share} %) by enumeration of singles and pairs{bar}"));
    }
    if let Some(needed) = matrix.needed() {
        say(format!(
            "the most that one needed: {} ({}, {})",
            count(needed.plans, "plan"),
            needed.mutant,
            needed.strategy
        ));
        say(format!("the workflow without a mistake must be clean on {CLEAN_TIMES} times as many:"));
        say(format!("  {}", clean_command(needed)));
    }
    lines
}

#[derive(Serialize)]
struct MutantLine {
    kind: &'static str,
    name: &'static str,
    mistake: &'static str,
    expected: &'static str,
    killed_by: Option<&'static str>,
    strategy: &'static str,
    starts: usize,
    kills: u64,
    plans_to_kill: PlansToKill,
    budget: Option<u64>,
    faults_after_shrink: Option<usize>,
    also: Vec<&'static str>,
    example: Option<String>,
    /// Whether something ended the search before it could say.
    unknown: bool,
}

/// Null where more than the budget would be needed.
#[derive(Serialize)]
struct PlansToKill {
    median: Option<u64>,
    p95: Option<u64>,
}

#[derive(Serialize)]
struct SummaryLine {
    kind: &'static str,
    schema: &'static str,
    version: &'static str,
    mutants: usize,
    killed: u64,
    survivors: Vec<&'static str>,
    killed_by_enumeration: Option<u64>,
    largest_budget: Option<u64>,
    clean: Option<String>,
    starts: u64,
    budget: u64,
    runs: u64,
    wall_s: f64,
    interrupted: bool,
    exit: u8,
}

/// A `mutant` line for each mutant and strategy, then the `summary`.
pub fn json(matrix: &Matrix, closing: Closing, version: &'static str) -> Vec<String> {
    let cells = matrix.rows.iter().flat_map(|row| row.cells.iter().map(move |cell| (row, cell)));
    let mut lines: Vec<String> = cells.map(|(row, cell)| json_line(&mutant_line(row, cell))).collect();
    lines.push(json_line(&SummaryLine {
        kind: "summary",
        schema: SCHEMA,
        version,
        mutants: matrix.rows.len(),
        killed: matrix.killed(),
        survivors: matrix.survivors().map(|row| row.mutant.name).collect(),
        killed_by_enumeration: matrix.killed_by(ENUMERATE),
        largest_budget: matrix.needed().map(|needed| needed.plans),
        clean: matrix.needed().map(clean_command),
        starts: matrix.starts,
        budget: matrix.budget,
        runs: matrix.runs,
        wall_s: closing.wall_s,
        interrupted: closing.interrupted,
        exit: closing.exit,
    }));
    lines
}

fn mutant_line(row: &Row, cell: &Cell) -> MutantLine {
    let took = |plans: Option<Plans>| match plans {
        Some(Plans::Took(plans)) => Some(plans),
        Some(Plans::Beyond) | None => None,
    };
    MutantLine {
        kind: "mutant",
        name: row.mutant.name,
        mistake: row.mutant.mistake,
        expected: row.mutant.killed_by,
        killed_by: cell.is_killed().then_some(row.mutant.killed_by),
        strategy: cell.strategy,
        starts: cell.starts.len(),
        kills: cell.kills(),
        plans_to_kill: PlansToKill { median: took(cell.median()), p95: took(cell.p95()) },
        budget: cell.budget,
        faults_after_shrink: cell.faults,
        also: cell.also.iter().map(|id| id.id).collect(),
        example: cell.example.as_ref().map(ToString::to_string),
        unknown: cell.starts.contains(&crate::matrix::Came::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Came;
    use crate::matrix::tests::{cell, row};

    fn matrix() -> Matrix {
        let killed = |plans: &[u64]| plans.iter().map(|plans| Came::Killed(*plans)).collect::<Vec<_>>();
        let with = |name, enumerated: Came, swarm: Vec<Came>, guided: Vec<Came>| {
            let cells = vec![
                cell(ENUMERATE, None, vec![enumerated]),
                cell("swarm", Some(2000), swarm),
                cell("guided", Some(2000), guided),
            ];
            row(name, cells)
        };
        let mut rows = vec![
            with("fresh-key-per-retry", Came::Killed(3), killed(&[4, 17, 9]), killed(&[1, 2, 3])),
            with("skip-fsync", Came::Killed(14_201), vec![Came::Killed(812), Came::Survived], vec![]),
            with("looks-for-ever", Came::Survived, vec![Came::Survived; 2], vec![Came::Survived; 2]),
        ];
        rows[0].cells[0].faults = Some(1);
        rows[0].cells[1].faults = Some(2);
        rows[0].cells[0].example = Some(crate::plan::Recipe {
            case: "one-ticket/zendesk_ticket@0".parse().expect("a case"),
            mutant: Some("fresh-key-per-retry".into()),
            tape: crate::fault::FaultTape::default(),
            deliveries: None,
            schedule: None,
        });
        rows[2].cells[1].also.insert(crate::invariants::INVARIANTS[0]);
        Matrix { rows, starts: 2, budget: 2000, is_whole: true, runs: 21_402 }
    }

    #[test]
    fn the_table_is_aligned_and_fits() {
        let style = Style { color: false, ascii: false };
        let closing = Closing { wall_s: 12.34, interrupted: false, exit: 1 };
        let lines = text(style, &matrix(), closing);
        assert!(lines.iter().all(|line| line.chars().count() <= 100), "{lines:#?}");
        let early = Matrix { starts: 1, ..matrix() };
        let cut = text(style, &early, Closing { interrupted: true, ..closing });
        insta::assert_snapshot!("matrix", [lines, vec!["----".into()], cut].concat().join("\n"));
    }

    #[test]
    fn machines_read_every_cell_and_the_sums() {
        let closing = Closing { wall_s: 12.34, interrupted: false, exit: 1 };
        let lines = json(&matrix(), closing, "0.1.0");
        let read: Vec<serde_json::Value> =
            lines.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(read.len(), 3 * 3 + 1);
        assert_eq!(read[1]["plans_to_kill"], serde_json::json!({"median": 9, "p95": 17}));
        assert_eq!(read[4]["plans_to_kill"], serde_json::json!({"median": 812, "p95": null}));
        assert_eq!((&read[4]["kills"], &read[4]["killed_by"]), (&1.into(), &"V7".into()));
        assert_eq!((&read[7]["killed_by"], &read[7]["also"][0]), (&().into(), &"V0".into()));
        let summary = &read[9];
        assert_eq!((&summary["killed"], &summary["killed_by_enumeration"]), (&2.into(), &2.into()));
        assert_eq!(summary["survivors"], serde_json::json!(["looks-for-ever"]));
        assert_eq!(summary["largest_budget"], 2000);
        insta::assert_snapshot!("matrix_json", lines.join("\n"));
    }
}
