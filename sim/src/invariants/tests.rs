//! Histories written by hand: each invariant about what lasts breaks where it should, and nowhere else.

use super::{INVARIANTS, judge};
use crate::belief::{Basis, Belief, BelievedAttempt, BelievedDecision, BelievedOperation, Standing, Waiting};
use crate::fault::{Call, ExchangeName, Fault, FaultTape, Place, What, When};
use crate::fixture::{OPERATION, Toy, create, pipeline};
use crate::history::{Act, Kind, Nanos, Step};
use crate::run::{BeliefAt, Moment, Options, Run};
use crate::seed::Seed;
use crate::verdict::Verdict;

/// A run of which nothing happened yet.
struct Told {
    run: Run,
    creates: u32,
}

impl Told {
    fn new() -> Told {
        let scenario = Toy("one-ticket");
        let contract = destinations::named("desk_unique_ref").expect("it comes with the crate");
        let pipeline = pipeline();
        let plan = (pipeline.draft)(&scenario, &contract, Seed(1), None, Some(&[])).expect("a plan");
        let mut run = (pipeline.run)(&scenario, &plan, &Options::default());
        run.history = crate::history::History::default();
        run.beliefs.clear();
        let mut told = Told { run, creates: 0 };
        told.add(Kind::Started { boot: 1 });
        told
    }

    fn add(&mut self, kind: Kind) -> Step {
        self.add_because(kind, None)
    }

    fn add_because(&mut self, kind: Kind, cause: Option<Step>) -> Step {
        let step = self.run.history.events().len() as u64;
        self.run.history.add(Nanos(step * 700_000_000), "workflow", kind, cause)
    }

    fn create(&mut self) {
        self.create_with("wf1-a");
    }

    fn create_with(&mut self, key: &str) {
        self.creates += 1;
        let (exchange, summary) = (create(self.creates), "POST /tickets".to_owned());
        let (key, digest) = (Some(key.to_owned()), format!("7c1e of {key}"));
        self.add(Kind::Sent { exchange, to: "helpdesk", key, digest, summary });
    }

    fn sync(&mut self, fails: bool) {
        let failed = Kind::Fault { n: 1, what: "sync-error", words: "disk sync fails".into() };
        self.add(if fails { failed } else { Kind::Synced { boot: 1, nth: 1 } });
    }

    fn effect(&mut self, record: &str) {
        let record = record.to_owned();
        self.add(Kind::Effect { about: OPERATION.into(), record, key: None, late: false });
    }

    /// A person's confirmation, and its answer.
    fn confirm(&mut self, nth: u32) {
        self.decide(Act::Confirm, nth, Some(200));
    }

    /// What a person wants.
    fn want(&mut self, act: Act) -> Step {
        self.add(Kind::Person { about: OPERATION.into(), act, words: "decides".into() })
    }

    /// What a person wants, and its answer where they hear one.
    fn decide(&mut self, act: Act, nth: u32, status: Option<u16>) {
        let wanted = self.want(act);
        self.attempt(wanted, nth, status);
    }

    /// One try of what a person wants.
    fn attempt(&mut self, wanted: Step, nth: u32, status: Option<u16>) {
        let exchange = ExchangeName { call: Call::Decide, about: OPERATION.into(), nth };
        let sent = Kind::Sent {
            exchange: exchange.clone(),
            to: "workflow",
            key: None,
            digest: "1a2b".into(),
            summary: "POST".into(),
        };
        let sent = self.add_because(sent, Some(wanted));
        if let Some(status) = status {
            let heard =
                Kind::Received { exchange, status, summary: String::new(), record: None, empty: false };
            self.add_because(heard, Some(sent));
        }
    }

    /// What is read of the store now: the state, the record, the sends counted.
    fn believe(&mut self, moment: Moment, words: &str, record: Option<&str>, sends: usize) {
        let standing = match words.split('/').next() {
            Some("completed") => Standing::Completed,
            Some("rejected") => Standing::Rejected,
            _ => Standing::InDoubt,
        };
        let operation = BelievedOperation {
            purged: false,
            decisions: vec![],
            name: OPERATION.into(),
            standing,
            words: words.into(),
            record: record.map(str::to_owned),
            attempts: vec![BelievedAttempt { key: "wf1-a".into(), digest: "7c1e".into() }; sends],
            waiting: Waiting::Engine,
            basis: Basis::None,
        };
        let belief = Belief { deliveries: vec![], operations: vec![operation], ..Belief::default() };
        self.push(moment, belief);
    }

    fn push(&mut self, moment: Moment, belief: Belief) {
        let step = Step(self.run.history.events().len() as u32);
        self.run.beliefs.push(BeliefAt { moment, step, belief });
    }

