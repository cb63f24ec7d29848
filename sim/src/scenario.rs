//! What a scenario must bring, so that any team's workflow can be run under faults.

use crate::belief::Belief;
use crate::disk::DiskImage;
use crate::fault::{Call, Fault, Variation};
use crate::history::Act;
use crate::plan::{Delivery, Plan, Workload};
use crate::run::Run;
use crate::seed::Seed;
use destinations::{Assumptions, Contract};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// A boxed future that can move between threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
/// Any error that a process can end with.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Reads a belief from a disk image; an error ends the run as a harness error.
pub type Believes = fn(&DiskImage) -> Result<Belief, BoxError>;
/// Tells which operation a call serves; none where only its key tells.
pub type Serves = fn(Seen<'_>) -> Option<String>;

/// The story that a scenario tells, for `list` and for readers.
#[derive(Clone, Copy, Debug)]
pub struct Story {
    /// What happens, in five lines.
    pub lines: &'static str,
    /// The dangerous moment.
    pub danger: &'static str,
    /// What must hold.
    pub holds: &'static str,
}

/// A goal that some seed must reach: what never happened was never tested.
#[derive(Clone, Copy)]
pub struct Goal {
    /// Its name, as `NEVER` lines print it.
    pub name: &'static str,
    /// Whether a run reached it.
    pub reached: fn(&Run) -> bool,
}

/// One call as it can be seen on the wire, for telling which operation it serves.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The kind of call.
    pub call: Call,
    /// The key or reference that it carries.
    pub key: Option<&'a str>,
    /// Its body.
    pub body: &'a [u8],
}

/// A workflow under test: how it starts, what it is asked, what it believes.
pub trait Scenario: Send + Sync {
    /// Its name: `time-out-after-effect`.
    fn name(&self) -> &'static str;
    /// The story behind it.
    fn story(&self) -> Story;
    /// The contracts for which it makes sense.
    fn contracts(&self) -> Vec<Arc<Contract>>;
    /// The contract as the workflow is told it. A destination that breaks its promise is a scenario of its
    /// own: there this is another one than the destination follows.
    fn told(&self, contract: &Arc<Contract>) -> Arc<Contract> {
        Arc::clone(contract)
    }
    /// What identifies the workflow that is run with this contract, in the workflow's own terms: a hash of
    /// everything that decides what it does. It is passed on with the results, so that they can be told from
    /// those of another workflow; none where nobody needs that.
    fn workflow_digest(&self, _told: &Contract) -> Option<String> {
        None
    }
    /// What the workflow and the oracle assume about networks, pauses and late commits.
    fn assumptions(&self, contract: &Contract) -> Assumptions;
    /// What the outside asks for, drawn from the seed.
    fn workload(&self, contract: &Contract, seed: Seed) -> Workload;
    /// The faults of its dangerous moment, and those that the seed adds.
    fn faults(&self, contract: &Contract, workload: &Workload, seed: Seed) -> DrawnFaults;
    /// The `copy`-th further delivery of a request, from 1, that differs in this way; none where the scenario
    /// has no such variation. Its name is [`Delivery::further_name`], which tells it from the first one.
    fn redelivery(&self, delivery: &Delivery, how: Variation, copy: u32) -> Option<Delivery> {
        let name = delivery.further_name(copy);
        (how == Variation::Same).then(|| Delivery { name, ..delivery.clone() })
    }
    /// One process, from its start to its death. It gets what it may touch.
    fn boot(&self, node: Node) -> BoxFuture<'static, Result<(), BoxError>>;
    /// What the disk holds before the first start; most programs begin with nothing.
    fn image(&self) -> DiskImage {
        DiskImage::empty()
    }
    /// Reads what the workflow believes from its durable state.
    fn believes(&self) -> Believes;
    /// Tells which operation a call serves, whatever reference it carries.
    fn serves(&self) -> Serves;
    /// A person's decision on an exception, as an HTTP request to the workflow; none where its people cannot
    /// decide so.
    fn decision(&self, operation: &str, choice: &Choice, plan: &Plan) -> Option<Decision>;
    /// The longest time in which every request must have ended or be owned, once all is calm, in seconds.
    fn settles_within_s(&self, contract: &Contract) -> u64;
    /// Sends that one operation may make without a person.
    fn max_sends(&self) -> u32;
    /// What some seed must reach.
    fn goals(&self) -> Vec<Goal>;
    /// The known mistakes that it can be run with.
    fn mutants(&self) -> Vec<Mutant> {
        vec![]
    }
}

