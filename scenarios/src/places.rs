//! Places that many stories name: the exchanges of R17.

use crate::access::operation;
use sim::fault::{Call, ExchangeName, Fault, Place, What};

/// The n-th create of R17.
pub fn create(nth: u32) -> ExchangeName {
    ExchangeName { call: Call::Create, about: operation("R17"), nth }
}

/// What becomes of the n-th create of R17.
pub fn on_create(nth: u32, what: What) -> Fault {
    Fault { at: Place::Exchange(create(nth)), what }
}
