//! The cells that no run can fill, each with its reason.

use super::{Mark, PHASES, boundaries, mildest};
use crate::fault::{Fault, KINDS, Place, What};
use crate::terms::Terms;
use std::collections::BTreeMap;

/// Why a kind of fault strikes only where it does.
const ONLY_THERE: [(&str, &[&str]); 10] = [
    (
        "only the destination does this; the links of sources and people only lose",
        &["refuse", "not-applied", "answer-slowly", "hang", "partition"],
    ),
    ("it is an outcome of a call as a whole", &["lose-request", "lose-response"]),
    (
        "it needs a request that writes",
        &["apply-late", "error-after", "duplicate", "omit-id", "undo", "forget-keys", "keys-down"],
    ),
    ("it needs a request that looks something up", &["blind", "stale", "second-page", "foreign"]),
    ("it needs a connection that is being made", &["hang-connecting"]),
    (
        "it happens to a request before it is sent the first time",
        &["redeliver", "change-meaning", "poison", "at-once", "hold-back"],
    ),
    (
        "it strikes the workflow's process or its disk, at the points that it comes by",
        &[
            "kill",
            "power-cut",
            "pause",
            "clock-step",
            "clock-rate",
            "sync-error",
            "disk-full",
            "read-error",
            "bit-flip",
            "lying-sync",
        ],
    ),
    ("one party of an exchange waits there alone; elsewhere the process waits, which is a pause", &["delay"]),
    (
        "it is something that the owner of a case does",
        &["act-late", "wrong-reference", "two-at-once", "stale-view"],
    ),
    (
        "it is something that hands do to a record at the destination",
        &["edit-by-hand", "delete-by-hand", "archive-by-hand", "copy-by-hand"],
    ),
];

/// A kind of boundary that does not exist under some terms, or under any.
struct Absent {
    /// How its kind begins.
    boundary: &'static str,
    under: fn(&Terms<'_>) -> bool,
    why: &'static str,
}

const ABSENT: [Absent; 5] = [
    Absent { boundary: "delivery arrived", under: |_| true, why: INSIDE },
    Absent { boundary: "delivery applied", under: |_| true, why: INSIDE },
    Absent { boundary: "decision arrived", under: |_| true, why: INSIDE },
    Absent { boundary: "decision applied", under: |_| true, why: INSIDE },
    Absent {
        boundary: "look-up",
        under: |terms| terms.contract.lookup.is_empty(),
        why: "the contract offers nothing to look up by",
    },
];

const INSIDE: &str = "what the workflow does with a call from outside has no boundaries but its syncs";

/// Faults of which no part exists yet that they could strike.
const LATER: [(&str, &str); 4] = [
    ("a key's scope changes between two sends", "credentials are not rotated in a run yet"),
    (
        "two workers take one operation",
        "one process owns the store; several machines come with the store node",
    ),
    (
        "the store's node is lost, late or unsure of a commit",
        "the store is a file of the process; the store node comes later",
    ),
    ("the workflow is upgraded between two boots", "one version of it runs; upgrades come later"),
];

/// Cells that no run can fill.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Exclusion {
    /// Which ones, in words.
    pub what: String,
    /// Why.
    pub why: &'static str,
}

/// Why no run under these terms can fill a cell; none where one must.
pub(super) fn why(mark: Mark, terms: &Terms<'_>) -> Option<&'static str> {
    let at = boundaries()[usize::from(mark.boundary)].clone();
    let fault = Fault { what: mildest()[usize::from(mark.fault)].clone(), at };
    if fault.check().is_err() {
        return Some(only_there(mark.fault()));
    }
    let kind = fault.at.kind();
    let absent = ABSENT.iter().find(|absent| kind.starts_with(absent.boundary) && (absent.under)(terms));
    absent.map(|absent| absent.why).or_else(|| terms.forbids(&fault))
}

fn only_there(kind: &str) -> &'static str {
    let found = ONLY_THERE.iter().find(|(_, kinds)| kinds.contains(&kind));
    found.map(|(why, _)| *why).expect("every kind has its reason")
}

/// The kinds of boundaries at which it can strike; all the points of an exchange are said at once.
fn there(what: &What) -> Vec<String> {
    let places = boundaries();
    let can: Vec<&Place> =
        places.iter().filter(|at| Fault { at: (*at).clone(), what: what.clone() }.check().is_ok()).collect();
    let points = |at: &Place| match at {
        Place::Phase { exchange, .. } => Some(exchange.call),
        _ => None,
    };
    let all_of = |call| can.iter().filter(|at| points(at) == Some(call)).count() == PHASES.len();
    let named = can.iter().map(|at| match points(at) {
        Some(call) if all_of(call) => format!("any point of a {call}"),
        _ => at.kind(),
    });
    let mut named: Vec<String> = named.collect();
    named.dedup();
    named
}

/// All exclusions in words: for reports and for the eyes of who changes them.
pub fn exclusions(all: &[Terms<'_>]) -> Vec<Exclusion> {
    let places = boundaries();
    let mut excluded = vec![];
    for (why, kinds) in ONLY_THERE {
        for kind in KINDS.iter().filter(|kind| kinds.contains(kind)) {
            let index = KINDS.iter().position(|known| known == kind).expect("it is one of them");
            let what = &mildest()[index];
            let what = format!("{kind} elsewhere than at {}", there(what).join(", "));
            excluded.push(Exclusion { what, why });
        }
    }
    for Absent { boundary, under, why } in ABSENT {
        let ids: Vec<&str> =
            all.iter().filter(|terms| under(terms)).map(|terms| terms.contract.id.as_str()).collect();
        let what = match ids.len() {
            0 => continue,
            some if some == all.len() => format!("anything at {boundary}"),
            _ => format!("anything at {boundary} with {}", ids.join(", ")),
        };
        excluded.push(Exclusion { what, why });
    }
    let mut forbidden: BTreeMap<(usize, &'static str), Vec<String>> = BTreeMap::new();
    for terms in all {
        for (index, what) in mildest().into_iter().enumerate() {
            let mut strikes = places.iter().map(|at| Fault { at: at.clone(), what: what.clone() });
            let refused = strikes.find_map(|fault| fault.check().ok().and_then(|()| terms.forbids(&fault)));
            if let Some(why) = refused {
                forbidden.entry((index, why)).or_default().push(terms.contract.id.clone());
            }
        }
    }
    let told = forbidden.into_iter().map(|((index, why), contracts)| Exclusion {
        what: format!("{} with {}", KINDS[index], contracts.join(", ")),
        why,
    });
    excluded.extend(told);
    excluded.extend(LATER.map(|(what, why)| Exclusion { what: what.into(), why }));
    excluded
}
