//! Fakes: state machines that behave as a contract declares, and a ledger of the truth.
//!
//! A step is pure: state × request × now gives state, reply and effects. There is no clock and no input or
//! output; the little chance there is comes from a seed. Where a contract is silent, the fake does what does
//! most harm, so that a workflow that guesses is found out.

mod destination;
mod hands;
pub mod http;
mod keys;
mod lookup;
mod race;
mod record;
mod unique;

pub use destination::{Begun, Desk, DeskOptions, Reply, Request};
pub use race::WorkId;

#[cfg(test)]
mod tests;
