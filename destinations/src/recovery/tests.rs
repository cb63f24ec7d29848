//! Tests of the derivation: each class by table, and that less knowledge never makes bolder.

use super::*;
use crate::contract::{AfterExpiry, Bound, StoreDown, builtin, named};
use proptest::prelude::*;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

fn attested(late: Duration) -> Assumptions {
    Assumptions { assumed_late_commit: Some(late), ..Assumptions::default() }
}

fn of(id: &str) -> Contract {
    named(id).unwrap()
}

/// What is unknown, known on too weak evidence, or known to have a hole, is left open; nothing else is.
#[test]
fn what_a_contract_leaves_open() {
    let open = |contract: &Contract, assumptions: &Assumptions| {
        contract.open(assumptions).into_iter().map(|open| open.path).collect::<Vec<_>>()
    };
    let usual = Assumptions::default();
    assert_eq!(open(&of("desk_nothing"), &usual), ["dedup_key", "lookup", "time.late_commit_bound"]);
    assert_eq!(open(&of("desk_strong_lookup"), &usual), ["dedup_key"]);
    let documented = Assumptions { evidence_floor: Grade::Documented, ..usual.clone() };
    let more = open(&of("zendesk_ticket"), &documented);
    assert!(more.contains(&"dedup_key.retention".to_owned()), "quoted is too little: {more:?}");
    let mut holed = of("zendesk_ticket");
    let key = holed.dedup_key.as_mut().unwrap();
    (key.holes, key.retention, key.after_expiry) =
        (vec![Hole::OtherRegion], Retention::Forever, AfterExpiry::Unknown);
    let found = open(&holed, &usual);
    assert!(found.contains(&"dedup_key.holes.other_region".to_owned()), "{found:?}");
    assert!(!found.contains(&"dedup_key.after_expiry".to_owned()), "it never lapses: {found:?}");
    let mut configured = of("desk_unique_ref");
    configured.converge[0].atomic = Atomic::IfConfigured;
    assert!(open(&configured, &usual).contains(&"converge.unique_ref.atomic".to_owned()));
    let late = |assumptions| of("desk_nothing").open(&assumptions).pop().unwrap().meanwhile;
    assert!(late(attested(90 * SECOND)).starts_with("1m 30s is taken for true"));
    assert!(late(usual).starts_with("it counts as possible for ever"));
}

fn doubt(first: Duration, last: Duration) -> Doubt {
    Doubt { first_intent_age: first, last_send_age: last, sends: 1, misses: vec![], same_key_and_bytes: true }
}

#[test]
fn each_builtin_contract_has_its_class() {
    let class = |id: &str, assumptions: &Assumptions| recovery(&of(id), assumptions).class();
    let plain = Assumptions::default();
    assert_eq!(class("zendesk_ticket", &plain), Class::LookupConfirms, "what happens in flight is unknown");
    assert_eq!(class("zendesk_ticket", &attested(HOUR / 60)), Class::Replay);
    assert_eq!(class("desk_unique_ref", &plain), Class::Converge);
    assert_eq!(class("desk_strong_lookup", &plain), Class::LookupDecides);
    assert_eq!(class("jira_cloud_issue", &attested(SECOND)), Class::LookupConfirms);
    assert_eq!(class("desk_nothing", &attested(SECOND)), Class::Owner);
    assert!(Class::Owner < Class::LookupConfirms && Class::LookupConfirms < Class::LookupDecides);
    assert!(Class::LookupDecides < Class::Converge && Class::Converge < Class::Replay);
}

