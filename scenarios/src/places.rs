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

/// What becomes of the n-th look-up for R17.
pub fn on_find(nth: u32, what: What) -> Fault {
    let exchange = ExchangeName { call: Call::Find, about: operation("R17"), nth };
    Fault { at: Place::Exchange(exchange), what }
}
