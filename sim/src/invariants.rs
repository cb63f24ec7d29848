//! What must hold in every run, judged from the history, the ledger and the beliefs; never from an engine's
//! opinion.

mod checks;
mod doubts;
mod ends;
mod facts;
mod lasting;
mod people;
mod reconciled;
mod slack;
#[cfg(test)]
mod tests;
mod waits;

use crate::belief::BelievedOperation;
use crate::history::{Event, Nanos};
use crate::run::{End, Run};
use crate::scenario::Scenario;
use crate::terms::Terms;
use crate::verdict::{Fingerprint, InvariantId, Judgement, Verdict, Violation};
use destinations::recovery::Doubt;
use destinations::{Assumptions, Contract, Recovery};
use facts::{Believed, Facts};
use siphasher::sip::SipHasher13;
use slack::Slack;
use std::collections::BTreeSet;
use std::hash::Hasher as _;
use std::sync::Arc;

const fn id(id: &'static str, name: &'static str, says: &'static str) -> InvariantId {
    InvariantId { id, name, says }
}

/// Every invariant that is checked, the likelier cause before its consequence.
pub const INVARIANTS: &[InvariantId] = &[
    NO_PANIC,
    STORE_DOUBT,
    INTENT_FIRST,
    DELIVERY_KEPT,
    MEMORY_OUTLIVES,
    MONOTONE,
    STABLE_IDENTITY,
    AT_MOST_ONE,
    NO_FALSE_FAILURE,
    NO_FALSE_SUCCESS,
    TRUSTED_NEGATIVE,
    NO_BLIND_RESEND,
    DOUBT_IS_STICKY,
    BUDGET_SURVIVES,
    BOUNDED,
    NO_LIMBO,
    RECONCILED,
    TRACED,
    CONVERGES,
];

const NO_PANIC: InvariantId =
    id("V0", "no-panic", "no panic and no unhandled error inside the system under test");
const AT_MOST_ONE: InvariantId = id("V1", "at-most-one", "one operation has at most one effect");
const INTENT_FIRST: InvariantId =
    id("V2", "intent-first", "no byte of a send leaves before its intent is durable");
const NO_FALSE_FAILURE: InvariantId =
    id("V3", "no-false-failure", "an operation that ended without success has no record at the destination");
const NO_FALSE_SUCCESS: InvariantId = id(
    "V4",
    "no-false-success",
    "a completed operation has its record at the destination, and no other shares it",
);
const DOUBT_IS_STICKY: InvariantId =
    id("V5", "doubt-is-sticky", "doubt ends by evidence that came back, or by a person's decision");
const NO_BLIND_RESEND: InvariantId =
    id("V6", "no-blind-resend", "every send after the first is licensed by evidence, contract and time");
const STABLE_IDENTITY: InvariantId =
    id("V7", "stable-identity", "every send of an operation carries the same key and the same bytes");
const NO_LIMBO: InvariantId =
    id("V9", "no-limbo", "an open operation has a worker, a timer, or an owner with a deadline");
const DELIVERY_KEPT: InvariantId = id("V10", "delivery-kept", "a delivery that was acknowledged is durable");
const BUDGET_SURVIVES: InvariantId =
    id("V11", "budget-survives", "sends are counted before they start, and stay within their budget");
const MONOTONE: InvariantId =
    id("V13", "monotone", "older knowledge never overwrites newer: an end, a record, a decision stay");
const RECONCILED: InvariantId = id(
    "V16",
    "reconciliation-complete",
    "a reconciliation reports each discrepancy that there is, and invents none",
);
const MEMORY_OUTLIVES: InvariantId = id(
    "V15",
    "memory-outlives",
    "what was known of a request is known for as long as somebody may deliver it again",
);
const TRACED: InvariantId =
    id("V17", "traced", "a decision leaves who, why, before and after on record; no record is changed later");
const CONVERGES: InvariantId =
    id("V18", "converges", "after the storm a request ends as expected, or is owned by a person");
const STORE_DOUBT: InvariantId =
    id("V20", "store-doubt", "after a commit that failed the store is read again before anything is sent");
const BOUNDED: InvariantId =
    id("V22", "bounded", "the requests of an operation, and of all, stay within the budget on the wire");
const TRUSTED_NEGATIVE: InvariantId = id(
    "V21",
    "trusted-negative",
    "a \"not found\" permits a send only when it was complete, late enough, and its control was found",
);

/// What a check gets to see.
struct Court<'a> {
    run: &'a Run,
    facts: Facts<'a>,
    /// What was believed at each crash, after the storm, and at the end.
    lasting: Vec<Believed<'a>>,
    /// The records that the destination holds at the end.
    held: BTreeSet<&'a str>,
    contract: Arc<Contract>,
    recovery: Recovery,
    max_sends: u32,
}

