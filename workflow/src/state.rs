//! The one transition function of an operation, for live writes and for recovery alike.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The six states that people use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Public {
    /// It arrived.
    Received,
    /// It can be sent, or will be sent again after a proof that nothing was applied.
    Validated,
    /// A send is possible at this moment.
    Processing,
    /// The destination holds its record.
    Completed,
    /// It ended without an effect.
    Rejected,
    /// Its outcome is not known, or a person has to decide.
    RequiringVerification,
}

/// Where an operation stands, in detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It arrived and was not looked at yet.
    Received,
    /// It may be sent for the first time.
    Ready,
    /// Every send so far is proven to have had no effect; it will be sent again.
    Backoff,
    /// An intent is durable and a send may be under way; no earlier send is in doubt.
    Sent,
    /// An intent is durable and a send may be under way; an earlier send is still in doubt.
    SentInDoubt,
    /// It may have been applied; nobody knows.
    InDoubt,
    /// The destination reported success without saying which record.
    RefMissing,
    /// A person has to decide; every send so far is proven to have had no effect.
    ExceptionUnsent,
    /// A person has to decide; it may have been applied.
    ExceptionInDoubt,
    /// A person looked, found no record, and says that none will come; a person has to decide what follows.
    DeclaredAbsent,
    /// A person permits one send more; every send so far is proven to have had no effect.
    Authorised,
    /// A person permits another record under another key: it was declared that there is none.
    AuthorisedCreation,
    /// A person permits the same send once more; an earlier send is in doubt.
    AuthorisedResend,
    /// The destination confirmed the record.
    Confirmed,
    /// A person pointed to the record, and the destination confirmed it.
    ConfirmedByPerson,
    /// It never met its own rules; nothing was sent.
    Invalid,
    /// The destination refused it for good.
    RefusedByDestination,
    /// A person withdrew it, or it was cancelled; nothing had been applied.
    Withdrawn,
    /// A person closed it without a proof, and answers for that.
    AcceptedRisk,
}

/// What happens to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// It met its rules.
    Valid,
    /// It did not.
    Invalid,
    /// The intent of a send became durable.
    Intent,
    /// E+: the destination confirmed the record that belongs to it.
    Confirmed,
    /// E+ partial: success without a readable id.
    ConfirmedWithoutRef,
    /// E- final: a documented refusal of this send.
    Refused,
    /// E- retryable: proof that this send did nothing.
    NotApplied,
    /// E- conclusive: proof that no send so far did or will do anything.
    TrustedNegative,
    /// E0: nothing can be said.
    Unknown,
    /// Records contradict each other.
    Conflict,
    /// Only a person can go on.
    OpenException,
    /// A person pointed to a record and the destination confirmed it.
    PersonConfirmed,
    /// A person rejects it.
    PersonRejected,
    /// A person closes it without a proof.
    PersonAcceptedRisk,
    /// A person says that there is no record and that none will come.
    PersonDeclaredAbsent,
    /// A person permits one send more.
    PersonAuthorised,
    /// What a person permitted was not used in time, or is void.
    AuthorisationLapsed,
    /// It is not wanted any more, and nothing was applied.
    Cancelled,
}

/// An event that cannot happen in this state. Only a bug can cause one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{event:?} cannot happen to an operation that is {state}")]
pub struct IllegalTransition {
    /// The state.
    pub state: State,
    /// The event.
    pub event: Event,
}

