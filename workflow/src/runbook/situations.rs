//! What can happen to a request, from its first delivery to a crash at the worst moment.

use super::{About, Entry, Expected, Played, span};
use crate::licence::Reason;
use crate::state::State;
use destinations::Class;
use destinations::contract::LookupBy;
use std::time::Duration;

/// Every situation, in the order in which a reader meets them.
pub(super) fn all(about: About<'_>) -> Vec<Entry> {
    vec![
        first_delivery(about),
        repeated_delivery(about),
        concurrent_delivery(about),
        time_out_after_success(about),
        crash(about),
        permanent_validation_failure(about),
    ]
}

fn nobody() -> String {
    "Nobody: the engine.".to_owned()
}

fn first_delivery(about: About<'_>) -> Entry {
    let (ready, sent, done) = (State::Ready, State::Sent, State::Confirmed);
    Entry {
        title: "First delivery".into(),
        facts: format!(
            "A request with a new `{}` arrived. Nothing was ever sent for it.",
            about.definition.request_id
        ),
        record: format!(
            "Delivery and operation (`{ready}`) before the source is answered 202. Key, bytes and count of the send \
             (`{sent}`) before its first byte leaves. Then the id of the record (`{done}`)."
        ),
        next: "One create is sent. An answer that names the record completes the operation.".into(),
        decides: nobody(),
        reconcile: "Nothing is left to do: the record's id is on record.".into(),
        expected: Expected::One,
        played: Played::Scenario("first-delivery"),
    }
}

fn repeated_delivery(about: About<'_>) -> Entry {
    let fields = about.definition.intent.iter().map(|field| format!("`{field}`")).collect::<Vec<_>>();
    Entry {
        title: "Repeated delivery".into(),
        facts: format!(
            "A request arrived whose operation is known. It means the same where {} are the same.",
            fields.join(", ")
        ),
        record: "The further delivery, beside the operation, which stays as it is.".into(),
        next: format!(
            "It is answered 202 and `same`; nothing is sent for it. With another meaning it is answered 409, and a \
             case is opened (`{}`).",
            Reason::ChangedRequest.code()
        ),
        decides: nobody(),
        reconcile: "Nothing is left to do. Ask what is known of the operation, not the source.".into(),
        expected: Expected::One,
        played: Played::Scenario("repeated-delivery"),
    }
}

fn concurrent_delivery(about: About<'_>) -> Entry {
    let version = about.definition.version;
    Entry {
        title: "Concurrent delivery".into(),
        facts: "Several deliveries of one request arrived at once.".into(),
        record: format!(
            "One operation, because its key is made of request, step (`{}`) and version ({version}) alone. Each \
             delivery beside it.",
            about.definition.step
        ),
        next: "The first that becomes durable begins the operation; all are answered 202. One send is under way at \
               any time."
            .into(),
        decides: nobody(),
        reconcile: "Nothing is left to do.".into(),
        expected: Expected::One,
        played: Played::Scenario("concurrent-delivery"),
    }
}

fn time_out_after_success(about: About<'_>) -> Entry {
    Entry {
        title: "Time-out after success".into(),
        facts: "A create was sent and no whole answer came back. The destination may have made the record; silence \
                says neither that it did nor that it did not."
            .into(),
        record: format!("`{}`, with the attempt, its key and its bytes, and the silence as evidence.", State::InDoubt),
        next: after_a_doubt(about),
        decides: in_the_end(about),
        reconcile: by_hand(about),
        expected: Expected::One,
        played: Played::Scenario("time-out-after-effect"),
    }
}

fn crash(about: About<'_>) -> Entry {
    let (sent, after) = (State::Sent, State::Sent.recovered());
    Entry {
        title: "Crash before local completion".into(),
        facts: "The process died between the intent of a send and the record of its outcome. The create may have \
                left, and may have been applied."
            .into(),
        record: format!(
            "`{sent}` on the disk, with key and bytes. The next start makes `{after}` of it before anything else is \
             done: never ready again."
        ),
        next: format!("As after a time-out. {}", after_a_doubt(about)),
        decides: in_the_end(about),
        reconcile: by_hand(about),
        expected: after_a_crash(about.recovery.class()),
        played: Played::Scenario("crash-between-steps"),
    }
}

fn permanent_validation_failure(about: About<'_>) -> Entry {
    let (invalid, refused) = (State::Invalid, State::RefusedByDestination);
    let required = about.definition.required.iter().map(|field| format!("`{field}`")).collect::<Vec<_>>();
    let own = match required.is_empty() {
        true => "This workflow requires no field of a request.".to_owned(),
        false => format!("The request lacks one of {}, or the destination refuses it.", required.join(", ")),
    };
    let statuses: Vec<String> = about
        .definition
        .contract
        .errors
        .not_executed
        .iter()
        .filter_map(|error| error.status)
        .filter(|status| !matches!(status, 429 | 503))
        .map(|status| status.to_string())
        .collect();
    let documented = match statuses.is_empty() {
        true => "The contract documents no refusal: every error leaves a doubt.".to_owned(),
        false => format!("Refusals before execution are documented for {}.", statuses.join(", ")),
    };
    Entry {
        title: "Permanent validation failure".into(),
        facts: format!("{own} {documented}"),
        record: format!(
            "`{invalid}` where the workflow's own rules are not met: nothing was sent. `{refused}` where the \
             destination refused the only send that can have had an effect."
        ),
        next: "Nothing: it has ended. A correction is delivered under a request id of its own.".into(),
        decides: nobody(),
        reconcile: "Tell the source what was missing. No record has to be looked for.".into(),
        expected: Expected::None,
        played: Played::Scenario("permanent-validation-failure"),
    }
}

