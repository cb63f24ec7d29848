//! What some seed must reach: a dangerous place that no run has been to was not tested.

use sim::belief::{Discrepancy, Standing, Waiting};
use sim::fault::{Call, Phase, Place};
use sim::history::{Act, Event, Kind};
use sim::run::{Moment, Run};

fn events(run: &Run) -> impl Iterator<Item = &Event> {
    run.history.events().iter()
}

/// The number of the create that left with this event.
fn create_sent(event: &Event) -> Option<u32> {
    match &event.kind {
        Kind::Sent { exchange, .. } if exchange.call == Call::Create => Some(exchange.nth),
        _ => None,
    }
}

/// The status that the source heard with this event.
fn delivery_heard(event: &Event) -> Option<u16> {
    match &event.kind {
        Kind::Received { exchange, status, .. } if exchange.call == Call::Deliver => Some(*status),
        _ => None,
    }
}

/// The creates that left.
pub fn sends(run: &Run) -> usize {
    events(run).filter_map(create_sent).count()
}

/// Some operation was sent a second time.
pub fn resent(run: &Run) -> bool {
    events(run).filter_map(create_sent).any(|nth| nth > 1)
}

/// Every operation has completed.
pub fn completed(run: &Run) -> bool {
    let mut operations = run.belief().into_iter().flat_map(|belief| &belief.operations).peekable();
    operations.peek().is_some() && operations.all(|op| op.standing == Standing::Completed)
}

/// A person owns some operation at the end.
pub fn owned(run: &Run) -> bool {
    run.belief().is_some_and(|belief| belief.operations.iter().any(|op| op.waiting.is_owned()))
}

/// A person owned some operation for this reason.
pub fn reason(run: &Run, code: &str) -> bool {
    let operations = run.beliefs.iter().flat_map(|at| &at.belief.operations);
    operations.into_iter().any(|op| matches!(&op.waiting, Waiting::Person { reason, .. } if reason == code))
}

/// Some operation ended in this state.
pub fn rejected(run: &Run, words: &str) -> bool {
    run.belief().is_some_and(|belief| belief.operations.iter().any(|op| op.words == words))
}

/// A fault of this kind struck.
pub fn struck(run: &Run, kind: &str) -> bool {
    events(run).any(|event| matches!(&event.kind, Kind::Fault { what, .. } if *what == kind))
}

/// A look-up named the record with which some operation completed.
pub fn found_by_look_up(run: &Run) -> bool {
    let found = |name: &str, wanted: &str| {
        events(run).any(|event| match &event.kind {
            Kind::Received { exchange, record: Some(record), .. } => {
                exchange.call == Call::Find && exchange.about == name && record == wanted
            }
            _ => false,
        })
    };
    let operations = run.belief().into_iter().flat_map(|belief| &belief.operations);
    operations
        .filter(|op| op.standing == Standing::Completed)
        .any(|op| op.record.as_deref().is_some_and(|record| found(&op.name, record)))
}

/// A look-up found nothing, and the effect came after it.
pub fn late_after_miss(run: &Run) -> bool {
    let miss = events(run).position(|event| {
        matches!(&event.kind, Kind::Received { exchange, empty: true, .. } if exchange.call == Call::Find)
    });
    miss.is_some_and(|at| {
        events(run).skip(at).any(|event| matches!(event.kind, Kind::Effect { late: true, .. }))
    })
}

/// A crash left an operation in doubt.
pub fn in_doubt_after_crash(run: &Run) -> bool {
    let crashes = run.beliefs.iter().filter(|at| at.moment == Moment::Crash);
    crashes.flat_map(|at| &at.belief.operations).any(|op| op.standing == Standing::InDoubt)
}

/// The process died at this point of a create.
pub fn died_at(run: &Run, wanted: Phase) -> bool {
    run.plan.tape.faults().iter().zip(&run.fired).any(|(fault, fired)| match &fault.at {
        Place::Phase { exchange, phase } => {
            fired.is_some() && exchange.call == Call::Create && *phase == wanted
        }
        _ => false,
    })
}

/// The process died at a disk sync.
pub fn died_at_sync(run: &Run) -> bool {
    run.plan.tape.faults().iter().zip(&run.fired).any(|(fault, fired)| {
        fired.is_some()
            && matches!(fault.what.kind(), "kill" | "power-cut")
            && matches!(fault.at, Place::Sync { .. })
    })
}

