//! Two-way reconciliation: what is recorded against the destination's records, and those against what is
//! recorded.
//!
//! A finding is open only when a second look, later than anything can lag, sees it again; what is not seen
//! any more is closed by the run that does not see it. Nothing is corrected but one thing: an operation in
//! doubt with exactly one record of its own is completed with it.

use crate::engine::{Engine, Shared};
use crate::evidence::{LookupReport, Ownership, Record, ownership};
use crate::known::Known;
use crate::mutant::Mistake;
use crate::state::{Event, Public, State};
use crate::store::{Discrepancy, Dossier, NewEvidence, Operation, Sighting, StoreError};
use serde::Serialize;
use serde_json::Value;

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
    /// Whatever contradicts what is recorded, closed or not, the latest first.
    pub discrepancies: Vec<Discrepancy>,
    /// What this destination does not let anybody see.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_observable: Vec<&'static str>,
}

/// The sums of a reconciliation. `completed = matched + missing_there + wrong_link + unread`;
/// `records = matched + duplicate_extra + exists_but`.
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

impl Balance {
    /// Whether the sums agree, and nothing is missing, double or unread.
    pub fn closes(&self) -> bool {
        let Balance { completed, matched, missing_there, wrong_link, unread, .. } = *self;
        completed == matched + missing_there + wrong_link + unread
            && self.records == matched + self.duplicate_extra + self.exists_but
            && missing_there + wrong_link + unread + self.duplicate_extra + self.exists_but == 0
    }
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
    /// Every record that a look-up by our reference shows; none where there is no such look-up.
    found: Option<Result<Vec<Record>, String>>,
}

