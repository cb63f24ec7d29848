//! One function an invariant.

use super::facts::Send;
use super::{
    AT_MOST_ONE, BUDGET_SURVIVES, DELIVERY_KEPT, INTENT_FIRST, NO_FALSE_FAILURE, NO_FALSE_SUCCESS, NO_LIMBO,
    NO_PANIC, STABLE_IDENTITY,
};
use super::{Court, Finding};
use crate::belief::{Basis, Standing, Waiting};
use crate::history::{Event, Kind, Step};
use crate::run::{End, Run};
use crate::verdict::{InvariantId, Violation};
use std::collections::{BTreeMap, BTreeSet};

impl Finding {
    pub(super) fn looked(&mut self) {
        self.looked += 1;
    }

    pub(super) fn violated(
        &mut self,
        invariant: InvariantId,
        about: &str,
        blame: Vec<Step>,
        message: String,
    ) {
        assert!(!message.is_empty(), "a violation says what is wrong");
        self.violations.push(Violation { invariant, about: about.into(), blame, message });
    }
}

pub(super) fn last_step(run: &Run) -> Vec<Step> {
    run.history.events().last().map(|event| event.step).into_iter().collect()
}

/// The last that happened to an operation at all: the end of the run is the same for every failure.
pub(super) fn last_of(run: &Run, operation: &str) -> Vec<Step> {
    last_until(run, operation, Step(u32::MAX))
}

/// The last that had happened to an operation by a step.
pub(super) fn last_until(run: &Run, operation: &str, until: Step) -> Vec<Step> {
    let is_it = |event: &&Event| {
        let happened = !matches!(event.kind, Kind::Journal { .. } | Kind::Person { .. });
        happened && event.kind.about() == Some(operation) && event.step <= until
    };
    let last = run.history.events().iter().rev().find(is_it).map(|event| vec![event.step]);
    last.unwrap_or_else(|| last_step(run))
}

pub(super) fn no_panic(court: &Court<'_>) -> Finding {
    let mut finding = Finding::default();
    finding.looked();
    if let End::Failed(why) = &court.run.end {
        let about = court.run.plan.workload.requests.first().map_or("?", |ask| &ask.operation);
        finding.violated(NO_PANIC, about, last_step(court.run), format!("The workflow failed: {why}."));
    }
    finding
}

/// At each crash and at the end: what left was counted, with its key and its bytes.
pub(super) fn intent_first(court: &Court<'_>) -> Finding {
    let mut finding = Finding::default();
    for (operation, sends) in &court.facts.sends {
        // What a living process has in memory only is no loss yet: a crash is.
        let missing = court.lasting.iter().filter(|believed| believed.crashed).find_map(|believed| {
            let op = believed.operations.get(operation).copied();
            if op.is_some_and(|op| op.purged) {
                return None;
            }
            let attempts = op.map_or(&[][..], |op| &op.attempts);
            let mut counted: Vec<_> = attempts.iter().collect();
            sends.iter().filter(|send| send.step <= believed.step).find(|send| {
                let matching = counted.iter().position(|attempt| {
                    attempt.digest == send.digest && send.key.is_none_or(|key| key == attempt.key)
                });
                matching.map(|index| counted.remove(index)).is_none()
            })
        });
        finding.looked();
        if let Some(send) = missing {
            let message = format!("{operation} was sent, and what survived on the disk does not know of it.");
            finding.violated(INTENT_FIRST, operation, vec![send.step], message);
        }
    }
    finding
}

pub(super) fn delivery_kept(court: &Court<'_>) -> Finding {
    let mut finding = Finding::default();
    let deliveries = court.run.deliveries();
    let asked: BTreeMap<&str, &str> =
        deliveries.map(|delivery| (delivery.name.as_str(), delivery.operation.as_str())).collect();
    for (name, acknowledged) in &court.facts.acknowledged {
        finding.looked();
        let name = &court.run.known_as(name);
        let later = court.lasting.iter().filter(|believed| *acknowledged <= believed.step);
        let crashed = later.clone().filter(|believed| believed.crashed);
        let purged = |believed: &super::facts::Believed<'_>| {
            let op = asked.get(name).and_then(|operation| believed.operations.get(operation));
            op.is_some_and(|op| op.purged)
        };
        if crashed.clone().any(|believed| !believed.deliveries.contains_key(name) && !purged(believed)) {
            let message = format!(
                "Delivery {name} was acknowledged, and what survived on the disk does not know of it."
            );
            finding.violated(DELIVERY_KEPT, name, vec![*acknowledged], message);
            continue;
        }
        let strays = |mapped: &&str| asked.get(name) != Some(mapped);
        let stray = later.filter_map(|believed| *believed.deliveries.get(name)?).find(strays);
        if let Some(stray) = stray {
            let message = format!("Delivery {name} is recorded for {stray}, which it does not ask for.");
            finding.violated(DELIVERY_KEPT, name, vec![*acknowledged], message);
        }
    }
    finding
}

/// The first send that carries another key or other bytes than those before it.
fn stray<'a>(sends: &[Send<'a>]) -> Option<(Step, Option<&'a str>)> {
    let first = (sends[0].key, sends[0].digest);
    let other = sends.iter().find(|send| (send.key, send.digest) != first)?;
    Some((other.step, other.key))
}

