//! The fake itself: a help desk that takes requests, works on them, and commits.

use super::keys::{self, Keys, Slot, Verdict};
use super::lookup;
use super::race::{Race, Work, WorkId};
use super::record::Record;
use super::unique::{self, Identity, Moment};
use crate::contract::{
    Contract, Converge, ConvergeKind, DedupKey, LookupBy, OnConflict, OnMultiMatch, Staleness,
};
use crate::ledger::{EffectKind, Ledger, Millis, RequestFacts};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::time::Duration;

/// How a fake differs from another of the same contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeskOptions {
    /// Number of the first ticket: 93 gives `T93`.
    pub first_id: u64,
    /// How long after its commit a record becomes visible in an eventual look-up, at most; each record draws
    /// its own lag from the upper half. A declared bound of the look-up is kept.
    pub lag: Duration,
    /// Body fields without which a create is refused with 422.
    pub required: Vec<String>,
    /// Values of the body field `requester` that are refused with 422.
    pub refused_requesters: Vec<String>,
    /// External reference of a record that exists from the start and never shows in the ledger.
    pub sentinel: Option<String>,
    /// Requests that take longer than this are marked late in the ledger.
    pub late_after: Duration,
    /// Where the little chance comes from.
    pub seed: u64,
}

impl Default for DeskOptions {
    fn default() -> Self {
        Self {
            first_id: 93,
            lag: Duration::from_secs(60),
            required: vec!["title".to_owned()],
            refused_requesters: Vec::new(),
            sentinel: None,
            late_after: Duration::from_secs(10),
            seed: 0,
        }
    }
}

/// A request as the fake understands it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Create a ticket.
    Create {
        /// Deduplication key.
        key: Option<String>,
        /// External reference.
        reference: Option<String>,
        /// Id that the client chose.
        client_id: Option<String>,
        /// Whether it must not exist (`If-None-Match: *`).
        condition: bool,
        /// The ticket: a JSON object.
        body: Value,
        /// The body's exact bytes.
        raw: Vec<u8>,
    },
    /// Create a ticket, or update the one with this reference.
    Upsert {
        /// Deduplication key.
        key: Option<String>,
        /// External reference.
        reference: String,
        /// The ticket: a JSON object.
        body: Value,
        /// The body's exact bytes.
        raw: Vec<u8>,
    },
    /// Look tickets up.
    Find {
        /// What is looked for.
        by: LookupBy,
        /// Its value; ignored by a scan.
        value: String,
        /// Page, from 1.
        page: u32,
    },
    /// Read one ticket.
    Fetch {
        /// Its id.
        id: String,
    },
}

/// What a request gets when it arrives.
#[derive(Clone, Debug, PartialEq)]
pub enum Begun {
    /// An answer at once.
    Reply(Reply),
    /// It is worked on; the answer comes from [`Desk::advance`].
    Working(WorkId),
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// Headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// JSON body.
    pub body: Value,
}

impl Reply {
    pub(super) fn new(status: u16, body: Value) -> Self {
        Self { status, headers: Vec::new(), body }
    }

    pub(super) fn error(status: u16, code: &str) -> Self {
        Self::new(status, json!({ "error": { "code": code, "message": code.replace('_', " ") } }))
    }

    pub(super) fn acknowledged() -> Self {
        Self::new(200, json!({ "ok": true }))
    }

    /// Says whether the key was known, where the contract declares a header for it.
    pub(super) fn marked(mut self, declared: &DedupKey, word: &str) -> Self {
        if let Some(marker) = &declared.replay_marker {
            let name = marker.to_lowercase();
            self.headers.retain(|(header, _)| *header != name);
            self.headers.push((name, word.to_owned()));
        }
        self
    }
}

/// A create or upsert that was accepted.
#[derive(Clone, Debug)]
pub(super) struct Write {
    identity: Identity,
    fields: Map<String, Value>,
    facts: RequestFacts,
    slot: Option<Slot>,
    /// When it arrived.
    began: Millis,
    /// The record that it met when it arrived, and updates when it commits.
    met: Option<String>,
}

/// What becomes of a request that meets an existing record.
enum Met {
    /// This answer, and no effect.
    Refused(Reply),
    /// The record at this place changes when the request commits.
    Update(usize),
}

