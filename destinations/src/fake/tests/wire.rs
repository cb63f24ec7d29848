//! Tests of the wire format.

use super::*;
use crate::contract::{Carrier, LookupBy};
use crate::fake::http::{HttpRequest, parse};

fn request(method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> HttpRequest {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    HttpRequest {
        method: method.to_owned(),
        target: target.to_owned(),
        headers: headers.iter().map(own).collect(),
        body: body.as_bytes().to_vec(),
    }
}

fn parsed(id: &str, request: &HttpRequest) -> Request {
    parse(&named(id).unwrap(), request).unwrap()
}

fn refused(id: &str, method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> u16 {
    parse(&named(id).unwrap(), &request(method, target, headers, body)).unwrap_err().status
}

const BODY: &str = r#"{"title":"printer","external_id":"wf1-a","marker":"R17","request_id":"k-body"}"#;

#[test]
fn a_post_creates_with_the_key_where_the_contract_carries_it() {
    let post = request("POST", "/tickets?request_id=k-query", &[("idempotency-KEY", "k-header")], BODY);
    let key = |carrier: Carrier, name: &str| {
        let mut contract = named("zendesk_ticket").unwrap();
        let declared = contract.dedup_key.as_mut().unwrap();
        (declared.carrier, declared.name) = (carrier, name.to_owned());
        match parse(&contract, &post).unwrap() {
            Request::Create { key, reference, client_id: None, condition: false, raw, .. } => {
                assert_eq!((reference.as_deref(), raw.as_slice()), (Some("wf1-a"), BODY.as_bytes()));
                key
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(key(Carrier::Header, "Idempotency-Key").as_deref(), Some("k-header"));
    assert_eq!(key(Carrier::Body, "request_id").as_deref(), Some("k-body"));
    assert_eq!(key(Carrier::Query, "request_id").as_deref(), Some("k-query"));
    assert_eq!(key(Carrier::Header, "X-Other"), None);
    let Request::Create { key, .. } = parsed("desk_nothing", &post) else { panic!("no create") };
    assert_eq!(key, None, "a contract without a key reads none");
}

#[test]
fn a_put_creates_by_client_id_or_upserts_by_reference() {
    let put = request("PUT", "/tickets/R17%3Acreate", &[("If-None-Match", "*")], BODY);
    let Request::Create { client_id, condition, .. } = parsed("desk_unique_ref", &put) else {
        panic!("no create")
    };
    assert_eq!((client_id.as_deref(), condition), (Some("R17:create"), true));
    let put = request("PUT", "/tickets?external_id=wf1%2Db+c", &[], BODY);
    let Request::Upsert { reference, .. } = parsed("desk_unique_ref", &put) else { panic!("no upsert") };
    assert_eq!(reference, "wf1-b c");
}

#[test]
fn a_get_looks_up_or_reads_one() {
    let get = request("GET", "/tickets?external_id=wf1-%C3%A4&page=2", &[], "");
    let wanted = Request::Find { by: LookupBy::ExternalRef, value: "wf1-ä".to_owned(), page: 2 };
    assert_eq!(parsed("zendesk_ticket", &get), wanted);
    let get = request("GET", "/tickets/T93", &[], "");
    assert_eq!(parsed("desk_nothing", &get), Request::Fetch { id: "T93".to_owned() });
    let mut scanning = named("desk_strong_lookup").unwrap();
    scanning.lookup[0].by = LookupBy::Scan;
    let all = parse(&scanning, &request("GET", "/tickets", &[], "")).unwrap();
    assert_eq!(all, Request::Find { by: LookupBy::Scan, value: String::new(), page: 1 });
}

#[test]
fn what_is_none_of_these_is_refused() {
    let id = "zendesk_ticket";
    assert_eq!(refused(id, "POST", "/ticket", &[], BODY), 404);
    assert_eq!(refused(id, "GET", "/tickets/", &[], ""), 404);
    assert_eq!(refused(id, "GET", "/tickets/T1/comments", &[], ""), 404);
    assert_eq!(refused(id, "DELETE", "/tickets/T1", &[], ""), 405);
    assert_eq!(refused(id, "POST", "/tickets/T1", &[], BODY), 405);
    assert_eq!(refused(id, "POST", "/tickets", &[], "{"), 400);
    assert_eq!(refused(id, "POST", "/tickets", &[], "[]"), 400);
    assert_eq!(refused(id, "POST", "/tickets", &[("Content-Type", "text/plain")], BODY), 415);
    assert_eq!(refused(id, "PUT", "/tickets", &[], BODY), 400);
    assert_eq!(refused(id, "GET", "/tickets?external_id=a&page=0", &[], ""), 400);
    assert_eq!(refused(id, "GET", "/tickets?external_id=a&page=x", &[], ""), 400);
    assert_eq!(refused(id, "GET", "/tickets?external_id=%G1", &[], ""), 400);
    assert_eq!(refused(id, "GET", "/tickets?external_id=%C3", &[], ""), 400, "half a letter");
    assert_eq!(refused(id, "GET", "/tickets?external_id=a%2", &[], ""), 400);
    assert_eq!(refused(id, "GET", "/tickets?key=k", &[], ""), 404, "no such look-up is declared");
    assert_eq!(refused("desk_nothing", "GET", "/tickets?external_id=a", &[], ""), 404);
}

#[test]
fn json_may_say_its_character_set() {
    let post = request("POST", "/tickets", &[("Content-Type", "Application/JSON; charset=utf-8")], BODY);
    assert!(parse(&named("desk_nothing").unwrap(), &post).is_ok());
}

#[test]
fn a_request_goes_from_the_wire_to_the_ledger() {
    let contract = named("zendesk_ticket").unwrap();
    let mut desk = desk(contract.clone());
    let post = request("POST", "/tickets", &[("Idempotency-Key", "k1")], BODY);
    let reply = send(&mut desk, 0, parse(&contract, &post).unwrap());
    let wanted = json!({ "ticket": {
        "id": "T93", "title": "printer", "external_id": "wf1-a", "marker": "R17", "request_id": "k-body",
    }});
    assert_eq!((reply.status, reply.body), (201, wanted));
    assert_eq!(desk.ledger().effects()[0].by.body, BODY);
}
