//! What an operation may do next: a send only with a licence, and a licence only from evidence, contract and
//! time.

use crate::clock::Timestamp;
use crate::policy::Policy;
use crate::state::State;
use crate::store::Authorisation;
use destinations::Recovery;
use destinations::recovery::{Doubt, Ground, Miss};
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// The right to send once. Only this module can make one, each time anew from what is known at that instant.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a licence allows one send at this instant and lapses when it is dropped"]
pub struct Licence {
    ground: LicenceGround,
}

/// Why a send is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LicenceGround {
    /// Nothing was ever sent.
    First,
    /// Every earlier send is proven to have done nothing.
    Disproved,
    /// The destination still remembers the key.
    Key,
    /// The identity itself keeps a second record from being made.
    Identity,
    /// A person permitted this one send.
    Authorised,
}

impl Licence {
    /// Why.
    pub fn ground(&self) -> LicenceGround {
        self.ground
    }
}

impl fmt::Display for LicenceGround {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LicenceGround::First => "nothing was ever sent",
            LicenceGround::Disproved => "every earlier send is proven to have done nothing",
            LicenceGround::Key => "the destination still remembers the key",
            LicenceGround::Authorised => "a person permitted this one send",
            LicenceGround::Identity => "the reference itself keeps a second record from being made",
        })
    }
}

/// Why a person has to decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Every send that the budget allows was made.
    RetriesExhausted,
    /// The contract allows neither another send nor a look-up.
    NothingPermitted,
    /// Look-ups found nothing, and a miss proves nothing here.
    NotFoundInTime,
    /// The key is about to lapse, or has lapsed, while the outcome is unknown.
    KeyLapses,
    /// The destination reported success without an id.
    RefMissing,
    /// Records contradict each other.
    Conflict,
    /// The same request arrived with another meaning.
    ChangedRequest,
    /// What a person had permitted was not used in time, or more became known before it was.
    AuthorisationLapsed,
    /// The send that a person had permitted is proven to have had no effect.
    CreationFailed,
    /// It was cancelled while its outcome was unknown, and nothing tells it.
    Cancelled,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Reason; 10] = [
        Reason::RetriesExhausted,
        Reason::NothingPermitted,
        Reason::NotFoundInTime,
        Reason::KeyLapses,
        Reason::RefMissing,
        Reason::Conflict,
        Reason::ChangedRequest,
        Reason::AuthorisationLapsed,
        Reason::CreationFailed,
        Reason::Cancelled,
    ];

    /// Whether it opens anew what a person's permission had closed: the case goes on with whom it was.
    pub fn is_of_a_permission(self) -> bool {
        matches!(self, Reason::AuthorisationLapsed | Reason::CreationFailed)
    }

    /// The code under which it is stored and counted.
    pub fn code(self) -> &'static str {
        match self {
            Reason::RetriesExhausted => "retries_exhausted",
            Reason::NothingPermitted => "nothing_permitted",
            Reason::NotFoundInTime => "not_found_in_time",
            Reason::KeyLapses => "key_lapses",
            Reason::RefMissing => "ref_missing",
            Reason::Conflict => "conflict",
            Reason::ChangedRequest => "changed_request",
            Reason::AuthorisationLapsed => "authorisation_lapsed",
            Reason::CreationFailed => "creation_failed",
            Reason::Cancelled => "cancelled",
        }
    }
}

/// A look-up that found nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissAt {
    /// When it was asked.
    pub at: Timestamp,
    /// Whether every page was read.
    pub complete: bool,
    /// Whether the control record was found by the same query.
    pub control_found: bool,
}

/// All that is known of an operation when the next step is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Where it stands.
    pub state: State,
    /// Sends counted.
    pub sends: u32,
    /// Look-ups in the present doubt.
    pub checks: u32,
    /// When the first intent became durable.
    pub first_intent: Option<Timestamp>,
    /// The last instant at which a byte of the last send could have left.
    pub last_possible_send: Option<Timestamp>,
    /// Not before this.
    pub not_before: Timestamp,
    /// Look-ups since the last send that found nothing, oldest first.
    pub misses: Vec<MissAt>,
    /// What a person permits and nobody has used.
    pub authorisation: Option<Authorisation>,
    /// Whether it is not wanted any more: nothing further is sent.
    pub cancelled: bool,
}

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// Send.
    Send(Licence),
    /// Look the record up.
    Look,
    /// Nothing before this time.
    Wait(Timestamp),
    /// A look-up has proven that nothing was applied: record that before anything else.
    AcceptNegative,
    /// A person has to decide.
    Person(Reason),
    /// What a person permitted cannot be used any more: they have to decide anew.
    Lapsed,
    /// Nothing was applied, and it is not wanted any more: it ends.
    Withdraw,
    /// It has ended, or a person already owns it.
    Nothing,
}

