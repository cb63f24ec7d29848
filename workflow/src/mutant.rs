//! The known mistakes that the simulator can switch on, one at a time, to show that it would notice them.
//!
//! A production build has no way to switch one on: without the feature, [`Mutant::is`] is a constant `false`,
//! and the feature refuses to compile outside the simulator.

#[cfg(all(feature = "mutants", not(madsim)))]
compile_error!("the feature `mutants` is for the simulated build alone");

/// One mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// Each further attempt carries a new key.
    FreshKeyPerRetry,
    /// A time-out is taken for a rejection.
    TimeoutIsRejection,
    /// The request leaves before its intent is durable.
    SendBeforeIntent,
    /// Commits are not synced to the disk.
    SkipFsync,
    /// Each delivery looks the record up and creates it when it finds none, without a claim.
    LookupThenCreate,
    /// A key is used after the destination may have forgotten it.
    IgnoreSafeUntil,
}

/// Name, mistake, the invariant that must catch it, and the mistake in words.
pub const MISTAKES: &[(&str, Mistake, &str, &str)] = &[
    ("fresh-key-per-retry", Mistake::FreshKeyPerRetry, "V7", "each further attempt carries a new key"),
    ("timeout-is-rejection", Mistake::TimeoutIsRejection, "V3", "a time-out is recorded as a rejection"),
    (
        "send-before-intent",
        Mistake::SendBeforeIntent,
        "V2",
        "the request leaves before its intent is durable",
    ),
    ("skip-fsync", Mistake::SkipFsync, "V10", "commits are not synced to the disk"),
    (
        "lookup-then-create",
        Mistake::LookupThenCreate,
        "V1",
        "each delivery looks up, then creates, without a claim",
    ),
    (
        "ignore-safe-until",
        Mistake::IgnoreSafeUntil,
        "V6",
        "a key is used after the destination may have forgotten it",
    ),
];

/// The mistake that an engine runs with: none, except in the simulator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mutant {
    #[cfg(feature = "mutants")]
    mistake: Option<Mistake>,
}

impl Mutant {
    /// The mutant of this name.
    #[cfg(feature = "mutants")]
    pub fn named(name: &str) -> Option<Mutant> {
        let (_, mistake, _, _) = MISTAKES.iter().find(|(known, ..)| *known == name)?;
        Some(Mutant { mistake: Some(*mistake) })
    }

    /// Whether the engine makes this mistake.
    #[cfg(feature = "mutants")]
    pub fn is(self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    /// Whether the engine makes this mistake: never.
    #[cfg(not(feature = "mutants"))]
    pub const fn is(self, _mistake: Mistake) -> bool {
        false
    }
}
