//! A deterministic simulation and chaos harness for workflows that talk to external systems.
//!
//! The way of a run, one file a step; everything but `world` and the files under it is pure:
//!
//! ```text
//! seed -> plan -> world -> history -> invariants -> verdict -> report
//!         (workload  (nodes, wire,   (typed events)
//!          + faults)  disk, desk)
//! ```
//!
//! - [`seed`]: a seed and the named streams that every decision is drawn from.
//! - [`fault`]: what can go wrong and where, on a tape addressed by meaning.
//! - [`terms`], [`menu`]: which faults a workflow must survive, and which can strike at a place.
//! - [`swarm`]: the random faults of a seed.
//! - [`plan`]: the workload and the tape of one run, before anything runs.
//! - [`scenario`]: what a scenario must bring.
//! - `world`, `field`, `wire`, `deskhost`, `outside`: the simulated nodes and all that can go wrong between
//!   them; in the simulated build only. [`disk`], [`vfs`]: a disk that loses what was not synced, and SQLite
//!   on it.
//! - [`history`], [`run`], [`belief`]: what happened, and what each side holds.
//! - [`invariants`], [`verdict`]: what must hold, and what came of it.
//! - [`pipeline`], [`explore`], [`replay`], [`mod@bench`]: many runs, one run twice, runs against the clock.
//! - [`mod@shrink`], [`case`], [`confirm`]: a failure made small, kept, and run again in a fresh process.
//! - [`strategies`], [`enumerate`]: which plans are searched for, and in which order.
//! - [`matrix`], [`likelihood`]: how many plans each search needs for each known mistake, and which decision
//!   of a run settles a failure.
//! - [`story`], [`report`], [`cli`]: how people and machines see it.
#![deny(unsafe_code)]

pub mod belief;
pub mod bench;
mod canary;
pub mod case;
pub mod catalogue;
pub mod cli;
pub mod confirm;
pub mod coverage;
#[cfg(madsim)]
mod deskhost;
pub mod disk;
pub mod draft;
pub mod enumerate;
pub mod explore;
pub mod fault;
#[cfg(madsim)]
mod field;
#[cfg(test)]
mod fixture;
pub mod guided;
pub mod history;
pub mod invariants;
#[cfg(madsim)]
mod io;
pub mod likelihood;
pub mod matrix;
pub mod menu;
#[cfg(madsim)]
mod outside;
pub mod pct;
pub mod pipeline;
pub mod plan;
pub mod progress;
pub mod replay;
pub mod report;
#[cfg(madsim)]
mod reroll;
pub mod resources;
pub mod run;
pub mod scenario;
pub mod seed;
pub mod seeds;
pub mod shrink;
pub mod story;
pub mod strategies;
pub mod swarm;
pub mod terms;
pub mod verdict;
pub mod vfs;
#[cfg(madsim)]
mod wallclock;
pub mod watch;
#[cfg(madsim)]
mod wire;
#[cfg(madsim)]
pub mod world;
