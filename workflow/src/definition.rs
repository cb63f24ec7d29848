//! What a workflow is: where its requests get their identity and meaning, who answers for it, and what it
//! promises.

mod digest;

use crate::licence::Reason;
use crate::operation::{Fingerprint, FrozenRequest, OperationKey, WireKey};
use crate::policy::Policy;
use crate::state::{Event, State, next};
use crate::store::NewOperation;
use destinations::contract::{Carrier, ConvergeKind, KeyFormat, LookupBy};
use destinations::{Assumptions, Class, Contract, Recovery};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Why a definition was refused: everything that is missing or impossible, at once.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the workflow `{workflow}` cannot be built:\n  - {}", problems.join("\n  - "))]
pub struct DefinitionError {
    /// The workflow's name.
    pub workflow: String,
    /// Each problem, in a sentence.
    pub problems: Vec<String>,
}

/// A workflow of one step that is being defined: each request creates one record at one destination.
///
/// Nothing that decides about duplicates has a silent default: identity, meaning, owner, deadline and
/// escalation must be said, or [`Definition::build`] refuses.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The workflow's name.
    pub name: String,
    /// The step, `create-ticket`: part of the operation's key.
    pub step: String,
    /// The version of the step's meaning: part of the operation's key.
    pub version: u32,
    /// The tenant, where there is more than one.
    pub tenant: Option<String>,
    /// The field of a request that names it, `id`.
    pub request_id: String,
    /// The fields that change what a request means; they are sent, all others are volatile.
    pub intent: Vec<String>,
    /// The intent fields that must be there and not empty.
    pub required: Vec<String>,
    /// Fields whose values appear nowhere but in the request that is sent: not in evidence, cases or logs.
    /// What is neither sent nor personal is not stored at all.
    pub personal: Vec<String>,
    /// The account at the destination that keys belong to.
    pub account: String,
    /// What the destination declares.
    pub contract: Arc<Contract>,
    /// What is assumed of networks, pauses and late commits.
    pub assumptions: Assumptions,
    /// The least that the contract must permit; a weaker contract is refused.
    pub min_guarantee: Option<Class>,
    /// The reference of a record that was made by hand as the control for look-ups that find nothing.
    pub sentinel: Option<String>,
    /// Who decides what the engine cannot.
    pub owner: String,
    /// Who decides instead, where a case has one of these reasons.
    pub owners: BTreeMap<Reason, String>,
    /// How long they have.
    pub deadline: Duration,
    /// Who hears of it when they do not.
    pub escalate_to: String,
    /// Whether another record needs two people: one who declares that there is none, and one who permits it.
    pub second_person: bool,
    /// Time-outs, budgets and limits.
    pub policy: Policy,
}

/// A workflow whose definition was checked.
#[derive(Clone, Debug)]
pub struct Workflow {
    pub(crate) definition: Arc<Definition>,
    pub(crate) recovery: Arc<Recovery>,
}

/// Why a request never meets its own rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRequest {
    /// It cannot even be named.
    #[error("`request.{0}` must be a non-empty text of at most 200 characters")]
    NoIdentity(String),
    /// A number that programs read in different ways: two of them could count as one.
    #[error("a number beyond 2^53 is not exact in JSON: send it as text")]
    Inexact,
    /// A field that must be there is not.
    #[error("`request.{0}` is required and must not be empty")]
    Missing(String),
}

/// A request that was read: its operation, and what is wrong with it if anything is.
pub(crate) struct ReadRequest {
    pub(crate) operation: NewOperation,
    pub(crate) invalid: Option<InvalidRequest>,
}

impl Definition {
    /// The least that must be said of a workflow; the rest has defaults that are public fields.
    pub fn new(name: &str, step: &str, contract: Contract) -> Definition {
        Definition {
            name: name.into(),
            step: step.into(),
            version: 1,
            tenant: None,
            request_id: String::new(),
            intent: vec![],
            required: vec![],
            personal: vec![],
            account: "main".into(),
            contract: Arc::new(contract),
            assumptions: Assumptions::default(),
            min_guarantee: None,
            sentinel: None,
            owner: String::new(),
            owners: BTreeMap::new(),
            deadline: Duration::ZERO,
            escalate_to: String::new(),
            second_person: true,
            policy: Policy::default(),
        }
    }

