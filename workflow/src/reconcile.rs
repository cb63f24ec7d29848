//! Two-way reconciliation: what is recorded against the destination's records, and those against what is
//! recorded.
//!
//! A finding is open only when a second look, later than anything can lag, sees it again; what is not seen
//! any more is closed by the run that does not see it. Nothing is corrected but one thing: an operation in
//! doubt with exactly one record of its own is completed with it.

mod judge;

use crate::engine::{Engine, Shared};
use crate::evidence::{LookupReport, Record};
use crate::known::Known;
use crate::licence::Reason;
use crate::mutant::Mistake;
use crate::operation::WireKey;
use crate::people::is_contradicted;
use crate::state::{Event, Public, State};
use crate::store::{Discrepancy, Dossier, Look, NewEvidence, StoreError};
use judge::{Judged, Proves, judge};
use serde::Serialize;
use std::time::Duration;

/// Operations that are read at once.
const PAGE: u32 = 200;

/// What a reconciliation saw.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reconciliation {
    /// The sums.
    pub balance: Balance,
    /// What could not be read, and why: nothing is concluded from it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<Unread>,
    /// Operations that were under way, or moved on meanwhile: they are left to the next run.
    pub moved: u64,
    /// Whatever contradicts what is recorded and was not seen to be gone, the latest first.
    pub discrepancies: Vec<Discrepancy>,
    /// What this destination does not let anybody see.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_observable: Vec<&'static str>,
}

/// The sums of a reconciliation, over the operations that stood still: `completed = matched + missing_there +
/// wrong_link + unread`, and `records = matched + duplicate_extra + exists_but`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Balance {
    /// Operations that are completed.
    pub completed: u64,
    /// Those whose record is there, and theirs.
    pub matched: u64,
    /// Those whose record is not there.
    pub missing_there: u64,
    /// Those whose record belongs to something else.
    pub wrong_link: u64,
    /// Those whose record could not be read.
    pub unread: u64,
    /// Records of ours that were seen at the destination.
    pub records: u64,
    /// Those beyond the first of a completed operation.
    pub duplicate_extra: u64,
    /// Those of operations that are not completed.
    pub exists_but: u64,
}

/// An operation whose records could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unread {
    /// The operation.
    pub operation: String,
    /// Why.
    pub why: String,
}

/// What the destination shows of one operation.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// The record that is linked to it; none where the destination says that there is none.
    linked: Option<Result<Option<Record>, String>>,
    /// Every record that look-ups by its references show; none where there is no such look-up.
    found: Option<Result<Vec<Record>, String>>,
}

/// Why there is no report.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReconcileError {
    /// Two at once would take one moment for two looks.
    #[error("a reconciliation is under way: wait for its report")]
    UnderWay,
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Engine {
    /// Compares every operation that was ever sent with the destination's records, both ways, one after
    /// another: it takes two exchanges an operation.
    ///
    /// # Errors
    /// When another one is under way, or the store fails; what the destination does not answer is in the
    /// report.
    pub async fn reconcile(&self) -> Result<Reconciliation, ReconcileError> {
        let Ok(_alone) = self.shared.reconciling.try_lock() else { return Err(ReconcileError::UnderWay) };
        let done = self.shared.reconcile().await;
        if let Err(error) = &done {
            self.shared.stop(error);
        }
        Ok(done?)
    }
}