/// A help desk that behaves as its contract declares.
#[derive(Clone, Debug)]
pub struct Desk {
    pub(super) contract: Contract,
    options: DeskOptions,
    pub(super) now: Millis,
    created: u64,
    pub(super) records: Vec<Record>,
    pub(super) ended: BTreeMap<String, Millis>,
    pub(super) keys: Keys,
    pub(super) race: Race,
    pub(super) failing: Option<(u16, bool)>,
    pub(super) ledger: Ledger,
}

impl Desk {
    /// A desk without tickets, but for the sentinel.
    pub fn new(contract: Contract, options: DeskOptions) -> Self {
        let mut desk = Self {
            contract,
            options,
            now: Millis(0),
            created: 0,
            records: Vec::new(),
            ended: BTreeMap::new(),
            keys: Keys::default(),
            race: Race::default(),
            failing: None,
            ledger: Ledger::default(),
        };
        if let Some(sentinel) = desk.options.sentinel.clone() {
            let mut fields = Map::new();
            fields.insert("title".to_owned(), json!("sentinel"));
            fields.insert("marker".to_owned(), json!(sentinel));
            desk.records.push(Record {
                id: "T0".to_owned(),
                fields,
                reference: desk.stores_reference().then(|| sentinel.clone()),
                client_id: Some(sentinel.clone()),
                key: Some(sentinel),
                began: Millis(0),
                made_at: Millis(0),
                visible_at: Millis(0),
                archived: None,
                sentinel: true,
            });
        }
        desk
    }

    /// The contract that it follows.
    pub fn contract(&self) -> &Contract {
        &self.contract
    }

    /// The truth.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Takes a request that would commit at `now + takes`; reads answer at once.
    ///
    /// Work that is due by `now` commits first. A commit later than the caller waits is simply a long
    /// `takes`.
    ///
    /// # Panics
    /// Where `now` is before an instant seen earlier: only a bug can do that.
    pub fn begin(&mut self, now: Millis, request: Request, takes: Duration) -> Begun {
        self.settle(now);
        match request {
            Request::Find { by, value, page } => Begun::Reply(self.find(by, &value, page, now)),
            Request::Fetch { id } => Begun::Reply(self.fetch(&id)),
            Request::Create { key, reference, client_id, condition, body, raw } => {
                let identity = Identity { reference, client_id, condition, upsert: false };
                self.write("POST", key, identity, &body, &raw, takes)
            }
            Request::Upsert { key, reference, body, raw } => {
                let identity =
                    Identity { reference: Some(reference), client_id: None, condition: false, upsert: true };
                self.write("PUT", key, identity, &body, &raw, takes)
            }
        }
    }

    /// A look-up that is answered as its index was some time ago; what was deleted since is not in it.
    ///
    /// # Panics
    /// As [`Desk::begin`].
    pub fn find_as_it_was(
        &mut self,
        now: Millis,
        by: LookupBy,
        value: &str,
        page: u32,
        ago: Duration,
    ) -> Reply {
        self.settle(now);
        let ago = u64::try_from(ago.as_millis()).unwrap_or(u64::MAX);
        self.find(by, value, page, Millis(now.0.saturating_sub(ago)))
    }

    /// The next instant at which [`Desk::advance`] has something to do.
    pub fn due(&self) -> Option<Millis> {
        self.race.due(self.now)
    }

    /// Commits what is due, in the order of time and then of arrival, and hands out the answers.
    ///
    /// # Panics
    /// As [`Desk::begin`].
    pub fn advance(&mut self, now: Millis) -> Vec<(WorkId, Reply)> {
        self.settle(now);
        self.race.fetch()
    }

    pub(super) fn settle(&mut self, now: Millis) {
        assert!(now >= self.now, "time went back from {} to {now}", self.now);
        while let Some(work) = self.race.take_due(now) {
            self.now = self.now.max(work.due);
            self.commit(work);
        }
        self.now = now;
    }

    fn find(&self, by: LookupBy, value: &str, page: u32, as_of: Millis) -> Reply {
        match self.contract.lookup.iter().find(|lookup| lookup.by == by) {
            Some(rule) => lookup::page(rule, &self.records, value, page, as_of),
            None => Reply::error(404, "not_found"),
        }
    }

