//! What the contract says to the matter of a story, and short names for long keys.

use crate::fault::Call;
use crate::history::{Kind, Nanos};
use crate::run::Run;
use destinations::{Contract, Retention, Staleness};
use std::collections::BTreeSet;
use std::time::Duration;

/// Keys up to this length are shown whole.
const WHOLE: usize = 12;
/// Of longer ones so many characters are shown.
const SHORT: usize = 8;

/// Short forms of a run's keys that stay apart.
pub(super) struct KeyNames(BTreeSet<String>);

impl KeyNames {
    pub(super) fn of(run: &Run) -> Self {
        let sent = run.history.events().iter().filter_map(|event| match &event.kind {
            Kind::Sent { key, .. } | Kind::Effect { key, .. } => key.clone(),
            _ => None,
        });
        let operations = run.beliefs.iter().flat_map(|at| &at.belief.operations);
        let counted = operations.flat_map(|operation| operation.attempts.iter().map(|a| a.key.clone()));
        KeyNames(sent.chain(counted).collect())
    }

    /// The key whole where it is short, else as much of its start or its end as tells it from the others.
    pub(super) fn short(&self, key: &str) -> String {
        let chars: Vec<char> = key.chars().collect();
        if chars.len() <= WHOLE {
            return key.to_owned();
        }
        let head = |key: &str| key.chars().take(SHORT).collect::<String>();
        let tail = |key: &str| key.chars().rev().take(SHORT).collect::<String>();
        let alone = |part: &dyn Fn(&str) -> String| {
            self.0.iter().all(|other| other == key || part(other) != part(key))
        };
        if alone(&head) {
            return format!("{}…", head(key));
        }
        if alone(&tail) {
            return format!("…{}", chars[chars.len() - SHORT..].iter().collect::<String>());
        }
        key.to_owned()
    }
}

/// The sentences of the contract that matter to what happened to this operation.
pub(super) fn of_contract(run: &Run, about: &str, contract: &Contract, keys: &KeyNames) -> Vec<String> {
    let mut facts = vec![];
    let creates = creates(run, about);
    if let [(first_at, Some(first)), .., (last_at, last)] = creates.as_slice() {
        facts.extend(key_fact(contract, (*first_at, first), (*last_at, last.as_deref()), keys));
    }
    if creates.len() > 1 && contract.dedup_key.is_none() && contract.converge.is_empty() {
        facts
            .push("The contract knows no key and no unique reference: each create may make a record.".into());
    }
    if missed_look_up(run, about) {
        facts.extend(look_up_fact(contract));
    }
    if effect_is_late(run, about) {
        facts.push(match contract.time.late_commit_bound.known() {
            Some(bound) => {
                format!("The contract lets a request take effect up to {} after its send.", span(bound))
            }
            None => "The contract gives no bound on how late a request may take effect.".into(),
        });
    }
    facts
}

/// The creates of an operation: when, and with which key.
fn creates(run: &Run, about: &str) -> Vec<(Nanos, Option<String>)> {
    let create = |event: &crate::history::Event| match &event.kind {
        Kind::Sent { exchange, key, .. } if exchange.call == Call::Create && exchange.about == about => {
            Some((event.t_ns, key.clone()))
        }
        _ => None,
    };
    run.history.events().iter().filter_map(create).collect()
}

fn key_fact(
    contract: &Contract,
    (first_at, first): (Nanos, &str),
    (last_at, last): (Nanos, Option<&str>),
    keys: &KeyNames,
) -> Option<String> {
    let key = contract.dedup_key.as_ref()?;
    let age = Duration::from_millis(last_at.0.saturating_sub(first_at.0) / 1_000_000);
    let (kept, lapsed) = match key.retention {
        Retention::For(kept) => (span(kept), age > kept),
        Retention::Forever => ("ever".to_owned(), false),
        Retention::Unknown => return Some("The contract does not say how long it remembers a key.".into()),
    };
    let name = keys.short(first);
    let age = span(age);
    Some(if lapsed {
        format!("The contract remembers key {name} for {kept}; at the last create it was {age} old.")
    } else if last == Some(first) {
        format!("The contract remembers key {name} for {kept}; the last create repeated it after {age}.")
    } else {
        format!("The contract remembers key {name} for {kept}; it was {age} old at the last create.")
    })
}

fn missed_look_up(run: &Run, about: &str) -> bool {
    run.history.events().iter().any(|event| {
        matches!(&event.kind, Kind::Received { exchange, empty: true, .. }
            if exchange.call == Call::Find && exchange.about == about)
    })
}

fn look_up_fact(contract: &Contract) -> Option<String> {
    let lookup = contract.lookup.first()?;
    Some(match lookup.max_staleness {
        Staleness::Known(lag) => format!("The contract's look-up may lag {} behind a commit.", span(lag)),
        Staleness::None => "The contract says that its look-up has no bound on its lag.".into(),
        Staleness::Unknown if lookup.consistency == destinations::Consistency::ReadYourWrites => {
            "The contract's look-up sees every commit before it, but no request that is still to come.".into()
        }
        Staleness::Unknown => "The contract does not say how far its look-up may lag.".into(),
    })
}

fn effect_is_late(run: &Run, about: &str) -> bool {
    let late = |kind: &Kind| matches!(kind, Kind::Effect { about: a, late: true, .. } if a == about);
    run.history.events().iter().any(|event| late(&event.kind))
}

/// A time as people say it: 24h is a day to humantime, and to nobody else.
fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{}.{} s", seconds, time.subsec_millis() / 100),
        60..7200 => format!("{} min", seconds / 60),
        7200..=345_600 if seconds % 3600 >= 60 => {
            format!("{} h {} min", seconds / 3600, seconds % 3600 / 60)
        }
        7200..=345_600 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}
