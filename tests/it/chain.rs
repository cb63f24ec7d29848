//! Whoever edits the records by hand is found out: by the chain, or by an operation that does not stand where
//! its rows leave it.

use crate::desk::{HelpDesk, Outcome};
use crate::process::{Place, Process, request, text};
use serde_json::json;
use workflow::store::{NewEvidence, Store, open_file};
use workflow::{OperationKey, StoreAt};

const R17: &str = "R17:create-ticket:v1";

/// R17 was lost, found by a person, and R18 is done: every table has rows.
fn filled() -> Place {
    let (place, desk) = (Place::new(), HelpDesk::open("desk_nothing", &[(1, Outcome::Drop)]));
    let process = Process::start(&place, &desk);
    process.deliver("d-1", &request("R17"));
    process.until(R17, "requiring_verification/exception");
    process.deliver("d-2", &request("R18"));
    process.until("R18:create-ticket:v1", "completed/confirmed");
    let found = json!({"by": "c42", "reason": "found by its marker", "ref": "T93"});
    assert_eq!(process.decide(R17, "confirm_found", &found).status, 200);
    process.crash();
    place
}

#[test]
fn every_edit_by_hand_is_noticed() {
    let place = filled();
    let head = place.contents().verify().expect("nobody has touched it");
    assert_eq!((head.seq, head.hash.len()), (8, 64));
    let edits = [
        "update evidence set detail = 'T99 was created' where source = 'create' and operation like 'R18%'",
        "update evidence set source = 'c43' where class = 'person'",
        "update evidence set observed = observed + 1 where class = 'person'",
        "update evidence set after = 'completed/confirmed' where class = 'person'",
        "update evidence set operation = 'R19:create-ticket:v1' where class = 'person'",
        "delete from evidence where class = 'person'",
        "delete from evidence where class = 'handed_over'",
        "insert into evidence select operation, n + 90, attempt, class, observed, source, detail, before, after,
           seq + 90, hash from evidence where class = 'person'",
        "update evidence set seq = seq + 1 where class = 'person'",
        "update attempt set licence = 'nothing was ever sent', send_not_after = send_not_after + 1",
        "delete from attempt where operation like 'R18%'",
        "update delivery set outcome = 'same' where delivery_id = 'd-2'",
        "update delivery set operation = null where delivery_id = 'd-2'",
        "delete from delivery where delivery_id = 'd-1'",
        "update meta set chain_head = 'x'",
        "update meta set chain_seq = chain_seq - 1",
        "update operation set state = 'rejected/withdrawn' where key like 'R18%'",
        "update operation set sends = 2 where key like 'R18%'",
        "update operation set frozen = replace(frozen, 'archive', 'vault') where key like 'R18%'",
        "update operation set frozen = replace(frozen, 'POST', 'PUT') where key like 'R18%'",
        "update operation set frozen = replace(frozen, wire_key, 'x'), wire_key = 'x' where key like 'R18%'",
        "update operation set external_ref = 'T99' where key like 'R18%'",
        "update operation set cancelled = 1 where key like 'R18%'",
        "update operation set generation = 1 where key like 'R18%'",
        "update operation set first_intent = first_intent + 1 where key like 'R18%'",
        "update operation set last_possible_send = null where key like 'R18%'",
        "update external_ref set ref = 'T99' where operation like 'R18%'",
        "delete from external_ref where operation like 'R18%'",
        "delete from operation where key like 'R18%'",
        "insert into operation select 'R19:create-ticket:v1', 'validated/ready', wire_key, fingerprint, frozen, 0, 1, 0, 0,
           null, null, 0, null, 1, created, updated, 0 from operation where key like 'R18%'",
        "insert into authorisation(operation, kind, by, reason, issued, expires, consumed_by)
           values('R18:create-ticket:v1', 'resend', 'c42', 'x', 1, 2, 1)",
    ];
    let found: Vec<String> = edits
        .iter()
        .map(|edit| {
            let db = open_file(&text(&place.store())).expect("a store");
            db.execute_batch("begin").expect("nobody else has it");
            assert!(db.execute(edit, []).expect("it is valid") > 0, "{edit}");
            let edited = workflow::store::read_all(&db).expect("readable");
            db.execute_batch("rollback").expect("ours");
            let wrong = edited.verify().expect_err(edit);
            let words = edit.split_whitespace().collect::<Vec<_>>().join(" ");
            format!("{words}\n  {wrong}")
        })
        .collect();
    insta::assert_snapshot!("edits", found.join("\n"));
    assert_eq!(place.contents().verify(), Ok(head), "every edit was taken back");
}

/// What arrives after an operation has ended is kept, rewrites nothing, and is told where it contradicts the
/// end.
#[test]
fn late_evidence_is_kept_and_told_where_it_contradicts() {
    let place = filled();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.expect("the system gives a thread").block_on(async {
        let store = Store::open(&StoreAt::file(text(&place.store()))).expect("a store");
        let late = |found: &str| {
            let evidence = NewEvidence {
                class: "confirmed",
                source: "create".into(),
                detail: format!("{found} was created"),
            };
            let key = OperationKey::from_printed(R17);
            store.find_late((key, 1), evidence, Some(found.into()), "service-desk-lead".into())
        };
        late("T93").await.expect("there is room");
        assert_eq!(store.discrepancies().await, Ok(vec![]), "the same record again");
        for _ in 0..2 {
            late("T95").await.expect("there is room");
        }
        let found = store.discrepancies().await.expect("readable");
        assert_eq!(found.len(), 1, "one contradiction, seen twice");
        let seen = &found[0];
        assert_eq!(
            (seen.kind.as_str(), seen.severity.as_str(), seen.status.as_str()),
            ("late_contradiction", "high", "open")
        );
        assert_eq!((seen.operation.as_deref(), seen.external_ref.as_deref()), (Some(R17), Some("T95")));
        insta::assert_snapshot!(format!("{}\n{}", seen.detail, seen.proposal));
    });
    let contents = place.contents();
    let r17 = contents.operations.iter().find(|op| op.key.as_str() == R17).expect("R17");
    assert_eq!(
        (r17.state.as_str(), r17.external_ref.as_deref()),
        ("completed/confirmed_by_human", Some("T93"))
    );
    let late = contents.evidence.iter().filter(|(_, seen)| seen.source == "late create").count();
    assert_eq!(late, 3, "each is a row of its own");
    let told = contents.alerts.iter().filter(|alert| alert.kind == "late_contradiction").count();
    assert_eq!(told, 1, "once");
    contents.verify().expect("late evidence is part of the chain");
}
