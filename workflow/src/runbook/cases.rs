//! Why a person can be asked, each reason with what is known then and how the case is closed.

use super::situations::{by_hand, by_hand_only};
use super::{About, Entry, Expected, Played, span};
use crate::explain::CHANGED;
use crate::licence::Reason;
use crate::state::State;
use std::time::Duration;

/// The cases of one reason.
pub(super) fn entry(about: About<'_>, reason: Reason) -> Entry {
    let next = match never(about, reason) {
        Some(why) => format!("This case cannot come up with this contract: {why}."),
        None => next(about, reason),
    };
    Entry {
        title: format!("`{}`", reason.code()),
        facts: facts(reason).into(),
        record: record(reason),
        next,
        decides: about.decides(reason),
        reconcile: reconcile(about, reason),
        expected: expected(reason),
        played: match reason {
            // The operation does not wait for the person, so that no case of it is counted.
            Reason::ChangedRequest => Played::Scenario("changed-request"),
            _ => Played::Case(reason),
        },
    }
}

/// Why a contract never leads to such a case; none where it can.
pub(super) fn never(about: About<'_>, reason: Reason) -> Option<&'static str> {
    let recovery = about.recovery;
    let for_ever = |safe_for: Duration| safe_for == Duration::MAX;
    let replay_ends = recovery.replay.as_ref().map(|rule| !for_ever(rule.safe_for));
    let converge_for_ever = recovery.converge.as_ref().is_some_and(|rule| for_ever(rule.safe_for));
    match reason {
        Reason::KeyLapses if replay_ends.is_none() => Some("it permits no second send by a key"),
        Reason::KeyLapses if replay_ends == Some(false) => Some("the key is remembered for ever"),
        Reason::NotFoundInTime | Reason::NothingPermitted if replay_ends.is_some() => {
            Some("the same key may be sent again, and what ends that is another case")
        }
        Reason::NotFoundInTime | Reason::NothingPermitted if converge_for_ever => Some(
            "the same reference may be sent again at any time, and the budget of sends is what ends that",
        ),
        Reason::NotFoundInTime if recovery.lookup.is_none() => Some("it has no look-up"),
        Reason::NothingPermitted if recovery.lookup.is_some() => Some("it has a look-up"),
        _ => None,
    }
}

fn facts(reason: Reason) -> &'static str {
    match reason {
        Reason::RetriesExhausted => {
            "Every send that the budget allows was made, and none is known to have made the record."
        }
        Reason::NothingPermitted => {
            "A send is in doubt, and the contract permits neither another one nor a look-up."
        }
        Reason::NotFoundInTime => "A send is in doubt; look-ups found nothing, and that proves nothing here.",
        Reason::KeyLapses => {
            "A send is in doubt and its key lapses, or has lapsed: after that, a send could make a second record."
        }
        Reason::RefMissing => "The destination reported success without saying which record.",
        Reason::Conflict => {
            "What the destination shows contradicts itself: several records match, or one is not this operation's."
        }
        Reason::ChangedRequest => CHANGED,
        Reason::AuthorisationLapsed => {
            "What a person had permitted was not used in time, or more became known before it was."
        }
        Reason::CreationFailed => "The send that a person had permitted is proven to have had no effect.",
        Reason::Cancelled => {
            "It was cancelled while a send was in doubt; nothing further is sent, and nothing that may be asked tells \
             what became of it."
        }
    }
}

fn record(reason: Reason) -> String {
    let (unsent, doubt) = (State::ExceptionUnsent, State::ExceptionInDoubt);
    match reason {
        Reason::RetriesExhausted => format!(
            "`{unsent}` where every send is proven to have had no effect, else `{doubt}`; every attempt with its \
             evidence."
        ),
        Reason::NothingPermitted | Reason::NotFoundInTime | Reason::KeyLapses | Reason::Cancelled => {
            format!("`{doubt}`; every attempt and every look-up with what it showed.")
        }
        Reason::RefMissing | Reason::Conflict => format!("`{doubt}`, with the answer as evidence."),
        Reason::ChangedRequest => {
            "The operation as it was, and the further delivery with a case of its own.".into()
        }
        Reason::AuthorisationLapsed | Reason::CreationFailed => format!(
            "As before the permission: `{unsent}`, `{}` or `{doubt}`; the permission with its author, used or void.",
            State::DeclaredAbsent
        ),
    }
}

fn next(about: About<'_>, reason: Reason) -> String {
    match reason {
        Reason::ChangedRequest => "The operation goes on with its first meaning; the case waits.".into(),
        Reason::KeyLapses => format!(
            "Nothing is sent without a person.{}",
            about
                .recovery
                .replay
                .as_ref()
                .map(|replay| format!(
                    " The case names the moment at which the key lapses: {} after the first intent.",
                    span(replay.safe_for)
                ))
                .unwrap_or_default()
        ),
        _ => "Nothing is sent without a person. What arrives late all the same is kept; where the operation \
              is in doubt and it names the record, it ends the case."
            .into(),
    }
}

