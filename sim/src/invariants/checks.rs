//! One function an invariant.

use super::facts::{Asked, Send, Wanted, between};
use super::{
    AT_MOST_ONE, BUDGET_SURVIVES, DELIVERY_KEPT, DOUBT_IS_STICKY, INTENT_FIRST, NO_BLIND_RESEND,
    NO_FALSE_FAILURE, NO_FALSE_SUCCESS, NO_LIMBO, NO_PANIC, STABLE_IDENTITY, TRUSTED_NEGATIVE,
};
use super::{Court, Finding};
use crate::belief::{Basis, Standing, Waiting};
use crate::history::{Act, Event, Kind, Step};
use crate::run::{End, Run};
use crate::verdict::{InvariantId, Violation};
use destinations::recovery::{Doubt, Ground, Miss};
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
    let is_it = |event: &&Event| {
        let happened = !matches!(event.kind, Kind::Journal { .. } | Kind::Person { .. });
        happened && event.kind.about() == Some(operation)
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
            let attempts = believed.operations.get(operation).map_or(&[][..], |op| &op.attempts);
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
        if crashed.clone().any(|believed| !believed.deliveries.contains_key(name)) {
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

/// Whether the answer to a send is a documented refusal before execution.
fn is_disproved(court: &Court<'_>, send: &Send<'_>) -> bool {
    send.heard.is_some_and(|(status, summary, _)| {
        let code = summary.split(',').next().unwrap_or_default();
        let body = serde_json::json!({"error": {"code": code}}).to_string();
        court.contract.not_executed(status, body.as_bytes())
    })
}

/// What an observer of the wire would call the doubt at the moment of send `n` of an operation.
fn doubt_at(court: &Court<'_>, operation: &str, sends: &[Send<'_>], n: usize) -> Doubt {
    let (now, first, last) = (sends[n].at, &sends[0], &sends[n - 1]);
    let heard_in_time = |look: &&super::facts::Look<'_>| look.heard <= now && look.sent >= last.at;
    let misses = court
        .facts
        .looks
        .iter()
        .filter(heard_in_time)
        .filter(|look| look.about == operation && look.empty)
        .map(|look| Miss {
            age: between(now, look.sent),
            complete: true,
            control_found: court
                .facts
                .looks
                .iter()
                .filter(heard_in_time)
                .any(|control| control.about != operation && !control.empty && control.sent >= look.sent),
        })
        .rev()
        .collect();
    let doubt = Doubt {
        first_intent_age: between(now, first.at),
        last_send_age: between(now, last.at),
        sends: n as u32,
        misses,
        same_key_and_bytes: (sends[n].key, sends[n].digest) == (first.key, first.digest),
    };
    court.as_its_clock_shows(doubt, now)
}

/// Whether every send before the `n`-th is proven to have done nothing, by its answer or by a trusted
/// look-up.
fn all_disproved(court: &Court<'_>, operation: &str, sends: &[Send<'_>], n: usize) -> bool {
    (0..n).all(|earlier| {
        is_disproved(court, &sends[earlier])
            || (earlier + 1..=n)
                .any(|later| court.recovery.trusted_negative(&doubt_at(court, operation, sends, later)))
    })
}

pub(super) fn no_blind_resend(court: &Court<'_>) -> Finding {
    let mut finding = Finding::default();
    for (operation, sends, anew) in by_generation(court) {
        for n in 1..sends.len() {
            finding.looked();
            let doubt = doubt_at(court, operation, sends, n);
            // A permission is for one send: that it had no effect permits no other.
            let proven = !anew && all_disproved(court, operation, sends, n);
            let licensed = match court.recovery.may_resend(&doubt) {
                Some(Ground::TrustedMiss) => !anew,
                ground => ground.is_some(),
            };
            if !proven && !licensed {
                let age = humantime::format_duration(std::time::Duration::from_secs(
                    doubt.first_intent_age.as_secs(),
                ));
                let message = format!(
                    "{operation} was sent again {age} after its first send, while its outcome was unknown \
                     and the contract did not permit it."
                );
                finding.violated(NO_BLIND_RESEND, operation, vec![sends[n - 1].step, sends[n].step], message);
                break;
            }
        }
    }
    permission_used_twice(court, &mut finding);
    finding
}

/// A permission that was used for more than one send. Those that never reached the wire count too: each was
/// counted before its first byte.
fn permission_used_twice(court: &Court<'_>, finding: &mut Finding) {
    if court.recovery.replay.is_some() || court.recovery.converge.is_some() {
        // The contract permits the same key again.
        return;
    }
    let belief = court.run.belief();
    for op in belief.into_iter().flat_map(|belief| &belief.operations) {
        let Some(first) = op.attempts.first() else { continue };
        let mut used = BTreeSet::new();
        for attempt in op.attempts.iter().filter(|attempt| attempt.key != first.key) {
            finding.looked();
            if !used.insert(&attempt.key) {
                let message = format!("{} was sent twice under a key that a person permitted once.", op.name);
                finding.violated(NO_BLIND_RESEND, &op.name, last_of(court.run, &op.name), message);
                return;
            }
        }
    }
}