pub(super) fn stable_identity(court: &Court<'_>) -> Finding {
    let mut finding = Finding::default();
    let mut owners: BTreeMap<&str, (&str, Step)> = BTreeMap::new();
    for (operation, sends) in &court.facts.sends {
        let Some(first) = sends.first() else { continue };
        finding.looked();
        let generations = court.facts.generations(operation);
        if let Some((step, key)) = generations.iter().find_map(|sends| stray(sends)) {
            let what = if key == first.key { "other bytes" } else { "another key" };
            let message = format!("{operation} was sent again with {what}.");
            finding.violated(STABLE_IDENTITY, operation, vec![first.step, step], message);
        }
        for send in sends {
            let Some(key) = send.key else { continue };
            let (owner, step) = *owners.entry(key).or_insert((operation, send.step));
            if owner != *operation {
                let message = format!("{owner} and {operation} carry the same key.");
                finding.violated(STABLE_IDENTITY, operation, vec![step, send.step], message);
                break;
            }
        }
    }
    another_key(court, &mut finding);
    finding
}

/// More keys than people had made, also of sends that never reached the wire.
fn another_key(court: &Court<'_>, finding: &mut Finding) {
    let belief = court.run.belief();
    for op in belief.into_iter().flat_map(|belief| &belief.operations) {
        finding.looked();
        let keys: BTreeSet<&str> = op.attempts.iter().map(|attempt| attempt.key.as_str()).collect();
        let permitted = court.facts.creations(&op.name).count();
        if keys.len() > 1 + permitted {
            let message = format!(
                "{} counts sends under {} keys; people permitted {permitted} anew.",
                op.name,
                keys.len()
            );
            finding.violated(STABLE_IDENTITY, &op.name, last_of(court.run, &op.name), message);
            return;
        }
    }
}

pub(super) fn at_most_one(court: &Court<'_>) -> Finding {
    let mut finding = Finding::default();
    for (operation, made) in &court.facts.made {
        finding.looked();
        if made.len() > 1 + court.made_anew(operation) {
            let records: Vec<&str> = made.iter().map(|made| made.record).collect();
            let blame = made.iter().map(|made| made.step).take(2).collect();
            let request = operation.split(':').next().unwrap_or(operation);
            let message = format!(
                "{request} asked for one record and the destination made {}: {}.",
                made.len(),
                records.join(", ")
            );
            finding.violated(AT_MOST_ONE, operation, blame, message);
        }
    }
    finding
}

pub(super) fn no_false_failure(court: &Court<'_>) -> Finding {
    let mut finding = Finding::default();
    let belief = court.run.belief();
    for op in belief.into_iter().flat_map(|belief| &belief.operations) {
        if op.standing != Standing::Rejected || op.basis == Basis::AcceptedRisk {
            continue;
        }
        finding.looked();
        if let Some(made) = court.facts.made(&op.name).first() {
            let message = format!(
                "{} is recorded as {}, and the destination holds {}.",
                op.name, op.words, made.record
            );
            finding.violated(NO_FALSE_FAILURE, &op.name, vec![made.step], message);
        }
    }
    finding
}

pub(super) fn no_false_success(court: &Court<'_>) -> Finding {
    let mut finding = Finding::default();
    let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
    let belief = court.run.belief();
    for op in belief.into_iter().flat_map(|belief| &belief.operations) {
        if op.standing != Standing::Completed {
            continue;
        }
        finding.looked();
        let record = op.record.as_deref().unwrap_or("no record");
        let made = court.facts.made(&op.name).iter().any(|made| made.record == record)
            || court.facts.is_copy(&op.name, record);
        let held = court.held.contains(record) || court.facts.is_gone(record);
        if !made || !held {
            let message =
                format!("{} is recorded as completed with {record}, which is not its record.", op.name);
            finding.violated(NO_FALSE_SUCCESS, &op.name, last_of(court.run, &op.name), message);
        }
        if let Some(other) = owners.insert(record, &op.name) {
            let message = format!("{other} and {} are both completed with {record}.", op.name);
            finding.violated(NO_FALSE_SUCCESS, &op.name, last_of(court.run, &op.name), message);
        }
    }
    finding
}

pub(super) fn budget_survives(court: &Court<'_>) -> Finding {
    let mut finding = Finding::default();
    // A refused connection is no send on the wire, and counts all the same.
    for believed in &court.lasting {
        for (operation, op) in &believed.operations {
            finding.looked();
            let budget = court.max_sends as usize + court.facts.permitted(operation, believed.step);
            if op.attempts.len() > budget {
                let message =
                    format!("{operation} counts {} sends; its budget is {budget}.", op.attempts.len());
                finding.violated(BUDGET_SURVIVES, operation, last_of(court.run, operation), message);
                return finding;
            }
        }
    }
    // Where the run was broken off nobody has read what is counted.
    let is_over = matches!(court.run.end, End::Finished { .. });
    for (operation, sends) in court.facts.sends.iter().filter(|_| is_over) {
        let op = court.finally(operation).filter(|op| !op.purged);
        finding.looked();
        if op.is_none() && court.finally(operation).is_some() {
            continue;
        }
        let counted = op.map_or(0, |op| op.attempts.len());
        if counted < sends.len() {
            let message = format!("{operation} was sent {} times and counts {counted}.", sends.len());
            let blame = sends.last().map(|send| send.step).into_iter().collect();
            finding.violated(BUDGET_SURVIVES, operation, blame, message);
        }
    }
    finding
}

pub(super) fn no_limbo(court: &Court<'_>) -> Finding {
    let mut finding = Finding::default();
    let belief = court.run.belief();
    for op in belief.into_iter().flat_map(|belief| &belief.operations) {
        if op.standing.is_terminal() {
            continue;
        }
        finding.looked();
        let limbo = match &op.waiting {
            Waiting::Nothing | Waiting::Nobody => true,
            Waiting::Engine => false,
            Waiting::Person { .. } => !op.waiting.is_owned(),
        };
        if limbo {
            let message = format!("{} is {} and waits for nobody.", op.name, op.words);
            finding.violated(NO_LIMBO, &op.name, last_of(court.run, &op.name), message);
        }
    }
    finding
}