    /// Checks the definition.
    ///
    /// # Errors
    /// Everything that is missing, contradictory or more than the contract gives.
    pub fn build(self) -> Result<Workflow, DefinitionError> {
        let recovery = destinations::recovery(&self.contract, &self.assumptions);
        let problems = self.problems(&recovery);
        if problems.is_empty() {
            return Ok(Workflow { definition: Arc::new(self), recovery: Arc::new(recovery) });
        }
        Err(DefinitionError { workflow: self.name, problems })
    }

    fn problems(&self, recovery: &Recovery) -> Vec<String> {
        let mut problems = vec![];
        let mut require = |said: bool, problem: &str| {
            if !said {
                problems.push(problem.to_owned());
            }
        };
        require(
            !self.request_id.is_empty(),
            "`request_id` names no field: without a stable id a repeat cannot be told",
        );
        require(!self.intent.is_empty(), "`intent` is empty: say which fields change what a request means");
        require(!self.owner.is_empty(), "`owner` is missing: somebody must decide what the engine cannot");
        require(!self.deadline.is_zero(), "`deadline` is zero: an exception without a deadline is forgotten");
        require(
            !self.escalate_to.is_empty(),
            "`escalate_to` is missing: somebody must hear of a missed deadline",
        );
        require(self.policy.max_sends > 0, "`policy.max_sends` is zero: nothing would ever be sent");
        require(
            self.policy.keep_ended.is_none_or(|keep| keep >= Duration::from_secs(3_600)),
            "`policy.keep_ended` is less than an hour: answers may still come, and people still look",
        );
        require(self.policy.workers > 0, "`policy.workers` is zero: nothing would ever be done");
        require(
            self.policy.send_timeout <= self.assumptions.max_transit,
            "`policy.send_timeout` is longer than `assumptions.max_transit`",
        );
        for field in self.required.iter().filter(|field| !self.intent.contains(field)) {
            problems.push(format!("`required` names `{field}`, which `intent` does not list"));
        }
        if self.contract.dedup_key.as_ref().is_some_and(|key| key.carrier == Carrier::Directive) {
            problems.push(
                "the contract carries its key in a directive, which this connector cannot write".into(),
            );
        }
        if let Some(key) = &self.contract.dedup_key {
            problems.extend(self.key_problem(key.carrier, &key.name));
        }
        let wire_len = self.wire_key_sample().as_str().len();
        if let Some(max) = self.contract.dedup_key.as_ref().and_then(|key| key.max_len)
            && max < wire_len
        {
            problems.push(format!("the contract allows keys of {max} characters; ours have {wire_len}"));
        }
        if recovery.converge.as_ref().is_some_and(|converge| converge.overwrites_later_edits) {
            let why =
                "a resend by this contract overwrites later edits, and this connector does not read first";
            problems.push(why.into());
        }
        if let Some(wanted) = self.min_guarantee
            && recovery.class() < wanted
        {
            problems.push(format!(
                "`min_guarantee` asks for \"{wanted}\", the contract `{}` gives \"{}\"",
                self.contract.id,
                recovery.class()
            ));
        }
        problems
    }

    /// What keeps a key of this name from being written.
    fn key_problem(&self, carrier: Carrier, name: &str) -> Option<String> {
        let plain = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.~".contains(&b));
        let taken = match carrier {
            Carrier::Header => {
                let valid = hyper::header::HeaderName::from_bytes(name.as_bytes()).is_ok();
                let ours = ["host", "content-length", "content-type", "transfer-encoding", "if-none-match"];
                !valid || ours.iter().any(|own| own.eq_ignore_ascii_case(name))
            }
            Carrier::Body => {
                self.intent.iter().map(String::as_str).chain(["marker", "external_id"]).any(|n| n == name)
            }
            Carrier::Query => !plain(name) || name == "external_id",
            Carrier::Directive => false,
        };
        taken.then(|| {
            format!("the contract's key cannot be written as `{name}`: the name is invalid or taken")
        })
    }