    /// How often this invariant is violated.
    fn violations(&self, id: &str) -> usize {
        match judge(&self.run, &Toy("one-ticket")).verdict {
            Verdict::Violated(all) => all.iter().filter(|violation| violation.invariant.id == id).count(),
            _ => 0,
        }
    }
}

#[test]
fn every_invariant_has_its_check_and_its_own_name() {
    let told = Told::new();
    assert_eq!(judge(&told.run, &Toy("one-ticket")).evaluated.len(), INVARIANTS.len());
    for (index, one) in INVARIANTS.iter().enumerate() {
        assert!(INVARIANTS[index + 1..].iter().all(|other| other.id != one.id && other.name != one.name));
    }
}

#[test]
fn an_end_and_its_record_stay() {
    let done = "completed/confirmed";
    let then = |words: &str, record: Option<&str>| {
        let mut told = Told::new();
        told.believe(Moment::Storm, "requiring_verification/in_doubt", None, 1);
        told.believe(Moment::Storm, done, Some("T93"), 1);
        told.believe(Moment::End, words, record, 1);
        told.violations("V13")
    };
    assert_eq!(then(done, Some("T93")), 0);
    assert_eq!(then("validated/ready", Some("T93")), 1, "it left its end");
    assert_eq!(then("rejected/accepted_risk", Some("T93")), 1, "another end");
    assert_eq!(then(done, Some("T94")), 1, "another record");
    assert_eq!(then(done, None), 1, "the record is gone");
    let mut forgotten = Told::new();
    forgotten.believe(Moment::Storm, "validated/ready", None, 0);
    forgotten.push(Moment::End, Belief::default());
    assert_eq!((forgotten.violations("V13"), forgotten.violations("V15")), (0, 1));
}

/// Whatever else goes wrong, a request is not turned down by nobody and for nothing.
#[test]
fn a_rejection_has_a_ground() {
    let violations = |sends: usize, person: bool| {
        let mut told = Told::new();
        let at = Place::Sync { boot: 9, nth: 9, when: When::Before };
        told.run.plan.tape = FaultTape::new(vec![Fault { at, what: What::Pause(10) }]).expect("a tape");
        told.run.fired = vec![None];
        (0..sends).for_each(|_| told.create());
        if person {
            told.decide(Act::Reject, 1, Some(200));
        }
        told.believe(Moment::End, "rejected/withdrawn", None, sends);
        told.violations("V18")
    };
    assert_eq!(violations(0, false), 1, "nobody has asked the destination, and nobody has decided");
    assert_eq!((violations(0, true), violations(1, false)), (0, 0));
}

/// A killed process shows what was not durable; a power cut before the next start may take it.
#[test]
fn what_was_never_durable_may_be_taken_back() {
    let after = |crash: Kind| {
        let mut told = Told::new();
        told.add(crash);
        told.believe(Moment::Crash, "completed/confirmed", Some("T93"), 1);
        told.believe(Moment::Storm, "requiring_verification/in_doubt", None, 1);
        told.violations("V13")
    };
    assert_eq!(after(Kind::Killed), 0);
    assert_eq!(after(Kind::PowerCut), 1);
}

#[test]
fn a_confirmation_that_was_accepted_stands() {
    let mut told = Told::new();
    told.confirm(1);
    told.believe(Moment::Calm, "completed/confirmed_by_human", Some("T93"), 1);
    assert_eq!(told.violations("V13"), 0);
    told.confirm(2);
    assert_eq!(told.violations("V13"), 1, "it was accepted twice");
    let mut overwritten = Told::new();
    overwritten.confirm(1);
    overwritten.believe(Moment::Calm, "rejected/accepted_risk", None, 1);
    assert_eq!(overwritten.violations("V13"), 1);
}

#[test]
fn a_process_whose_store_has_failed_sends_nothing_more() {
    let sends_after = |counted: usize, goes_on: bool| {
        let mut told = Told::new();
        told.sync(false);
        told.sync(true);
        if goes_on {
            // The first may be the closing of its file, the second comes too late for that.
            told.sync(false);
            told.sync(false);
        }
        told.create();
        told.believe(Moment::End, "requiring_verification/in_doubt", None, counted);
        told.violations("V20")
    };
    assert_eq!(sends_after(0, false), 1, "the intent is lost");
    assert_eq!(sends_after(1, false), 0, "the intent was durable before");
    assert_eq!(sends_after(1, true), 1, "it wrote and sent as if nothing had happened");
    let mut again = Told::new();
    again.sync(true);
    again.add(Kind::Killed);
    again.add(Kind::Started { boot: 2 });
    again.create();
    again.believe(Moment::End, "requiring_verification/in_doubt", None, 1);
    assert_eq!(again.violations("V20"), 0, "the next process has read it again");
}

#[test]
fn what_leaves_is_bounded_for_each_operation_and_for_all() {
    let mut told = Told::new();
    (0..3).for_each(|_| told.create());
    assert_eq!(told.violations("V22"), 0);
    told.create();
    assert_eq!(told.violations("V22"), 2, "one operation, and all of the one request");
}

