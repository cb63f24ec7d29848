//! The people: they turn to what they own, look at the destination, and decide, rightly or not.

use super::{Supervisor, WORKFLOW_ADDRESS};
use crate::fault::{Place, What};
use crate::field::{PEOPLE, now};
use crate::history::Act;
use crate::outside;
use crate::run::End;
use crate::scenario::{Choice, Decide, Decision, Person, View};
use crate::seed::Seed;
use madsim::runtime::NodeHandle;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often the world looks whether people have been answered: at first, and at the latest.
const FIRST_LOOK: Duration = Duration::from_millis(50);
const LONGEST_LOOK: Duration = Duration::from_secs(5);
/// How long who was too early waits, and how often they look again.
const LOOK_AGAIN_MS: u64 = 300_000;
const LOOKS: u32 = 6;
/// What is reconciled.
const BOOKS: &str = "the records";
/// How far apart two reconciliations are, in the middle of everything and when all is quiet.
const SECOND_LOOK_MS: u64 = 31_000;
const BETWEEN_LOOKS_MS: u64 = 1_800_000;
/// A record that no destination has.
const NO_RECORD: &str = "none-such";

impl Supervisor<'_> {
    /// People turn to what they own, to each case once; true when somebody has decided.
    ///
    /// # Errors
    /// When the run ends meanwhile.
    pub(super) async fn people_decide(&mut self, people: &NodeHandle) -> Result<bool, End> {
        let Some(after) = self.plan.workload.person_after_ms else { return Ok(false) };
        let anew = |seed: Seed| seed.stream("person").within(1..=2 * after.max(1));
        let after = self.field.reroll.seed().map_or(after, anew);
        let mut acted = false;
        for name in self.owned() {
            if !self.decided.insert(name.clone()) {
                continue;
            }
            self.wait(after).await?;
            acted |= self.turn_to(&name, people).await?;
        }
        Ok(acted)
    }

    /// Has the first request cancelled at its time; nothing has settled before that is answered.
    pub(super) fn start_cancelling(&self, people: &NodeHandle) {
        let workload = &self.plan.workload;
        let Some((after, ask)) = workload.cancelled_after_ms.zip(workload.requests.first()) else { return };
        let choice = Choice { decide: Decide::Cancel, view: View::Now, by: Person::Requester };
        let Some(decision) = self.scenario.decision(&ask.operation, &choice, self.plan) else { return };
        let (field, name, open) = (self.field.clone(), ask.operation.clone(), self.open_deliveries.clone());
        open.fetch_add(1, Ordering::Relaxed);
        people.spawn(async move {
            tokio::time::sleep(Duration::from_millis(after)).await;
            outside::decide(&field, WORKFLOW_ADDRESS, &name, (choice.decide.act(), decision)).await;
            open.fetch_sub(1, Ordering::Relaxed);
        });
    }

    fn reconciliation(&self) -> Option<(Act, Decision)> {
        let choice = Choice { decide: Decide::Reconcile, view: View::Now, by: Person::Other };
        Some((choice.decide.act(), self.scenario.decision(BOOKS, &choice, self.plan)?))
    }

    /// Has the records compared while things go on; nobody waits for the answer.
    pub(super) fn start_reconciling(&self, people: &NodeHandle) {
        let Some(after) = self.plan.workload.reconciled_after_ms else { return };
        // Twice, far enough apart that what is seen both times is believed.
        for later in [0, SECOND_LOOK_MS] {
            let Some(decision) = self.reconciliation() else { return };
            let field = self.field.clone();
            people.spawn(async move {
                tokio::time::sleep(Duration::from_millis(after + later)).await;
                outside::decide(&field, WORKFLOW_ADDRESS, BOOKS, decision).await;
            });
        }
    }

    /// Has the records compared when all is quiet, and once more when nothing can lag any more.
    ///
    /// # Errors
    /// When the run ends meanwhile.
    pub(super) async fn reconcile_twice(&mut self, people: &NodeHandle) -> Result<(), End> {
        for _ in 0..2 {
            if self.plan.workload.reconciled_after_ms.is_none() {
                return Ok(());
            }
            self.wait(BETWEEN_LOOKS_MS).await?;
            let decisions = self.reconciliation().into_iter().collect();
            self.decide_at_once(BOOKS, decisions, people).await?;
        }
        Ok(())
    }

    /// What people own, as far as the workflow knows.
    fn owned(&self) -> Vec<String> {
        let state = self.field.lock();
        let belief = state.beliefs.last().map(|last| &last.belief);
        let owned = belief.into_iter().flat_map(|belief| &belief.operations);
        owned.filter(|op| op.waiting.is_owned()).map(|op| op.name.clone()).collect()
    }

    async fn turn_to(&mut self, name: &str, people: &NodeHandle) -> Result<bool, End> {
        let struck = self.field.strike(PEOPLE, &Place::Case(name.to_owned()), None).map(|(what, _)| what);
        if let Some(What::ActLate(ms)) = struck {
            self.wait(ms).await?;
        }
        let found = self.desk.record_of(name);
        let mut acted = false;
        for choices in rounds(struck.as_ref(), found, &self.wrong_record(name)) {
            let decision = |choice: &Choice| {
                Some((choice.decide.act(), self.scenario.decision(name, choice, self.plan)?))
            };
            let decisions: Vec<(Act, Decision)> = choices.iter().filter_map(decision).collect();
            acted |= !decisions.is_empty();
            self.decide_at_once(name, decisions, people).await?;
        }
        if !acted && self.plan.workload.made_anew {
            acted = self.make_anew(name, people).await?;
        }
        if !acted {
            self.empty_handed.insert(name.to_owned());
        }
        Ok(acted)
    }

    /// Who finds nothing declares so; somebody else permits another record then. Who is too early looks
    /// again.
    async fn make_anew(&mut self, name: &str, people: &NodeHandle) -> Result<bool, End> {
        for _ in 0..LOOKS {
            let found = self.desk.record_of(name);
            let looked = match found {
                Some(record) => Decide::Confirm { record },
                None => Decide::DeclareAbsent { checked_at_ms: crate::wallclock::true_ms(now()) },
            };
            let confirms = matches!(looked, Decide::Confirm { .. });
            if !self.decides(name, looked, Person::Owner, people).await? {
                self.wait(LOOK_AGAIN_MS).await?;
                continue;
            }
            if !confirms {
                self.decides(name, Decide::AuthoriseCreation, Person::Other, people).await?;
            }
            return Ok(true);
        }
        Ok(false)
    }

    /// One person decides; whether the workflow has taken it.
    async fn decides(
        &mut self,
        name: &str,
        decide: Decide,
        by: Person,
        people: &NodeHandle,
    ) -> Result<bool, End> {
        let choice = Choice { decide, view: View::Now, by };
        let Some(decision) = self.scenario.decision(name, &choice, self.plan) else { return Ok(false) };
        let answers = self.decide_at_once(name, vec![(choice.decide.act(), decision)], people).await?;
        Ok(answers.iter().all(|status| status.is_some_and(|status| status < 300)))
    }

    /// A record that is not the operation's: another one's, or one that does not exist.
    fn wrong_record(&self, name: &str) -> String {
        let (ledger, made_for) = self.desk.ledger();
        let other = ledger.effects().iter().zip(&made_for).find(|(_, made_for)| *made_for != name);
        other.map_or(NO_RECORD.to_owned(), |(effect, _)| effect.record.clone())
    }

    /// The people of one round act at one instant; the next round begins when all of them were answered: the
    /// statuses of their answers, in the order of their coming.
    async fn decide_at_once(
        &mut self,
        name: &str,
        decisions: Vec<(Act, Decision)>,
        people: &NodeHandle,
    ) -> Result<Vec<Option<u16>>, End> {
        let acting = decisions.len();
        let answers = Arc::new(Mutex::new(vec![]));
        let heard = |answers: &Mutex<Vec<Option<u16>>>| -> Vec<Option<u16>> {
            answers.lock().unwrap_or_else(PoisonError::into_inner).clone()
        };
        for decision in decisions {
            let (field, name, answers) = (self.field.clone(), name.to_owned(), answers.clone());
            people.spawn(async move {
                let answer = outside::decide(&field, WORKFLOW_ADDRESS, &name, decision).await;
                answers.lock().unwrap_or_else(PoisonError::into_inner).push(answer);
            });
        }
        let mut look = FIRST_LOOK;
        while heard(&answers).len() < acting {
            self.pass(look).await.map_or(Ok(()), Err)?;
            look = (look * 2).min(LONGEST_LOOK);
        }
        Ok(heard(&answers))
    }

    async fn wait(&mut self, ms: u64) -> Result<(), End> {
        self.pass(Duration::from_millis(ms)).await.map_or(Ok(()), Err)
    }
}