    fn wire_key_sample(&self) -> WireKey {
        WireKey::new(&OperationKey::from_printed(""), &self.account, 0, self.key_format())
    }

    /// Who decides on a case that is opened for this reason.
    pub fn owner_of(&self, reason: Reason) -> &str {
        self.owners.get(&reason).unwrap_or(&self.owner)
    }

    pub(crate) fn key_format(&self) -> KeyFormat {
        self.contract.dedup_key.as_ref().map_or(KeyFormat::Any, |key| key.format)
    }
}

impl Workflow {
    /// What the contract permits, with the assumptions of this workflow.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// The checked definition.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// The operation that serves a request.
    ///
    /// # Errors
    /// When the request has no usable name: then there is no operation.
    pub(crate) fn read(&self, request: &Map<String, Value>) -> Result<ReadRequest, InvalidRequest> {
        let def = &*self.definition;
        let name = request.get(&def.request_id).and_then(Value::as_str).unwrap_or_default();
        if name.trim().is_empty() || name.chars().count() > 200 {
            return Err(InvalidRequest::NoIdentity(def.request_id.clone()));
        }
        let key = OperationKey::new(def.tenant.as_deref(), name, &def.step, def.version);
        let wire_key = WireKey::new(&key, &def.account, 0, def.key_format());
        let intent: Map<String, Value> = def
            .intent
            .iter()
            .filter_map(|field| Some((field.clone(), request.get(field).filter(|v| !v.is_null())?.clone())))
            .collect();
        let invalid = def.required.iter().find(|field| is_empty(intent.get(*field)));
        let event = if invalid.is_some() { Event::Invalid } else { Event::Valid };
        let state = next(State::Received, event).expect("what was received is valid or not");
        if !intent.values().all(is_exact) {
            return Err(InvalidRequest::Inexact);
        }
        let fingerprint = Fingerprint::of(&Value::Object(intent.clone()))
            .map_err(|_| InvalidRequest::Missing(def.intent.join(", ")))?;
        let frozen = self.freeze(&key, &wire_key, intent);
        let operation = NewOperation { key, wire_key, fingerprint, frozen, state };
        Ok(ReadRequest { operation, invalid: invalid.map(|field| InvalidRequest::Missing(field.clone())) })
    }

    /// Renders the request to the destination, once and for all.
    fn freeze(&self, key: &OperationKey, wire_key: &WireKey, mut body: Map<String, Value>) -> FrozenRequest {
        let contract = &self.definition.contract;
        let wire = wire_key.as_str();
        let mut headers: Vec<(String, String)> = vec![("content-type".into(), "application/json".into())];
        body.insert("marker".into(), key.as_str().into());
        let finds_by_ref = contract.lookup.iter().any(|l| l.by == LookupBy::ExternalRef);
        if finds_by_ref || !contract.converge.is_empty() {
            body.insert("external_id".into(), wire.into());
        }
        let mut target = "/tickets".to_owned();
        let mut method = "POST";
        match self.recovery.converge.as_ref().map(|converge| converge.kind) {
            Some(ConvergeKind::ClientId | ConvergeKind::ConditionalCreate) => {
                (method, target) = ("PUT", format!("/tickets/{wire}"));
                headers.push(("if-none-match".into(), "*".into()));
            }
            Some(ConvergeKind::Upsert) => (method, target) = ("PUT", format!("/tickets?external_id={wire}")),
            Some(ConvergeKind::UniqueRef) | None => {}
        }
        if let Some(dedup) = &contract.dedup_key {
            match dedup.carrier {
                Carrier::Header => headers.push((dedup.name.to_lowercase(), wire.into())),
                Carrier::Body => drop(body.insert(dedup.name.clone(), wire.into())),
                Carrier::Query => {
                    let joint = if target.contains('?') { '&' } else { '?' };
                    target.push_str(&format!("{joint}{}={wire}", dedup.name));
                }
                Carrier::Directive => unreachable!("a definition with such a contract is refused"),
            }
        }
        FrozenRequest { method: method.into(), target, headers, body: Value::Object(body).to_string() }
    }
}

