//! What the workflow believes, read from its durable image by the workflow's own reading code.

use rusqlite::{Connection, OpenFlags};
use sim::belief::{
    Basis, Belief, BelievedAttempt, BelievedDecision, BelievedDelivery, BelievedDiscrepancy,
    BelievedOperation, Discrepancy, Standing, Waiting,
};
use sim::disk::{DiskImage, Machine, Process, no_hooks};
use sim::scenario::BoxError;
use std::cell::RefCell;
use std::sync::{Arc, OnceLock};
use workflow::licence::Reason;
use workflow::state::State;
use workflow::store::{Contents, Exception, Operation, create_file, person, read_all};
use workflow::{Clock, Timestamp};

/// The disk of a machine on which the workflow was installed and never started: a store without records.
pub fn fresh_store() -> DiskImage {
    static FRESH: OnceLock<DiskImage> = OnceLock::new();
    FRESH
        .get_or_init(|| {
            sim::vfs::register();
            let process = Process::start(Machine::boot(DiskImage::empty(), no_hooks(), 0));
            let clock = Clock::from_fn(|| Timestamp(0));
            create_file(&process.uri("db"), &clock).expect("an empty disk takes a store");
            process.machine().cache_image()
        })
        .clone()
}

thread_local! {
    /// A connection kept between readings: the image is exchanged beneath it.
    static READER: RefCell<Option<(Connection, Arc<Process>)>> = const { RefCell::new(None) };
}

/// Reads a belief.
///
/// # Errors
/// When the image holds no readable store.
pub fn read(image: &DiskImage) -> Result<Belief, BoxError> {
    Ok(belief(&contents(image)?))
}

/// Reads the whole store: cases and alerts besides what is believed.
///
/// # Errors
/// When the image holds no readable store.
pub fn contents(image: &DiskImage) -> Result<Contents, BoxError> {
    let machine = Machine::boot(image.clone(), no_hooks(), 0);
    READER.with_borrow_mut(|reader| {
        match reader {
            Some((_, process)) => process.remount(machine),
            None => *reader = Some(open(machine)?),
        }
        let (connection, process) = reader.as_ref().expect("it was just put there");
        let contents = read_all(connection);
        // Nothing may be written when the thread ends and drops the connection.
        process.machine().power_off();
        if contents.is_err() {
            // What it has read of a decayed schema must not be believed of the next image.
            *reader = None;
        }
        contents.map_err(BoxError::from)
    })
}

fn open(machine: Arc<Machine>) -> Result<(Connection, Arc<Process>), BoxError> {
    let process = Process::start(machine);
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(process.uri("db"), flags)?;
    connection.set_prepared_statement_cache_capacity(16);
    Ok((connection, process))
}

fn belief(contents: &Contents) -> Belief {
    let delivery = |stored: &workflow::store::StoredDelivery| BelievedDelivery {
        id: stored.delivery_id.clone(),
        operation: stored.operation.as_deref().map(|key| told_as(key, contents)),
    };
    let operations = contents.operations.iter().map(|op| operation(op, contents));
    Belief {
        deliveries: contents.deliveries.iter().map(delivery).collect(),
        operations: operations.chain(contents.tombstones.iter().map(tombstone)).collect(),
        tampered: contents.verify().err().map(|wrong| wrong.to_string()),
        discrepancies: contents.discrepancies.iter().filter_map(discrepancy).collect(),
    }
}

/// The name under which an operation is judged: which version of the step serves a request does not matter,
/// as long as it is one.
fn told_as(key: &str, contents: &Contents) -> String {
    let first = key.rsplit_once(":v").map_or(key.to_owned(), |(line, _)| format!("{line}:v1"));
    let both = contents.operations.iter().any(|op| op.key.as_str() == first);
    if both { key.to_owned() } else { first }
}

/// What is left of an operation whose records were removed.
fn tombstone(stone: &workflow::store::Tombstone) -> BelievedOperation {
    BelievedOperation {
        name: stone.key.to_string(),
        standing: standing(stone.state),
        words: stone.state.as_str().to_owned(),
        record: stone.external_ref.clone(),
        attempts: vec![],
        waiting: Waiting::Nothing,
        purged: true,
        basis: basis(stone.state),
        decisions: vec![],
    }
}

