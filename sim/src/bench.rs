//! What a run costs: runs a processor second by requests a run, and what the store and HTTP cost.

use crate::catalogue::Bench;
use crate::pipeline::Pipeline;
use crate::resources::{cpu_seconds, now, peak_rss_bytes, reset_peak_rss};
use crate::run::Options;
use crate::seed::Seed;
use crate::verdict::Verdict;
use std::time::Duration;

/// Steps that one request may take beyond the ordinary limit.
const STEPS_A_REQUEST: u32 = 200;

/// One measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// The scenario's name.
    pub scenario: &'static str,
    /// `full`, `no-store` or `no-http`.
    pub variant: &'static str,
    /// Requests a run.
    pub requests: u32,
    /// Runs.
    pub runs: u64,
    /// Events of all runs.
    pub events: u64,
    /// Processor seconds; wall-clock seconds where the system does not say.
    pub cpu_s: f64,
    /// Peak memory.
    pub peak_rss_bytes: Option<u64>,
}

impl Measure {
    /// Runs a processor second.
    pub fn runs_per_cpu_s(&self) -> f64 {
        self.runs as f64 / self.cpu_s
    }

    /// Events a processor second.
    pub fn events_per_cpu_s(&self) -> f64 {
        self.events as f64 / self.cpu_s
    }

    /// Microseconds of processor time a run.
    pub fn us_per_run(&self) -> f64 {
        self.cpu_s * 1e6 / self.runs as f64
    }

    /// Microseconds of processor time a request.
    pub fn us_per_request(&self) -> f64 {
        self.us_per_run() / f64::from(self.requests)
    }
}

/// Runs one variant for about so long, on this thread.
///
/// # Errors
/// When a run does not hold: the figure would be worth nothing.
pub fn measure(pipeline: Pipeline, bench: &Bench, requests: u32, time: Duration) -> Result<Measure, String> {
    let scenario = (bench.scenario)(requests);
    let contracts = scenario.contracts();
    let contract = contracts.first().ok_or("the scenario has no contract")?;
    let ordinary = Options::default();
    let steps_max = ordinary.steps_max.max(requests.saturating_mul(STEPS_A_REQUEST));
    let options = Options { steps_max, ..ordinary };
    reset_peak_rss();
    let (started, cpu_before) = (now(), cpu_seconds());
    let (mut runs, mut events) = (0, 0);
    // One run at least, however long it takes.
    while runs == 0 || started.elapsed() < time {
        let plan = (pipeline.draft)(&*scenario, contract, Seed(runs), None, None)?;
        let ran = pipeline.once(&*scenario, &plan, &options)?;
        if ran.judgement.verdict != Verdict::Held {
            return Err(format!("{} does not hold: {:?}", plan.case, ran.judgement.verdict));
        }
        runs += 1;
        events += ran.run.history.events().len() as u64;
    }
    let wall = started.elapsed().as_secs_f64();
    let cpu = cpu_seconds().zip(cpu_before).map(|(after, before)| after - before);
    Ok(Measure {
        scenario: scenario.name(),
        variant: bench.variant,
        requests,
        runs,
        events,
        // A clock of a hundredth of a second cannot measure what is shorter.
        cpu_s: cpu.filter(|cpu| *cpu >= 0.01).unwrap_or(wall),
        peak_rss_bytes: peak_rss_bytes(),
    })
}

/// What follows from several measurements.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// Cost a request at 1,000 requests a run, divided by that at 100.
    pub ratio_1000_to_100: Option<f64>,
    /// Microseconds that the store costs in a run of one request.
    pub store_us_per_run: Option<f64>,
    /// Microseconds that HTTP costs in a run of one request.
    pub http_us_per_run: Option<f64>,
}

/// Compares the measurements.
pub fn findings(all: &[Measure]) -> Findings {
    let of = |variant: &str, requests: u32| {
        all.iter().find(|measure| measure.variant == variant && measure.requests == requests)
    };
    let saved = |variant: &str| Some(of("full", 1)?.us_per_run() - of(variant, 1)?.us_per_run());
    let ratio = || Some(of("full", 1000)?.us_per_request() / of("full", 100)?.us_per_request());
    Findings {
        ratio_1000_to_100: ratio(),
        store_us_per_run: saved("no-store"),
        http_us_per_run: saved("no-http"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_compare_what_was_measured() {
        let measure = |variant, requests, runs| Measure {
            scenario: "one-ticket",
            variant,
            requests,
            runs,
            events: runs * 20,
            cpu_s: 2.0,
            peak_rss_bytes: None,
        };
        let all = [
            measure("full", 1, 4000),
            measure("full", 100, 80),
            measure("full", 1000, 7),
            measure("no-store", 1, 10_000),
        ];
        let found = findings(&all);
        assert_eq!(found.store_us_per_run, Some(300.0));
        assert_eq!(found.http_us_per_run, None);
        assert!((found.ratio_1000_to_100.unwrap() - 8.0 / 7.0).abs() < 1e-9);
        assert_eq!(all[0].runs_per_cpu_s(), 2000.0);
        assert_eq!(findings(&[]), Findings::default());
    }
}
