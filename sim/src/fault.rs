//! What can go wrong and where: faults, addressed by meaning, on a tape that is checked when it is made.

mod place;
mod tape;
mod what;

pub use place::{Call, ExchangeName, Phase, Place, When};
pub use tape::{Fault, FaultTape, TapeError};
pub use what::{KINDS, Keep, Loss, Omission, Variation, Way, What};