    fn fetch(&self, id: &str) -> Reply {
        match self.records.iter().find(|record| record.id == id) {
            Some(record) => Reply::new(200, json!({ "ticket": record.ticket() })),
            None => Reply::error(404, "not_found"),
        }
    }

    fn write(
        &mut self,
        endpoint: &str,
        key: Option<String>,
        mut identity: Identity,
        body: &Value,
        raw: &[u8],
        takes: Duration,
    ) -> Begun {
        let fields = match self.validated(body) {
            Ok(fields) => fields,
            Err(refusal) => return Begun::Reply(refusal),
        };
        let facts = facts(key.clone(), identity.reference.clone(), body, raw);
        if !self.stores_reference() {
            identity.reference = None;
        }
        let mut slot = None;
        if let (Some(declared), Some(key)) = (&self.contract.dedup_key, &key) {
            if !keys::well_formed(declared, key) {
                return Begun::Reply(Reply::error(400, "validation"));
            }
            let place = self.keys.slot(declared, endpoint, key);
            let ended = |record: &str| self.ended.get(record).copied();
            match self.keys.judge(declared, &place, &facts.digest, self.now, ended) {
                Verdict::New => slot = Some(place),
                Verdict::Unprotected => {}
                Verdict::Replay(reply) | Verdict::Refuse(reply) => return Begun::Reply(reply),
                Verdict::Current(record) => return Begun::Reply(self.fetch(&record).marked(declared, "hit")),
                Verdict::WaitFor(first) => {
                    let waiting = self.race.wait_for(first).expect("a key in flight names work in progress");
                    return Begun::Working(waiting);
                }
            }
        }
        let mut write = Write { identity, fields, facts, slot, began: self.now, met: None };
        match self.meets(&write, Moment::Begin) {
            None => {}
            Some(Met::Refused(reply)) => return Begun::Reply(reply),
            Some(Met::Update(existing)) => write.met = Some(self.records[existing].id.clone()),
        }
        let late = takes > self.options.late_after;
        let (slot, digest) = (write.slot.clone(), write.facts.digest.clone());
        let work = self.race.start(write, self.now.after(takes), late);
        if let Some(slot) = slot {
            self.keys.begin(slot, digest, self.now, work);
        }
        Begun::Working(work)
    }

    /// The ticket's fields, or why there can be none.
    fn validated(&self, body: &Value) -> Result<Map<String, Value>, Reply> {
        let Some(fields) = body.as_object() else { return Err(Reply::error(400, "validation")) };
        let given =
            |name: &String| fields.get(name).is_some_and(|value| !value.is_null() && *value != json!(""));
        let requester = fields.get("requester").and_then(Value::as_str).unwrap_or("");
        let refused = self.options.refused_requesters.iter().any(|name| name == requester);
        if !self.options.required.iter().all(given) || refused {
            return Err(Reply::error(422, "validation"));
        }
        Ok(fields.clone())
    }

    fn commit(&mut self, work: Work) {
        let failing = self.failing.take();
        let fails = failing.map(|(status, _)| Reply::error(status, "internal"));
        let executes = failing.is_none_or(|(_, executed)| executed);
        let mut record = None;
        let done = executes.then(|| match self.meets(&work.write, Moment::Commit) {
            Some(Met::Refused(reply)) => reply,
            Some(Met::Update(existing)) => {
                record = Some(self.records[existing].id.clone());
                self.update(existing, &work.write, work.late)
            }
            None => {
                let created = self.create(&work.write, work.late);
                let reply = Reply::new(201, json!({ "ticket": created.ticket() }));
                record = Some(created.id);
                reply
            }
        });
        let mut reply = fails.or(done).expect("what does not execute fails");
        if let (Some(declared), Some(slot)) = (&self.contract.dedup_key, &work.write.slot) {
            reply = reply.marked(declared, "miss");
            self.keys.complete(declared, slot, work.id, self.now, (&reply, record.as_deref()));
        }
        for waiting in work.waiting {
            let replayed = match &self.contract.dedup_key {
                Some(declared) => reply.clone().marked(declared, "hit"),
                None => reply.clone(),
            };
            self.race.finish(waiting, replayed);
        }
        self.race.finish(work.id, reply);
    }

