//! The invariant about ends: what must have come of each request when all is calm.

use super::checks::last_of;
use super::facts::Wanted;
use super::waits;
use super::{CONVERGES, Court, Finding};
use crate::belief::{Basis, Standing};
use crate::fault::Fault;
use crate::plan::Expect;
use crate::run::End;

pub(super) fn converges(court: &Court<'_>) -> Finding {
    let mut finding = Finding::default();
    let End::Finished { settled } = court.run.end else { return finding };
    let unsettled = if settled { None } else { waits::explain(court.run) };
    let struck = |fault: &Fault| {
        let at = court.run.plan.tape.at(&fault.at);
        at.is_some_and(|(index, what)| *what == fault.what && court.run.fired[index].is_some())
    };
    let own = &court.run.plan.own;
    let as_planned = own.iter().all(struck);
    // What a scenario expects, it expects under its own faults and no others.
    let alone = court.run.plan.tape.faults().iter().all(|fault| own.contains(fault));
    for ask in &court.run.plan.workload.requests {
        finding.looked();
        let made = court.facts.made(&ask.operation);
        let belief = court.finally(&ask.operation);
        let standing = belief.map(|op| op.standing);
        let owned = belief.is_some_and(|op| op.waiting.is_owned());
        let completed = standing == Some(Standing::Completed);
        let rejected = standing == Some(Standing::Rejected);
        let risk = belief.is_some_and(|op| op.basis == Basis::AcceptedRisk);
        let expect = match (alone, as_planned) {
            (true, true) => ask.expect,
            (true, false) => at_least(ask.expect),
            (false, _) => under_others(ask.expect),
        };
        let good = match expect {
            Expect::Recorded => {
                completed && made.len() <= 1 + court.made_anew(&ask.operation) && !made.is_empty()
            }
            Expect::Rejected | Expect::Refused => rejected && made.is_empty(),
            Expect::NoneOwned => made.is_empty() && owned,
            Expect::NoRecord => made.is_empty() && (rejected || owned),
            Expect::OneOwned => made.len() == 1 && (completed || owned),
            Expect::AtMostOne => {
                // Whether what came back of a send says so is judged by itself.
                let has_ground = !court.facts.sends(&ask.operation).is_empty()
                    || court.facts.decided(&ask.operation)
                    || court.facts.cancelled(&ask.operation).is_some_and(Wanted::may_be_taken);
                let turned_down = rejected && has_ground && (made.is_empty() || risk);
                let most = 1 + court.made_anew(&ask.operation);
                made.len() <= most && (completed && !made.is_empty() || turned_down || owned)
            }
        };
        if !good {
            let stands = belief.map_or("unknown to the workflow".to_owned(), |op| op.words.clone());
            let message = format!(
                "{} ended as {stands} with {} at the destination; expected was {}.{}",
                ask.operation,
                plural(made.len()),
                words(expect),
                unsettled.as_ref().map(|why| format!(" {why}")).unwrap_or_default()
            );
            finding.violated(CONVERGES, &ask.operation, last_of(court.run, &ask.operation), message);
        }
    }
    if let (Some(why), [], Some(ask)) =
        (unsettled, &*finding.violations, court.run.plan.workload.requests.first())
    {
        finding.violated(CONVERGES, &ask.operation, last_of(court.run, &ask.operation), why);
    }
    finding
}

/// What still holds of an expectation when a fault that it was made for did not strike.
fn at_least(expect: Expect) -> Expect {
    match expect {
        Expect::NoneOwned | Expect::OneOwned => Expect::AtMostOne,
        Expect::Recorded | Expect::Rejected | Expect::Refused => expect,
        Expect::AtMostOne | Expect::NoRecord => expect,
    }
}

/// What still holds of an expectation when more goes wrong than it was made for: at most one record, none
/// where none could be, and nothing forgotten.
fn under_others(expect: Expect) -> Expect {
    match expect {
        Expect::Rejected => expect,
        Expect::Refused | Expect::NoRecord => Expect::NoRecord,
        _ => Expect::AtMostOne,
    }
}

fn plural(records: usize) -> String {
    match records {
        0 => "no record".into(),
        1 => "one record".into(),
        n => format!("{n} records"),
    }
}

fn words(expect: Expect) -> &'static str {
    match expect {
        Expect::Recorded => "one record, recorded",
        Expect::Rejected | Expect::Refused => "no record, rejected",
        Expect::NoneOwned => "no record, owned by a person",
        Expect::NoRecord => "no record, rejected or owned by a person",
        Expect::OneOwned => "one record, recorded or owned by a person",
        Expect::AtMostOne => "at most one record, recorded, rejected or owned by a person",
    }
}
