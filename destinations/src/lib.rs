//! What is known of external systems: declared contracts, what each permits after a send in doubt, and fakes
//! that follow them.
//!
//! ```text
//! contracts/*.toml ──▶ contract ──▶ recovery ──▶ may it be sent again?    (an engine's licence)
//!                          │            └───────▶ was that permitted?      (a judge's oracle)
//!                          └──────▶ fake ───────▶ ledger                   (the truth, in simulation)
//! ```
//!
//! - [`contract`]: a [`Contract`] is data, one TOML file for each system and operation. It is checked when it
//!   is read, and every omitted field is unknown.
//! - [`recovery`](mod@recovery): what a contract permits once a send is in doubt, as a pure function of the
//!   contract and a few printed [`Assumptions`]. Less knowledge never permits more.
//! - [`ledger`]: every effect of a destination in order, with the request that made it, whatever a workflow
//!   believes.
//! - `fake` (feature `fake`, never in production): a help desk that behaves as a contract declares. Where the
//!   contract is silent, it does what does most harm.
//!
//! All of it is pure: there is no clock, no input or output, no thread, and no chance but a given seed. One
//! type [`Contract`] has two values in a run: what the workflow was told, and what the destination does.
//! Where they differ, a destination breaks its promise.
//!
//! ```
//! use destinations::{Assumptions, Class, Doubt, Ground, named, recovery};
//! use std::time::Duration;
//!
//! let zendesk = named("zendesk_ticket").expect("it comes with the crate");
//! // What a second request in flight does is not documented: no resend until somebody attests a bound.
//! assert_eq!(recovery(&zendesk, &Assumptions::default()).class(), Class::LookupConfirms);
//! let attested =
//!     Assumptions { assumed_late_commit: Some(Duration::from_secs(60)), ..Assumptions::default() };
//! let permitted = recovery(&zendesk, &attested);
//! let after_five_minutes = Doubt {
//!     first_intent_age: Duration::from_secs(300),
//!     last_send_age: Duration::from_secs(270),
//!     sends: 1,
//!     misses: Vec::new(),
//!     same_key_and_bytes: true,
//! };
//! assert_eq!(permitted.may_resend(&after_five_minutes), Some(Ground::Key));
//! ```

#![forbid(unsafe_code)]

pub mod contract;
#[cfg(feature = "fake")]
pub mod fake;
pub mod ledger;
pub mod recovery;
pub mod tomltext;

pub use contract::{
    Ack, AfterExpiry, Atomic, Bound, Carrier, Complete, Consistency, Contract, ContractError, Converge,
    ConvergeKind, DedupKey, Enumerate, ErrorMatch, Errors, Grade, Hole, InFlight, KeyFormat, Lookup,
    LookupBy, Mismatch, OnConflict, OnMultiMatch, Permanence, ReplayKind, ReplayStatus, Retention,
    RetentionKind, RetryDirective, Staleness, StateTransition, StoreDown, TimeBounds, Undo, VoidByKey,
    Webhooks, builtin, builtin_text, named,
};
pub use ledger::{Effect, EffectKind, Ledger, Millis, RequestFacts};
pub use recovery::{
    Assumptions, Class, Convergence, Doubt, Ground, LookupRule, Miss, Recovery, Replay, recovery,
};
