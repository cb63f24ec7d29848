//! `bench`: the cost of a run, as a table or as JSON Lines.

use super::args::{BenchArgs, Format};
use super::{CliError, Context, VERSION, choose, exit};
use crate::bench::{Findings, Measure, findings, measure};
use crate::report::json::{SCHEMA, line as json_line};
use crate::report::text::{Tone, grouped};
use serde::Serialize;

pub(super) fn run(cx: &mut Context<'_>, args: &BenchArgs) -> Result<u8, CliError> {
    let catalogue = std::sync::Arc::clone(&cx.catalogue);
    let known: Vec<&str> = catalogue.benches.iter().map(|bench| bench.variant).collect();
    for name in &args.variants {
        if !known.contains(&name.as_str()) {
            return Err(choose::unknown("there is no variant", name, &known));
        }
    }
    let wanted = |variant: &str| args.variants.is_empty() || args.variants.iter().any(|name| name == variant);
    let mut all = vec![];
    if cx.format != Format::Json {
        cx.print(&cx.out_style.line(HEAD));
    }
    for bench in catalogue.benches.iter().filter(|bench| wanted(bench.variant)) {
        for requests in &args.requests {
            let measured = measure(cx.pipeline, bench, requests.get(), args.time);
            let measured = measured.map_err(|error| CliError {
                code: exit::HARNESS,
                message: format!("variant {} with {requests} requests: {error}", bench.variant),
                help: vec![],
            })?;
            let line =
                if cx.format == Format::Json { json(&measured) } else { cx.out_style.line(&row(&measured)) };
            cx.print(&line);
            all.push(measured);
        }
    }
    if all.is_empty() {
        let message = "there is nothing to measure".to_owned();
        return Err(CliError { code: exit::NOTHING, message, help: vec![] });
    }
    for line in closing(cx, &all) {
        cx.print(&line);
    }
    Ok(exit::HELD)
}

const HEAD: &str = "  variant    requests      runs   runs/CPU s   µs/request   events/CPU s   peak MB";

fn row(measure: &Measure) -> String {
    let memory = measure.peak_rss_bytes.map_or("?".to_owned(), |bytes| (bytes / 1_000_000).to_string());
    format!(
        "  {:<9} {:>9} {:>9} {:>12} {:>12.1} {:>14} {:>9}",
        measure.variant,
        grouped(measure.requests.into()),
        grouped(measure.runs),
        grouped(measure.runs_per_cpu_s() as u64),
        measure.us_per_request(),
        grouped(measure.events_per_cpu_s() as u64),
        memory,
    )
}

#[derive(Serialize)]
struct BenchLine {
    kind: &'static str,
    scenario: &'static str,
    requests: u32,
    variant: &'static str,
    runs: u64,
    runs_per_cpu_s: f64,
    us_per_request: f64,
    events_per_cpu_s: f64,
    peak_rss_bytes: Option<u64>,
}

fn json(measure: &Measure) -> String {
    json_line(&BenchLine {
        kind: "bench",
        scenario: measure.scenario,
        requests: measure.requests,
        variant: measure.variant,
        runs: measure.runs,
        runs_per_cpu_s: measure.runs_per_cpu_s(),
        us_per_request: measure.us_per_request(),
        events_per_cpu_s: measure.events_per_cpu_s(),
        peak_rss_bytes: measure.peak_rss_bytes,
    })
}

#[derive(Serialize)]
struct SummaryLine {
    kind: &'static str,
    schema: &'static str,
    version: &'static str,
    ratio_1000_to_100: Option<f64>,
    store_us_per_run: Option<f64>,
    http_us_per_run: Option<f64>,
    exit: u8,
}

fn closing(cx: &Context<'_>, all: &[Measure]) -> Vec<String> {
    let Findings { ratio_1000_to_100, store_us_per_run, http_us_per_run } = findings(all);
    if cx.format == Format::Json {
        let (kind, schema, version) = ("summary", SCHEMA, VERSION);
        let exit = exit::HELD;
        return vec![json_line(&SummaryLine {
            kind,
            schema,
            version,
            ratio_1000_to_100,
            store_us_per_run,
            http_us_per_run,
            exit,
        })];
    }
    let ratio = ratio_1000_to_100
        .map(|ratio| format!("a request costs {ratio:.2} times as much at 1,000 a run as at 100"));
    let store = store_us_per_run.map(|us| format!("the store costs {us:.0} µs of a run with one request"));
    let http = http_us_per_run.map(|us| format!("HTTP costs {us:.0} µs of a run with one request"));
    let said = [ratio, store, http].into_iter().flatten();
    said.map(|text| cx.out_style.status(Tone::Plain, "Summary", &text)).collect()
}
