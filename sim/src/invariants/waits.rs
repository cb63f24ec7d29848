//! Why a run has not settled: what each open operation waits for, and which deliveries were never answered.

use crate::belief::{BelievedOperation, Waiting};
use crate::fault::{Call, ExchangeName, Place, Variation, What};
use crate::history::Kind;
use crate::run::Run;
use std::collections::BTreeSet;

/// One sentence for everything that keeps the run from settling; none where nothing does.
pub(super) fn explain(run: &Run) -> Option<String> {
    let belief = run.belief();
    let open = belief.into_iter().flat_map(|belief| &belief.operations).filter(|op| {
        let settled = op.standing.is_terminal() || op.waiting.is_owned();
        !settled
    });
    let mut reasons: Vec<String> = open.map(|op| waits_for(op, under_way(run, &op.name))).collect();
    reasons.extend(unacknowledged(run).map(|name| format!("delivery {name} was never acknowledged")));
    (!reasons.is_empty()).then(|| format!("It had not settled in time: {}.", reasons.join("; ")))
}

/// What one open operation waits for.
fn waits_for(op: &BelievedOperation, under_way: Option<Call>) -> String {
    let what = match (&op.waiting, under_way) {
        (Waiting::Person { owner, .. }, _) if !op.waiting.is_owned() => {
            format!("a person, but has no owner with a deadline (\"{owner}\")")
        }
        (Waiting::Person { owner, .. }, _) => format!("{owner}, who has to decide"),
        (Waiting::Engine, Some(call)) => format!("the answer to a {call} that is under way"),
        (Waiting::Engine, None) => "the engine's next turn or timer; nothing is under way".into(),
        (Waiting::Nothing | Waiting::Nobody, _) => "nobody and nothing".into(),
    };
    format!("{} is {} and waits for {what}", op.name, op.words)
}

/// The call for an operation that has left and of which nothing came back, if there is one.
fn under_way(run: &Run, operation: &str) -> Option<Call> {
    let mut left: BTreeSet<&ExchangeName> = BTreeSet::new();
    for event in run.history.events() {
        match &event.kind {
            Kind::Sent { exchange, .. } if exchange.about == operation => drop(left.insert(exchange)),
            Kind::Received { exchange, .. } | Kind::Broken { exchange } => drop(left.remove(exchange)),
            // The dead wait for nothing.
            Kind::Killed | Kind::PowerCut => left.clear(),
            _ => {}
        }
    }
    left.iter().find(|exchange| exchange.call.is_to_destination()).map(|exchange| exchange.call)
}

/// Deliveries that can be read, and on which the source has not heard the last word.
fn unacknowledged(run: &Run) -> impl Iterator<Item = &str> {
    let answered: BTreeSet<&str> = run
        .history
        .events()
        .iter()
        .filter_map(|event| match &event.kind {
            Kind::Received { exchange, empty: false, .. } if exchange.call == Call::Deliver => {
                Some(exchange.about.as_str())
            }
            _ => None,
        })
        .collect();
    let names = run.deliveries().map(|delivery| delivery.name.as_str());
    let mut open: Vec<&str> =
        names.filter(|name| !answered.contains(name) && !is_poison(run, name)).collect();
    open.dedup();
    open.into_iter()
}

/// Whether a fault made it as bytes that nobody can read: such a delivery is never acknowledged.
fn is_poison(run: &Run, name: &str) -> bool {
    let poisons = |what: &What| matches!(what, What::Redeliver { how: Variation::Poison, .. });
    run.plan.tape.faults().iter().filter(|fault| poisons(&fault.what)).any(|fault| match &fault.at {
        Place::Delivery(first) => name.strip_prefix(first.as_str()).is_some_and(|rest| rest.starts_with('+')),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::belief::{Basis, Standing};

    fn op(words: &str, waiting: Waiting) -> BelievedOperation {
        BelievedOperation {
            purged: false,
            name: "R17:create-ticket:v1".into(),
            standing: Standing::InDoubt,
            words: words.into(),
            record: None,
            attempts: vec![],
            waiting,
            basis: Basis::None,
            decisions: vec![],
        }
    }

    #[test]
    fn each_open_operation_waits_for_something() {
        let person = |owner: &str| Waiting::Person {
            owner: owner.into(),
            deadline_ms: i64::from(!owner.is_empty()),
            reason: "key_lapses".into(),
        };
        let told = [
            waits_for(&op("in_doubt", Waiting::Engine), Some(Call::Create)),
            waits_for(&op("in_doubt", Waiting::Engine), None),
            waits_for(&op("ready", Waiting::Nobody), None),
            waits_for(&op("exception/in_doubt", person("service-desk-lead")), None),
            waits_for(&op("exception/in_doubt", person("")), None),
        ];
        insta::assert_snapshot!(told.join("\n"), @r#"
        R17:create-ticket:v1 is in_doubt and waits for the answer to a create that is under way
        R17:create-ticket:v1 is in_doubt and waits for the engine's next turn or timer; nothing is under way
        R17:create-ticket:v1 is ready and waits for nobody and nothing
        R17:create-ticket:v1 is exception/in_doubt and waits for service-desk-lead, who has to decide
        R17:create-ticket:v1 is exception/in_doubt and waits for a person, but has no owner with a deadline ("")
        "#);
    }

    #[test]
    fn a_run_that_never_heard_of_its_delivery_says_so() {
        let (catalogue, pipeline) = (crate::fixture::catalogue(), crate::fixture::pipeline());
        let scenario = &*catalogue.scenarios[0];
        let contract = scenario.contracts()[0].clone();
        let plan = (pipeline.draft)(scenario, &contract, crate::seed::Seed(1), None, None).unwrap();
        let mut run = (pipeline.run)(scenario, &plan, &crate::run::Options::default());
        assert_eq!(explain(&run), None);
        run.history = crate::history::History::default();
        assert_eq!(
            explain(&run).as_deref(),
            Some("It had not settled in time: delivery R17/d-1 was never acknowledged.")
        );
    }
}
