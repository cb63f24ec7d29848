//! Whether a person's act is possible at this moment, and what it leads to.

use super::{DecisionError, Verdict};
use crate::clock::Timestamp;
use crate::engine::Shared;
use crate::evidence::{Ownership, ownership};
use crate::known::Known;
use crate::licence::doubt;
use crate::mutant::Mistake;
use crate::state::{Event, State, next};
use crate::store::{Authorised, CaseChange, Dossier, Evidence, Exception};

/// What an act leads to.
pub(super) struct Judged {
    pub(super) state: State,
    pub(super) external_ref: Option<String>,
    pub(super) case: CaseChange,
    pub(super) permits: Option<Authorised>,
    /// What the record of the act says beside the person's reason.
    pub(super) said: Option<String>,
}

impl Judged {
    fn to(state: State, case: CaseChange) -> Judged {
        Judged { state, external_ref: None, case, permits: None, said: None }
    }
}

impl Shared {
    pub(super) async fn judge(
        &self,
        dossier: &Dossier,
        verdict: &Verdict,
        by: &str,
    ) -> Result<Judged, DecisionError> {
        let state = dossier.operation.state;
        let nothing = || DecisionError::NothingToDecide {
            operation: dossier.operation.key.to_string(),
            state: state.as_str(),
        };
        let stays = |case: Option<CaseChange>, said: Option<String>| {
            let case = case.filter(|_| !dossier.exceptions.is_empty()).ok_or_else(nothing)?;
            Ok(Judged { said, ..Judged::to(state, case) })
        };
        match verdict {
            Verdict::Assign { owner } => {
                stays(Some(CaseChange::AssignedTo(owner.clone())), Some(format!("to {owner}")))
            }
            Verdict::Snooze { until } => {
                self.snooze(&dossier.exceptions, *until)?;
                stays(Some(CaseChange::SnoozedUntil(*until)), Some(format!("until {until}")))
            }
            Verdict::AddEvidence { kind, note } => {
                stays(Some(CaseChange::Stays), Some(format!("{kind}: {note}")))
            }
            // A changed request is a case beside the operation: rejecting it leaves the operation as it is.
            Verdict::Reject { .. } if !state.is_exception() && !dossier.exceptions.is_empty() => {
                Ok(Judged::to(state, CaseChange::ChangeClosed))
            }
            _ if !state.is_exception() && !state.is_authorised() => Err(nothing()),
            Verdict::ConfirmFound { external_ref } => self.confirm(dossier, external_ref).await,
            Verdict::Reject { accept_risk } => reject(state, *accept_risk, nothing),
            Verdict::DeclareAbsent { how, checked_at, accept_risk } => {
                self.absent(dossier, *checked_at, *accept_risk)?;
                let state = next(state, Event::PersonDeclaredAbsent).map_err(|_| nothing())?;
                let said = Some(format!("{how}; looked at {checked_at}"));
                Ok(Judged { said, ..Judged::to(state, CaseChange::Stays) })
            }
            Verdict::AuthoriseResend => {
                let state = next(state, Event::PersonAuthorised)
                    .ok()
                    .filter(|state| *state != State::AuthorisedCreation)
                    .ok_or_else(nothing)?;
                self.resend(dossier)?;
                let permits = Some(Authorised::Resend);
                Ok(Judged { permits, ..Judged::to(state, CaseChange::Closed) })
            }
            Verdict::AuthoriseCreation => {
                self.create(dossier, by)?;
                let state = next(state, Event::PersonAuthorised).map_err(|_| nothing())?;
                let permits = Some(Authorised::Creation);
                Ok(Judged { permits, ..Judged::to(state, CaseChange::Closed) })
            }
        }
    }

    fn snooze(&self, cases: &[Exception], until: Timestamp) -> Result<(), DecisionError> {
        let invalid = |why: String| Err(DecisionError::Invalid(why));
        if until <= self.store.now() {
            return invalid(format!("{until} has passed"));
        }
        match cases.iter().map(|case| case.deadline).min() {
            Some(deadline) if until > deadline => {
                invalid(format!("{until} is after the deadline of the case, {deadline}: assign it instead"))
            }
            _ => Ok(()),
        }
    }

    async fn confirm(&self, dossier: &Dossier, external_ref: &str) -> Result<Judged, DecisionError> {
        let state = dossier.operation.state;
        let checked = self.check_record(dossier, external_ref).await;
        if self.mutant().is(Mistake::UnfetchedIsProof) && checked.is_err() {
            return Ok(Judged::to(State::Withdrawn, CaseChange::Closed));
        }
        if !self.mutant().is(Mistake::ConfirmUnchecked) {
            checked?;
        }
        let state = next(state, Event::PersonConfirmed).expect("every case can be confirmed");
        let external_ref = Some(external_ref.to_owned());
        let said = external_ref.clone();
        Ok(Judged { external_ref, said, ..Judged::to(state, CaseChange::Closed) })
    }