impl Shared {
    async fn reconcile(&self) -> Result<Reconciliation, StoreError> {
        let store = self.people()?;
        let mut report = Reconciliation::default();
        let mut after = String::new();
        loop {
            let page = store.sent_operations(after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.key.to_string();
            for operation in page {
                if let Some(dossier) = self.store.load(operation.key).await? {
                    self.compare(dossier, &mut report).await?;
                }
            }
        }
        report.discrepancies = store.discrepancies().await?;
        report.discrepancies.retain(|found| found.status != "corrected");
        report.not_observable.push("records that carry no reference of ours, or one of an unknown operation");
        if self.workflow.recovery.lookup.is_none() {
            report.not_observable.push("records of operations that are not completed, and duplicates");
        }
        Ok(report)
    }

    /// Compares one operation. What is under way, or has moved on meanwhile, is left to the next run.
    async fn compare(&self, before: Dossier, report: &mut Reconciliation) -> Result<(), StoreError> {
        let (key, blind) = (before.operation.key.clone(), self.mutant().is(Mistake::NoSecondLook));
        if matches!(before.operation.state, State::Sent | State::SentInDoubt) && !blind {
            report.moved += 1;
            return Ok(());
        }
        let looked = self.store.now();
        let seen = self.see(&before).await;
        let Some(now) = self.store.load(key.clone()).await? else { return Ok(()) };
        if now.operation.version != before.operation.version && !blind {
            report.moved += 1;
            return Ok(());
        }
        let mut judged = judge(&before, &now, &seen, self.mutant().is(Mistake::ReconciledOneWay));
        if let Proves::Completes(record) = &judged.proves
            && self.people()?.is_linked_elsewhere(record.id.clone(), key.clone()).await?
        {
            judged.sightings.push(judge::beside(record, now.operation.state));
            judged.proves = Proves::Nothing;
        }
        report.add(&before, &seen, &judged);
        // What could not be read closes nothing.
        if seen.is_whole() {
            let look = Look {
                at: looked,
                version: now.operation.version,
                again_after: if blind { Duration::ZERO } else { self.second_look_after() },
                is_shown: judged.is_shown,
                owner: self.workflow.definition.owner.clone(),
            };
            self.people()?.sighted(key, judged.sightings, look).await?;
        }
        self.act_on(now, judged.proves).await
    }

    /// What the records prove of an operation that is not completed.
    async fn act_on(&self, now: Dossier, proves: Proves) -> Result<(), StoreError> {
        let evidence = |record: &Record, source: &str, says: &str| NewEvidence {
            class: "confirmed",
            source: source.into(),
            detail: format!("{} {says}", record.id),
        };
        match proves {
            Proves::Nothing => {}
            Proves::Completes(record) => {
                let evidence = evidence(&record, "reconciliation", "is the one record with its reference");
                self.record(Known::from(now), Event::Confirmed, evidence, Some(record.id)).await?;
            }
            Proves::Contradicts(_) if is_contradicted(&now) => {}
            // Every send was proven to have done nothing, and there it is: nothing is sent any more.
            Proves::Contradicts(record) => {
                let evidence = evidence(&record, "late reconciliation", "is there, with its reference");
                if now.operation.state == State::Backoff {
                    let event = Event::OpenException;
                    self.write(Known::from(now), event, evidence, None, Some(Reason::Conflict)).await?;
                } else {
                    let sends = now.operation.sends;
                    let late = NewEvidence { source: "reconciliation".into(), ..evidence };
                    self.write_late(now.operation, sends, late, Some(record.id)).await?;
                }
            }
        }
        Ok(())
    }

    /// How much later the second look at a finding must be: nothing lags any more then.
    fn second_look_after(&self) -> Duration {
        let lag = self.workflow.recovery.lookup.as_ref().map(|rule| rule.lag).unwrap_or_default();
        lag.max(self.workflow.definition.assumptions.max_transit)
    }

    async fn see(&self, dossier: &Dossier) -> Seen {
        let operation = &dossier.operation;
        let patience = self.workflow.definition.policy.send_timeout;
        let hidden = self.hidden(&operation.frozen.body);
        let linked = match &operation.external_ref {
            Some(id) => Some(self.connector.fetch(id, patience).await.map_err(|why| hidden.clean(&why))),
            None => None,
        };
        let mut values = vec![self.lookup_value(operation)];
        // Records of older keys are its own, too.
        for attempt in &dossier.attempts {
            let mut older = operation.clone();
            older.wire_key = WireKey::from_stored(attempt.wire_key.clone());
            let value = self.lookup_value(&older);
            if !values.contains(&value) {
                values.push(value);
            }
        }
        let mut found: Option<Result<Vec<Record>, String>> = None;
        for value in values {
            let more = match self.look_up(&value).await {
                Some(LookupReport::Complete { matches, .. }) => Ok(matches),
                Some(LookupReport::Incomplete(why)) => Err(hidden.clean(&why)),
                None => break,
            };
            found = Some(match (found, more) {
                (Some(Err(why)), _) | (_, Err(why)) => Err(why),
                (before, Ok(more)) => {
                    let mut all = before.and_then(Result::ok).unwrap_or_default();
                    all.extend(more);
                    Ok(all)
                }
            });
        }
        Seen { linked, found }
    }
}

impl Seen {
    fn is_whole(&self) -> bool {
        !matches!(self.linked, Some(Err(_))) && !matches!(self.found, Some(Err(_)))
    }

    fn why_not(&self) -> Option<&str> {
        let linked = self.linked.as_ref().and_then(|linked| linked.as_ref().err());
        linked.or(self.found.as_ref().and_then(|found| found.as_ref().err())).map(String::as_str)
    }
}

impl Reconciliation {
    fn add(&mut self, dossier: &Dossier, seen: &Seen, judged: &Judged) {
        let (operation, balance) = (&dossier.operation, &mut self.balance);
        if let Some(why) = seen.why_not() {
            self.unread.push(Unread { operation: operation.key.to_string(), why: why.to_owned() });
        }
        let completed = operation.state.public() == Public::Completed;
        balance.completed += u64::from(completed);
        balance.matched += u64::from(judged.matched);
        balance.missing_there += u64::from(judged.missing);
        balance.wrong_link += u64::from(judged.wrong);
        balance.unread += u64::from(completed && matches!(seen.linked, Some(Err(_)) | None));
        balance.records += u64::from(judged.matched) + judged.others;
        *(if completed { &mut balance.duplicate_extra } else { &mut balance.exists_but }) += judged.others;
    }
}
