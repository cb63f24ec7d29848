//! Every public failure that is said to be played again is: by its case, its mutant, and its invariant.

use crate::mistakes::violated;
use std::collections::BTreeSet;

/// The table.
const TABLE: &str = include_str!("../../scenarios/INCIDENTS.md");
/// Of the collection's 68 rows, so many have to be played.
const PLAYED_MIN: usize = 40;
const COLLECTED: usize = 68;

/// The cells of each row of the table whose rows have so many.
fn rows(cells: usize) -> Vec<Vec<&'static str>> {
    let lines = TABLE.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let split = lines.map(|line| line.split(" | ").map(|cell| cell.trim_matches('`')).collect::<Vec<_>>());
    split.filter(|row| row.len() == cells && row[0] != "row").collect()
}

#[test]
fn each_row_is_played_by_its_case_and_holds_without_the_mistake() {
    let played = rows(6);
    assert!(played.len() >= PLAYED_MIN, "{} rows", played.len());
    assert_eq!(played.len() + rows(3).len(), COLLECTED);
    let names: BTreeSet<&str> =
        played.iter().map(|row| row[0]).chain(rows(3).iter().map(|row| row[0])).collect();
    assert_eq!(names.len(), COLLECTED, "each row stands once");
    let mut wrong = vec![];
    for row in &played {
        let [name, _, scenario, invariant, mutant, case] = row[..] else { unreachable!("six cells") };
        if !case.starts_with(&format!("{scenario}/")) || !violated(case, Some(mutant)).contains(&invariant) {
            wrong.push(format!("{name}: {case} --mutant {mutant} does not break {invariant}"));
        }
        if !violated(case, None).is_empty() {
            wrong.push(format!("{name}: {case} fails without a mistake"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}