/// Whether every number in it means the same to every reader (RFC 7493 section 2.2).
fn is_exact(value: &Value) -> bool {
    const EXACT: u64 = 1 << 53;
    match value {
        Value::Number(number) if number.is_f64() => true,
        Value::Number(number) => {
            number.as_u64().is_some_and(|n| n <= EXACT)
                || number.as_i64().is_some_and(|n| n.unsigned_abs() <= EXACT)
        }
        Value::Array(items) => items.iter().all(is_exact),
        Value::Object(fields) => fields.values().all(is_exact),
        _ => true,
    }
}

fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.trim().is_empty(),
        Some(_) => false,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::json;

    pub(crate) fn definition(contract: &str) -> Definition {
        let contract = destinations::named(contract).expect("a built-in contract");
        Definition {
            request_id: "id".into(),
            intent: vec!["title".into(), "requester".into()],
            required: vec!["title".into()],
            owner: "service-desk-lead".into(),
            deadline: Duration::from_secs(4 * 3600),
            escalate_to: "it-duty".into(),
            ..Definition::new("access-request", "create-ticket", contract)
        }
    }

    fn read(contract: &str, request: Value) -> Result<ReadRequest, InvalidRequest> {
        let workflow = definition(contract).build().expect("complete");
        workflow.read(request.as_object().expect("an object"))
    }

    #[test]
    fn a_definition_says_everything_that_is_missing_at_once() {
        let contract = destinations::named("desk_nothing").expect("built in");
        let bare = Definition::new("access-request", "create-ticket", contract);
        insta::assert_snapshot!(bare.build().expect_err("nothing was said"));
        let greedy = Definition { min_guarantee: Some(Class::Converge), ..definition("desk_nothing") };
        insta::assert_snapshot!(greedy.build().expect_err("more than the contract gives"));
    }

    #[test]
    fn volatile_fields_change_nothing() {
        let one =
            read("zendesk_ticket", json!({"id": "R17", "title": "Access", "sent_at": 1})).expect("named");
        let other =
            read("zendesk_ticket", json!({"id": "R17", "title": "Access", "sent_at": 2})).expect("named");
        assert_eq!(one.operation.fingerprint, other.operation.fingerprint);
        assert_eq!(one.operation.frozen, other.operation.frozen);
        let changed = read("zendesk_ticket", json!({"id": "R17", "title": "Exit"})).expect("named");
        assert_eq!(one.operation.key, changed.operation.key);
        assert_ne!(one.operation.fingerprint, changed.operation.fingerprint);
    }

    #[test]
    fn the_key_goes_where_the_contract_says() {
        let frozen =
            read("zendesk_ticket", json!({"id": "R17", "title": "Access"})).expect("named").operation;
        let header = ("idempotency-key".to_owned(), frozen.wire_key.as_str().to_owned());
        assert!(frozen.frozen.headers.contains(&header), "{:?}", frozen.frozen);
        let bare = read("desk_nothing", json!({"id": "R17", "title": "Access"})).expect("named").operation;
        assert!(!bare.frozen.body.contains(bare.wire_key.as_str()), "there is nowhere to put it");
        assert!(bare.frozen.body.contains("R17:create-ticket:v1"), "people can still see it");
    }

    #[test]
    fn what_is_missing_is_named() {
        let inexact = read("desk_nothing", json!({"id": "R17", "title": [9_007_199_254_740_993_u64]}));
        assert!(matches!(inexact, Err(InvalidRequest::Inexact)));
        let missing = read("desk_nothing", json!({"id": "R17", "title": " "})).expect("named");
        assert_eq!(missing.invalid, Some(InvalidRequest::Missing("title".into())));
        assert_eq!(missing.operation.state, State::Invalid);
        for id in [json!(""), json!(17), json!(null), json!("x".repeat(201))] {
            let unnamed = read("desk_nothing", json!({"id": id, "title": "Access"}));
            assert!(matches!(unnamed, Err(InvalidRequest::NoIdentity(_))));
        }
    }
}