/// A person may have another record made, under another key: what they did not permit, or were refused,
/// excuses nothing.
#[test]
fn another_key_and_another_record_need_a_persons_word() {
    let then = |act: Act, status: Option<u16>| {
        let mut told = Told::new();
        told.create_with("wf1-a");
        told.decide(act, 1, status);
        told.create_with("wf1-b");
        told.believe(Moment::End, "requiring_verification/in_doubt", None, 2);
        (told.violations("V7"), told.violations("V6"))
    };
    assert_eq!(then(Act::AuthoriseCreation, Some(200)), (0, 0));
    assert_eq!(then(Act::AuthoriseCreation, Some(409)), (1, 1), "it was refused");
    assert_eq!(then(Act::AuthoriseCreation, Some(503)), (0, 0), "it may have been taken all the same");
    assert_eq!(then(Act::AuthoriseCreation, None), (0, 0), "it may have been taken");
    assert_eq!(then(Act::DeclareAbsent, Some(200)), (1, 1), "it permits nothing");

    let made = |before: bool, status: u16| {
        let mut told = Told::new();
        told.create_with("wf1-a");
        if before {
            told.effect("T93");
        }
        told.decide(Act::AuthoriseCreation, 1, Some(status));
        told.create_with("wf1-b");
        told.effect("T94");
        if !before {
            told.effect("T93");
        }
        told.violations("V1")
    };
    assert_eq!(made(true, 200), 0, "it was there, and a person had another one made");
    assert_eq!(made(true, 409), 1, "nobody may have another one made");
    assert_eq!(
        made(false, 200),
        1,
        "who permits another one before the first has come is not to blame for both"
    );
}

/// However often it is tried, it is one person's word for one send.
#[test]
fn a_word_that_is_tried_again_counts_once() {
    let mut told = Told::new();
    told.create_with("wf1-a");
    told.effect("T93");
    let wanted = told.want(Act::AuthoriseCreation);
    for (nth, status) in [(1, None), (2, Some(503)), (3, Some(200))] {
        told.attempt(wanted, nth, status);
    }
    told.create_with("wf1-b");
    told.effect("T94");
    assert_eq!((told.violations("V1"), told.violations("V7")), (0, 0));
    told.effect("T95");
    assert_eq!(told.violations("V1"), 1);
    told.create_with("wf1-b");
    told.create_with("wf1-b");
    assert_eq!(told.violations("V22"), 0, "a budget of three, and one on top");
    told.create_with("wf1-b");
    assert_eq!(told.violations("V22"), 2);
}

#[test]
fn what_was_declared_absent_does_not_come_later_by_itself() {
    let came = |status: u16, sent_again: bool| {
        let mut told = Told::new();
        told.create_with("wf1-a");
        told.decide(Act::DeclareAbsent, 1, Some(status));
        if sent_again {
            told.create_with("wf1-a");
        }
        told.effect("T93");
        told.violations("V21")
    };
    assert_eq!(came(200, false), 1);
    assert_eq!(came(409, false), 0, "nobody believed it");
    assert_eq!(came(200, true), 0, "it came of a later send");
}

/// A person who was refused has decided nothing.
#[test]
fn an_end_needs_a_decision_that_can_have_been_taken() {
    let ended = |status: Option<u16>| {
        let mut told = Told::new();
        told.create();
        told.decide(Act::Reject, 1, status);
        told.believe(Moment::End, "rejected/accepted_risk", None, 1);
        told.run.beliefs.last_mut().expect("one").belief.operations[0].basis = Basis::AcceptedRisk;
        told.violations("V5")
    };
    assert_eq!((ended(Some(200)), ended(None), ended(Some(409))), (0, 0, 1));
}

#[test]
fn what_a_person_decided_is_on_record_and_stays_as_it_was_written() {
    let recorded = |decisions: usize, by: &str| {
        let mut told = Told::new();
        told.confirm(1);
        told.believe(Moment::End, "completed/confirmed_by_human", Some("T93"), 1);
        let decision = BelievedDecision {
            by: by.into(),
            said: "confirm_found: found".into(),
            before: "requiring_verification/exception".into(),
            after: "completed/confirmed_by_human".into(),
        };
        let belief = &mut told.run.beliefs.last_mut().expect("one").belief;
        belief.operations[0].decisions = vec![decision; decisions];
        told.violations("V17")
    };
    assert_eq!((recorded(1, "c42"), recorded(0, "c42"), recorded(1, " ")), (0, 1, 1));
    let mut edited = Told::new();
    let belief = Belief { tampered: Some("row 3 is not what was written there".into()), ..Belief::default() };
    edited.push(Moment::Crash, belief);
    assert_eq!(edited.violations("V17"), 1);
}