/// Chooses the next step: pure, total, and the only source of licences.
pub fn next_step(facts: &Facts, recovery: &Recovery, policy: &Policy, now: Timestamp) -> Next {
    match facts.state {
        State::Received | State::Ready | State::Backoff if facts.cancelled => Next::Withdraw,
        State::Received | State::Ready => send(LicenceGround::First),
        State::Backoff if facts.sends >= policy.max_sends => Next::Person(Reason::RetriesExhausted),
        State::Backoff if now < facts.not_before => Next::Wait(facts.not_before),
        State::Backoff => send(LicenceGround::Disproved),
        State::InDoubt if facts.cancelled => only_looking(facts, recovery, policy, now),
        State::InDoubt => in_doubt(facts, recovery, policy, now),
        State::Authorised | State::AuthorisedCreation | State::AuthorisedResend => {
            authorised(facts, recovery, now)
        }
        State::RefMissing => look_or(facts, recovery, policy, now, Reason::RefMissing),
        // A send under way is in its worker's hands; after a crash it is `InDoubt`.
        State::Sent | State::SentInDoubt => Next::Nothing,
        _ => Next::Nothing,
    }
}

fn send(ground: LicenceGround) -> Next {
    Next::Send(Licence { ground })
}

/// A person's word permits one send, for a while; a resend needs the contract's leave besides, at this
/// instant.
fn authorised(facts: &Facts, recovery: &Recovery, now: Timestamp) -> Next {
    let given = facts.authorisation.as_ref().filter(|_| !facts.cancelled);
    let stands = given.is_some_and(|given| now < given.expires);
    let in_doubt = facts.state == State::AuthorisedResend;
    if stands && (!in_doubt || recovery.may_resend(&doubt(facts, now)).is_some()) {
        return send(LicenceGround::Authorised);
    }
    Next::Lapsed
}

/// What the licence sees of an operation, in ages.
pub fn doubt(facts: &Facts, now: Timestamp) -> Doubt {
    let age = |at: Option<Timestamp>| at.map_or(Duration::ZERO, |at| now.since(at));
    Doubt {
        first_intent_age: age(facts.first_intent),
        last_send_age: age(facts.last_possible_send),
        sends: facts.sends,
        misses: facts
            .misses
            .iter()
            .rev()
            .map(|miss| Miss {
                age: now.since(miss.at),
                complete: miss.complete,
                control_found: miss.control_found,
            })
            .collect(),
        same_key_and_bytes: true,
    }
}

fn in_doubt(facts: &Facts, recovery: &Recovery, policy: &Policy, now: Timestamp) -> Next {
    let doubt = doubt(facts, now);
    if recovery.trusted_negative(&doubt) {
        return Next::AcceptNegative;
    }
    if now < facts.not_before {
        return key_guard(facts, recovery, now).unwrap_or(Next::Wait(facts.not_before));
    }
    let in_budget = facts.sends < policy.max_sends;
    match recovery.may_resend(&doubt) {
        Some(Ground::Identity) if in_budget => return send(LicenceGround::Identity),
        Some(Ground::Key) if in_budget => return send(LicenceGround::Key),
        _ => {}
    }
    if let Some(replay) = &recovery.replay
        && in_budget
        && doubt.first_intent_age < replay.safe_for
    {
        // Only the wait between two sends is missing.
        let ready = facts.last_possible_send.map_or(now, |at| at.after(replay.wait_between));
        return key_guard(facts, recovery, now)
            .unwrap_or(Next::Wait(ready.max(now.after(policy.first_pause))));
    }
    if let Some(converge) = &recovery.converge
        && in_budget
        && doubt.first_intent_age < converge.safe_for
        && doubt.last_send_age < converge.wait_between
    {
        let ready = facts.last_possible_send.map_or(now, |at| at.after(converge.wait_between));
        return Next::Wait(ready);
    }
    let reason = match (&recovery.replay, in_budget) {
        (_, false) => Reason::RetriesExhausted,
        (Some(_), true) => Reason::KeyLapses,
        (None, true) => Reason::NotFoundInTime,
    };
    look_or(facts, recovery, policy, now, reason)
}

/// What was cancelled is sent no more: only a look-up or a person can tell what became of it.
fn only_looking(facts: &Facts, recovery: &Recovery, policy: &Policy, now: Timestamp) -> Next {
    if recovery.trusted_negative(&doubt(facts, now)) {
        return Next::AcceptNegative;
    }
    look_or(facts, recovery, policy, now, Reason::Cancelled)
}