    /// Nobody can have seen that there is no record while one can still come.
    fn absent(
        &self,
        dossier: &Dossier,
        checked_at: Timestamp,
        accept_risk: bool,
    ) -> Result<(), DecisionError> {
        let now = self.store.now();
        let max_age = self.workflow.definition.policy.absence_max_age;
        if checked_at > now {
            return Err(DecisionError::Invalid(format!("{checked_at} has not come yet")));
        }
        if now.since(checked_at) > max_age {
            let max_age = humantime::format_duration(max_age);
            let why = format!("what was seen at {checked_at} is older than {max_age}: look again");
            return Err(DecisionError::Invalid(why));
        }
        if accept_risk || self.mutant().is(Mistake::AbsenceTooEarly) {
            return Ok(());
        }
        if dossier.evidence.iter().any(|seen| seen.class == "confirmed_without_ref") {
            let why = "the destination reported success: there was a record. Find it and confirm it, or declare it \
                       absent with `accept_risk`";
            return Err(DecisionError::NotPermitted(why.into()));
        }
        let Some(sent) = dossier.operation.last_possible_send else { return Ok(()) };
        match self.workflow.recovery.settled_after {
            Some(span) if checked_at < sent.after(span) => Err(DecisionError::TooEarly(sent.after(span))),
            Some(_) => Ok(()),
            None => Err(DecisionError::NotPermitted(
                "nobody knows how long a request can still take effect at this destination: attest it \
                 (`assumed_late_commit`), or declare it absent with `accept_risk` and answer for a record that comes \
                 later"
                    .into(),
            )),
        }
    }

    /// The contract has to permit it at this moment, unless nothing was ever applied.
    fn resend(&self, dossier: &Dossier) -> Result<(), DecisionError> {
        if dossier.operation.state == State::ExceptionUnsent {
            return Ok(());
        }
        let facts = Known::from(dossier.clone()).facts();
        match self.workflow.recovery.may_resend(&doubt(&facts, self.store.now())) {
            Some(_) => Ok(()),
            None => Err(DecisionError::NotPermitted(
                "the contract does not permit the same send again at this moment: it could make a second record"
                    .into(),
            )),
        }
    }

    /// Another record needs a fresh declaration that there is none, nothing newer than that, and a second
    /// person.
    fn create(&self, dossier: &Dossier, by: &str) -> Result<(), DecisionError> {
        let def = &self.workflow.definition;
        let refused = |why: String| Err(DecisionError::NotPermitted(why));
        if dossier.operation.state != State::DeclaredAbsent {
            return refused("declare the record absent first: then another one can be permitted".into());
        }
        let declared = dossier.evidence.iter().rposition(is_declaration);
        let Some(declared) = declared else {
            return refused("nobody has declared the record absent".into());
        };
        let newer = dossier.evidence[declared + 1..].iter().find(|seen| !is_housekeeping(seen));
        if let Some(newer) = newer {
            let (n, class) = (newer.n, &newer.class);
            return refused(format!(
                "evidence {n} ({class}) is newer than the declaration: declare it absent again"
            ));
        }
        let declared = &dossier.evidence[declared];
        if self.store.now().since(declared.observed) > def.policy.absence_max_age {
            let at = declared.observed;
            return refused(format!(
                "the declaration of {at} is too old: look again and declare it absent again"
            ));
        }
        if def.second_person && declared.source == by {
            let why = format!("{by} declared the record absent: somebody else has to permit another one");
            return refused(why);
        }
        Ok(())
    }

    /// Fetches the record that a person points to: it must exist, and be ours or unclaimed with our content.
    async fn check_record(&self, dossier: &Dossier, id: &str) -> Result<(), DecisionError> {
        let patience = self.workflow.definition.policy.send_timeout;
        let not_found = |why: String| DecisionError::NotFound(why);
        let record = self
            .connector
            .fetch(id, patience)
            .await
            .map_err(|why| not_found(format!("{id} could not be read, so nothing was decided: {why}")))?
            .ok_or_else(|| not_found(format!("the destination has no record {id}")))?;
        let sent = serde_json::from_str(&dossier.operation.frozen.body).unwrap_or_default();
        match ownership(&record, &sent) {
            Ownership::Ours | Ownership::UnclaimedSame => Ok(()),
            Ownership::Unclaimed => {
                Err(not_found(format!("{id} does not show what this operation asked for")))
            }
            Ownership::NotOurs(why) => {
                Err(not_found(format!("{id} is not the record of this operation: {why}")))
            }
        }
    }
}

fn reject(
    state: State,
    accept_risk: bool,
    nothing: impl Fn() -> DecisionError,
) -> Result<Judged, DecisionError> {
    match next(state, Event::PersonRejected) {
        Ok(state) => Ok(Judged::to(state, CaseChange::Closed)),
        Err(_) if accept_risk => {
            let state = next(state, Event::PersonAcceptedRisk).map_err(|_| nothing())?;
            Ok(Judged::to(state, CaseChange::Closed))
        }
        Err(_) if state == State::ExceptionInDoubt => Err(DecisionError::MayExist),
        Err(_) => Err(nothing()),
    }
}

/// Whether somebody declared by it that there is no record.
fn is_declaration(seen: &Evidence) -> bool {
    seen.class == "person" && seen.detail.starts_with("declare_absent: ")
}

/// Whether it says nothing about the record.
fn is_housekeeping(seen: &Evidence) -> bool {
    let says = |action: &str| seen.detail.strip_prefix(action).is_some_and(|rest| rest.starts_with(": "));
    seen.class == "person" && (says("assign") || says("snooze"))
}