/// A known mistake and the invariant that must catch it.
#[derive(Clone, Copy, Debug)]
pub struct Mutant {
    /// Its name: `fresh-key-per-retry`.
    pub name: &'static str,
    /// The invariant's id: `V7`.
    pub killed_by: &'static str,
    /// The mistake in one line.
    pub mistake: &'static str,
}

/// The faults of a seed.
#[derive(Clone, Debug, Default)]
pub struct DrawnFaults {
    /// Those of the scenario's dangerous moment: what it expects, it expects under them.
    pub own: Vec<Fault>,
    /// Those that the seed adds.
    pub more: Vec<Fault>,
}

/// What one person wants to do with a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What they want.
    pub decide: Decide,
    /// What they decide on.
    pub view: View,
    /// Which of the people they are.
    pub by: Person,
}

/// What a person wants with an operation that is theirs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decide {
    /// "This record is it."
    Confirm {
        /// The destination's id of it.
        record: String,
    },
    /// "It shall not be done", and the person answers for a record that may exist.
    Reject,
    /// "There is no record."
    DeclareAbsent {
        /// When they looked, by their own clock: milliseconds since 1970.
        checked_at_ms: i64,
    },
    /// "Make another one."
    AuthoriseCreation,
    /// "It is not wanted any more."
    Cancel,
    /// "Compare the records with the destination's."
    Reconcile,
}

impl Decide {
    /// What they want, without the record and the time.
    pub fn act(&self) -> Act {
        match self {
            Decide::Confirm { .. } => Act::Confirm,
            Decide::Reject => Act::Reject,
            Decide::DeclareAbsent { .. } => Act::DeclareAbsent,
            Decide::AuthoriseCreation => Act::AuthoriseCreation,
            Decide::Cancel => Act::Cancel,
            Decide::Reconcile => Act::Reconcile,
        }
    }
}

/// What a person decides on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// Whatever is there now.
    Now,
    /// What they saw before it changed: the decision names an older version.
    Older,
}

/// One of the people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Person {
    /// The owner of the case.
    Owner,
    /// Somebody else who may decide.
    Other,
    /// Who had asked for it.
    Requester,
}

/// What a person sends to the workflow.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The path.
    pub path: String,
    /// The body, JSON.
    pub body: Vec<u8>,
    /// In words, for the history.
    pub words: String,
}

/// What one process may touch: its disk, its addresses, its wire.
#[derive(Clone)]
pub struct Node {
    /// The node's name.
    pub name: &'static str,
    /// Its n-th start.
    pub boot: u32,
    /// The URI of its store file on the simulated disk.
    pub store: String,
    /// Where it must listen.
    pub listen: String,
    /// The destination's address.
    pub desk: String,
    /// Opens connections, with all that can go wrong with them.
    pub connect: Connect,
    /// The contract as the workflow is told it.
    pub contract: Arc<Contract>,
    /// What it may assume.
    pub assumptions: Assumptions,
    /// Its machine's wall clock: milliseconds since 1970.
    pub clock: WallClock,
    /// The one known mistake to run with.
    pub mutant: Option<String>,
}

/// A machine's wall clock: milliseconds since 1970, which may be set or run fast.
pub type WallClock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// A byte stream to a peer.
pub trait Stream: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin {}
impl<T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin> Stream for T {}

/// Opens a connection to an address.
pub type Connect = Arc<dyn Fn(String) -> BoxFuture<'static, std::io::Result<Box<dyn Stream>>> + Send + Sync>;