/// Opens the exception while a person can still resend by the key, instead of waiting past that moment.
fn key_guard(facts: &Facts, recovery: &Recovery, now: Timestamp) -> Option<Next> {
    let replay = recovery.replay.as_ref()?;
    let safe_until = facts.first_intent?.after(replay.safe_for);
    let usable_at = facts.not_before.max(facts.last_possible_send?.after(replay.wait_between));
    let escalate_at = safe_until.0.saturating_sub(millis(escalate_before(replay.retention, replay.margin)));
    // Where the licence becomes usable before the key lapses, it is used; the exception is for the other
    // case. Once it has lapsed nothing is urgent any more: look-ups come first again.
    (usable_at >= safe_until && now < safe_until && now.0 >= escalate_at)
        .then_some(Next::Person(Reason::KeyLapses))
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

/// 25 % of the retention, at least 15 minutes, at most half of what is safe.
fn escalate_before(retention: Duration, margin: Duration) -> Duration {
    (retention / 4).max(Duration::from_secs(15 * 60)).min(retention.saturating_sub(margin) / 2)
}

/// Looks up while that can still tell something, else hands over to a person.
fn look_or(facts: &Facts, recovery: &Recovery, policy: &Policy, now: Timestamp, reason: Reason) -> Next {
    let Some(rule) = &recovery.lookup else {
        return Next::Person(if reason == Reason::NotFoundInTime {
            Reason::NothingPermitted
        } else {
            reason
        });
    };
    let horizon = rule
        .decides_after
        .filter(|_| facts.state == State::InDoubt)
        .and_then(|bound| facts.last_possible_send.map(|at| at.after(bound)));
    if now < facts.not_before {
        return Next::Wait(facts.not_before);
    }
    if facts.checks < policy.max_checks {
        return Next::Look;
    }
    match horizon {
        // The budget of look-ups is not spent before the one that decides could be asked.
        Some(horizon) if now < horizon => Next::Wait(horizon),
        Some(_) if facts.checks < policy.max_checks + 2 => Next::Look,
        _ => Next::Person(reason),
    }
}

/// The next step of an engine that makes one known mistake.
#[cfg(feature = "mutants")]
pub(crate) fn mutated(
    step: Next,
    facts: &Facts,
    recovery: &Recovery,
    policy: &Policy,
    (mutant, now): (crate::mutant::Mutant, Timestamp),
) -> Next {
    use crate::mutant::Mistake;
    if mutant.is(Mistake::CrashReturnsToReady) && matches!(facts.state, State::Sent | State::SentInDoubt) {
        return send(LicenceGround::First);
    }
    if facts.sends >= policy.max_sends || !facts.state.is_in_doubt() || facts.state == State::RefMissing {
        return step;
    }
    let lapsed =
        recovery.replay.as_ref().is_some_and(|key| doubt(facts, now).first_intent_age >= key.safe_for);
    if mutant.is(Mistake::IgnoreSafeUntil) && lapsed && facts.state == State::InDoubt {
        return send(LicenceGround::Key);
    }
    if mutant.is(Mistake::LookupThenCreate)
        && facts.state != State::ExceptionInDoubt
        && step != Next::AcceptNegative
    {
        let look = facts.checks == 0 && recovery.lookup.is_some();
        return if look { Next::Look } else { send(LicenceGround::Disproved) };
    }
    step
}

#[cfg(test)]
mod tests {
    use super::*;
    use destinations::{Assumptions, Contract};

    const START: Timestamp = Timestamp(1_000_000_000);

    fn at(seconds: u64) -> Timestamp {
        START.after(Duration::from_secs(seconds))
    }

    fn facts(state: State) -> Facts {
        Facts {
            state,
            sends: 1,
            checks: 0,
            first_intent: Some(START),
            last_possible_send: Some(at(10)),
            not_before: START,
            misses: vec![],
            authorisation: None,
            cancelled: false,
        }
    }

    fn recovery(id: &str, attested: Option<u64>) -> Recovery {
        let contract: Contract = destinations::named(id).expect("a built-in contract");
        let assumed_late_commit = attested.map(Duration::from_secs);
        destinations::recovery(&contract, &Assumptions { assumed_late_commit, ..Assumptions::default() })
    }

    fn step(facts: &Facts, recovery: &Recovery, now: Timestamp) -> Next {
        next_step(facts, recovery, &Policy::default(), now)
    }

    #[test]
    fn the_first_send_needs_nothing_else() {
        let fresh = Facts { sends: 0, first_intent: None, last_possible_send: None, ..facts(State::Ready) };
        let next = step(&fresh, &recovery("desk_nothing", None), at(0));
        assert!(matches!(next, Next::Send(licence) if licence.ground() == LicenceGround::First));
    }

    #[test]
    fn nothing_is_sent_again_where_the_contract_offers_nothing() {
        for seconds in [0, 60, 100_000] {
            let next = step(&facts(State::InDoubt), &recovery("desk_nothing", None), at(seconds));
            assert_eq!(next, Next::Person(Reason::NothingPermitted));
        }
    }

    #[test]
    fn a_key_is_used_before_it_lapses_and_never_after() {
        let zendesk = recovery("zendesk_ticket", Some(90));
        let doubt = facts(State::InDoubt);
        assert!(matches!(step(&doubt, &zendesk, at(20)), Next::Wait(_)), "two may be in flight");
        let wait = zendesk.replay.as_ref().expect("it has a key").wait_between;
        let next = step(&doubt, &zendesk, at(10).after(wait));
        assert!(matches!(next, Next::Send(licence) if licence.ground() == LicenceGround::Key));
        for seconds in [7_199, 7_200, 7_201, 20_000] {
            let next = step(&doubt, &zendesk, at(seconds));
            assert!(!matches!(next, Next::Send(_)), "{seconds}: {next:?}");
        }
    }

    #[test]
    fn without_an_attested_bound_a_key_licenses_nothing() {
        let zendesk = recovery("zendesk_ticket", None);
        for seconds in [11, 101, 3_600] {
            assert!(!matches!(step(&facts(State::InDoubt), &zendesk, at(seconds)), Next::Send(_)));
        }
    }

    #[test]
    fn a_unique_reference_licenses_a_resend_at_any_time() {
        let unique = recovery("desk_unique_ref", None);
        for seconds in [11, 10_000_000] {
            let next = step(&facts(State::InDoubt), &unique, at(seconds));
            assert!(matches!(next, Next::Send(licence) if licence.ground() == LicenceGround::Identity));
        }
    }

    #[test]
    fn an_identity_for_one_writer_waits_until_the_last_send_has_ended() {
        let mut sequential = recovery("desk_unique_ref", Some(90));
        let wait = Duration::from_secs(130);
        let converge = sequential.converge.as_mut().expect("it has an identity");
        (converge.single_writer, converge.wait_between) = (true, wait);
        let doubt = facts(State::InDoubt);
        assert_eq!(step(&doubt, &sequential, at(20)), Next::Wait(at(10).after(wait)));
        let next = step(&doubt, &sequential, at(10).after(wait));
        assert!(matches!(next, Next::Send(licence) if licence.ground() == LicenceGround::Identity));
    }

    #[test]
    fn a_miss_counts_after_the_horizon_only_and_with_its_control() {
        let strong = recovery("desk_strong_lookup", None);
        let horizon = strong.lookup.as_ref().and_then(|l| l.decides_after).expect("a bound is declared");
        let late = at(10).after(horizon);
        let missed = |at, complete, control_found| {
            let miss = MissAt { at, complete, control_found };
            step(
                &Facts { misses: vec![miss], checks: 1, ..facts(State::InDoubt) },
                &strong,
                late.after(horizon),
            )
        };
        assert_eq!(missed(late, true, true), Next::AcceptNegative);
        assert_eq!(missed(at(12), true, true), Next::Look, "before the horizon");
        assert_eq!(missed(late, false, true), Next::Look, "a page is missing");
        assert_eq!(missed(late, true, false), Next::Look, "the control record was not found");
    }

    #[test]
    fn success_without_a_reference_never_leads_to_a_send() {
        for id in
            ["zendesk_ticket", "desk_unique_ref", "desk_strong_lookup", "jira_cloud_issue", "desk_nothing"]
        {
            for checks in 0..12 {
                for seconds in [11, 200, 5_000, 1_000_000] {
                    let facts = Facts { checks, ..facts(State::RefMissing) };
                    let next = step(&facts, &recovery(id, Some(90)), at(seconds));
                    assert!(!matches!(next, Next::Send(_) | Next::AcceptNegative), "{id}: {next:?}");
                }
            }
        }
    }

    #[test]
    fn every_doubt_ends_with_a_person_when_nothing_else_can_end_it() {
        for id in
            ["zendesk_ticket", "desk_unique_ref", "desk_strong_lookup", "jira_cloud_issue", "desk_nothing"]
        {
            let spent = Facts { sends: 5, checks: 10, ..facts(State::InDoubt) };
            let next = step(&spent, &recovery(id, Some(90)), at(100_000));
            assert!(matches!(next, Next::Person(_)), "{id}: {next:?}");
        }
    }
}
