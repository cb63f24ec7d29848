//! The invariants about what lasts: knowledge, a store in doubt, and the budget on the wire.

use super::checks::{last_step, last_until};
use super::facts::between;
use super::{BOUNDED, Court, Finding, MEMORY_OUTLIVES, MONOTONE, STORE_DOUBT};
use crate::belief::{BelievedOperation, Standing};
use crate::fault::{Call, Place, When};
use crate::history::{Act, Kind, Nanos, Step};
use crate::run::{BeliefAt, Moment, Run};
use crate::verdict::InvariantId;
use std::collections::BTreeMap;
use std::time::Duration;

/// What was durable once is not taken back, and what a person was told is so stays so.
pub(super) fn monotone(court: &Court<'_>) -> Finding {
    let mut finding = Finding::default();
    let change = |before: &BelievedOperation, now: Option<&BelievedOperation>| taken_back(before, now?);
    if !compared(court, &mut finding, MONOTONE, change) {
        decisions_stand(court, &mut finding);
    }
    finding
}

/// What has ended is still known: as an operation, or by its tombstone.
pub(super) fn memory_outlives(court: &Court<'_>) -> Finding {
    let mut finding = Finding::default();
    let gone = |_: &BelievedOperation, now: Option<&BelievedOperation>| {
        now.is_none().then(|| "is not known any more".to_owned())
    };
    if !compared(court, &mut finding, MEMORY_OUTLIVES, gone) {
        begun_twice(court, &mut finding);
    }
    finding
}

/// One request whose deliveries were told twice that they are new.
fn begun_twice(court: &Court<'_>, finding: &mut Finding) {
    let operations: BTreeMap<&str, &str> = court
        .run
        .deliveries()
        .map(|delivery| (delivery.name.as_str(), delivery.operation.as_str()))
        .collect();
    let mut begun: BTreeMap<&str, Step> = BTreeMap::new();
    for event in court.run.history.events() {
        let Kind::Received { exchange, status: 200..=299, summary, .. } = &event.kind else { continue };
        let Some(operation) = operations.get(exchange.about.as_str()) else { continue };
        if exchange.call != Call::Deliver || summary != "new" {
            continue;
        }
        finding.looked();
        if let Some(first) = begun.insert(operation, event.step) {
            let message = format!("{operation} was taken for new twice.");
            finding.violated(MEMORY_OUTLIVES, operation, vec![first, event.step], message);
            return;
        }
    }
}

/// Compares what was firmly known of each operation with what is known later; whether something is wrong.
fn compared(
    court: &Court<'_>,
    finding: &mut Finding,
    invariant: InvariantId,
    change: impl Fn(&BelievedOperation, Option<&BelievedOperation>) -> Option<String>,
) -> bool {
    let mut known: BTreeMap<&str, (&BelievedOperation, Step)> = BTreeMap::new();
    for at in &court.run.beliefs {
        for (name, (before, since)) in &known {
            finding.looked();
            if let Some(change) = change(before, at.belief.operation(name)) {
                let message = format!("{name} was {} and {change}.", stands(before));
                // Where it was read says nothing of what was forgotten.
                finding.violated(invariant, name, last_until(court.run, name, *since), message);
                return true;
            }
        }
        if is_firm(court.run, at) {
            for op in &at.belief.operations {
                let since = known.get(op.name.as_str()).filter(|(before, _)| before.words == op.words);
                let since = since.map_or(at.step, |(_, since)| *since);
                known.insert(&op.name, (op, since));
            }
        }
    }
    false
}

/// Whether a power cut could not take it away: a process that is killed before a sync takes effect leaves
/// what is not durable, too.
fn is_firm(run: &Run, at: &BeliefAt) -> bool {
    let event = run.history.event(at.step);
    if at.moment != Moment::Crash || event.kind == Kind::PowerCut {
        return true;
    }
    let struck = run.fired.iter().position(|step| step.is_some() && *step == event.cause);
    struck.is_some_and(|index| {
        let place = &run.plan.tape.faults()[index].at;
        !matches!(place, Place::Sync { when: When::Before, .. })
    })
}

/// What is wrong with an operation's later standing, in words.
fn taken_back(before: &BelievedOperation, now: &BelievedOperation) -> Option<String> {
    let ended = before.standing.is_terminal();
    let record_changed = before.record.is_some() && before.record != now.record;
    (ended && before.words != now.words || record_changed).then(|| format!("became {}", stands(now)))
}

