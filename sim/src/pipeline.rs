//! The way from a seed to a verdict as three functions, and the one place where a run's panic is caught.

use crate::plan::Plan;
use crate::run::{Options, Run};
use crate::scenario::Scenario;
use crate::seed::Seed;
use crate::verdict::Judgement;
use destinations::Contract;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::path::Path;
use std::sync::Once;

/// Draws a plan: scenario, contract, seed, mutant, and the fault kinds that may be on its tape (none: all).
pub type Draft = fn(&dyn Scenario, &Contract, Seed, Option<&str>, Option<&[String]>) -> Result<Plan, String>;

/// What makes a verdict out of a seed. Tests put other functions in.
#[derive(Clone, Copy)]
pub struct Pipeline {
    /// Draws the plan.
    pub draft: Draft,
    /// Runs it.
    pub run: fn(&dyn Scenario, &Plan, &Options) -> Run,
    /// Judges the run.
    pub judge: fn(&Run, &dyn Scenario) -> Judgement,
}

/// A finished run and the verdict on it.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The run.
    pub run: Run,
    /// The verdict.
    pub judgement: Judgement,
}

impl Pipeline {
    /// The one of the simulator; none in a build that cannot simulate.
    #[cfg(all(madsim, tokio_unstable))]
    pub fn real() -> Option<Self> {
        Some(Pipeline { draft, run, judge: crate::invariants::judge })
    }

    /// The one of the simulator; none in a build that cannot simulate.
    #[cfg(not(all(madsim, tokio_unstable)))]
    pub fn real() -> Option<Self> {
        None
    }

    /// Runs a plan and judges it.
    ///
    /// # Errors
    /// When the harness panics: what it said, and where.
    pub fn once(&self, scenario: &dyn Scenario, plan: &Plan, options: &Options) -> Result<Ran, String> {
        caught(|| {
            let run = (self.run)(scenario, plan, options);
            let judgement = (self.judge)(&run, scenario);
            Ran { run, judgement }
        })
        .map_err(|panic| panic.to_string())
    }
}

#[cfg(all(madsim, tokio_unstable))]
fn draft(
    scenario: &dyn Scenario,
    contract: &Contract,
    seed: Seed,
    mutant: Option<&str>,
    kinds: Option<&[String]>,
) -> Result<Plan, String> {
    crate::draft::draft(scenario, contract, seed, mutant, kinds).map_err(|error| error.to_string())
}

#[cfg(all(madsim, tokio_unstable))]
fn run(scenario: &dyn Scenario, plan: &Plan, options: &Options) -> Run {
    crate::world::run_plan(scenario, plan, options)
}

/// A panic: what it said, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("panic at {place}: {message}")]
pub struct Panic {
    /// Its message.
    pub message: String,
    /// File and line.
    pub place: String,
    /// Whether the place is in the harness itself: in this crate, or in the fakes.
    pub is_ours: bool,
}

thread_local! {
    static CATCHING: Cell<bool> = const { Cell::new(false) };
    static LAST: RefCell<Option<Panic>> = const { RefCell::new(None) };
}

/// Does the work; a panic comes back as a value and prints nothing.
///
/// # Errors
/// When the work panics.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Panic> {
    install_hook();
    let outer = CATCHING.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    CATCHING.set(outer);
    done.map_err(|payload| {
        take_panic().unwrap_or_else(|| {
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let message =
                text.or(payload.downcast_ref::<&str>().copied()).unwrap_or("a value that is no text");
            Panic { message: message.to_owned(), place: "an unknown place".into(), is_ours: true }
        })
    })
}

/// The last panic of this thread inside [`caught`], for who caught it on the way.
pub fn take_panic() -> Option<Panic> {
    LAST.take()
}

fn install_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(
            move |info| {
                if CATCHING.get() { LAST.set(Some(seen(info))) } else { before(info) }
            },
        ));
    });
}

fn seen(info: &PanicHookInfo<'_>) -> Panic {
    let message = match info.payload_as_str() {
        Some(text) => text.to_owned(),
        None => "a value that is no text".to_owned(),
    };
    match info.location() {
        Some(at) => {
            let place = format!("{}:{}", at.file(), at.line());
            Panic { message, place, is_ours: is_ours(at.file()) }
        }
        None => Panic { message, place: "an unknown place".into(), is_ours: true },
    }
}

fn is_ours(file: &str) -> bool {
    let here = Path::new(file!()).parent().expect("this file is in a folder");
    let fakes = here.parent().and_then(Path::parent).map(|root| root.join("destinations").join("src"));
    let file = Path::new(file);
    file.starts_with(here) || fakes.is_some_and(|fakes| file.starts_with(fakes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_value_with_its_place() {
        let panic = caught(|| panic!("no such {}", "thing")).unwrap_err();
        assert_eq!(panic.message, "no such thing");
        assert!(panic.is_ours && panic.place.contains("pipeline.rs:"), "{panic}");
        assert_eq!(caught(|| 3), Ok(3));
    }

    #[test]
    fn the_harness_and_the_system_under_test_are_told_apart() {
        assert!(is_ours("sim/src/world.rs") && is_ours("destinations/src/fake/keys.rs"));
        assert!(!is_ours("workflow/src/engine.rs") && !is_ours("my-sim/src/main.rs"));
    }
}
