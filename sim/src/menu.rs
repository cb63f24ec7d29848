//! What can go wrong at a place, in representative strengths: what enumeration tries and a shrunk fault may
//! become.

use crate::fault::{Call, Fault, Keep, Loss, Omission, Phase, Place, Variation, Way, What, When};
use crate::terms::{FOR_EVER_MS, SHORTEST_BLINDNESS_MS, Terms, millis};

/// A short time down: everything that was under way has ended when the process is back.
const SHORT_DOWN_MS: u64 = 100;
/// Just longer than a caller waits by default.
const PAST_PATIENCE_MS: u64 = 11_000;
/// A pause that no time-out survives and that stays within what is assumed.
const PAUSE_MS: u64 = 9_000;
/// Statuses of answers that no contract documents.
const UNDOCUMENTED: [u16; 2] = [500, 409];

/// Every fault that can strike at a place and be survived under these terms, mild ones last.
pub fn menu(place: &Place, terms: &Terms<'_>) -> Vec<What> {
    let all = match place {
        Place::Delivery(_) => deliveries(),
        Place::Connection { .. } => vec![What::Refuse, What::HangConnecting],
        Place::Exchange(exchange) => outcomes(exchange.call, terms),
        Place::Phase { exchange, phase } => phases(exchange.call, *phase, terms),
        Place::Sync { when, .. } => syncs(*when, terms),
        Place::Record { .. } => {
            vec![What::EditByHand(1_000), What::DeleteByHand, What::ArchiveByHand(0), What::CopyByHand(1_000)]
        }
        Place::Case(_) => {
            vec![What::WrongReference, What::TwoAtOnce, What::StaleView, What::ActLate(86_400_000)]
        }
    };
    let possible = |what: &What| {
        let fault = Fault { at: place.clone(), what: what.clone() };
        fault.check().is_ok() && terms.forbids(&fault).is_none()
    };
    all.into_iter().filter(possible).collect()
}

fn deliveries() -> Vec<What> {
    let again = |how, after_ms| What::Redeliver { how, after_ms };
    vec![
        What::AtOnce(8),
        again(Variation::NewId, 0),
        again(Variation::Same, 15_000),
        again(Variation::Volatile, 15_000),
        again(Variation::Meaning, 15_000),
        again(Variation::Poison, 0),
        What::HoldBack(15_000),
    ]
}

fn outcomes(call: Call, terms: &Terms<'_>) -> Vec<What> {
    let mut all = vec![What::LoseResponse(Loss::Silence), What::LoseRequest(Loss::Silence)];
    if call.is_to_destination() {
        all.extend([
            What::LoseResponse(Loss::Truncated),
            What::NotApplied(Some(UNDOCUMENTED[0])),
            What::AnswerSlowly(PAST_PATIENCE_MS),
            What::Partition { way: Way::Both, ms: 60_000 },
            What::Partition { way: Way::Back, ms: 30_000 },
            What::Refuse,
            What::Hang { applied: true },
            What::Hang { applied: false },
        ]);
    }
    if call == Call::Create {
        all.extend(terms.latest_commit_ms().map(What::ApplyLate));
        all.push(What::ApplyLate(PAST_PATIENCE_MS));
        all.extend(UNDOCUMENTED.map(What::ErrorAfter));
        all.extend([Omission::NoId, Omission::Garbled, Omission::Accepted].map(What::OmitId));
        all.extend([What::Duplicate(500), What::Undo(1_000), What::ForgetKeys, What::KeysDown(60_000)]);
    }
    if call == Call::Find {
        all.extend([
            What::Blind(SHORTEST_BLINDNESS_MS),
            What::Stale(120_000),
            What::SecondPage,
            What::Foreign,
        ]);
    }
    all
}

fn phases(call: Call, phase: Phase, terms: &Terms<'_>) -> Vec<What> {
    let mut all = process(terms);
    all.push(What::PowerCut { down: SHORT_DOWN_MS, keep: Keep::Nothing });
    if call == Call::Create && phase == Phase::Arrived {
        all.extend(terms.latest_commit_ms().map(|most| What::Delay(most / 2)));
    }
    all.push(What::Delay(3_000));
    all.push(What::ReadError);
    all
}

fn syncs(when: When, terms: &Terms<'_>) -> Vec<What> {
    let mut all = process(terms);
    let keeps: &[Keep] = match when {
        When::Before => &[Keep::Nothing, Keep::Everything, Keep::Prefix, Keep::Mixed, Keep::Torn],
        When::After => &[Keep::Nothing],
    };
    all.extend(keeps.iter().map(|keep| What::PowerCut { down: SHORT_DOWN_MS, keep: *keep }));
    all.extend([What::SyncError, What::DiskFull(10_000), What::ReadError]);
    all
}

/// What strikes a process: a death, a death that outlasts the key, a pause, a clock that is set.
fn process(terms: &Terms<'_>) -> Vec<What> {
    let mut all = vec![What::Kill(SHORT_DOWN_MS)];
    if let Some(key) = terms.recovery().replay {
        let retention = millis(key.retention);
        if retention < FOR_EVER_MS {
            all.extend([What::Kill(retention + 1_000), What::Kill(retention.saturating_sub(1_000))]);
        }
    }
    all.extend([
        What::Pause(PAUSE_MS),
        What::ClockStep(-240_000),
        What::ClockStep(20_000),
        What::ClockRate(1_000),
    ]);
    all
}