    fn create(&mut self, write: &Write, late: bool) -> Record {
        let record = Record {
            id: self.next_id(),
            fields: write.fields.clone(),
            reference: write.identity.reference.clone(),
            client_id: write.identity.client_id.clone(),
            key: write.facts.key.clone(),
            began: write.began,
            made_at: self.now,
            visible_at: self.now.after(self.lag()),
            archived: None,
            sentinel: false,
        };
        self.ledger.append(self.now, &record.id, EffectKind::Created, write.facts.clone(), late);
        self.records.push(record.clone());
        record
    }

    pub(super) fn next_id(&mut self) -> String {
        self.created += 1;
        format!("T{}", self.options.first_id + self.created - 1)
    }

    /// The lag of the record that was made last: drawn from the upper half of the option, within the declared
    /// bound.
    pub(super) fn lag(&self) -> Duration {
        let bound = |lookup: &crate::contract::Lookup| match lookup.max_staleness {
            Staleness::Known(most) => Some(most),
            Staleness::None | Staleness::Unknown => None,
        };
        let most = self.contract.lookup.iter().filter_map(bound).fold(self.options.lag, Duration::min);
        let half = most / 2;
        let steps = u64::try_from(half.as_millis()).unwrap_or(u64::MAX).max(1);
        most - Duration::from_millis(mixed(self.options.seed, self.created) % steps)
    }

    /// What a request meets that is not alone; `None` where it meets nothing.
    fn meets(&self, write: &Write, moment: Moment) -> Option<Met> {
        let met_before =
            write.met.as_ref().and_then(|id| self.records.iter().position(|record| record.id == *id));
        if let Some(existing) = met_before {
            return Some(Met::Update(existing));
        }
        let (rule, met) = unique::meets(&self.contract, &self.records, &write.identity, moment, self.now)?;
        let existing = met[0];
        match rule.on_multi_match {
            _ if met.len() == 1 => {}
            OnMultiMatch::Error { status } => {
                return Some(Met::Refused(Reply::error(status, "several_match")));
            }
            OnMultiMatch::Unknown => return Some(Met::Refused(Reply::error(409, "several_match"))),
            OnMultiMatch::First => {}
        }
        let overwrites = rule.kind == ConvergeKind::ConditionalCreate && !write.identity.condition;
        Some(match &rule.on_conflict {
            _ if overwrites => Met::Update(existing),
            OnConflict::UpdatesExisting => Met::Update(existing),
            OnConflict::Error { status, code } => {
                Met::Refused(self.refusal(rule, *status, code.as_deref().unwrap_or("exists"), existing))
            }
            OnConflict::ReturnsExisting => {
                Met::Refused(Reply::new(200, json!({ "ticket": self.records[existing].ticket() })))
            }
            OnConflict::Unknown => Met::Refused(Reply::error(409, "exists")),
        })
    }

    fn refusal(&self, rule: &Converge, status: u16, code: &str, existing: usize) -> Reply {
        let mut reply = Reply::error(status, code);
        if rule.conflict_names_existing == Some(true) {
            reply.body["error"]["existing_id"] = json!(self.records[existing].id);
        }
        reply
    }

    fn update(&mut self, existing: usize, write: &Write, late: bool) -> Reply {
        let record = &mut self.records[existing];
        record.fields.extend(write.fields.clone());
        if !record.sentinel {
            self.ledger.append(self.now, &record.id, EffectKind::Updated, write.facts.clone(), late);
        }
        Reply::new(200, json!({ "ticket": record.ticket() }))
    }

    /// Whether the external reference is kept: only where a look-up or an identity needs it.
    pub(super) fn stores_reference(&self) -> bool {
        let looked_up = self.contract.lookup.iter().any(|lookup| lookup.by == LookupBy::ExternalRef);
        looked_up || self.contract.converge.iter().any(|rule| rule.field == "external_id")
    }
}

fn facts(key: Option<String>, reference: Option<String>, body: &Value, raw: &[u8]) -> RequestFacts {
    let text = body.to_string();
    let bytes = if raw.is_empty() { text.as_bytes() } else { raw };
    let digest = data_encoding::HEXLOWER.encode(&Sha256::digest(bytes));
    RequestFacts { key, reference, body: String::from_utf8_lossy(bytes).into_owned(), digest }
}

/// A number that depends on both and looks like neither (the finaliser of SplitMix64).
fn mixed(seed: u64, n: u64) -> u64 {
    let mut z = seed ^ n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