#[test]
fn a_key_is_safe_until_its_margin_and_not_at_it() {
    let permitted = recovery(&of("zendesk_ticket"), &attested(60 * SECOND));
    let replay = permitted.replay.clone().unwrap();
    assert_eq!(replay.retention, 2 * HOUR);
    assert_eq!(replay.margin, 720 * SECOND, "a tenth of two hours is more than transit and pause");
    assert_eq!(replay.safe_for, 6480 * SECOND);
    assert_eq!(replay.wait_between, 100 * SECOND, "attested 60 s, transit 30 s, pause 10 s");
    let nano = Duration::from_nanos(1);
    let may = |first, last| permitted.may_resend(&doubt(first, last));
    assert_eq!(may(6480 * SECOND - nano, 100 * SECOND), Some(Ground::Key));
    assert_eq!(may(6480 * SECOND, 100 * SECOND), None);
    assert_eq!(may(200 * SECOND, 100 * SECOND - nano), None, "the first may still be in flight");
    let other = Doubt { same_key_and_bytes: false, ..doubt(HOUR, HOUR) };
    assert_eq!(permitted.may_resend(&other), None);
    assert_eq!(permitted.may_resend(&Doubt { sends: 0, ..doubt(HOUR, HOUR) }), None);
}

#[test]
fn what_breaks_a_key_refuses_replay() {
    type Change = fn(&mut DedupKey);
    let breaking: [(&str, Change); 10] = [
        ("executes", |key| key.mismatch = Mismatch::Executes),
        ("may execute", |key| key.mismatch = Mismatch::MayExecute),
        ("fails open", |key| key.store_down = StoreDown::FailOpen),
        ("best effort", |key| key.retention_kind = RetentionKind::BestEffort),
        ("unknown kind", |key| key.retention_kind = RetentionKind::Unknown),
        ("unknown retention", |key| key.retention = Retention::Unknown),
        ("budget", |key| key.holes.push(Hole::Budget)),
        ("short", |key| key.retention = Retention::For(80 * SECOND)),
        ("shorter than two skews", |key| {
            key.retention = Retention::For(600 * SECOND);
            key.retention_anchor = Anchor::ClientTimestamp;
        }),
        ("unknown anchor", |key| {
            key.retention = Retention::For(600 * SECOND);
            key.retention_anchor = Anchor::Unknown;
        }),
    ];
    for (name, change) in breaking {
        let mut contract = of("zendesk_ticket");
        change(contract.dedup_key.as_mut().unwrap());
        assert_eq!(recovery(&contract, &attested(SECOND)).replay, None, "{name}");
    }
    let harmless: [(&str, Change); 4] = [
        ("long enough", |key| key.retention = Retention::For(81 * SECOND)),
        ("other region", |key| key.holes.push(Hole::OtherRegion)),
        ("rejected", |key| key.after_expiry = AfterExpiry::Rejected),
        ("minimum", |key| key.retention_kind = RetentionKind::Minimum),
    ];
    for (name, change) in harmless {
        let mut contract = of("zendesk_ticket");
        change(contract.dedup_key.as_mut().unwrap());
        assert!(recovery(&contract, &attested(SECOND)).replay.is_some(), "{name}");
    }
}

#[test]
fn known_behaviour_in_flight_needs_no_wait() {
    let mut contract = of("zendesk_ticket");
    contract.dedup_key.as_mut().unwrap().in_flight = InFlight::Waits;
    let replay = recovery(&contract, &Assumptions::default()).replay.unwrap();
    assert_eq!(replay.wait_between, Duration::ZERO);
    contract.dedup_key.as_mut().unwrap().in_flight = InFlight::ExecutesBoth;
    assert_eq!(recovery(&contract, &Assumptions::default()).replay, None);
    contract.dedup_key.as_mut().unwrap().retention = Retention::Forever;
    contract.dedup_key.as_mut().unwrap().in_flight = InFlight::Waits;
    let permitted = recovery(&contract, &Assumptions::default());
    assert_eq!(permitted.may_resend(&doubt(HOUR * 100_000, HOUR)), Some(Ground::Key));
}

