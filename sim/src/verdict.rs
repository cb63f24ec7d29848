//! The verdict on a run, and the fingerprint that makes a thousand failing seeds one failure.

use crate::history::Step;
use serde::Serialize;
use std::fmt;

/// An invariant's id and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct InvariantId {
    /// `V1`.
    pub id: &'static str,
    /// `at-most-one`.
    pub name: &'static str,
    /// What it says, in one sentence.
    pub says: &'static str,
}

/// One broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub invariant: InvariantId,
    /// The operation.
    pub about: String,
    /// The steps that broke it, in order.
    pub blame: Vec<Step>,
    /// What is wrong, in one sentence of the domain.
    pub message: String,
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every invariant held.
    Held,
    /// At least one did not; all of them, worst first.
    Violated(Vec<Violation>),
    /// A limit was hit and nothing was violated before.
    Undecided(String),
    /// No correct workflow could survive the plan: what came of it says nothing.
    Invalid(String),
    /// The harness failed; nothing counts.
    Harness(String),
}

/// Names one bug: invariant, destination, and the shape of the blamed steps.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Fingerprint(pub String);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A verdict, and what was looked at to reach it.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// The fingerprint of each violation, in the verdict's order.
    pub fingerprints: Vec<Fingerprint>,
    /// How often each invariant was evaluated, in the order of [`crate::invariants::INVARIANTS`].
    pub evaluated: Vec<u32>,
    /// Which of the scenario's goals were reached, in its order.
    pub goals: Vec<bool>,
}
