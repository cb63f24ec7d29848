//! The deduplication key: where it goes, for how long it is honoured, and what a second use of it does.

use super::measure::{Bound, Retention};
use serde::{Deserialize, Serialize};

/// A key that a destination uses to recognise a repeated request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DedupKey {
    /// Where in the request the key travels.
    pub carrier: Carrier,
    /// Name of the header, body field, query parameter or directive.
    pub name: String,
    /// What a key must look like.
    #[serde(default)]
    pub format: KeyFormat,
    /// Longest key accepted, in characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_len: Option<usize>,
    /// What a key is unique within; empty = unknown.
    #[serde(default)]
    pub scope: Vec<Scope>,
    /// Request parameters on which the scope depends (EC2: the zone, where one is given).
    #[serde(default)]
    pub scope_depends_on: Vec<String>,
    /// Condition in words under which the destination demands a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_when: Option<String>,
    /// For how long a key is remembered, from `retention_anchor`.
    #[serde(default)]
    pub retention: Retention,
    /// How firm the retention is.
    #[serde(default)]
    pub retention_kind: RetentionKind,
    /// From what instant the retention counts.
    #[serde(default)]
    pub retention_anchor: Anchor,
    /// What a request with a lapsed key does.
    #[serde(default)]
    pub after_expiry: AfterExpiry,
    /// What a repeated request is answered with.
    #[serde(default)]
    pub replay: ReplayKind,
    /// The status of a replayed answer.
    #[serde(default)]
    pub replay_status: ReplayStatus,
    /// Response header that marks a replayed answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay_marker: Option<String>,
    /// Which answers are saved under the key.
    #[serde(default)]
    pub saved: Vec<Saved>,
    /// Which answers are not saved: the next attempt may end otherwise.
    #[serde(default)]
    pub not_saved: Vec<NotSaved>,
    /// Whether a failed attempt uses the key up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burnt_by_failure: Option<bool>,
    /// What the same key with another body does.
    #[serde(default)]
    pub mismatch: Mismatch,
    /// What the same key does while the first request still runs.
    #[serde(default)]
    pub in_flight: InFlight,
    /// Whether the answer in flight is the same as the answer for a request already done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight_ambiguous: Option<bool>,
    /// What a request does while the store of keys is down.
    #[serde(default)]
    pub store_down: StoreDown,
    /// Circumstances in which the key is silently not honoured.
    #[serde(default)]
    pub holes: Vec<Hole>,
}

/// Where a key travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Carrier {
    /// A request header.
    Header,
    /// A field of the body.
    Body,
    /// A query parameter.
    Query,
    /// A directive inside a query language (GraphQL `@idempotent`).
    Directive,
}

/// What a key must look like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyFormat {
    /// Any text.
    Any,
    /// A version 4 UUID.
    Uuid4,
    /// ASCII text.
    Ascii,
    /// A string of RFC 8941 structured fields, in double quotes.
    SfString,
    /// Nothing is documented.
    #[default]
    Unknown,
}

/// What a key is unique within.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// One account, tenant or subdomain.
    Account,
    /// One user.
    User,
    /// One client application.
    App,
    /// One region.
    Region,
    /// One availability zone.
    Zone,
    /// One endpoint: the same key elsewhere is another key.
    Endpoint,
    /// One type of operation.
    OperationType,
    /// One resource.
    Resource,
    /// One queue.
    Queue,
    /// One group of messages.
    Group,
}

/// How firm a retention is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetentionKind {
    /// At least this long.
    Minimum,
    /// Exactly this long.
    Fixed,
    /// As long as memory lasts (monday.com): promises nothing.
    BestEffort,
    /// Nothing is documented.
    #[default]
    Unknown,
}

/// From what instant a retention counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Anchor {
    /// The first request with the key.
    FirstRequest,
    /// The completion of that request.
    FirstCompletion,
    /// The end of the resource that it made.
    ResourceEnd,
    /// A timestamp that the client sends: two clocks meet.
    ClientTimestamp,
    /// Nothing is documented.
    #[default]
    Unknown,
}

/// What a request with a lapsed key does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterExpiry {
    /// It executes as if it were new.
    ExecutesAsNew,
    /// It is rejected: safe, and says nothing about the first.
    Rejected,
    /// Nothing is documented.
    #[default]
    Unknown,
}

/// What a repeated request is answered with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayKind {
    /// The first response, as it was.
    FirstResponse,
    /// The record as it is now.
    CurrentState,
    /// An acknowledgement without the record.
    AckOnly,
    /// Failed or partial work is tried again until it is complete.
    RetriesToCompletion,
    /// Nothing is documented.
    #[default]
    Unknown,
}

/// The status of a replayed answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayStatus {
    /// That of the first answer.
    Same,
    /// One of these (PayPal: 201, then 200).
    Listed(Vec<u16>),
    /// Nothing is documented.
    #[default]
    Unknown,
}

/// A class of answers saved under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Saved {
    /// Successes.
    #[serde(rename = "2xx")]
    Success,
    /// Client errors after execution began.
    #[serde(rename = "4xx_after_execution")]
    ClientError,
    /// Server errors after execution began: replayed, they still say nothing.
    #[serde(rename = "5xx_after_execution")]
    ServerError,
}

/// A class of answers that is not saved under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NotSaved {
    /// Refusals before validation is over.
    #[serde(rename = "pre_validation_4xx")]
    PreValidation,
    /// Missing or wrong credentials.
    #[serde(rename = "401")]
    Unauthorised,
    /// Conflict with a request in flight.
    #[serde(rename = "409_in_flight")]
    InFlight,
    /// Too many requests.
    #[serde(rename = "429")]
    TooMany,
}

/// What the same key with another body does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Mismatch {
    /// It is refused.
    Error {
        /// HTTP status of the refusal.
        status: u16,
        /// Error code in the body.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
    },
    /// It is answered as if it were the first.
    ReplaysOriginal,
    /// It is dropped, and a success is reported.
    SilentlyDropped,
    /// It executes: the key protects nothing.
    Executes,
    /// It may succeed or fail (EC2): counts as `Executes`.
    MayExecute,
    /// Nothing is documented.
    #[default]
    Unknown,
}

/// What the same key does while the first request still runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum InFlight {
    /// It is refused; the first goes on.
    Error {
        /// HTTP status of the refusal.
        status: u16,
        /// Error code in the body.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
        /// When the destination says to come back.
        #[serde(default)]
        retry_after: Bound,
    },
    /// It waits and gets the first's answer.
    Waits,
    /// A transient error that asks for the same request again.
    Transient,
    /// One of the two may fail; at most one executes.
    SecondMayFail,
    /// Both execute.
    ExecutesBoth,
    /// Nothing is documented.
    #[default]
    Unknown,
}

/// What a request does while the store of keys is down.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum StoreDown {
    /// It is refused, with this status.
    FailClosed {
        /// HTTP status of the refusal.
        status: u16,
    },
    /// It executes without protection.
    FailOpen,
    /// Nothing is documented.
    #[default]
    Unknown,
}

/// A circumstance in which a key is silently not honoured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hole {
    /// The response is longer than this many bytes (Salesforce UI API); the engine bounds the response.
    ResponseOverBytes(u64),
    /// A memory budget is spent: nothing at our end can bound it, so the retention is best effort.
    Budget,
    /// The request reaches another region; the engine pins the region.
    OtherRegion,
    /// A feature flag is off; the engine verifies it.
    FeatureFlagOff,
}