/// What people do, one round after another. Who finds nothing leaves the case open, unless a fault has them
/// decide all the same.
fn rounds(struck: Option<&What>, found: Option<String>, wrong: &str) -> Vec<Vec<Choice>> {
    let choice = |decide, view, by| Choice { decide, view, by };
    let right = match (found, struck) {
        (Some(record), _) => Decide::Confirm { record },
        (None, Some(_)) => Decide::Reject,
        (None, None) => return vec![],
    };
    let rightly = choice(right.clone(), View::Now, Person::Owner);
    match struck {
        Some(What::WrongReference) => {
            let wrong = Decide::Confirm { record: wrong.to_owned() };
            vec![vec![choice(wrong, View::Now, Person::Owner)], vec![rightly]]
        }
        Some(What::TwoAtOnce) => {
            vec![vec![rightly, choice(Decide::Reject, View::Now, Person::Other)]]
        }
        Some(What::StaleView) => vec![vec![choice(right, View::Older, Person::Owner)], vec![rightly]],
        _ => vec![vec![rightly]],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(struck: Option<&What>, found: Option<&str>) -> Vec<Vec<String>> {
        let word = |choice: &Choice| {
            let what = match &choice.decide {
                Decide::Confirm { record } => record.as_str(),
                Decide::Reject => "no",
                other => unreachable!("{other:?} belongs to no round"),
            };
            let old = if choice.view == View::Older { "old " } else { "" };
            let other = if choice.by == Person::Other { " by another" } else { "" };
            format!("{old}{what}{other}")
        };
        let rounds = rounds(struck, found.map(str::to_owned), "T1");
        rounds.iter().map(|round| round.iter().map(word).collect()).collect()
    }

    #[test]
    fn people_err_and_go_on_rightly() {
        let nothing: Vec<Vec<String>> = vec![];
        assert_eq!(told(None, None), nothing);
        assert_eq!(told(None, Some("T93")), [["T93"]]);
        assert_eq!(told(Some(&What::ActLate(1)), None), [["no"]]);
        assert_eq!(told(Some(&What::WrongReference), Some("T93")), [["T1"], ["T93"]]);
        assert_eq!(told(Some(&What::WrongReference), None), [["T1"], ["no"]]);
        assert_eq!(told(Some(&What::TwoAtOnce), Some("T93")), [["T93", "no by another"]]);
        assert_eq!(told(Some(&What::TwoAtOnce), None), [["no", "no by another"]]);
        assert_eq!(told(Some(&What::StaleView), Some("T93")), [["old T93"], ["T93"]]);
    }
}