fn reconcile(about: About<'_>, reason: Reason) -> String {
    let resend = match may_resend(about) {
        Some(until) => format!(" Or `queue resend`, {until}."),
        None => String::new(),
    };
    let unsent = "Where every send is proven to have had no effect: `queue resend`, or `queue reject`.";
    match reason {
        Reason::RetriesExhausted => format!("{unsent} Else: {}{resend}", by_hand(about)),
        Reason::NothingPermitted | Reason::NotFoundInTime | Reason::KeyLapses => {
            format!("{}{resend}", by_hand(about))
        }
        Reason::Cancelled => {
            let how = by_hand_only(about);
            format!("{how} What is found is undone at the destination, where that is wanted.")
        }
        Reason::Conflict => format!(
            "{} Where a record too many is found, take it away at the destination: nothing here does that.{resend}",
            by_hand(about)
        ),
        // It reported success: there was a record, whatever a search shows.
        Reason::RefMissing => {
            "Search for the record: there was one. Found: `queue confirm --ref ID`. Found nothing: `queue absent` and \
             `queue reject` need `--accept-risk`."
                .to_owned()
                + &resend
        }
        Reason::ChangedRequest => {
            "`queue reject` turns the change down. A correction is delivered under a request id of its own.".into()
        }
        Reason::AuthorisationLapsed | Reason::CreationFailed => format!(
            "Decide anew: what was declared before needs a fresh look. {unsent} Else: {}",
            by_hand(about)
        ),
    }
}

/// Until when the contract permits the same send in a doubt, whoever asks for it.
fn may_resend(about: About<'_>) -> Option<String> {
    let until = |safe_for: Duration| match safe_for {
        Duration::MAX => "at any time".to_owned(),
        safe_for => format!("until {} after the first intent", span(safe_for)),
    };
    let by_key = about.recovery.replay.as_ref().map(|rule| until(rule.safe_for));
    by_key.or_else(|| about.recovery.converge.as_ref().map(|rule| until(rule.safe_for)))
}

fn expected(reason: Reason) -> Expected {
    match reason {
        Reason::RetriesExhausted
        | Reason::NothingPermitted
        | Reason::NotFoundInTime
        | Reason::KeyLapses
        | Reason::AuthorisationLapsed
        | Reason::Cancelled
        | Reason::CreationFailed => Expected::OneOrNone,
        Reason::RefMissing => Expected::One,
        Reason::Conflict => Expected::OneOrNone,
        Reason::ChangedRequest => Expected::Unchanged,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::definition::tests::definition;
    use crate::licence::{Facts, Next, next_step};
    use std::collections::BTreeSet;

    const SECOND: Duration = Duration::from_secs(1);

    fn all_contracts() -> impl Iterator<Item = (String, crate::definition::Workflow)> {
        let built_in = destinations::builtin().into_iter().map(|contract| contract.id);
        built_in.flat_map(|id| {
            [None, Some(90 * SECOND)].map(|attested| {
                let mut definition = definition(&id);
                definition.assumptions.assumed_late_commit = attested;
                (format!("{id}, attested {attested:?}"), definition.build().expect("complete"))
            })
        })
    }

    /// The reasons that the engine's own choice gives, over a grid of what can be known.
    fn given(workflow: &crate::definition::Workflow) -> BTreeSet<Reason> {
        let start = Timestamp(1_000_000_000);
        let seconds = [11, 100, 500, 5_000, 6_500, 7_000, 9_000, 1_000_000];
        let states = [State::InDoubt, State::RefMissing, State::Backoff];
        let mut given = BTreeSet::new();
        for (state, sends, checks, now, held_back) in states.into_iter().flat_map(|state| {
            let sends =
                [1, 5].into_iter().flat_map(move |sends| [0, 8, 10].map(|checks| (state, sends, checks)));
            let timed = move |(state, sends, checks)| {
                seconds
                    .into_iter()
                    .flat_map(move |now| [0, 100_000].map(|more| (state, sends, checks, now, more)))
            };
            sends.flat_map(timed)
        }) {
            let facts = Facts {
                state,
                sends,
                checks,
                first_intent: Some(start),
                last_possible_send: Some(start.after(10 * SECOND)),
                not_before: start.after(held_back * SECOND),
                misses: vec![],
                authorisation: None,
                cancelled: false,
            };
            let definition = workflow.definition();
            let next = next_step(&facts, workflow.recovery(), &definition.policy, start.after(now * SECOND));
            if let Next::Person(reason) = next {
                given.insert(reason);
            }
        }
        given
    }

    #[test]
    fn what_is_said_never_to_come_up_never_does_and_the_rest_does() {
        for (name, workflow) in all_contracts() {
            let about = About { definition: workflow.definition(), recovery: workflow.recovery() };
            let chosen = [
                Reason::RetriesExhausted,
                Reason::NothingPermitted,
                Reason::NotFoundInTime,
                Reason::KeyLapses,
                Reason::RefMissing,
            ];
            let possible: BTreeSet<Reason> =
                chosen.into_iter().filter(|reason| never(about, *reason).is_none()).collect();
            assert_eq!(given(&workflow), possible, "{name}");
        }
    }

    #[test]
    fn who_decides_is_who_the_case_is_given_to() {
        let mut definition = definition("desk_nothing");
        definition.owners.insert(Reason::Conflict, "data-steward".into());
        let workflow = definition.build().expect("complete");
        let about = About { definition: workflow.definition(), recovery: workflow.recovery() };
        let decides = |reason| entry(about, reason).decides;
        assert_eq!(decides(Reason::Conflict), "data-steward, within 4h; then it-duty is told.");
        assert_eq!(decides(Reason::RefMissing), "service-desk-lead, within 4h; then it-duty is told.");
        assert!(decides(Reason::CreationFailed).starts_with("Whoever owned the case before"));
    }
}
