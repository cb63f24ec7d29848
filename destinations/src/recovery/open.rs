//! What a contract leaves open: what somebody has to find out, and what is taken for true until then.

use super::{Assumptions, Known};
use crate::contract::{AfterExpiry, Converge, DedupKey, Lookup, Mismatch, RetentionKind};
use crate::contract::{
    Atomic, Complete, Consistency, Contract, Hole, InFlight, Permanence, Retention, Staleness, StoreDown,
};

/// Something that a contract leaves open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// The path of the field, `dedup_key.in_flight`; the table's where nothing of it is declared.
    pub path: String,
    /// What has to be found out, as a question.
    pub question: &'static str,
    /// What is done until somebody knows.
    pub meanwhile: String,
}

impl Contract {
    /// Everything that this contract leaves open under these assumptions: fields that are unknown, or known
    /// on evidence that does not count, and circumstances in which a key is not honoured.
    pub fn open(&self, assumptions: &Assumptions) -> Vec<Open> {
        let known = Known { contract: self, assumptions };
        let mut open = Vec::new();
        match &self.dedup_key {
            None => open.push(about("dedup_key", "dedup_key")),
            Some(key) => {
                open.extend(missing(&known, "dedup_key", &about_a_key(key)));
                open.extend(key.holes.iter().map(about_a_hole));
            }
        }
        for identity in &self.converge {
            let path = format!("converge.{}", identity.kind.word());
            open.extend(missing(&known, &path, &about_an_identity(identity)));
        }
        if self.lookup.is_empty() {
            open.push(about("lookup", "lookup"));
        }
        for lookup in &self.lookup {
            let path = format!("lookup.{}", lookup.by.word());
            open.extend(missing(&known, &path, &about_a_lookup(lookup)));
        }
        if known.documented_late_commit().is_none() {
            let mut late = about("time.late_commit_bound", "late_commit_bound");
            if let Some(attested) = assumptions.assumed_late_commit {
                let attested = humantime::format_duration(attested);
                late.meanwhile = format!("{attested} is taken for true, because somebody attested it");
            }
            open.push(late);
        }
        open
    }
}

/// Fields, each with whether it is declared.
type Fields = Vec<(&'static str, bool)>;

fn about_a_key(key: &DedupKey) -> Fields {
    let mut fields = vec![
        ("retention", key.retention != Retention::Unknown),
        ("retention_kind", key.retention_kind != RetentionKind::Unknown),
        ("scope", !key.scope.is_empty()),
        ("mismatch", key.mismatch != Mismatch::Unknown),
        ("in_flight", key.in_flight != InFlight::Unknown),
        ("store_down", key.store_down != StoreDown::Unknown),
    ];
    // What is kept for ever never lapses.
    if key.retention != Retention::Forever {
        fields.insert(2, ("after_expiry", key.after_expiry != AfterExpiry::Unknown));
    }
    fields
}

fn about_an_identity(identity: &Converge) -> Fields {
    let atomic = !matches!(identity.atomic, Atomic::Unknown | Atomic::IfConfigured);
    vec![("atomic", atomic), ("permanence", identity.permanence != Permanence::Unknown)]
}

fn about_a_lookup(lookup: &Lookup) -> Fields {
    let mut fields = vec![
        ("consistency", lookup.consistency != Consistency::Unknown),
        ("complete", lookup.complete != Complete::Unknown),
        ("sees_archived", lookup.sees_archived.is_some()),
    ];
    // What sees every commit is never stale.
    if lookup.consistency != Consistency::ReadYourWrites {
        fields.insert(1, ("max_staleness", lookup.max_staleness != Staleness::Unknown));
    }
    fields
}

/// The fields that are not declared, or on evidence that does not count.
fn missing(known: &Known<'_>, table: &str, fields: &[(&'static str, bool)]) -> Vec<Open> {
    let path = |field: &str| format!("{table}.{field}");
    let open = fields.iter().filter(|(field, declared)| !(*declared && known.graded(&path(field))));
    open.map(|(field, _)| about(&path(field), field)).collect()
}

fn about(path: &str, field: &str) -> Open {
    const KEY: &str = "the key permits no second send";
    const MISS: &str = "a look-up that finds nothing permits nothing";
    let (question, meanwhile) = match field {
        "dedup_key" => ("Which deduplication key does it honour, and for how long?", KEY),
        "retention" => ("For how long is a key remembered?", KEY),
        "retention_kind" => ("Is a key remembered for at least that long, whatever happens?", KEY),
        "after_expiry" => {
            ("What does a request do whose key has lapsed?", "nothing is sent after the key's time")
        }
        "scope" => (
            "Within what is a key unique: an account, a user, an endpoint?",
            "one operation has one key, in one account",
        ),
        "mismatch" => {
            ("What does the same key do with another body?", "whatever is sent again is the same to the byte")
        }
        "in_flight" => (
            "What does the same key do while the first request still runs?",
            "never two at once: a send waits until the one before it can have no effect any more",
        ),
        "store_down" => (
            "Is a request refused while the store of keys is down?",
            "it is taken to be refused; if it is not, a send that is repeated just then makes a second record",
        ),
        "atomic" => (
            "Does the identity hold for two requests at once?",
            "the identity permits no second send until somebody attests it",
        ),
        "permanence" => ("For how long does the identity stay taken?", "the identity permits no second send"),
        "lookup" => ("How is a record found again?", "nothing is looked up: a person searches"),
        "consistency" => ("Does a look-up see every record that exists?", MISS),
        "max_staleness" => ("After how long does a look-up show a new record at the latest?", MISS),
        "complete" => ("Can every match of a look-up be read?", MISS),
        "sees_archived" => ("Does a look-up find archived, merged and closed records?", MISS),
        "late_commit_bound" => (
            "For how long can a request that was given up still take effect?",
            "it counts as possible for ever: no miss decides, and nobody can declare a record absent without risk",
        ),
        other => unreachable!("{other} is no field that can be open"),
    };
    Open { path: path.to_owned(), question, meanwhile: meanwhile.to_owned() }
}

fn about_a_hole(hole: &Hole) -> Open {
    let (word, question, meanwhile) = match hole {
        Hole::ResponseOverBytes(bytes) => (
            "response_over_bytes",
            "How is the response kept short enough for its key to be honoured?",
            format!("nothing keeps a response under {bytes} bytes"),
        ),
        Hole::Budget => (
            "budget",
            "What happens when the memory for keys is spent?",
            "the key permits no second send".to_owned(),
        ),
        Hole::OtherRegion => (
            "other_region",
            "What keeps every request in one region?",
            "nothing checks where a request arrives".to_owned(),
        ),
        Hole::FeatureFlagOff => (
            "feature_flag_off",
            "Who makes sure that the feature flag is on?",
            "nothing checks it: while it is off, a send that is repeated makes a second record".to_owned(),
        ),
    };
    Open { path: format!("dedup_key.holes.{word}"), question, meanwhile }
}
