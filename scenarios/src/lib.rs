//! The catalogue: the access-request workflow under every story that it must survive.
//!
//! [`access`] binds the real workflow to the harness, [`stories`] has one file a story, [`redelivery`] and
//! [`people`] say what sources and people send when they err, [`belief`] reads what the workflow believes,
//! [`goals`] says what some seed must reach.
#![forbid(unsafe_code)]

pub mod access;
pub mod bare;
pub mod belief;
pub mod bench;
pub mod goals;
pub mod people;
pub mod places;
pub mod redelivery;
pub mod stories;

use sim::catalogue::{Bench, Catalogue};
use sim::scenario::Scenario;
use std::path::Path;

/// Every scenario, and what `bench` measures.
pub fn catalogue() -> Catalogue {
    let scenarios = stories::ALL.iter().map(|story| Box::new(**story) as Box<dyn Scenario>);
    let bench = |variant, scenario| Bench { variant, scenario };
    let benches = vec![
        bench("full", bench::full as fn(u32) -> Box<dyn Scenario>),
        bench("no-store", bare::without_store),
        bench("no-http", bare::without_http),
    ];
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let deep = stories::first_delivery::SCENARIO.name;
    Catalogue { scenarios: scenarios.collect(), deep, benches, cases: Some(cases) }
}