/// The create may not have left: where nothing permits another one, a person may leave it at that.
fn after_a_crash(class: Class) -> Expected {
    match class {
        Class::Replay | Class::Converge | Class::LookupDecides => Expected::One,
        Class::LookupConfirms | Class::Owner => Expected::OneOrNone,
    }
}

/// What the engine does about a doubt, step by step, in the order in which it decides.
fn after_a_doubt(about: About<'_>) -> String {
    let policy = &about.definition.policy;
    let mut steps = vec![];
    if let Some(replay) = &about.recovery.replay {
        let until = match replay.safe_for {
            Duration::MAX => "at any time".to_owned(),
            safe_for => format!("until {} after the first intent", span(safe_for)),
        };
        steps.push(format!(
            "The same key and bytes are sent again{} {until}, {} sends in all.",
            apart(replay.wait_between),
            policy.max_sends
        ));
    }
    if let Some(converge) = &about.recovery.converge {
        let until = match converge.safe_for {
            Duration::MAX => "as long as the record exists".to_owned(),
            safe_for => format!("until {} after the first intent", span(safe_for)),
        };
        steps.push(format!(
            "The same `{}` is sent again{} {until}, {} sends in all; a conflict means that the record exists, and it \
             is read to see whose it is.",
            converge.field,
            apart(converge.wait_between),
            policy.max_sends
        ));
    }
    if let Some(rule) = &about.recovery.lookup {
        let first = if steps.is_empty() { "The record" } else { "After that the record" };
        let miss = match rule.decides_after {
            None => "finding nothing proves nothing".to_owned(),
            Some(after) if rule.lag.is_zero() => format!(
                "one that is complete and finds nothing, from {} after the last possible send, permits one more send",
                span(after)
            ),
            Some(after) => format!(
                "two that are complete and find nothing, {} apart and from {} after the last possible send, permit one \
                 more send",
                span(rule.lag),
                span(after)
            ),
        };
        steps.push(format!(
            "{first} is looked up by {}, up to {} times: finding it ends the doubt; {miss}.",
            words(rule.by),
            policy.max_checks
        ));
    }
    let reasons = about.ends_of_a_doubt().into_iter().map(|reason| format!("`{}`", reason.code()));
    let reasons = reasons.collect::<Vec<_>>().join(", ");
    steps.push(match steps.is_empty() {
        true => format!("Nothing is sent again and nothing is looked up: a person decides ({reasons})."),
        false => format!("After that a person decides ({reasons})."),
    });
    steps.join(" ")
}

fn apart(wait: Duration) -> String {
    match wait {
        Duration::ZERO => String::new(),
        wait => format!(", never two at once ({} after the last possible send),", span(wait)),
    }
}

/// Who decides where nothing else has ended the doubt.
fn in_the_end(about: About<'_>) -> String {
    let reasons = about.ends_of_a_doubt();
    let first = reasons.first().copied().unwrap_or(Reason::RetriesExhausted);
    let same = reasons.iter().all(|reason| about.decides(*reason) == about.decides(first));
    let who = match same {
        true => about.decides(first),
        false => {
            let each =
                reasons.iter().map(|reason| format!("`{}`: {}", reason.code(), about.decides(*reason)));
            each.collect::<Vec<_>>().join(" ")
        }
    };
    format!("The engine, as long as it may go on. Then {who}")
}

fn words(by: LookupBy) -> String {
    by.word().replace('_', " ")
}

/// What a person searches for, and what follows from what they find.
pub(super) fn by_hand(about: About<'_>) -> String {
    by_hand_or(about, true)
}

/// The same, where nothing further may be made: it was cancelled.
pub(super) fn by_hand_only(about: About<'_>) -> String {
    by_hand_or(about, false)
}

fn by_hand_or(about: About<'_>, create: bool) -> String {
    let definition = about.definition;
    let by_reference = definition.contract.lookup.iter().any(|lookup| lookup.by == LookupBy::ExternalRef);
    let search = match by_reference {
        true => "Search for the `external_id` that the case names, then for the operation's key (`marker`)"
            .to_owned(),
        false => format!("Search for the operation's key (`marker`) in account `{}`", definition.account),
    };
    let none = match about.recovery.settled_after {
        Some(after) if !create => format!(
            "Found nothing from {} after the last possible send on: `queue absent`, then `queue reject`",
            span(after)
        ),
        Some(after) => format!(
            "Found nothing from {} after the last possible send on: `queue absent`, then `queue create`{} within {}, \
             or `queue reject`",
            span(after),
            if definition.second_person { " by somebody else" } else { "" },
            span(definition.policy.absence_max_age)
        ),
        None => "Found nothing: nobody knows whether a record still comes, so `queue absent` and `queue reject` need \
                 `--accept-risk`"
            .to_owned(),
    };
    format!("{search}. Found: `queue confirm --ref ID`. {none}.")
}
