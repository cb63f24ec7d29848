//! The invariants about doubt: what may be sent in it, and how it ends.

use super::checks::last_of;
use super::facts::{Asked, Look, Send, Wanted, between};
use super::{Court, DOUBT_IS_STICKY, Finding, NO_BLIND_RESEND, TRUSTED_NEGATIVE};
use crate::belief::{Basis, Standing};
use crate::history::{Act, Nanos};
use destinations::recovery::{Doubt, Ground, Miss};
use std::collections::BTreeSet;

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
    let same = (sends[n].key, sends[n].digest) == (sends[0].key, sends[0].digest);
    Doubt { same_key_and_bytes: same, ..doubt_by(court, operation, &sends[..n], sends[n].at) }
}

/// The doubt in which these sends have left an operation, as an observer of the wire has it at an instant.
fn doubt_by(court: &Court<'_>, operation: &str, sends: &[Send<'_>], now: Nanos) -> Doubt {
    let (first, last) = (&sends[0], &sends[sends.len() - 1]);
    let heard_in_time = |look: &&Look<'_>| look.heard <= now && look.sent >= last.at;
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
        sends: sends.len() as u32,
        misses,
        same_key_and_bytes: true,
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
    sent_though_cancelled(court, &mut finding);
    finding
}

/// A send after who had cancelled it heard that nothing further is sent. One may have been on its way: its
/// intent was durable before, and says so.
fn sent_though_cancelled(court: &Court<'_>, finding: &mut Finding) {
    for (operation, sends) in &court.facts.sends {
        let cancelled = court.facts.cancelled(operation).and_then(Wanted::taken);
        let Some(heard) = cancelled.map(|step| court.run.history.event(step)) else { continue };
        finding.looked();
        let after = sends.iter().filter(|send| send.step > heard.step);
        let under_way = usize::from(was_under_way(court, operation));
        let mut further = after.skip(under_way);
        if let Some(send) = further.next() {
            let message = format!("{operation} was sent after it had been cancelled.");
            finding.violated(NO_BLIND_RESEND, operation, vec![heard.step, send.step], message);
            return;
        }
    }
}

/// Whether a send was under way when an operation was cancelled, by what is on record of that; where nothing
/// is, it may have been.
fn was_under_way(court: &Court<'_>, operation: &str) -> bool {
    let op = court.run.beliefs.iter().rev().find_map(|at| at.belief.operation(operation));
    let mut acts = op.into_iter().flat_map(|op| &op.decisions);
    let cancelled = acts.find(|act| act.said.starts_with("cancel:"));
    cancelled.is_none_or(|act| act.before.starts_with("processing/"))
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
            (_, Basis::Person) if court.facts.decided(&op.name) => true,
            // Of the older keys a person has only said that they made nothing.
            _ if generations.len() > 1 || !all_disproved(court, &op.name, sends, sends.len() - 1) => false,
            (_, Basis::Person) => {
                court.facts.cancelled(&op.name).is_some_and(Wanted::may_be_taken)
                    && is_over(court, &op.name, sends)
            }
            _ => is_disproved(court, &sends[sends.len() - 1]),
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

/// Whether the last of these sends is proven to have done nothing: by its answer, or by a look-up.
fn is_over(court: &Court<'_>, operation: &str, sends: &[Send<'_>]) -> bool {
    let end = court.run.history.events().last().map_or(Nanos(0), |event| event.t_ns);
    is_disproved(court, &sends[sends.len() - 1])
        || court.recovery.trusted_negative(&doubt_by(court, operation, sends, end))
}