impl Court<'_> {
    /// What the workflow's clock can have made of the ages in a doubt, up to an instant.
    fn as_its_clock_shows(&self, doubt: Doubt, now: Nanos) -> Doubt {
        let forgotten = self.recovery.replay.as_ref().map(|replay| replay.retention);
        Slack::of(self.run, now).widen(doubt, forgotten)
    }

    /// Records that people had made anew although one had been made: it was gone, or they had overlooked it.
    /// A permission that was asked for before anything was made excuses nothing.
    fn made_anew(&self, operation: &str) -> usize {
        let made = self.facts.made(operation);
        self.facts
            .creations(operation)
            .filter(|wanted| made.iter().any(|made| made.step < wanted.step))
            .count()
    }

    /// What was believed of an operation at the end.
    fn finally(&self, operation: &str) -> Option<&BelievedOperation> {
        self.lasting.last()?.operations.get(operation).copied()
    }
}

/// What a check found: how often it looked, and what is wrong.
#[derive(Default)]
struct Finding {
    looked: u32,
    violations: Vec<Violation>,
}

type Check = fn(&Court<'_>) -> Finding;

/// The checks, in the order of [`INVARIANTS`].
const CHECKS: [Check; 19] = [
    checks::no_panic,
    lasting::store_doubt,
    checks::intent_first,
    checks::delivery_kept,
    lasting::memory_outlives,
    lasting::monotone,
    checks::stable_identity,
    checks::at_most_one,
    checks::no_false_failure,
    checks::no_false_success,
    doubts::trusted_negative,
    doubts::no_blind_resend,
    doubts::doubt_is_sticky,
    checks::budget_survives,
    lasting::bounded,
    checks::no_limbo,
    reconciled::complete,
    people::traced,
    ends::converges,
];

/// Judges a run: every invariant, to the end, not only the first that breaks.
pub fn judge(run: &Run, scenario: &dyn Scenario) -> Judgement {
    let contract = scenario.contracts().into_iter().find(|c| c.id == run.plan.case.contract);
    let contract = contract.expect("the run was made with a contract of its scenario");
    let assumptions: Assumptions = scenario.assumptions(&contract);
    let court = Court {
        run,
        facts: Facts::of(run),
        lasting: facts::lasting(run),
        held: run.ledger.records().into_iter().collect(),
        recovery: destinations::recovery(&contract, &assumptions),
        contract,
        max_sends: scenario.max_sends(),
    };
    let mut violations = vec![];
    let mut evaluated = vec![];
    for check in CHECKS {
        let finding = check(&court);
        evaluated.push(finding.looked);
        violations.extend(finding.violations);
    }
    // With a known mistake, the invariant that names it comes first: the others follow from it.
    let named = run.plan.mutant.as_ref().and_then(|name| {
        let known = scenario.mutants().into_iter().find(|mutant| mutant.name == name)?;
        Some(known.killed_by)
    });
    violations.sort_by_key(|violation| Some(violation.invariant.id) != named);
    let goals = scenario.goals().iter().map(|goal| (goal.reached)(run)).collect();
    let fingerprints = violations.iter().map(|violation| fingerprint(violation, run)).collect();
    let terms = Terms { contract: &court.contract, assumptions: &assumptions };
    let verdict = match &run.end {
        End::Harness(why) => Verdict::Harness(why.clone()),
        _ if let Some(why) = terms.unsurvivable(&run.plan.tape) => Verdict::Invalid(why),
        _ if !violations.is_empty() => Verdict::Violated(violations),
        End::Limit(why) => Verdict::Undecided(why.clone()),
        End::Finished { .. } | End::Failed(_) => Verdict::Held,
    };
    Judgement { verdict, fingerprints, evaluated, goals }
}

/// The node that a fingerprint names: one bug is one entry, whatever contract the destination follows.
const DESTINATION: &str = "helpdesk";

/// Invariant, destination, and a hash of the kinds of the blamed steps: no times, no ids.
pub fn fingerprint(violation: &Violation, run: &Run) -> Fingerprint {
    let mut hasher = SipHasher13::new();
    for step in &violation.blame {
        hasher.write(shape(run.history.event(*step)).as_bytes());
        hasher.write_u8(0);
    }
    let hash = hasher.finish() & 0xffff;
    Fingerprint(format!("{}/{DESTINATION}/{hash:04x}", violation.invariant.name))
}

fn shape(event: &Event) -> String {
    use crate::history::Kind as K;
    let word = match &event.kind {
        K::Started { .. } => "started",
        K::Synced { .. } => "synced",
        K::Killed => "killed",
        K::PowerCut => "power-cut",
        K::Paused => "paused",
        K::Resumed => "resumed",
        K::Refused { .. } => "refused",
        K::Sent { .. } => "sent",
        K::Arrived { .. } => "arrived",
        K::Effect { .. } => "effect",
        K::Hand { .. } => "hand",
        K::Answered { .. } => "answered",
        K::Received { .. } => "received",
        K::Broken { .. } => "broken",
        K::Fault { what, .. } => what,
        K::Journal { .. } => "journal",
        K::Person { .. } => "person",
        K::Calm => "calm",
        K::Quiet => "quiet",
        K::End { .. } => "end",
    };
    let call = event.kind.exchange().map_or("", |exchange| exchange.call.word());
    format!("{}:{word}:{call}", event.node)
}