/// The sends of each operation, one slice a generation, and whether a person had that one made.
fn by_generation<'c>(court: &'c Court<'_>) -> impl Iterator<Item = (&'c str, &'c [Send<'c>], bool)> {
    let all = court.facts.sends.keys();
    all.flat_map(|operation| {
        let generations = court.facts.generations(operation).into_iter().enumerate();
        generations.map(|(n, sends)| (*operation, sends, n > 0))
    })
}

/// A resend that neither the key nor the identity permits, after a look-up: found or not, answered or not.
pub(super) fn trusted_negative(court: &Court<'_>) -> Finding {
    let mut finding = Finding::default();
    for (operation, sends, _) in by_generation(court) {
        for n in 1..sends.len() {
            let doubt = doubt_at(court, operation, sends, n);
            let by_other_right =
                matches!(court.recovery.may_resend(&doubt), Some(Ground::Key | Ground::Identity));
            let since = sends[n - 1].at..=sends[n].at;
            let asked = |look: &&Asked<'_>| look.about == operation && since.contains(&look.at);
            let Some(last) = court.facts.asked.iter().rev().find(asked) else { continue };
            if by_other_right
                || all_disproved(court, operation, &sends[..n], n - 1) && is_disproved(court, &sends[n - 1])
            {
                continue;
            }
            finding.looked();
            if !court.recovery.trusted_negative(&doubt) {
                let miss = court
                    .facts
                    .looks
                    .iter()
                    .rev()
                    .find(|look| look.about == operation && look.empty && since.contains(&look.sent));
                let blame = vec![miss.map_or(last.step, |look| look.step), sends[n].step];
                let message = format!(
                    "{operation} was sent again because a look-up found nothing, which proved nothing."
                );
                finding.violated(TRUSTED_NEGATIVE, operation, blame, message);
                break;
            }
        }
    }
    declared_too_early(court, &mut finding);
    finding
}

/// A person who looked before the last record could come, and was believed.
fn declared_too_early(court: &Court<'_>, finding: &mut Finding) {
    let declared = |wanted: &&Wanted<'_>| wanted.act == Act::DeclareAbsent && wanted.taken().is_some();
    for wanted in court.facts.wanted.iter().filter(declared) {
        finding.looked();
        let later = court.facts.made(wanted.about).iter().find(|made| made.step > wanted.step);
        let Some(came) = later else { continue };
        let between = wanted.step..=came.step;
        if !court.facts.sends(wanted.about).iter().any(|send| between.contains(&send.step)) {
            let (about, record) = (wanted.about, came.record);
            let message =
                format!("{about} was declared absent, and then {record} came of what had been sent before.");
            finding.violated(TRUSTED_NEGATIVE, about, vec![wanted.step, came.step], message);
            return;
        }
    }
}

pub(super) fn doubt_is_sticky(court: &Court<'_>) -> Finding {
    let mut finding = Finding::default();
    let belief = court.run.belief();
    for op in belief.into_iter().flat_map(|belief| &belief.operations) {
        let generations = court.facts.generations(&op.name);
        let sends = generations.last().copied().unwrap_or_default();
        if !op.standing.is_terminal() || sends.is_empty() {
            continue;
        }
        finding.looked();
        let founded = match (op.standing, op.basis) {
            (_, Basis::AcceptedRisk) => court.facts.decided(&op.name),
            (Standing::Completed, _) => {
                let named = court.facts.named.get(op.name.as_str());
                let heard = named
                    .is_some_and(|named| named.iter().any(|record| op.record.as_deref() == Some(record)));
                heard || court.facts.decided(&op.name)
            }
            (_, Basis::Person) => court.facts.decided(&op.name),
            _ => {
                // Of the older keys a person has only said that they made nothing.
                generations.len() == 1
                    && all_disproved(court, &op.name, sends, sends.len() - 1)
                    && is_disproved(court, &sends[sends.len() - 1])
            }
        };
        if !founded {
            let blame = sends.last().map(|send| send.step).into_iter().collect();
            let message =
                format!("{} is recorded as {}, and nothing that came back says so.", op.name, op.words);
            finding.violated(DOUBT_IS_STICKY, &op.name, blame, message);
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
        finding.looked();
        let counted = court.finally(operation).map_or(0, |op| op.attempts.len());
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
