//! The invariant about reconciliation: what is there is reported, and nothing else.

use super::checks::last_until;
use super::{Court, Finding, RECONCILED};
use crate::belief::{BelievedOperation, Discrepancy, Standing};
use crate::history::{Act, Deed, Kind, Step};
use destinations::contract::{ConvergeKind, LookupBy};
use std::collections::BTreeSet;

pub(super) fn complete(court: &Court<'_>) -> Finding {
    let mut finding = Finding::default();
    invented(court, &mut finding);
    overlooked(court, &mut finding);
    finding
}

/// What was reported, at any time, and was not so.
fn invented(court: &Court<'_>, finding: &mut Finding) {
    let mut looked = BTreeSet::new();
    for at in &court.run.beliefs {
        for found in &at.belief.discrepancies {
            let (operation, record) = (found.operation.as_str(), found.record.as_str());
            if !looked.insert((operation, record, found.kind as u8)) {
                continue;
            }
            finding.looked();
            let there = court.facts.made(operation).iter().any(|made| made.record == record)
                || court.facts.is_copy(operation, record);
            let is_its_own = court
                .finally(operation)
                .is_some_and(|op| op.words == "completed/confirmed" && op.record.as_deref() == Some(record));
            let is_so = match found.kind {
                Discrepancy::Missing => court.facts.is_gone(record),
                Discrepancy::Differs => court.facts.hands.contains(&(operation, record, Deed::Edited)),
                Discrepancy::Double | Discrepancy::Exists => there && !is_its_own,
                Discrepancy::Other => true,
            };
            if !is_so {
                let message =
                    format!("{operation}: {record} was reported ({:?}), and it is not so.", found.kind);
                finding.violated(RECONCILED, operation, last_until(court.run, operation, at.step), message);
                return;
            }
        }
    }
}

/// When the first of the last two reconciliations began, both of them when all was quiet and taken.
fn began(court: &Court<'_>) -> Option<Step> {
    let events = court.run.history.events();
    let quiet = events.iter().find(|event| event.kind == Kind::Quiet)?.step;
    let wanted = court.facts.wanted.iter().filter(|one| one.act == Act::Reconcile && one.step > quiet);
    let taken: Vec<Step> = wanted.filter(|one| one.taken().is_some()).map(|one| one.step).collect();
    taken.first().copied().filter(|_| taken.len() > 1)
}

/// What was there for both of the last two looks, and is not reported.
fn overlooked(court: &Court<'_>, finding: &mut Finding) {
    let Some(began) = began(court) else { return };
    let Some(last) = court.run.belief() else { return };
    // A look that completes an operation by itself is no look at what it has completed.
    let before = court.run.beliefs.iter().rfind(|at| at.step <= began);
    let was_so = |op: &BelievedOperation| {
        before.and_then(|at| at.belief.operation(&op.name)).is_some_and(|before| before.words == op.words)
    };
    let ended = |op: &&BelievedOperation| op.standing.is_terminal() && was_so(op) && !op.purged;
    for op in last.operations.iter().filter(ended) {
        finding.looked();
        for (kind, record) in expected(court, op) {
            let reported = last.discrepancies.iter().any(|found| {
                (found.kind, &found.operation, &found.record) == (kind, &op.name, &record) && found.stands
            });
            if !reported {
                let message =
                    format!("{} has {record} ({kind:?}), and two looks did not report it.", op.name);
                finding.violated(RECONCILED, &op.name, last_until(court.run, &op.name, began), message);
                return;
            }
        }
    }
}

/// What two looks at a completed operation must report, as far as this destination lets anybody see it.
fn expected(court: &Court<'_>, op: &BelievedOperation) -> Vec<(Discrepancy, String)> {
    let hidden = |id: &str| court.facts.hands.contains(&(&op.name, id, Deed::Archived));
    let there = |id: &&str| court.held.contains(id) && !hidden(id);
    let made = court.facts.made(&op.name).iter().map(|made| made.record);
    if op.standing == Standing::Rejected && court.recovery.lookup.is_some() {
        return made.filter(there).map(|id| (Discrepancy::Exists, id.to_owned())).collect();
    }
    let Some(record) = op.record.as_deref() else { return vec![] };
    let mut expected = vec![];
    if court.facts.is_gone(record) {
        expected.push((Discrepancy::Missing, record.to_owned()));
    } else if court.facts.hands.contains(&(&op.name, record, Deed::Edited)) {
        expected.push((Discrepancy::Differs, record.to_owned()));
    }
    if shows_copies(court) && !hidden(record) {
        let copied =
            court.facts.hands.iter().filter(|(about, _, did)| *about == op.name && *did == Deed::Copied);
        let others = made.chain(copied.map(|(_, copy, _)| *copy));
        let others = others.filter(|id| *id != record && there(id));
        expected.extend(others.map(|id| (Discrepancy::Double, id.to_owned())));
    }
    expected
}

/// Whether a look-up shows every record like an operation's own: a copy has no reference of its own where one
/// is unique.
fn shows_copies(court: &Court<'_>) -> bool {
    let unique = court.contract.converge.iter().any(|rule| {
        matches!(rule.kind, ConvergeKind::UniqueRef | ConvergeKind::Upsert) && rule.field == "external_id"
    });
    court.recovery.lookup.as_ref().is_some_and(|rule| match rule.by {
        LookupBy::MarkerText => true,
        LookupBy::ExternalRef => !unique,
        _ => false,
    })
}
