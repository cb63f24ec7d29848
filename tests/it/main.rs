//! The integration tests: one program for both builds.
//!
//! The plain build has real sockets, real files and the real tokio; the simulated build has the simulator.
//! Each module says which of them it is for.
#![forbid(unsafe_code)]

#[cfg(madsim)]
mod acceptance;
#[cfg(not(madsim))]
mod acts;
#[cfg(not(madsim))]
mod cancel;
#[cfg(not(madsim))]
mod chain;
#[cfg(not(madsim))]
mod client;
#[cfg(madsim)]
mod cross;
#[cfg(not(madsim))]
mod desk;
#[cfg(madsim)]
mod destination_faults;
#[cfg(madsim)]
mod enumeration;
#[cfg(madsim)]
mod explored;
#[cfg(madsim)]
mod gate;
#[cfg(madsim)]
mod gates;
mod guard;
#[cfg(not(madsim))]
mod identity;
#[cfg(madsim)]
mod incidents;
#[cfg(not(madsim))]
mod intake;
mod licences;
#[cfg(madsim)]
mod mistakes;
#[cfg(madsim)]
mod no_return;
#[cfg(madsim)]
mod node_faults;
#[cfg(not(madsim))]
mod people;
#[cfg(not(madsim))]
mod process;
#[cfg(not(madsim))]
mod purge;
#[cfg(not(madsim))]
mod queue;
#[cfg(madsim)]
mod readme;
#[cfg(not(madsim))]
mod reconcile;
#[cfg(not(madsim))]
mod runbook;
#[cfg(madsim)]
mod search;
#[cfg(not(madsim))]
mod service;
#[cfg(madsim)]
mod simulated;
#[cfg(madsim)]
mod spinning;
#[cfg(not(madsim))]
mod store;
#[cfg(not(madsim))]
mod store_files;
mod tidy;
#[cfg(madsim)]
mod traps;
#[cfg(not(madsim))]
mod versions;