/// The state after an event. Whatever is not listed is an error.
///
/// # Errors
/// When the event cannot happen in this state.
pub fn next(state: State, event: Event) -> Result<State, IllegalTransition> {
    use Event as E;
    use State as S;
    Ok(match (state, event) {
        (S::Received, E::Valid) => S::Ready,
        (S::Received, E::Invalid) => S::Invalid,

        (S::Ready | S::Backoff, E::Intent) => S::Sent,
        (S::InDoubt | S::AuthorisedResend, E::Intent) => S::SentInDoubt,
        (S::Authorised | S::AuthorisedCreation, E::Intent) => S::Sent,
        (S::Ready | S::Backoff, E::OpenException) => S::ExceptionUnsent,

        (S::Sent | S::SentInDoubt | S::InDoubt | S::RefMissing, E::Confirmed) => S::Confirmed,
        // Late, and welcome all the same: nobody has said anything that contradicts it for good.
        (
            S::ExceptionInDoubt | S::DeclaredAbsent | S::AuthorisedCreation | S::AuthorisedResend,
            E::Confirmed,
        ) => S::Confirmed,
        (S::Sent | S::SentInDoubt, E::ConfirmedWithoutRef) => S::RefMissing,
        (S::Sent, E::Refused) => S::RefusedByDestination,
        (S::Sent, E::NotApplied) => S::Backoff,
        // This send did nothing; an earlier one still may have.
        (S::SentInDoubt, E::Refused | E::NotApplied) => S::InDoubt,
        (S::Sent | S::SentInDoubt | S::InDoubt, E::Unknown) => S::InDoubt,
        (S::RefMissing, E::Unknown) => S::RefMissing,

        (S::InDoubt, E::TrustedNegative) => S::Backoff,
        (S::Sent | S::SentInDoubt | S::InDoubt | S::RefMissing, E::Conflict) => S::ExceptionInDoubt,
        (S::InDoubt | S::RefMissing, E::OpenException) => S::ExceptionInDoubt,

        (
            S::ExceptionUnsent
            | S::ExceptionInDoubt
            | S::DeclaredAbsent
            | S::Authorised
            | S::AuthorisedCreation
            | S::AuthorisedResend,
            E::PersonConfirmed,
        ) => S::ConfirmedByPerson,
        (
            S::ExceptionUnsent | S::DeclaredAbsent | S::Authorised | S::AuthorisedCreation,
            E::PersonRejected,
        ) => S::Withdrawn,
        (S::ExceptionInDoubt | S::DeclaredAbsent, E::PersonDeclaredAbsent) => S::DeclaredAbsent,
        (S::ExceptionUnsent, E::PersonAuthorised) => S::Authorised,
        (S::DeclaredAbsent, E::PersonAuthorised) => S::AuthorisedCreation,
        (S::ExceptionInDoubt, E::PersonAuthorised) => S::AuthorisedResend,
        (S::Authorised, E::AuthorisationLapsed) => S::ExceptionUnsent,
        (S::AuthorisedCreation, E::AuthorisationLapsed) => S::DeclaredAbsent,
        (S::AuthorisedResend, E::AuthorisationLapsed) => S::ExceptionInDoubt,
        (
            S::ExceptionInDoubt | S::DeclaredAbsent | S::AuthorisedCreation | S::AuthorisedResend,
            E::PersonAcceptedRisk,
        ) => S::AcceptedRisk,
        // Where it may have been applied it is no end: it keeps further sends away, and that is all.
        (S::Received | S::Ready | S::Backoff | S::ExceptionUnsent | S::Authorised, E::Cancelled) => {
            S::Withdrawn
        }
        _ => return Err(IllegalTransition { state, event }),
    })
}

impl State {
    /// Every state.
    pub const ALL: [State; 19] = [
        State::Received,
        State::Ready,
        State::Backoff,
        State::Sent,
        State::SentInDoubt,
        State::InDoubt,
        State::RefMissing,
        State::ExceptionUnsent,
        State::ExceptionInDoubt,
        State::DeclaredAbsent,
        State::Authorised,
        State::AuthorisedCreation,
        State::AuthorisedResend,
        State::Confirmed,
        State::ConfirmedByPerson,
        State::Invalid,
        State::RefusedByDestination,
        State::Withdrawn,
        State::AcceptedRisk,
    ];

    /// The state as people know it.
    pub fn public(self) -> Public {
        match self {
            State::Received => Public::Received,
            State::Ready | State::Backoff | State::Authorised | State::AuthorisedCreation => {
                Public::Validated
            }
            State::Sent | State::SentInDoubt => Public::Processing,
            State::InDoubt
            | State::RefMissing
            | State::ExceptionUnsent
            | State::ExceptionInDoubt
            | State::DeclaredAbsent
            | State::AuthorisedResend => Public::RequiringVerification,
            State::Confirmed | State::ConfirmedByPerson => Public::Completed,
            State::Invalid | State::RefusedByDestination | State::Withdrawn | State::AcceptedRisk => {
                Public::Rejected
            }
        }
    }

    /// Whether it has ended.
    pub fn is_terminal(self) -> bool {
        matches!(self.public(), Public::Completed | Public::Rejected)
    }

    /// Whether a person has to decide.
    pub fn is_exception(self) -> bool {
        matches!(self, State::ExceptionUnsent | State::ExceptionInDoubt | State::DeclaredAbsent)
    }

    /// Whether a person permits a send that has not begun.
    pub fn is_authorised(self) -> bool {
        matches!(self, State::Authorised | State::AuthorisedCreation | State::AuthorisedResend)
    }

    /// Whether an effect may exist that nobody has confirmed.
    pub fn is_in_doubt(self) -> bool {
        matches!(
            self,
            State::Sent
                | State::SentInDoubt
                | State::InDoubt
                | State::RefMissing
                | State::ExceptionInDoubt
                | State::AuthorisedResend
        )
    }

