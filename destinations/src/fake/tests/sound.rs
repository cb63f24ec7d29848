//! The derivation against the fakes: whoever sends only what is permitted makes one record, however late it
//! all is.

use super::*;
use crate::contract::{
    Atomic, Bound, Consistency, ConvergeKind, Grade, InFlight, LookupBy, OnConflict, Permanence, Staleness,
};
use crate::recovery::{Assumptions, Doubt, Ground, Miss, recovery};

/// One step of a sender that never gets an answer, in milliseconds: wait, look up or not, and how slow a send
/// is, or whether it gets lost.
#[derive(Clone, Debug)]
struct Step {
    wait: u64,
    look: bool,
    lost: bool,
    pause: u64,
    transit: u64,
    takes: u64,
}

const ATTESTED: Duration = Duration::from_secs(60);

fn step() -> impl Strategy<Value = Step> {
    let wait = prop_oneof![6 => 0u64..130_000, 1 => 0u64..8_000_000];
    // The extremes of what is assumed are tried most.
    let up_to = |most: u64| prop_oneof![Just(0), Just(most), 0..=most];
    (wait, any::<[bool; 2]>(), up_to(10_000), up_to(30_000), up_to(60_000)).prop_map(
        |(wait, [look, lost], pause, transit, takes)| Step { wait, look, lost, pause, transit, takes },
    )
}

/// Contracts of every class that permits a resend.
fn contracts() -> Vec<Contract> {
    let changed = |id: &str, change: fn(&mut Contract)| {
        let mut contract = named(id).unwrap();
        change(&mut contract);
        contract
    };
    vec![
        named("zendesk_ticket").unwrap(),
        changed("zendesk_ticket", |c| c.dedup_key.as_mut().unwrap().in_flight = InFlight::Waits),
        named("desk_unique_ref").unwrap(),
        changed("desk_unique_ref", |c| c.converge[0].atomic = Atomic::Sequential),
        changed("desk_unique_ref", |c| {
            c.converge[0].kind = ConvergeKind::ClientId;
            c.revision.evidence.insert("converge".to_owned(), Grade::Documented);
            c.converge[0].permanence = Permanence::For(Duration::from_secs(3_600));
            c.converge[0].on_conflict = OnConflict::ReturnsExisting;
        }),
        named("desk_strong_lookup").unwrap(),
        changed("desk_strong_lookup", |c| {
            c.lookup[0].consistency = Consistency::Eventual;
            c.lookup[0].max_staleness = Staleness::Known(Duration::from_secs(20));
        }),
        changed("desk_strong_lookup", |c| c.time.late_commit_bound = Bound::Unknown),
        named("jira_cloud_issue").unwrap(),
        named("desk_nothing").unwrap(),
    ]
}

/// A sender and its desk; requests on their way are kept in the order of arrival.
struct World {
    desk: Desk,
    now: u64,
    on_the_way: Vec<(u64, u64)>,
}

impl World {
    fn wait(&mut self, wait: u64) {
        self.now += wait;
        self.on_the_way.sort_unstable();
        while self.on_the_way.first().is_some_and(|(arrives, _)| *arrives <= self.now) {
            let (arrives, takes) = self.on_the_way.remove(0);
            let ask = create(&Ask { client_id: Some("c1"), ..keyed("k1") });
            self.desk.begin(Millis(arrives), ask, Duration::from_millis(takes));
        }
        self.desk.advance(Millis(self.now));
    }

    /// Whether a look-up finds something, having read every page; `None` where there is no look-up.
    fn finds(&mut self) -> Option<bool> {
        let by = LookupBy::ExternalRef;
        let mut page = 1;
        loop {
            let find = Request::Find { by, value: "wf1-a".to_owned(), page };
            let reply = at_once(self.desk.begin(Millis(self.now), find, WORK));
            let tickets = reply.body["tickets"].as_array()?;
            match reply.body["next_page"].as_u64() {
                _ if !tickets.is_empty() => return Some(true),
                Some(next) => page = u32::try_from(next).unwrap(),
                None => return Some(false),
            }
        }
    }
}

