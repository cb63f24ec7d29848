//! The invariant about people: nothing that they do goes without a trace.

use super::checks::last_step;
use super::{Court, Finding, TRACED};
use crate::history::Step;
use std::collections::BTreeMap;

/// What the workflow's own check of its records says, and whether each act that was taken is on record.
pub(super) fn traced(court: &Court<'_>) -> Finding {
    let mut finding = Finding::default();
    for at in &court.run.beliefs {
        finding.looked();
        if let Some(wrong) = &at.belief.tampered {
            let message = format!("The records are not as they were written: {wrong}.");
            // Where it was read says nothing of what was edited.
            finding.violated(TRACED, "the records", last_step(court.run), message);
            return finding;
        }
    }
    for (operation, taken) in taken(court) {
        let Some(last) = taken.iter().max() else { continue };
        // Read after the last answer was heard.
        let later = court.lasting.iter().filter(|believed| believed.step >= *last);
        let of_it = later.filter_map(|believed| believed.operations.get(operation));
        for op in of_it.filter(|op| !op.purged) {
            finding.looked();
            let told = |text: &str| !text.trim().is_empty();
            let whole = |act: &&crate::belief::BelievedDecision| {
                told(&act.by) && told(&act.said) && told(&act.before) && told(&act.after)
            };
            let recorded = op.decisions.iter().filter(whole).count();
            if recorded < taken.len() {
                let message = format!(
                    "{} decisions on {operation} were taken, and {recorded} are on record with who, why, before and \
                     after.",
                    taken.len()
                );
                finding.violated(TRACED, operation, vec![*last], message);
                return finding;
            }
        }
    }
    finding
}

/// When people heard that what they wanted was taken, by operation.
fn taken<'a>(court: &Court<'a>) -> BTreeMap<&'a str, Vec<Step>> {
    let mut taken: BTreeMap<&str, Vec<Step>> = BTreeMap::new();
    for wanted in &court.facts.wanted {
        if let Some(step) = wanted.taken() {
            taken.entry(wanted.about).or_default().push(step);
        }
    }
    taken
}