impl Engine {
    /// Compares every operation that was ever sent with the destination's records, both ways.
    ///
    /// # Errors
    /// When the store fails; what the destination does not answer is in the report.
    pub async fn reconcile(&self) -> Result<Reconciliation, StoreError> {
        let done = self.shared.reconcile().await;
        if let Err(error) = &done {
            self.shared.stop(error);
        }
        done
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
                self.compare(operation, &mut report).await?;
            }
        }
        report.discrepancies = store.discrepancies().await?;
        report.not_observable.push("records that carry no reference of ours, or one of an unknown operation");
        if self.workflow.recovery.lookup.is_none() {
            report.not_observable.push("records of operations that are not completed, and duplicates");
        }
        Ok(report)
    }

    /// Compares one operation; what has moved on meanwhile is left to the next run.
    async fn compare(&self, operation: Operation, report: &mut Reconciliation) -> Result<(), StoreError> {
        let seen = self.see(&operation).await;
        let Some(now) = self.store.load(operation.key.clone()).await? else { return Ok(()) };
        let blind = self.mutant().is(Mistake::NoSecondLook);
        if now.operation.version != operation.version && !blind {
            return Ok(());
        }
        let judged = judge(&operation, &now, &seen, self.mutant().is(Mistake::ReconciledOneWay));
        report.add(&operation, &seen, &judged);
        // What could not be read closes nothing.
        if seen.is_whole() {
            let owner = self.workflow.definition.owner.clone();
            let lag = if blind { std::time::Duration::ZERO } else { self.second_look_after() };
            let sighted = self.people()?.sighted(operation.key.clone(), judged.sightings, lag, owner).await;
            sighted?;
        }
        if let Some(record) = judged.completes {
            let detail = format!("{} is the one record with its reference", record.id);
            let evidence = NewEvidence { class: "confirmed", source: "reconciliation".into(), detail };
            self.record(Known::from(now), Event::Confirmed, evidence, Some(record.id)).await?;
        }
        Ok(())
    }

    /// How much later the second look at a finding must be: nothing lags or is on its way any more then.
    fn second_look_after(&self) -> std::time::Duration {
        let lag = self.workflow.recovery.lookup.as_ref().map(|rule| rule.lag).unwrap_or_default();
        lag.max(self.workflow.definition.assumptions.max_transit)
    }

    async fn see(&self, operation: &Operation) -> Seen {
        let patience = self.workflow.definition.policy.send_timeout;
        let hidden = self.hidden(&operation.frozen.body);
        let linked = match &operation.external_ref {
            Some(id) => Some(self.connector.fetch(id, patience).await.map_err(|why| hidden.clean(&why))),
            None => None,
        };
        let found = match self.look_up(&self.lookup_value(operation)).await {
            Some(LookupReport::Complete { matches, .. }) => Some(Ok(matches)),
            Some(LookupReport::Incomplete(why)) => Some(Err(hidden.clean(&why))),
            None => None,
        };
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

/// What follows from what was seen of one operation.
#[derive(Clone, Debug, Default)]
struct Judged {
    sightings: Vec<Sighting>,
    matched: bool,
    missing: bool,
    wrong: bool,
    /// Records that a look-up shows beside the linked one.
    others: u64,
    /// The one record that completes it.
    completes: Option<Record>,
}

fn judge(operation: &Operation, now: &Dossier, seen: &Seen, one_way: bool) -> Judged {
    let mut judged = Judged::default();
    let sent: Value = serde_json::from_str(&operation.frozen.body).unwrap_or_default();
    let mut sight =
        |kind: &'static str, severity: &'static str, record: Option<&str>, detail: String, proposal: &str| {
            let (external_ref, proposal) = (record.map(str::to_owned), proposal.to_owned());
            judged.sightings.push(Sighting { kind, severity, external_ref, detail, proposal });
        };
    let linked = operation.external_ref.as_deref();
    match (&seen.linked, linked) {
        (Some(Ok(None)), Some(id)) => {
            sight(
                "missing_there",
                "high",
                linked,
                format!("{id} is not at the destination"),
                "find out who removed it; where it is still wanted, deliver the request under an id of its own",
            );
            judged.missing = true;
        }
        (Some(Ok(Some(record))), Some(id)) => match ownership(record, &sent) {
            Ownership::NotOurs(why) if carries_other(record, &sent) => {
                sight(
                    "wrong_link",
                    "high",
                    linked,
                    format!("{id}: {why}"),
                    "look at both records, and confirm the right one in a request of its own",
                );
                judged.wrong = true;
            }
            Ownership::NotOurs(_) => {
                sight(
                    "field_mismatch",
                    "low",
                    linked,
                    format!("{id} differs from what was asked for"),
                    "find out who changed it, and whether that is wanted",
                );
                judged.matched = true;
            }
            _ => judged.matched = true,
        },
        _ => {}
    }
    let ours = |record: &&Record| !carries_other(record, &sent) && Some(record.id.as_str()) != linked;
    let found = seen.found.iter().flatten().flatten().filter(ours).filter(|_| !one_way);
    let others: Vec<&Record> = found.collect();
    let state = now.operation.state;
    let completed = state.public() == Public::Completed;
    // A send that is under way may have made it this very moment.
    let under_way = matches!(state, State::Sent | State::SentInDoubt);
    match others.as_slice() {
        [] => {}
        [record]
            if linked.is_none()
                && state.is_in_doubt()
                && !under_way
                && ownership(record, &sent) == Ownership::Ours =>
        {
            judged.completes = Some((*record).clone());
        }
        others if completed => {
            for record in others {
                sight(
                    "duplicate_there",
                    "high",
                    Some(&record.id),
                    format!("{} is a second record", record.id),
                    "look at both at the destination, and close the one that nobody works on",
                );
            }
        }
        others => {
            for record in others {
                sight(
                    "exists_but",
                    "high",
                    Some(&record.id),
                    format!("{} is there, and it is {state}", record.id),
                    "confirm it where it is wanted, or close it at the destination",
                );
            }
        }
    }
    judged.others = others.len() as u64;
    judged
}

/// Whether a record carries another reference than this operation's.
fn carries_other(record: &Record, sent: &Value) -> bool {
    ["external_id", "marker"].into_iter().any(|field| {
        let (theirs, ours) = (record.fields.get(field), sent.get(field));
        theirs.and_then(Value::as_str).zip(ours.and_then(Value::as_str)).is_some_and(|(a, b)| a != b)
    })
}

impl Reconciliation {
    fn add(&mut self, operation: &Operation, seen: &Seen, judged: &Judged) {
        let balance = &mut self.balance;
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
