//! Faults beyond a scenario's own: a mix that differs from seed to seed, and only such as the contract can
//! survive.

use crate::access::ATTESTED_LATE_COMMIT;
use destinations::{Bound, Contract};
use sim::fault::{Call, ExchangeName, Fault, KINDS, Keep, Loss, Omission, Phase, Place, What, When};
use sim::plan::Workload;
use sim::seed::{Rng, Seed};

const LOSSES: [Loss; 3] = [Loss::Silence, Loss::Reset, Loss::Truncated];
const KEEPS: [Keep; 5] = [Keep::Nothing, Keep::Everything, Keep::Prefix, Keep::Mixed, Keep::Torn];
const PHASES: [Phase; 5] = [Phase::BeforeSend, Phase::Sent, Phase::Arrived, Phase::Applied, Phase::Answered];
/// What an undocumented answer looks like: no contract says that these prove anything.
const UNPROVING: [u16; 3] = [500, 502, 504];
/// The longest pause, in milliseconds: with the longest of a story's own, less than the assumptions allow.
const LONGEST_PAUSE_MS: u64 = 3_900;

/// One to four faults. Each seed switches some kinds off wholly: a few kinds that meet find more than a
/// little of all.
pub fn faults(contract: &Contract, workload: &Workload, seed: Seed) -> Vec<Fault> {
    let mut rng = seed.stream("storm");
    let off = rng.bits() & rng.bits();
    let enabled: Vec<&str> =
        KINDS.iter().enumerate().filter(|(bit, _)| off >> bit & 1 == 0).map(|(_, kind)| *kind).collect();
    let count = rng.within(1..=4);
    (0..count).filter_map(|_| fault(&mut rng, &enabled, contract, workload)).collect()
}

fn fault(rng: &mut Rng, enabled: &[&str], contract: &Contract, workload: &Workload) -> Option<Fault> {
    if enabled.is_empty() || workload.requests.is_empty() {
        return None;
    }
    let kind = *rng.pick(enabled);
    let what = what(rng, kind, contract)?;
    let strikes_process = matches!(kind, "kill" | "power-cut" | "pause" | "sync-error" | "disk-full");
    let at = if !strikes_process {
        outcome_place(rng, &what, workload)
    } else {
        process_place(rng, &what, workload)
    };
    Some(Fault { at, what })
}

/// Takes away what no workflow could survive: a second pause, which would go beyond the longest that is
/// assumed, and a failed sync beside a power cut, after which no SQLite file is sure to be whole.
pub fn survivable(own: &[Fault], more: &mut Vec<Fault>) {
    let cuts = |fault: &Fault| matches!(fault.what, What::PowerCut { .. });
    let cut = own.iter().any(cuts) || more.iter().any(cuts);
    let mut paused = false;
    more.retain(|fault| match fault.what {
        What::SyncError => !cut,
        What::Pause(_) => !std::mem::replace(&mut paused, true),
        _ => true,
    });
}

fn what(rng: &mut Rng, kind: &str, contract: &Contract) -> Option<What> {
    Some(match kind {
        "refuse" => What::Refuse,
        "lose-request" => What::LoseRequest(*rng.pick(&LOSSES[..2])),
        "not-applied" => What::NotApplied(rng.chance(700).then(|| *rng.pick(&UNPROVING))),
        "lose-response" => What::LoseResponse(*rng.pick(&LOSSES)),
        "apply-late" => What::ApplyLate(rng.within(1_000..=latest_commit_ms(contract))),
        "error-after" => What::ErrorAfter(*rng.pick(&UNPROVING)),
        "omit-id" => What::OmitId(Omission::NoId),
        "answer-slowly" => What::AnswerSlowly(rng.within(500..=20_000)),
        "hang" => What::Hang { applied: rng.chance(500) },
        "kill" => What::Kill(down_ms(rng)),
        "power-cut" => What::PowerCut { down: down_ms(rng), keep: *rng.pick(&KEEPS) },
        "pause" => What::Pause(rng.within(100..=LONGEST_PAUSE_MS)),
        "sync-error" => What::SyncError,
        "disk-full" => What::DiskFull(rng.within(1_000..=30_000)),
        _ => return None,
    })
}

/// Mostly short, at times longer than any key is remembered.
fn down_ms(rng: &mut Rng) -> u64 {
    if rng.chance(50) { rng.within(7_000_000..=12_000_000) } else { rng.within(20..=30_000) }
}

/// The latest commit that the contract, or what was attested for it, allows.
pub fn latest_commit_ms(contract: &Contract) -> u64 {
    let bound = match contract.time.late_commit_bound {
        Bound::Known(bound) => bound.min(ATTESTED_LATE_COMMIT),
        Bound::Unknown => ATTESTED_LATE_COMMIT,
    };
    bound.as_millis() as u64
}

fn outcome_place(rng: &mut Rng, what: &What, workload: &Workload) -> Place {
    let delivery_can = matches!(what, What::LoseRequest(_) | What::LoseResponse(_));
    let read_can = delivery_can || matches!(what, What::NotApplied(_) | What::AnswerSlowly(_) | What::Refuse);
    let draw = rng.below(10);
    if delivery_can && draw < 2 {
        let name = rng.pick(&workload.deliveries).name.clone();
        return Place::Exchange(ExchangeName { call: Call::Deliver, about: name, nth: nth(rng) });
    }
    let about = rng.pick(&workload.requests).operation.clone();
    let call = if read_can && draw < 5 { Call::Find } else { Call::Create };
    Place::Exchange(ExchangeName { call, about, nth: nth(rng) })
}

fn process_place(rng: &mut Rng, what: &What, workload: &Workload) -> Place {
    let on_disk = matches!(what, What::SyncError | What::DiskFull(_));
    if on_disk || rng.chance(400) {
        let when = if on_disk || rng.chance(500) { When::Before } else { When::After };
        let boot = if rng.chance(700) { 1 } else { 2 };
        return Place::Sync { boot, nth: rng.within(1..=7) as u32, when };
    }
    let exchange = if rng.chance(300) {
        ExchangeName {
            call: Call::Deliver,
            about: rng.pick(&workload.deliveries).name.clone(),
            nth: nth(rng),
        }
    } else {
        let call = if rng.chance(800) { Call::Create } else { Call::Find };
        ExchangeName { call, about: rng.pick(&workload.requests).operation.clone(), nth: nth(rng) }
    };
    // Nothing of ours stands at the far end of a delivery.
    let phases =
        if exchange.call == Call::Deliver { &[PHASES[0], PHASES[1], PHASES[4]][..] } else { &PHASES[..] };
    Place::Phase { exchange, phase: *rng.pick(phases) }
}

/// Mostly the first of its kind: a later one exists only where an earlier one failed.
fn nth(rng: &mut Rng) -> u32 {
    match rng.below(10) {
        0..7 => 1,
        7..9 => 2,
        _ => 3,
    }
}