/// Lives through the steps and says how many records there are in the end, and on what grounds it sent again.
fn live(contract: Contract, steps: &[Step], seed: u64) -> (usize, Vec<Ground>) {
    let assumptions = Assumptions { assumed_late_commit: Some(ATTESTED), ..Assumptions::default() };
    let permitted = recovery(&contract, &assumptions);
    let desk = Desk::new(contract, DeskOptions { seed, ..DeskOptions::default() });
    let mut world = World { desk, now: 0, on_the_way: Vec::new() };
    let (mut intents, mut misses, mut grounds): (Vec<u64>, Vec<u64>, Vec<Ground>) = Default::default();
    for step in steps {
        world.wait(step.wait);
        let age = |at: u64| Duration::from_millis(world.now - at);
        let ground = match (intents.first(), intents.last()) {
            (Some(first), Some(last)) => {
                let miss = |at: &u64| Miss { age: age(*at), complete: true, control_found: true };
                let doubt = Doubt {
                    first_intent_age: age(*first),
                    last_send_age: age(*last),
                    sends: u32::try_from(intents.len()).unwrap(),
                    misses: misses.iter().rev().map(miss).collect(),
                    same_key_and_bytes: true,
                };
                permitted.may_resend(&doubt)
            }
            _ => None,
        };
        if intents.is_empty() || (ground.is_some() && !step.look) {
            grounds.extend(ground);
            intents.push(world.now);
            if !step.lost {
                world.on_the_way.push((world.now + step.pause + step.transit, step.takes));
            }
        } else if step.look {
            // A hit would end it; this sender is obstinate and only stops where nothing permits.
            if world.finds() == Some(false) {
                misses.push(world.now);
            }
        }
    }
    world.wait(1_000_000);
    (created(&world.desk), grounds)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn what_is_permitted_makes_one_record(
        which in 0usize..10,
        steps in prop::collection::vec(step(), 1..30),
        seed in any::<u64>(),
    ) {
        let contract = contracts().swap_remove(which);
        let id = contract.id.clone();
        let (records, grounds) = live(contract, &steps, seed);
        prop_assert!(records <= 1, "{id}: {records} records after {grounds:?}");
    }
}

#[test]
fn each_ground_is_reached() {
    let slow = |wait: u64, look: bool| Step {
        wait,
        look,
        lost: false,
        pause: 10_000,
        transit: 30_000,
        takes: 60_000,
    };
    let steps = [slow(0, false), slow(100_000, true), slow(1, false), slow(100_000, false)];
    let grounds = |which: usize, steps: &[Step]| live(contracts().swap_remove(which), steps, 1).1;
    assert_eq!(grounds(0, &steps), [Ground::Key, Ground::Key]);
    assert_eq!(grounds(1, &steps), [Ground::Key, Ground::Key]);
    assert_eq!(grounds(2, &[slow(0, false), slow(1, false)]), [Ground::Identity]);
    assert_eq!(grounds(3, &[slow(0, false), slow(1, false), slow(99_999, false)]), [Ground::Identity]);
    assert_eq!(grounds(4, &[slow(0, false), slow(1, false), slow(3_300_000, false)]), [Ground::Identity]);
    assert!(grounds(5, &steps).is_empty(), "a look-up at the horizon finds the latest commit");
    assert!(grounds(5, &[slow(0, false), slow(99_999, true), slow(500_000, false)]).is_empty());
    assert!(grounds(9, &steps).is_empty());
    let lost = Step { lost: true, ..slow(0, false) };
    assert_eq!(grounds(5, &[lost.clone(), slow(100_000, true), slow(1, false)]), [Ground::TrustedMiss]);
    let twice = [lost, slow(120_000, true), slow(20_000, true), slow(1, false)];
    assert_eq!(grounds(6, &twice), [Ground::TrustedMiss]);
    assert!(grounds(6, &twice[..2]).is_empty());
}