#[test]
fn evidence_below_the_floor_counts_as_unknown_except_where_it_forbids() {
    let stricter = Assumptions { evidence_floor: Grade::Documented, ..attested(SECOND) };
    assert_eq!(
        recovery(&of("zendesk_ticket"), &stricter).class(),
        Class::LookupConfirms,
        "its key is only quoted"
    );
    let mut contract = of("zendesk_ticket");
    contract.revision.evidence.insert("dedup_key.store_down".to_owned(), Grade::Reported);
    contract.dedup_key.as_mut().unwrap().store_down = StoreDown::FailOpen;
    assert_eq!(
        recovery(&contract, &attested(SECOND)).replay,
        None,
        "a report of failing open is enough to refuse"
    );
}

#[test]
fn an_identity_may_be_sent_at_any_time_while_it_lasts() {
    let permitted = recovery(&of("desk_unique_ref"), &Assumptions::default());
    let rule = permitted.converge.clone().unwrap();
    assert_eq!(rule.conflict, Some((409, "external_id_taken".to_owned())));
    assert_eq!(rule.ownership_field.as_deref(), Some("marker"));
    assert!(rule.conflict_names_existing && !rule.single_writer && !rule.overwrites_later_edits);
    assert_eq!(permitted.may_resend(&doubt(HOUR * 9_999, Duration::ZERO)), Some(Ground::Identity));

    let mut month = of("desk_unique_ref");
    month.converge[0].permanence = Permanence::For(720 * HOUR);
    let permitted = recovery(&month, &Assumptions::default());
    assert_eq!(permitted.may_resend(&doubt(648 * HOUR - SECOND, SECOND)), Some(Ground::Identity));
    assert_eq!(
        permitted.may_resend(&doubt(648 * HOUR, SECOND)),
        None,
        "a tenth of the permanence is kept free"
    );
}

#[test]
fn an_identity_that_is_not_known_to_be_atomic_needs_an_attestation_or_a_single_writer() {
    let with = |atomic: Atomic| {
        let mut contract = of("desk_unique_ref");
        contract.converge[0].atomic = atomic;
        contract
    };
    let plain = Assumptions::default();
    let atomic = Assumptions { attested_atomic: true, ..Assumptions::default() };
    for unsure in [Atomic::IfConfigured, Atomic::Unknown] {
        assert_eq!(recovery(&with(unsure), &plain).converge, None, "{unsure:?}");
        assert!(!recovery(&with(unsure), &atomic).converge.unwrap().single_writer, "{unsure:?}");
    }
    assert_eq!(
        recovery(&with(Atomic::Sequential), &plain).converge,
        None,
        "a lingering send is another writer"
    );
    let alone = recovery(&with(Atomic::Sequential), &attested(SECOND));
    assert!(alone.converge.as_ref().unwrap().single_writer);
    assert_eq!(alone.may_resend(&doubt(HOUR, 41 * SECOND)), Some(Ground::Identity));
    assert_eq!(alone.may_resend(&doubt(HOUR, 40 * SECOND)), None);
    let mut one_path = of("desk_unique_ref");
    one_path.converge[0].only_on = Some("PUT".to_owned());
    assert_eq!(recovery(&one_path, &plain).converge, None);
}

fn miss(age: u32) -> Miss {
    Miss { age: age * SECOND, complete: true, control_found: true }
}

#[test]
fn a_miss_decides_only_when_complete_controlled_and_late_enough() {
    let permitted = recovery(&of("desk_strong_lookup"), &Assumptions::default());
    let rule = permitted.lookup.clone().unwrap();
    assert_eq!(rule.decides_after, Some(100 * SECOND), "60 s late commit, 30 s transit, 10 s pause");
    assert_eq!(rule.lag, Duration::ZERO);
    let may =
        |last: u32, misses: Vec<Miss>| permitted.may_resend(&Doubt { misses, ..doubt(HOUR, last * SECOND) });
    assert_eq!(may(200, vec![miss(100)]), Some(Ground::TrustedMiss));
    assert_eq!(may(200, vec![miss(101)]), None, "it began 99 s after the send");
    assert_eq!(may(50, vec![miss(100)]), None, "it is older than the send");
    assert_eq!(may(200, vec![]), None);
    assert_eq!(may(200, vec![Miss { complete: false, ..miss(10) }]), None);
    assert_eq!(may(200, vec![Miss { control_found: false, ..miss(10) }]), None);
    assert_eq!(may(200, vec![Miss { complete: false, ..miss(10) }, miss(50)]), Some(Ground::TrustedMiss));
}