fn operation(op: &Operation, contents: &Contents) -> BelievedOperation {
    let name = op.key.as_str();
    let attempts = contents.attempts.iter().filter(|(operation, _)| operation == name);
    let attempt = |(_, attempt): &(String, workflow::store::Attempt)| BelievedAttempt {
        key: attempt.wire_key.clone(),
        digest: attempt.digest.clone(),
    };
    BelievedOperation {
        name: told_as(name, contents),
        standing: standing(op.state),
        words: op.state.as_str().to_owned(),
        record: op.external_ref.clone(),
        attempts: attempts.map(attempt).collect(),
        waiting: waiting(op, contents),
        purged: false,
        basis: basis(op.state),
        decisions: decisions(name, contents),
    }
}

/// What was reported; what was seen once is not.
fn discrepancy(found: &workflow::store::Discrepancy) -> Option<BelievedDiscrepancy> {
    let kind = match found.kind.as_str() {
        "missing_there" => Discrepancy::Missing,
        "field_mismatch" => Discrepancy::Differs,
        "duplicate_there" => Discrepancy::Double,
        kind if kind.starts_with("exists_but") => Discrepancy::Exists,
        _ => Discrepancy::Other,
    };
    (found.status != "seen").then(|| BelievedDiscrepancy {
        kind,
        operation: found.operation.clone().unwrap_or_default(),
        record: found.external_ref.clone().unwrap_or_default(),
        stands: found.status != "corrected",
    })
}

fn decisions(name: &str, contents: &Contents) -> Vec<BelievedDecision> {
    let acts =
        contents.evidence.iter().filter(|(about, seen)| about == name && person::ALL.contains(&&*seen.class));
    let decision = |(_, seen): &(String, workflow::store::Evidence)| BelievedDecision {
        by: seen.source.clone(),
        said: seen.detail.clone(),
        before: seen.before.clone(),
        after: seen.after.clone(),
    };
    acts.map(decision).collect()
}

fn standing(state: State) -> Standing {
    match state {
        State::Received
        | State::Ready
        | State::Backoff
        | State::ExceptionUnsent
        | State::DeclaredAbsent
        | State::Authorised
        | State::AuthorisedCreation => Standing::Open,
        State::Sent
        | State::SentInDoubt
        | State::InDoubt
        | State::RefMissing
        | State::ExceptionInDoubt
        | State::AuthorisedResend => Standing::InDoubt,
        State::Confirmed | State::ConfirmedByPerson => Standing::Completed,
        State::Invalid | State::RefusedByDestination | State::Withdrawn | State::AcceptedRisk => {
            Standing::Rejected
        }
    }
}

/// A case counts as owned only with its owner, its deadline and its alert.
fn waiting(op: &Operation, contents: &Contents) -> Waiting {
    let name = op.key.as_str();
    if op.state.is_terminal() {
        return Waiting::Nothing;
    }
    if !op.state.is_exception() {
        // What is not open is not taken up after a start.
        return if op.open { Waiting::Engine } else { Waiting::Nobody };
    }
    let change = Reason::ChangedRequest.code();
    let about_it = |case: &&Exception| case.operation == name && case.reason != change;
    let case = contents.exceptions.iter().filter(about_it).max_by_key(|case| case.id);
    let alerted = |case: &&Exception| {
        contents.alerts.iter().any(|alert| {
            let of_it = alert.operation == name && alert.raised >= case.opened;
            of_it && alert.owner == case.owner && [&*case.reason, "assigned"].contains(&&*alert.kind)
        })
    };
    match case.filter(alerted) {
        Some(case) => Waiting::Person {
            owner: case.owner.clone(),
            deadline_ms: case.deadline.0,
            reason: case.reason.clone(),
        },
        None => Waiting::Nobody,
    }
}

fn basis(state: State) -> Basis {
    match state {
        State::Confirmed => Basis::Confirmed,
        State::ConfirmedByPerson | State::Withdrawn => Basis::Person,
        State::AcceptedRisk => Basis::AcceptedRisk,
        State::RefusedByDestination => Basis::Refused,
        State::Invalid => Basis::NeverSent,
        _ => Basis::None,
    }
}
