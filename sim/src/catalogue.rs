//! The scenarios that a program offers.

use crate::scenario::Scenario;
use std::path::PathBuf;

/// Everything that the command line can run.
#[derive(Default)]
pub struct Catalogue {
    /// The scenarios, in the order in which they are listed.
    pub scenarios: Vec<Box<dyn Scenario>>,
    /// The scenario that is enumerated to its full depth where none is named.
    pub deep: &'static str,
    /// What `bench` measures.
    pub benches: Vec<Bench>,
    /// The folder of committed cases; none where there is none.
    pub cases: Option<PathBuf>,
}

/// One variant that `bench` measures.
pub struct Bench {
    /// `full`, `no-store` or `no-http`.
    pub variant: &'static str,
    /// A scenario with this many requests a run.
    pub scenario: fn(requests: u32) -> Box<dyn Scenario>,
}