/// Deliveries that were acknowledged.
pub fn acknowledged(run: &Run) -> usize {
    events(run).filter_map(delivery_heard).filter(|status| (200..300).contains(status)).count()
}

/// The source heard this status.
pub fn heard(run: &Run, wanted: u16) -> bool {
    events(run).filter_map(delivery_heard).any(|status| status == wanted)
}

/// A person confirmed a record.
pub fn confirmed_by_person(run: &Run) -> bool {
    rejected(run, "completed/confirmed_by_human")
}

/// A create left after a person had permitted another record.
pub fn made_anew(run: &Run) -> bool {
    let asked = first(run, |kind| matches!(kind, Kind::Person { act: Act::AuthoriseCreation, .. }));
    let sent = events(run).filter(|event| create_sent(event).is_some()).map(|event| event.step.0).last();
    asked.zip(sent).is_some_and(|(asked, sent)| asked < sent)
}

/// It was cancelled, and some operation completed all the same.
pub fn cancelled_too_late(run: &Run) -> bool {
    let cancelled = first(run, |kind| matches!(kind, Kind::Person { act: Act::Cancel, .. }));
    let told = |kind: &Kind| match kind {
        Kind::Received { exchange, record, .. } => exchange.call.is_to_destination() && record.is_some(),
        _ => false,
    };
    completed(run) && cancelled.zip(first(run, told)).is_some_and(|(cancelled, told)| cancelled < told)
}

/// A reconciliation reported this, and it stands.
pub fn reported(run: &Run, kind: Discrepancy) -> bool {
    run.belief().is_some_and(|belief| belief.discrepancies.iter().any(|one| one.kind == kind && one.stands))
}

/// The source heard of a delivery that it is the same.
pub fn heard_same(run: &Run) -> bool {
    repeats(run).next().is_some()
}

/// Only the tombstone of some operation is left.
pub fn purged(run: &Run) -> bool {
    run.beliefs.iter().any(|at| at.belief.operations.iter().any(|op| op.purged))
}

/// A declaration that there is no record was turned down.
pub fn declared_too_early(run: &Run) -> bool {
    events(run).any(|event| {
        let refused = matches!(event.kind, Kind::Received { status: 409, .. });
        let sent = event.cause.filter(|_| refused).map(|step| run.history.event(step));
        let wanted = sent.and_then(|sent| sent.cause).map(|step| run.history.event(step));
        wanted.is_some_and(|wanted| matches!(wanted.kind, Kind::Person { act: Act::DeclareAbsent, .. }))
    })
}

fn repeats(run: &Run) -> impl Iterator<Item = &Event> {
    events(run).filter(|event| matches!(&event.kind, Kind::Received { summary, .. } if summary == "same"))
}

fn first(run: &Run, wanted: impl Fn(&Kind) -> bool) -> Option<u32> {
    events(run).find(|event| wanted(&event.kind)).map(|event| event.step.0)
}

/// A repeat was answered after the answer to the create had come.
pub fn repeat_after_completion(run: &Run) -> bool {
    let done =
        first(run, |kind| matches!(kind, Kind::Received { exchange, .. } if exchange.call == Call::Create));
    done.is_some_and(|done| repeats(run).any(|repeat| repeat.step.0 > done))
}

/// A repeat was answered while the create was under way.
pub fn repeat_during_send(run: &Run) -> bool {
    let sent =
        first(run, |kind| matches!(kind, Kind::Sent { exchange, .. } if exchange.call == Call::Create));
    let done =
        first(run, |kind| matches!(kind, Kind::Received { exchange, .. } if exchange.call == Call::Create));
    sent.zip(done)
        .is_some_and(|(sent, done)| repeats(run).any(|repeat| (sent..done).contains(&repeat.step.0)))
}

/// The first delivery was not answered, and a repeat heard that the operation exists.
pub fn unanswered_then_same(run: &Run) -> bool {
    let broken =
        first(run, |kind| matches!(kind, Kind::Broken { exchange } if exchange.call == Call::Deliver));
    broken.is_some_and(|broken| repeats(run).any(|repeat| repeat.step.0 > broken))
}