#[test]
fn an_eventual_look_up_needs_two_misses_its_lag_apart() {
    let mut contract = of("desk_strong_lookup");
    contract.lookup[0].consistency = Consistency::Eventual;
    let never = recovery(&contract, &Assumptions::default());
    assert_eq!(never.class(), Class::LookupConfirms, "usually is no bound");
    contract.lookup[0].max_staleness = Staleness::Known(20 * SECOND);
    let permitted = recovery(&contract, &Assumptions::default());
    assert_eq!(permitted.lookup.clone().unwrap().decides_after, Some(120 * SECOND));
    let trusted =
        |misses: Vec<Miss>| permitted.trusted_negative(&Doubt { misses, ..doubt(HOUR, 300 * SECOND) });
    assert!(!trusted(vec![miss(10)]));
    assert!(!trusted(vec![miss(10), miss(29)]));
    assert!(trusted(vec![miss(10), miss(30)]));
    assert!(!trusted(vec![miss(10), miss(200)]), "the older one began before the horizon");
}

#[test]
fn what_a_look_up_does_not_know_takes_its_decision_away() {
    type Change = fn(&mut Contract);
    let changes: [(&str, Change); 6] = [
        ("late commit", |c| c.time.late_commit_bound = Bound::Unknown),
        ("consistency", |c| c.lookup[0].consistency = Consistency::Unknown),
        ("complete", |c| c.lookup[0].complete = Complete::Unknown),
        ("truncated", |c| c.lookup[0].complete = Complete::Truncated(300)),
        ("tokenised", |c| c.lookup[0].complete = Complete::Tokenised),
        ("archived", |c| c.lookup[0].sees_archived = None),
    ];
    for (name, change) in changes {
        let mut contract = of("desk_strong_lookup");
        change(&mut contract);
        let permitted = recovery(&contract, &attested(SECOND));
        assert_eq!(permitted.class(), Class::LookupConfirms, "{name}");
        assert_eq!(
            permitted.may_resend(&Doubt { misses: vec![miss(1)], ..doubt(HOUR, HOUR) }),
            None,
            "{name}"
        );
    }
}

#[test]
fn guarantees_in_words() {
    let mut words = Vec::new();
    for contract in builtin() {
        words.push(contract.guarantee(&Assumptions::default()));
    }
    words.push(of("zendesk_ticket").guarantee(&attested(60 * SECOND)));
    insta::assert_snapshot!(words.join("\n\n"));
}

#[test]
fn assumptions_are_written_as_text() {
    let read: Assumptions = toml::from_str("max_pause = \"2s\"\nassumed_late_commit = \"1min\"").unwrap();
    let wanted = Assumptions { max_pause: 2 * SECOND, ..attested(60 * SECOND) };
    assert_eq!(read, wanted);
    assert_eq!(toml::from_str::<Assumptions>(&toml::to_string(&wanted).unwrap()).unwrap(), wanted);
    assert_eq!(toml::from_str::<Assumptions>("").unwrap(), Assumptions::default());
}

