//! What outlives any key: identities that a destination enforces, and the look-ups that find a record again.

use super::measure::{Bound, Permanence, Staleness};
use serde::{Deserialize, Serialize};

/// An identity of the record itself, so that a second request meets the first one's record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Converge {
    /// How the identity is given.
    pub kind: ConvergeKind,
    /// The field that carries it.
    pub field: String,
    /// Whether it holds for two requests at once.
    #[serde(default)]
    pub atomic: Atomic,
    /// The one write path on which it is enforced, where it is not enforced on all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_on: Option<String>,
    /// What a request that meets an existing record gets.
    #[serde(default)]
    pub on_conflict: OnConflict,
    /// Whether the conflict says which record exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict_names_existing: Option<bool>,
    /// What a request that meets several records gets.
    #[serde(default)]
    pub on_multi_match: OnMultiMatch,
    /// For how long the identity stays taken.
    #[serde(default)]
    pub permanence: Permanence,
    /// Whether a resend overwrites what people edited since; unknown counts as yes for an upsert.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overwrites_later_edits: Option<bool>,
    /// The field in which our own reference is stored, to prove that a found record is ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ownership_field: Option<String>,
}

/// How an identity is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConvergeKind {
    /// The client chooses the record's id.
    ClientId,
    /// A create with a condition (`If-None-Match: *`).
    ConditionalCreate,
    /// A unique reference field.
    UniqueRef,
    /// Create or update by a reference.
    Upsert,
}

/// Whether an identity holds for two requests at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Atomic {
    /// The store enforces it under concurrency.
    Yes,
    /// Documented to match an existing record, silent on concurrency.
    Sequential,
    /// A setting of the account decides.
    IfConfigured,
    /// Nothing is documented.
    #[default]
    Unknown,
}

/// What a request that meets an existing record gets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum OnConflict {
    /// A refusal, which means *exists*.
    Error {
        /// HTTP status of the refusal.
        status: u16,
        /// Error code in the body.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
    },
    /// The existing record, updated.
    UpdatesExisting,
    /// The existing record, untouched.
    ReturnsExisting,
    /// Nothing is documented.
    #[default]
    Unknown,
}

/// What a request that meets several records gets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum OnMultiMatch {
    /// A refusal (Salesforce: 300).
    Error {
        /// HTTP status of the refusal.
        status: u16,
    },
    /// The first of them is used.
    First,
    /// Nothing is documented.
    #[default]
    Unknown,
}

/// A way to find a record again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lookup {
    /// What is looked for.
    pub by: LookupBy,
    /// Whether a look-up sees every commit before it.
    #[serde(default)]
    pub consistency: Consistency,
    /// How long a record usually takes to appear; never a bound.
    #[serde(default)]
    pub typical_staleness: Bound,
    /// How long a record takes to appear at most.
    #[serde(default)]
    pub max_staleness: Staleness,
    /// Whether all matches can be read.
    #[serde(default)]
    pub complete: Complete,
    /// Whether archived, merged or closed records are found too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sees_archived: Option<bool>,
    /// Most records on one page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_size: Option<u32>,
}

/// What a look-up looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LookupBy {
    /// Our reference in a field of the record.
    ExternalRef,
    /// The id that we chose.
    ClientId,
    /// The deduplication key.
    Key,
    /// Our marker in a text.
    MarkerText,
    /// All records, one after another.
    Scan,
}

impl LookupBy {
    /// The query parameter of a look-up; empty for a scan, which takes none.
    pub fn parameter(self) -> &'static str {
        match self {
            Self::ExternalRef => "external_id",
            Self::ClientId => "client_id",
            Self::Key => "key",
            Self::MarkerText => "q",
            Self::Scan => "",
        }
    }

    /// The word for it in a contract, and in the path of its evidence (`lookup.external_ref.complete`).
    pub fn word(self) -> &'static str {
        match self {
            Self::ExternalRef => "external_ref",
            Self::ClientId => "client_id",
            Self::Key => "key",
            Self::MarkerText => "marker_text",
            Self::Scan => "scan",
        }
    }
}

impl ConvergeKind {
    /// The word for it in a contract, and in the path of its evidence (`converge.unique_ref.atomic`).
    pub fn word(self) -> &'static str {
        match self {
            Self::ClientId => "client_id",
            Self::ConditionalCreate => "conditional_create",
            Self::UniqueRef => "unique_ref",
            Self::Upsert => "upsert",
        }
    }
}

/// Whether a look-up sees every commit before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Consistency {
    /// It does.
    ReadYourWrites,
    /// It does after a while.
    Eventual,
    /// Nothing is documented.
    #[default]
    Unknown,
}

/// Whether all matches of a look-up can be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Complete {
    /// Every page can be walked to the end.
    Yes,
    /// Only the first so many matches can be read.
    Truncated(u32),
    /// The text is split into words: a match may be missed or invented.
    Tokenised,
    /// Nothing is documented.
    #[default]
    Unknown,
}
