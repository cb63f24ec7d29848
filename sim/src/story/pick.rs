//! Which events a story tells: the blamed ones, and backwards from them what led to them.

use super::draw::Lanes;
use super::{STEPS_MAX, Tale};
use crate::fault::{Call, ExchangeName, Place};
use crate::history::{Event, Kind, Step};
use crate::run::Run;
use std::collections::{BTreeMap, BTreeSet};

/// Added to the rank of what happened after the violation.
const AFTERWARDS: u32 = 3;

/// The steps that are told, in order.
pub(super) fn pick(tale: &Tale<'_>, lanes: &Lanes) -> Vec<Step> {
    let run = tale.run;
    let blame: &[Step] = tale.violation.map_or(&[], |violation| &violation.blame);
    let last = blame.last().copied().unwrap_or(Step(run.history.events().len() as u32));
    let related = related(run, tale.violation.map(|violation| violation.about.as_str()));
    let causes = causes(run, blame);
    let heard = heard(run);
    let first_delivery = first_delivery(run, &related);
    let until = tale.until.unwrap_or(Step(u32::MAX));
    let mut ranked: Vec<(u32, u32, Step)> = vec![];
    for event in run.history.events().iter().filter(|event| event.step <= until) {
        let rank = if blame.contains(&event.step) {
            Some(0)
        } else if is_said_by_another(run, event) {
            None
        } else if causes.contains(&event.step) && !is_detail(event) {
            Some(2)
        } else if first_delivery == Some(event.step) {
            Some(4)
        } else if heard.contains(&event.step) {
            rank(event, &related, lanes).map(|rank| rank.min(3))
        } else {
            rank(event, &related, lanes)
        };
        if let Some(rank) = rank {
            let after = if event.step > last && rank > 1 { AFTERWARDS } else { 0 };
            ranked.push((rank + after, event.step.0.abs_diff(last.0), event.step));
        }
    }
    ranked.sort();
    ranked.truncate(STEPS_MAX);
    let mut steps: Vec<Step> = ranked.into_iter().map(|(_, _, step)| step).collect();
    steps.sort();
    steps
}

/// What the violation is about: its operation and the deliveries that ask for it. None: everything.
fn related(run: &Run, about: Option<&str>) -> Option<BTreeSet<String>> {
    let about = about?;
    let operation = run.deliveries().find(|d| d.name == about).map_or(about, |d| d.operation.as_str());
    let mut related: BTreeSet<String> = [about.to_owned(), operation.to_owned()].into();
    related.extend(run.deliveries().filter(|d| d.operation == operation).map(|d| d.name.clone()));
    Some(related)
}

/// The blamed events' causes, and theirs.
fn causes(run: &Run, blame: &[Step]) -> BTreeSet<Step> {
    let mut causes = BTreeSet::new();
    for step in blame {
        let mut next = run.history.event(*step).cause;
        while let Some(step) = next {
            if !causes.insert(step) {
                break;
            }
            next = run.history.event(step).cause;
        }
    }
    causes
}

/// What the workflow had last heard of an operation, before it sent its create again: it acted on that.
fn heard(run: &Run) -> BTreeSet<Step> {
    let mut last: BTreeMap<&str, &Event> = BTreeMap::new();
    let mut heard = BTreeSet::new();
    for event in run.history.events() {
        let Some(exchange) = event.kind.exchange().filter(|exchange| exchange.call != Call::Deliver) else {
            continue;
        };
        match &event.kind {
            Kind::Received { .. } | Kind::Broken { .. } => {
                last.insert(&exchange.about, event);
            }
            Kind::Sent { .. } if exchange.call == Call::Create => {
                let before = last.remove(exchange.about.as_str());
                heard.extend(before.iter().map(|event| event.step));
                // The question belongs to the answer.
                heard.extend(before.and_then(|event| asked(run, event)));
            }
            _ => {}
        }
    }
    heard
}

/// The step at which an exchange began.
fn asked(run: &Run, event: &Event) -> Option<Step> {
    let exchange = event.kind.exchange()?;
    let is_it = |kind: &Kind| matches!(kind, Kind::Sent { exchange: sent, .. } if sent == exchange);
    run.history.events().iter().find(|event| is_it(&event.kind)).map(|event| event.step)
}

/// With what it all began.
fn first_delivery(run: &Run, related: &Option<BTreeSet<String>>) -> Option<Step> {
    let is_it = |event: &&Event| {
        let asks = |exchange: &ExchangeName| {
            let is_related = related.as_ref().is_none_or(|related| related.contains(&exchange.about));
            exchange.call == Call::Deliver && is_related
        };
        matches!(&event.kind, Kind::Sent { exchange, .. } if asks(exchange))
    };
    run.history.events().iter().find(is_it).map(|event| event.step)
}

/// What the log tells and a story need not.
fn is_detail(event: &Event) -> bool {
    matches!(event.kind, Kind::Arrived { .. } | Kind::Synced { .. } | Kind::Answered { .. })
}

/// Whether another event of the story says the same: a fault and the crash that it is, an answer and its
/// arrival.
fn is_said_by_another(run: &Run, event: &Event) -> bool {
    match &event.kind {
        Kind::Killed | Kind::PowerCut | Kind::Paused | Kind::Refused { .. } => {
            event.cause.is_some_and(|cause| matches!(run.history.event(cause).kind, Kind::Fault { .. }))
        }
        Kind::Answered { exchange, .. } => {
            let received = |e: &Event| matches!(&e.kind, Kind::Received { exchange: x, .. } if x == exchange);
            run.history.events().iter().any(received) || has_fault(run, exchange)
        }
        _ => false,
    }
}

fn has_fault(run: &Run, exchange: &ExchangeName) -> bool {
    let on = |place: &Place| matches!(place, Place::Exchange(name) if name == exchange);
    run.plan.tape.faults().iter().any(|fault| on(&fault.at))
}

/// How near an event is to the matter, 1 first; none: it is not told.
fn rank(event: &Event, related: &Option<BTreeSet<String>>, lanes: &Lanes) -> Option<u32> {
    let is_related = match (related, event.kind.about()) {
        (Some(related), Some(about)) => related.contains(about),
        (None, _) | (_, None) => true,
    };
    if !is_related {
        return None;
    }
    let is_delivery = event.kind.exchange().is_some_and(|exchange| exchange.call == Call::Deliver);
    let is_create = event.kind.exchange().is_some_and(|exchange| exchange.call == Call::Create);
    match &event.kind {
        Kind::Fault { .. } => Some(1),
        Kind::Effect { .. } | Kind::Hand { .. } => Some(2),
        Kind::Sent { .. } | Kind::Received { .. } | Kind::Broken { .. } if is_create => Some(3),
        Kind::Refused { to } if *to == lanes.desk => Some(4),
        Kind::Started { boot } if *boot > 1 => Some(4),
        Kind::Killed | Kind::PowerCut | Kind::Paused | Kind::Person { .. } => Some(4),
        Kind::Journal { .. } => Some(5),
        // A workflow that waits looks again and again; the look-ups nearest to the violation are enough.
        Kind::Sent { .. } | Kind::Received { .. } | Kind::Broken { .. } if !is_delivery => Some(6),
        Kind::Sent { .. } => Some(6),
        Kind::Received { .. } | Kind::Broken { .. } => Some(7),
        _ => None,
    }
}
