//! The simulated tests really run: a build that only looks simulated fails here.

/// `cargo sim-test` sets the variable; a build without the simulator below it would pass every test by
/// running none.
#[test]
fn the_simulated_build_is_one() {
    #[expect(clippy::disallowed_methods, reason = "what the build was called with is read nowhere else")]
    let asked = std::env::var_os("INDOUBT_SIM").is_some() || std::env::var("INDOUBT_SIM").is_ok();
    assert_eq!(asked, cfg!(madsim), "INDOUBT_SIM and `--cfg madsim` go together");
}

/// Outside the simulator the pipeline says so instead of running on the machine's clock.
#[test]
#[cfg(not(madsim))]
fn this_build_does_not_pretend_to_simulate() {
    assert!(sim::pipeline::Pipeline::real().is_none());
}

/// A run of hours takes less than its time: it is simulated time that passes, and the machine's clock is not
/// asked.
#[test]
#[cfg(madsim)]
fn simulated_time_passes_without_waiting() {
    use sim::scenario::Scenario as _;
    let scenario = scenarios::stories::key_lapsed::SCENARIO;
    let contract = &scenario.contracts()[0];
    let started = sim::resources::now();
    let mut simulated = std::time::Duration::ZERO;
    for seed in 0..20 {
        let plan = sim::draft::draft(&scenario, contract, sim::seed::Seed(seed), None, None).expect("a plan");
        let run = sim::world::run_plan(&scenario, &plan, &sim::run::Options::default());
        assert!(run.history.events().len() > 10 && run.history.writes() > 0, "nodes and a disk were at work");
        simulated += std::time::Duration::from_nanos(run.elapsed.0);
    }
    let waited = started.elapsed();
    assert!(simulated.as_secs() > 10 * 3_600, "{simulated:?}");
    assert!(waited < simulated / 10, "{waited:?} for {simulated:?}");
}

/// The mutants are there in the simulated build, and cannot be switched on in any other.
#[test]
fn mistakes_exist_in_the_simulated_build_alone() {
    use workflow::mutant::{MISTAKES, Mutant};
    let none = Mutant::default();
    assert!(MISTAKES.iter().all(|(_, mistake, ..)| !none.is(*mistake)));
    #[cfg(madsim)]
    for (name, mistake, ..) in MISTAKES {
        assert!(Mutant::named(name).is_some_and(|mutant| mutant.is(*mistake)), "{name}");
    }
}