    /// What a crash makes of it: a send that was under way is in doubt, never ready.
    pub fn recovered(self) -> State {
        match self {
            State::Sent | State::SentInDoubt => {
                next(self, Event::Unknown).expect("a send under way can always fall into doubt")
            }
            settled => settled,
        }
    }

    /// `requiring_verification/in_doubt`: the public word and the detail.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Received => "received/new",
            State::Ready => "validated/ready",
            State::Backoff => "validated/backoff",
            State::Sent => "processing/sent",
            State::SentInDoubt => "processing/sent_again",
            State::InDoubt => "requiring_verification/in_doubt",
            State::RefMissing => "requiring_verification/ref_missing",
            State::ExceptionUnsent => "requiring_verification/exception_unsent",
            State::ExceptionInDoubt => "requiring_verification/exception",
            State::DeclaredAbsent => "requiring_verification/declared_absent",
            State::Authorised => "validated/authorised",
            State::AuthorisedCreation => "validated/authorised_creation",
            State::AuthorisedResend => "requiring_verification/authorised_resend",
            State::Confirmed => "completed/confirmed",
            State::ConfirmedByPerson => "completed/confirmed_by_human",
            State::Invalid => "rejected/validation",
            State::RefusedByDestination => "rejected/by_destination",
            State::Withdrawn => "rejected/withdrawn",
            State::AcceptedRisk => "rejected/accepted_risk",
        }
    }

    /// Reads what [`State::as_str`] wrote.
    pub fn parse(text: &str) -> Option<State> {
        State::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENTS: [Event; 18] = [
        Event::Valid,
        Event::Invalid,
        Event::Intent,
        Event::Confirmed,
        Event::ConfirmedWithoutRef,
        Event::Refused,
        Event::NotApplied,
        Event::TrustedNegative,
        Event::Unknown,
        Event::Conflict,
        Event::OpenException,
        Event::PersonConfirmed,
        Event::PersonRejected,
        Event::PersonAcceptedRisk,
        Event::PersonDeclaredAbsent,
        Event::PersonAuthorised,
        Event::AuthorisationLapsed,
        Event::Cancelled,
    ];

    fn reachable(from: State) -> Vec<State> {
        EVENTS.iter().filter_map(|event| next(from, *event).ok()).collect()
    }

    #[test]
    fn every_pair_has_an_answer_and_the_table_is_reviewed_as_a_whole() {
        let mut table = String::new();
        for state in State::ALL {
            for event in EVENTS {
                if let Ok(then) = next(state, event) {
                    table += &format!("{state} + {event:?} = {then}\n");
                }
            }
        }
        insta::assert_snapshot!(table);
    }

    #[test]
    fn nothing_leaves_an_ended_operation() {
        for state in State::ALL.into_iter().filter(|s| s.is_terminal()) {
            assert_eq!(reachable(state), [], "{state}");
        }
    }

    #[test]
    fn doubt_is_left_by_evidence_or_a_person_only() {
        let may_leave = [
            Event::Confirmed,
            Event::TrustedNegative,
            Event::PersonConfirmed,
            Event::PersonAcceptedRisk,
            Event::PersonDeclaredAbsent,
        ];
        for state in State::ALL.into_iter().filter(|s| s.is_in_doubt() && *s != State::Sent) {
            for event in EVENTS {
                let Ok(then) = next(state, event) else { continue };
                assert!(then.is_in_doubt() || may_leave.contains(&event), "{state} + {event:?} = {then}");
            }
        }
    }

    #[test]
    fn no_path_leads_from_a_missing_reference_to_a_send() {
        assert!(next(State::RefMissing, Event::Intent).is_err());
        assert!(!reachable(State::RefMissing).iter().any(|s| next(*s, Event::Intent).is_ok()));
    }

    #[test]
    fn a_crash_never_makes_a_send_ready_again() {
        assert_eq!(State::Sent.recovered(), State::InDoubt);
        assert_eq!(State::SentInDoubt.recovered(), State::InDoubt);
        for state in State::ALL {
            let recovered = state.recovered();
            assert_eq!(recovered.recovered(), recovered);
            assert_eq!(state.is_in_doubt(), recovered.is_in_doubt());
        }
    }

    #[test]
    fn states_are_stored_as_words() {
        for state in State::ALL {
            assert_eq!(State::parse(state.as_str()), Some(state));
        }
        assert_eq!(State::parse("failed"), None);
    }
}
