//! What a workflow believes, read from its durable state: the harness judges it against the ledger.

use serde::Serialize;

/// Everything that a workflow's durable image says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Belief {
    /// Each delivery that it took in.
    pub deliveries: Vec<BelievedDelivery>,
    /// Each operation that it knows.
    pub operations: Vec<BelievedOperation>,
    /// What is wrong with its records by its own check of them, where it has one.
    pub tampered: Option<String>,
    /// What it has reported as contradicting its records.
    pub discrepancies: Vec<BelievedDiscrepancy>,
}

/// One discrepancy in the workflow's records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BelievedDiscrepancy {
    /// What it is.
    pub kind: Discrepancy,
    /// The operation.
    pub operation: String,
    /// The record.
    pub record: String,
    /// Whether it stands: it was not seen to be gone.
    pub stands: bool,
}

/// What can contradict a workflow's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Discrepancy {
    /// The record of a completed operation is not there.
    Missing,
    /// It is there, and differs from what was asked for.
    Differs,
    /// A completed operation has a second one.
    Double,
    /// An operation that is not completed has one.
    Exists,
    /// Anything else.
    Other,
}

impl Belief {
    /// The operation of this name.
    pub fn operation(&self, name: &str) -> Option<&BelievedOperation> {
        self.operations.iter().find(|op| op.name == name)
    }

    /// Whether each operation has ended or is owned by a person.
    pub fn is_settled(&self) -> bool {
        self.operations.iter().all(|op| op.standing.is_terminal() || op.waiting.is_owned())
    }
}

/// One delivery in the workflow's records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BelievedDelivery {
    /// Its id, `request/delivery`, as the workload named it.
    pub id: String,
    /// The operation that it belongs to; none for a recorded rejection.
    pub operation: Option<String>,
}

/// Where an operation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Not sent, or proven not applied; it will be sent.
    Open,
    /// Sent, and the outcome is not known.
    InDoubt,
    /// Done: the destination holds its record.
    Completed,
    /// Ended without an effect.
    Rejected,
}

impl Standing {
    /// Whether it has ended.
    pub fn is_terminal(self) -> bool {
        matches!(self, Standing::Completed | Standing::Rejected)
    }
}

/// What an operation that has not ended waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Waiting {
    /// It has ended.
    Nothing,
    /// A worker or a timer; recovery finds it.
    Engine,
    /// A person.
    Person {
        /// Who.
        owner: String,
        /// Milliseconds on the workflow's clock by which somebody must have decided.
        deadline_ms: i64,
        /// The reason code of the exception.
        reason: String,
    },
    /// Nobody and nothing: limbo.
    Nobody,
}

impl Waiting {
    /// Whether a named person owns it, with a deadline.
    pub fn is_owned(&self) -> bool {
        matches!(self, Waiting::Person { owner, deadline_ms, .. } if !owner.is_empty() && *deadline_ms > 0)
    }
}

/// What an ended operation stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// It has not ended, or the workflow does not say.
    None,
    /// The destination confirmed the record.
    Confirmed,
    /// It was never sent.
    NeverSent,
    /// A documented refusal, or another proof that nothing was or will be applied.
    Refused,
    /// A person's recorded decision.
    Person,
    /// A person's recorded decision that accepts the risk of being wrong.
    AcceptedRisk,
}

/// One operation in the workflow's records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BelievedOperation {
    /// Its name, `R17:create-ticket:v1`.
    pub name: String,
    /// Where it stands.
    pub standing: Standing,
    /// The workflow's own words for its state.
    pub words: String,
    /// The record that it believes in.
    pub record: Option<String>,
    /// Sends that it has counted, each before its first byte.
    pub attempts: Vec<BelievedAttempt>,
    /// What it waits for.
    pub waiting: Waiting,
    /// Whether only the fact that it was, and how it ended, is kept of it.
    pub purged: bool,
    /// What its end stands on.
    pub basis: Basis,
    /// What people decided of it.
    pub decisions: Vec<BelievedDecision>,
}

/// One recorded act of a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BelievedDecision {
    /// Who.
    pub by: String,
    /// What they did, and why.
    pub said: String,
    /// Where the operation stood, in the workflow's words.
    pub before: String,
    /// Where it stands by this.
    pub after: String,
}

/// One counted send.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BelievedAttempt {
    /// The key or reference that it carries.
    pub key: String,
    /// SHA-256 of its body, hexadecimal.
    pub digest: String,
}
