//! Whether a person's act is possible at this moment, and what it leads to.

use super::{DecisionError, Verdict};
use crate::clock::Timestamp;
use crate::definition::Definition;
use crate::engine::Shared;
use crate::evidence::{Ownership, Record, ownership};
use crate::known::Known;
use crate::licence::doubt;
use crate::mutant::Mistake;
use crate::operation::WireKey;
use crate::state::{Event, State, next};
use crate::store::{Authorised, CaseChange, Dossier, Evidence, Exception, person};
use destinations::Recovery;

/// What an act leads to.
pub(super) struct Judged {
    pub(super) state: State,
    pub(super) external_ref: Option<String>,
    pub(super) case: CaseChange,
    pub(super) permits: Option<Authorised>,
    /// What it says of the record.
    pub(super) class: &'static str,
    /// What the record of the act says beside the person's reason.
    pub(super) said: Option<String>,
}

impl Judged {
    fn to(state: State, case: CaseChange) -> Judged {
        Judged { state, external_ref: None, case, permits: None, class: person::SAYS, said: None }
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
        let hidden = self.hidden(&dossier.operation.frozen.body);
        let stays = |case: CaseChange, class: &'static str, said: String| {
            let case = Some(case).filter(|_| !dossier.exceptions.is_empty()).ok_or_else(nothing)?;
            Ok(Judged { class, said: Some(said), ..Judged::to(state, case) })
        };
        match verdict {
            Verdict::Assign { owner } => {
                let owner = hidden.clean(owner);
                stays(CaseChange::AssignedTo(owner.clone()), person::HOUSEKEEPING, format!("to {owner}"))
            }
            Verdict::Snooze { until } => {
                self.snooze(&dossier.exceptions, *until)?;
                stays(CaseChange::SnoozedUntil(*until), person::HOUSEKEEPING, format!("until {until}"))
            }
            Verdict::AddEvidence { kind, note } => {
                stays(CaseChange::Stays, person::SAYS, hidden.clean(&format!("{kind}: {note}")))
            }
            Verdict::Cancel => self.cancel(dossier).ok_or_else(nothing),
            // A changed request is a case beside the operation: rejecting it leaves the operation as it is.
            Verdict::Reject { .. }
                if !state.is_exception() && !state.is_authorised() && !dossier.exceptions.is_empty() =>
            {
                Ok(Judged { class: person::HOUSEKEEPING, ..Judged::to(state, CaseChange::ChangeClosed) })
            }
            _ if !state.is_exception() && !state.is_authorised() => Err(nothing()),
            Verdict::ConfirmFound { external_ref } => self.confirm(dossier, external_ref).await,
            Verdict::Reject { accept_risk } => reject(dossier, *accept_risk, nothing),
            Verdict::DeclareAbsent { how, checked_at, accept_risk } => {
                self.absent(dossier, *checked_at, *accept_risk)?;
                let state = next(state, Event::PersonDeclaredAbsent).map_err(|_| nothing())?;
                let class = if *accept_risk { person::ABSENT_AT_RISK } else { person::ABSENT };
                let risk = if *accept_risk { "; answers for a record that comes later" } else { "" };
                let said = Some(format!("{}; looked at {checked_at}{risk}", hidden.clean(how)));
                Ok(Judged { class, said, ..Judged::to(state, CaseChange::Stays) })
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

    /// Where nothing was applied it ends by this; elsewhere it is only sent no more. None where it has ended.
    fn cancel(&self, dossier: &Dossier) -> Option<Judged> {
        let state = dossier.operation.state;
        if state.is_terminal() {
            return None;
        }
        let ends = next(state, Event::Cancelled).ok().filter(|_| !is_contradicted(dossier));
        let ends = ends.or(self.mutant().is(Mistake::CancelIsRejection).then_some(State::Withdrawn));
        let case = if ends.is_some() { CaseChange::Closed } else { CaseChange::Stays };
        Some(Judged { class: person::CANCELLED, ..Judged::to(ends.unwrap_or(state), case) })
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
        // A person's clock is another one than the store's.
        if checked_at > now.after(self.workflow.definition.assumptions.clock_skew) {
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
        match absent_from(dossier, &self.workflow.recovery) {
            Ok(earliest) if checked_at < earliest => Err(DecisionError::TooEarly(earliest)),
            Ok(_) => Ok(()),
            Err(why) => Err(DecisionError::NotPermitted(why.into())),
        }
    }

    /// The contract has to permit it at this moment, unless nothing was ever applied.
    fn resend(&self, dossier: &Dossier) -> Result<(), DecisionError> {
        wanted(dossier)?;
        if dossier.operation.state == State::ExceptionUnsent {
            return if is_contradicted(dossier) { Err(contradicted()) } else { Ok(()) };
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

    fn create(&self, dossier: &Dossier, by: &str) -> Result<(), DecisionError> {
        let def = &self.workflow.definition;
        wanted(dossier)?;
        let declared = may_create(dossier, def, self.store.now()).map_err(DecisionError::NotPermitted)?;
        if def.second_person && declared.source == by {
            let why = format!("{by} declared the record absent: somebody else has to permit another one");
            return Err(DecisionError::NotPermitted(why));
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
        match claims(dossier, &record) {
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
    dossier: &Dossier,
    accept_risk: bool,
    nothing: impl Fn() -> DecisionError,
) -> Result<Judged, DecisionError> {
    let state = dossier.operation.state;
    let plainly = next(state, Event::PersonRejected);
    let at_risk = next(state, Event::PersonAcceptedRisk);
    match (plainly, at_risk) {
        // What proves that there is none is a proof, or the word of somebody who takes no risk with it.
        (Ok(state), _) if !is_contradicted(dossier) && !is_at_risk(dossier) => {
            Ok(Judged::to(state, CaseChange::Closed))
        }
        (_, Ok(state)) if accept_risk => Ok(Judged::to(state, CaseChange::Closed)),
        (Ok(_), Err(_)) => Err(contradicted()),
        (_, Ok(_)) => Err(DecisionError::MayExist),
        (Err(_), Err(_)) => Err(nothing()),
    }
}

/// Whether it can be closed only by somebody who answers for a record: it is in doubt, or the last
/// declaration that there is none was made at its author's risk.
pub(super) fn is_at_risk(dossier: &Dossier) -> bool {
    if dossier.operation.state.is_in_doubt() {
        return true;
    }
    let last = dossier.evidence.iter().rfind(|seen| is_declaration(seen));
    last.is_some_and(|seen| seen.class == person::ABSENT_AT_RISK)
}

/// Whether a record was reported after every send had been proven to have had no effect.
pub(crate) fn is_contradicted(dossier: &Dossier) -> bool {
    let state = dossier.operation.state;
    let unsent = matches!(state, State::ExceptionUnsent | State::Authorised);
    let late = |seen: &Evidence| seen.source.starts_with("late ") && seen.class.starts_with("confirmed");
    unsent && dossier.evidence.iter().any(late)
}

/// What was cancelled is sent no more, whoever asks for it.
fn wanted(dossier: &Dossier) -> Result<(), DecisionError> {
    if dossier.operation.cancelled {
        let why = "it was cancelled: nothing further is sent; a new request needs an id of its own";
        return Err(DecisionError::NotPermitted(why.into()));
    }
    Ok(())
}

fn contradicted() -> DecisionError {
    DecisionError::NotPermitted("a record was reported after all: find it and confirm it".into())
}

/// Whose a record is, by any key that the operation has ever carried.
pub(crate) fn claims(dossier: &Dossier, record: &Record) -> Ownership {
    let operation = &dossier.operation;
    let older = dossier.attempts.iter().map(|attempt| WireKey::from_stored(attempt.wire_key.clone()));
    let keys = [operation.wire_key.clone()].into_iter().chain(older);
    let whose = |key: WireKey| {
        let frozen = operation.frozen.with_key(&operation.wire_key, &key);
        ownership(record, &serde_json::from_str(&frozen.body).unwrap_or_default())
    };
    let mut all: Vec<Ownership> = keys.map(whose).collect();
    let ours = all.iter().position(|whose| matches!(whose, Ownership::Ours | Ownership::UnclaimedSame));
    all.swap_remove(ours.unwrap_or_default())
}

/// From when on a look can show that there is no record and that none will come; or why no look can.
pub(super) fn absent_from(dossier: &Dossier, recovery: &Recovery) -> Result<Timestamp, &'static str> {
    if dossier.evidence.iter().any(|seen| seen.class == "confirmed_without_ref") {
        return Err(
            "the destination reported success: there was a record. Find it and confirm it, or declare it \
             absent with `accept_risk`",
        );
    }
    let Some(sent) = dossier.operation.last_possible_send else { return Ok(Timestamp(0)) };
    let span = recovery.settled_after.ok_or(
        "nobody knows how long a request can still take effect at this destination: attest it \
         (`assumed_late_commit`), or declare it absent with `accept_risk` and answer for a record that comes later",
    )?;
    Ok(sent.after(span))
}

/// The declaration on which another record can be permitted now; or why there is none.
///
/// It has to be fresh, and nothing newer may be known.
pub(super) fn may_create<'a>(
    dossier: &'a Dossier,
    definition: &Definition,
    now: Timestamp,
) -> Result<&'a Evidence, String> {
    let absent = dossier.operation.state == State::DeclaredAbsent;
    let declared = dossier.evidence.iter().rposition(is_declaration).filter(|_| absent);
    let Some(declared) = declared else {
        return Err("declare the record absent first: then another one can be permitted".into());
    };
    let newer = dossier.evidence[declared + 1..].iter().find(|seen| seen.class != person::HOUSEKEEPING);
    if let Some(newer) = newer {
        let (n, class) = (newer.n, &newer.class);
        return Err(format!("evidence {n} ({class}) is newer than the declaration: declare it absent again"));
    }
    let declared = &dossier.evidence[declared];
    if now.since(declared.observed) > definition.policy.absence_max_age {
        let at = declared.observed;
        return Err(format!("the declaration of {at} is too old: look again and declare it absent again"));
    }
    Ok(declared)
}

/// Whether somebody declared by it that there is no record.
fn is_declaration(seen: &Evidence) -> bool {
    seen.class == person::ABSENT || seen.class == person::ABSENT_AT_RISK
}
