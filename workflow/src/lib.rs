//! Durable operations against external HTTP systems, in which an unknown outcome is a state of its own.
//!
//! A send is a licence, not a default: after the first one, each further send is licensed by evidence, the
//! destination's declared contract, and time; and what cannot be licensed or proven goes to a person, with a
//! deadline.
//!
//! The way of a request:
//!
//! ```text
//! intake ──T0──▶ store ──▶ agenda ──▶ licence ──T2──▶ connector ──▶ evidence ──T3──▶ state
//! (HTTP in)     (SQLite)   (what is   (what may       (HTTP out,    (what it         (one transition
//!                           due)       be done)        observed)     proves)          function)
//! ```
//!
//! - [`definition`]: what a workflow is. [`operation`]: who an operation is.
//! - [`engine`]: the loop. [`licence`]: what it may do next. [`state`]: where an operation can stand.
//! - [`store`]: what is durable before what. [`connector`], [`evidence`]: one exchange, and what it proves.
//! - [`reconcile`]: what is recorded against what is there.
//! - [`file`](mod@file), [`runbook`]: a workflow as a file, and what people do in each situation.
//! - [`people`], [`explain`]: what people see and decide. [`policy`]: how patient it all is.
#![forbid(unsafe_code)]

mod agenda;
#[cfg(all(feature = "cli", not(madsim)))]
pub mod cli;
pub mod clock;
pub mod connector;
pub mod definition;
pub mod engine;
pub mod evidence;
pub mod explain;
pub mod file;
pub mod hidden;
pub mod http;
mod intake;
mod known;
pub mod licence;
pub mod mutant;
pub mod operation;
pub mod people;
pub mod policy;
pub mod reconcile;
mod record;
pub mod runbook;
mod settle;
pub mod state;
pub mod store;

pub use clock::{Clock, Timestamp};
pub use connector::Connect;
pub use definition::{Definition, Workflow};
pub use engine::{Engine, Setup};
pub use operation::OperationKey;
pub use policy::Policy;
pub use store::{Store, StoreAt, StoreError};