/// A milder form of a fault: shrinking tries these, the mildest first.
pub fn milder(what: &What) -> Vec<What> {
    let spans = |make: fn(u64) -> What, ms: u64, floor: u64| -> Vec<What> {
        [floor, 100, 1_000, 12_000].into_iter().filter(|less| (floor..ms).contains(less)).map(make).collect()
    };
    match what {
        What::PowerCut { down, keep } => {
            let mut all = vec![What::Kill(SHORT_DOWN_MS)];
            if *down != SHORT_DOWN_MS || *keep != Keep::Nothing {
                all.push(What::PowerCut { down: SHORT_DOWN_MS, keep: Keep::Nothing });
            }
            all
        }
        What::Kill(ms) => spans(What::Kill, *ms, SHORT_DOWN_MS),
        What::Pause(ms) => spans(What::Pause, *ms, 100),
        What::ClockStep(ms) => {
            let less = [1_000, 20_000].into_iter().filter(|less| less < &ms.abs());
            less.map(|less| What::ClockStep(less * ms.signum())).collect()
        }
        What::Hang { applied: true } => vec![What::LoseResponse(Loss::Silence)],
        What::Hang { applied: false } | What::NotApplied(_) => vec![What::LoseRequest(Loss::Silence)],
        What::LoseResponse(Loss::Reset | Loss::Truncated) => vec![What::LoseResponse(Loss::Silence)],
        What::LoseRequest(Loss::Reset | Loss::Truncated) => vec![What::LoseRequest(Loss::Silence)],
        What::Partition { way, ms } => {
            let lost = match way {
                Way::Back => What::LoseResponse(Loss::Silence),
                Way::There | Way::Both => What::LoseRequest(Loss::Silence),
            };
            let shorter = What::Partition { way: *way, ms: 12_000 };
            if *ms > 12_000 { vec![lost, shorter] } else { vec![lost] }
        }
        What::ApplyLate(ms) => {
            let mut all = vec![What::LoseResponse(Loss::Silence)];
            all.extend(spans(What::ApplyLate, *ms, 1_000));
            all
        }
        What::ErrorAfter(status) if *status != 500 => vec![What::ErrorAfter(500)],
        What::AnswerSlowly(ms) => spans(What::AnswerSlowly, *ms, 1_000),
        What::Delay(ms) => spans(What::Delay, *ms, 100),
        What::HoldBack(ms) => spans(What::HoldBack, *ms, 100),
        What::DiskFull(ms) => spans(What::DiskFull, *ms, 1_000),
        What::KeysDown(ms) => spans(What::KeysDown, *ms, 1_000),
        What::AtOnce(copies) if *copies > 2 => vec![What::AtOnce(2)],
        What::Redeliver { how, after_ms } if *after_ms > 0 => {
            vec![What::Redeliver { how: *how, after_ms: 0 }]
        }
        What::OmitId(Omission::Garbled | Omission::Accepted) => vec![What::OmitId(Omission::NoId)],
        _ => vec![],
    }
}

/// The same fault under the name that enumeration uses: these look alike to every party.
pub fn alike(call: Call, what: &What) -> What {
    match what {
        What::NotApplied(None) | What::Hang { applied: false } => What::LoseRequest(Loss::Silence),
        What::Hang { applied: true } => What::LoseResponse(Loss::Silence),
        // A read changes nothing: whether it was lost there or back is the same, but for half an answer.
        What::LoseResponse(loss @ (Loss::Silence | Loss::Reset))
            if matches!(call, Call::Find | Call::Fetch) =>
        {
            What::LoseRequest(*loss)
        }
        _ => what.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{ExchangeName, KINDS};
    use destinations::Assumptions;
    use std::collections::BTreeSet;
    use std::time::Duration;

    fn places() -> Vec<Place> {
        let exchange = |call| ExchangeName { call, about: "R17".into(), nth: 1 };
        let calls = [Call::Deliver, Call::Create, Call::Find, Call::Fetch, Call::Decide];
        let phases = [Phase::BeforeSend, Phase::Sent, Phase::Arrived, Phase::Applied, Phase::Answered];
        let mut all = vec![
            Place::Delivery("R17/1".into()),
            Place::Connection { nth: 1 },
            Place::Record { about: "R17".into(), nth: 1 },
            Place::Case("R17".into()),
        ];
        all.extend(calls.map(|call| Place::Exchange(exchange(call))));
        for phase in phases {
            all.extend(calls.map(|call| Place::Phase { exchange: exchange(call), phase }));
        }
        all.extend([When::Before, When::After].map(|when| Place::Sync { boot: 1, nth: 1, when }));
        all
    }

    #[test]
    fn every_kind_that_can_be_survived_is_on_some_menu() {
        let assumptions =
            Assumptions { assumed_late_commit: Some(Duration::from_secs(90)), ..Assumptions::default() };
        let mut met = BTreeSet::new();
        for contract in destinations::builtin() {
            let terms = Terms { contract: &contract, assumptions: &assumptions };
            for place in places() {
                for what in menu(&place, &terms) {
                    met.insert(what.kind());
                }
            }
        }
        let missing: Vec<&str> = KINDS.into_iter().filter(|kind| !met.contains(kind)).collect();
        // The disk's lies and early forgetting are forbidden.
        assert_eq!(missing, ["forget-keys", "bit-flip", "lying-sync"]);
    }

    #[test]
    fn milder_forms_end() {
        let mut what = vec![What::PowerCut { down: 5_000, keep: Keep::Torn }];
        for _ in 0..6 {
            what = what.iter().flat_map(milder).collect();
        }
        assert_eq!(what, []);
    }
}