/// Every contract of the crate, a rich one, and variants that no file of the crate shows.
fn contracts() -> Vec<Contract> {
    let mut all = builtin();
    all.push(Contract::from_toml("rich.toml", crate::contract::tests::RICH).unwrap());
    let mut waits = of("zendesk_ticket");
    waits.dedup_key.as_mut().unwrap().in_flight = InFlight::Waits;
    all.push(waits);
    let mut bounded = of("desk_strong_lookup");
    bounded.lookup[0].consistency = Consistency::Eventual;
    bounded.lookup[0].max_staleness = Staleness::Known(20 * SECOND);
    all.push(bounded);
    let mut sequential = of("desk_unique_ref");
    sequential.converge[0].atomic = Atomic::Sequential;
    sequential.time.late_commit_bound = Bound::Known(90 * SECOND);
    all.push(sequential);
    let mut demoted = of("zendesk_ticket");
    demoted.revision.evidence.insert("dedup_key.retention".to_owned(), Grade::Unknown);
    all.push(demoted);
    all
}

fn assumptions() -> Vec<Assumptions> {
    let mut all = Vec::new();
    for late in [None, Some(SECOND), Some(HOUR / 12)] {
        for (two_clocks, attested_atomic) in [(false, false), (true, false), (false, true)] {
            for evidence_floor in [Grade::Unknown, Grade::Reported, Grade::Quoted, Grade::Documented] {
                let plain = Assumptions::default();
                all.push(Assumptions {
                    assumed_late_commit: late,
                    two_clocks,
                    attested_atomic,
                    evidence_floor,
                    ..plain
                });
            }
        }
    }
    all
}

fn doubts() -> Vec<Doubt> {
    let mut all = Vec::new();
    for first in [0, 41, 101, 700, 5_000, 6_479, 6_480, 7_200, 80_000, 2_400_000, 5_000_000] {
        for last in [0, 41, 100, 131, 341, 5_000] {
            for misses in [vec![], vec![miss(0)], vec![miss(0), miss(20)], vec![miss(1), miss(60), miss(400)]]
            {
                all.push(Doubt { misses, ..doubt(first * SECOND, last.min(first) * SECOND) });
            }
        }
    }
    all
}

#[test]
fn less_knowledge_never_makes_bolder() {
    let (assumptions, doubts) = (assumptions(), doubts());
    let mut fell = 0;
    for full in contracts() {
        for (path, less) in full.weakened() {
            for assumed in &assumptions {
                let (more, fewer) = (recovery(&full, assumed), recovery(&less, assumed));
                assert!(fewer.class() <= more.class(), "{}: without {path} under {assumed:?}", full.id);
                fell += usize::from(fewer.class() < more.class());
                if more == fewer {
                    continue;
                }
                for doubt in &doubts {
                    let bolder = fewer.may_resend(doubt).is_some() && more.may_resend(doubt).is_none();
                    assert!(!bolder, "{}: without {path} under {assumed:?} in {doubt:?}", full.id);
                }
            }
        }
    }
    assert!(fell > 50, "weakening takes classes away: {fell}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100) })]
    #[test]
    fn less_knowledge_never_makes_bolder_anywhere(
        which in 0usize..10,
        first in 0u64..6_000_000,
        last in 0u64..8_000,
        ages in prop::collection::vec(0u64..8_000, 0..4),
        late in prop::option::of(1u64..600),
        flags in any::<[bool; 2]>(),
    ) {
        let full = &contracts()[which];
        let assumed = Assumptions {
            assumed_late_commit: late.map(Duration::from_secs),
            two_clocks: flags[0],
            attested_atomic: flags[1],
            ..Assumptions::default()
        };
        let seconds = Duration::from_secs;
        let mut ages = ages;
        ages.sort_unstable();
        let misses = ages.iter().map(|age| Miss { age: seconds(*age), complete: true, control_found: true });
        let doubt = Doubt { misses: misses.collect(), ..doubt(seconds(first), seconds(last.min(first))) };
        let permitted = recovery(full, &assumed).may_resend(&doubt);
        for (path, less) in full.weakened() {
            let bolder = recovery(&less, &assumed).may_resend(&doubt).is_some() && permitted.is_none();
            prop_assert!(!bolder, "{}: without {}", full.id, path);
        }
    }
}