fn stands(op: &BelievedOperation) -> String {
    let record = op.record.as_deref().map(|record| format!(" with {record}")).unwrap_or_default();
    format!("{}{record}", op.words)
}

/// A confirmation that was answered with success has completed its operation, for good and only once.
fn decisions_stand(court: &Court<'_>, finding: &mut Finding) {
    let mut taken: BTreeMap<&str, Step> = BTreeMap::new();
    for wanted in court.facts.wanted.iter().filter(|wanted| wanted.act == Act::Confirm) {
        let Some(step) = wanted.taken() else { continue };
        finding.looked();
        if let Some(first) = taken.insert(wanted.about, step) {
            let message = format!("{} was confirmed twice, and both were accepted.", wanted.about);
            finding.violated(MONOTONE, wanted.about, vec![first, step], message);
            return;
        }
    }
    for (operation, step) in taken {
        let later = court.run.beliefs.iter().filter(|at| at.step >= step);
        let stand = later.filter_map(|at| at.belief.operation(operation));
        if let Some(op) = stand.into_iter().find(|op| op.standing != Standing::Completed) {
            let message =
                format!("A person's confirmation of {operation} was accepted, and it is {}.", stands(op));
            finding.violated(MONOTONE, operation, vec![step], message);
            return;
        }
    }
}

/// A process that is stopping may still sync what it closes, for so long.
const STOPPING: Duration = Duration::from_secs(1);

/// After a sync that failed, no create leaves the same process, unless its own intent was durable before.
pub(super) fn store_doubt(court: &Court<'_>) -> Finding {
    let mut finding = Finding::default();
    let mut failed: Option<(Step, Nanos)> = None;
    let mut went_on = false;
    let mut sent: BTreeMap<&str, usize> = BTreeMap::new();
    for event in court.run.history.events() {
        match &event.kind {
            Kind::Started { .. } => (failed, went_on) = (None, false),
            Kind::Fault { what: "sync-error", .. } => {
                finding.looked();
                failed = failed.or(Some((event.step, event.t_ns)));
            }
            // While it stood still it could not stop.
            Kind::Resumed => failed = failed.map(|(step, _)| (step, event.t_ns)),
            // A later sync says nothing about what the failed one was to make durable.
            Kind::Synced { .. } => {
                went_on |= failed.is_some_and(|(_, at)| between(event.t_ns, at) > STOPPING);
            }
            Kind::Sent { exchange, .. } if exchange.call == Call::Create => {
                let operation = exchange.about.as_str();
                let count = sent.entry(operation).or_default();
                *count += 1;
                if let Some((failed, _)) = failed
                    && (went_on || !is_counted(court.run, operation, *count, event.step))
                {
                    let message = format!("{operation} was sent by a process whose store had failed.");
                    finding.violated(STORE_DOUBT, operation, vec![failed, event.step], message);
                    return finding;
                }
            }
            _ => {}
        }
    }
    finding
}

/// Whether what is read of the store next knows of so many sends.
fn is_counted(run: &Run, operation: &str, sends: usize, step: Step) -> bool {
    let Some(next) = run.beliefs.iter().find(|at| at.step >= step) else { return true };
    next.belief.operation(operation).is_some_and(|op| op.attempts.len() >= sends)
}

/// Creates on the wire: of each operation, and of all.
pub(super) fn bounded(court: &Court<'_>) -> Finding {
    let mut finding = Finding::default();
    let mut all = 0;
    let mut budgets = 0;
    for (operation, sends) in &court.facts.sends {
        finding.looked();
        let count = sends.len();
        // What a person permits comes on top.
        let last = sends.last().map_or(Step(0), |send| send.step);
        let permitted = court.facts.permitted(operation, last);
        let budget = court.max_sends as usize + permitted;
        (all, budgets) = (all + count, budgets + permitted);
        if count > budget {
            let message = format!("{operation} was sent {count} times; its budget is {budget}.");
            let blame = sends.last().map(|send| send.step).into_iter().collect();
            finding.violated(BOUNDED, operation, blame, message);
        }
    }
    let requests = court.run.plan.workload.requests.len();
    budgets += (court.max_sends as usize).saturating_mul(requests);
    if all > budgets {
        let message =
            format!("{requests} requests were sent {all} times; their budgets together are {budgets}.");
        finding.violated(BOUNDED, "all operations", last_step(court.run), message);
    }
    finding
}
