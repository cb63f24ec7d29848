//! `check`: in a second, whether contracts are valid, canaries are caught, runs repeat, and a calm run holds.

use super::args::{CheckArgs, Format};
use super::canaries::CANARIES;
use super::{CliError, Context, choose, exit, twin};
use crate::catalogue::Catalogue;
use crate::explore::{Exploration, Request, TWICE, explore};
use crate::pipeline::Pipeline;
use crate::plan::Case;
use crate::report::json::line as json_line;
use crate::report::text::{Tone, count};
use crate::run::Options;
use crate::scenario::Scenario;
use crate::seed::Seed;
use crate::seeds::Seeds;
use crate::verdict::Verdict;
use crate::watch::apart;
use destinations::Contract;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What one check found.
#[derive(Serialize)]
pub(super) struct Finding {
    kind: &'static str,
    check: &'static str,
    pub(super) exit: u8,
    says: String,
}

pub(super) fn run(cx: &mut Context<'_>, args: &CheckArgs) -> Result<u8, CliError> {
    if let Some(seeds) = args.results {
        return twin::results(cx, seeds.get());
    }
    if let Some(seeds) = args.against_process {
        let start = cx.start;
        return twin::against(cx, seeds.get(), &move |arguments| twin::hear(start, arguments));
    }
    let mut findings = vec![contracts(cx)];
    findings.extend(CANARIES.iter().map(|canary| canary.finding((canary.sing)(cx).as_ref())));
    findings.extend([repeatable(cx), smoke(cx)]);
    let mut codes = vec![];
    for finding in findings {
        codes.push(finding.exit);
        show(cx, &finding);
    }
    if codes.contains(&exit::USAGE) {
        return Ok(exit::USAGE);
    }
    Ok(exit::worst(&codes))
}

pub(super) fn show(cx: &mut Context<'_>, finding: &Finding) {
    if cx.format == Format::Json {
        cx.print(&json_line(finding));
        return;
    }
    let (tone, word) = if finding.exit == exit::HELD { (Tone::Good, "OK") } else { (Tone::Bad, "FAILED") };
    let rest = format!("{:<17} {}", finding.check, finding.says);
    cx.print(&cx.out_style.status(tone, word, &rest));
}

pub(super) fn finding(check: &'static str, exit: u8, says: impl Into<String>) -> Finding {
    Finding { kind: "check", check, exit, says: says.into() }
}

/// Every contract that comes with the harness is read as a user's would be; a scenario's own was read before.
fn contracts(cx: &Context<'_>) -> Finding {
    let texts = destinations::builtin_text();
    for (id, text) in texts {
        if let Err(error) = Contract::from_toml(&format!("{id}.toml"), text) {
            return finding("contracts", exit::USAGE, error.to_string());
        }
    }
    let used = choose::contracts(&cx.catalogue);
    let own = used.iter().filter(|(contract, _)| texts.iter().all(|(id, _)| *id != contract.id)).count();
    let says = format!("{} are valid", count((texts.len() + own) as u64, "contract"));
    finding("contracts", exit::HELD, says)
}

fn repeatable(cx: &Context<'_>) -> Finding {
    let Some(done) = first_seeds(cx, cx.pipeline, TWICE) else {
        return finding("repeatable", exit::NOTHING, "there is no scenario to run");
    };
    if let Some((case, error)) = done.harness_examples.first() {
        return finding("repeatable", exit::HARNESS, format!("{case}: {error}"));
    }
    match done.difference_examples.first() {
        Some((case, difference)) => {
            let says = format!(
                "two runs of {case} differ at step {}: {} / {}",
                difference.step, difference.a, difference.b
            );
            finding("repeatable", exit::DIFFERS, says)
        }
        None => {
            finding("repeatable", exit::HELD, format!("{} run twice, equal", count(done.checked, "seed")))
        }
    }
}

/// Every scenario with every contract, without a fault.
fn smoke(cx: &Context<'_>) -> Finding {
    let (catalogue, pipeline) = (Arc::clone(&cx.catalogue), cx.pipeline);
    let smoked = apart(move |watch| {
        let mut runs = 0;
        for scenario in &catalogue.scenarios {
            for contract in scenario.contracts() {
                let (name, id) = (scenario.name().to_owned(), contract.id.clone());
                let case = Case { scenario: name, contract: id, seed: Seed(0) };
                watch
                    .during(0, &case, || calm_run(pipeline, &**scenario, &contract))
                    .map_err(|(code, why)| (code, format!("{case} --faults none: {why}")))?;
                runs += 1;
            }
        }
        Ok::<u64, (u8, String)>(runs)
    });
    match smoked {
        Ok(Ok(runs)) => finding("smoke", exit::HELD, format!("{} without a fault hold", count(runs, "run"))),
        Ok(Err((code, says))) => finding("smoke", code, says),
        Err(hung) => finding("smoke", exit::UNDECIDED, hung.to_string()),
    }
}

fn calm_run(pipeline: Pipeline, scenario: &dyn Scenario, contract: &Contract) -> Result<(), (u8, String)> {
    let harness = |error: String| (exit::HARNESS, error);
    let plan = (pipeline.draft)(scenario, contract, Seed(0), None, Some(&[])).map_err(harness)?;
    let ran = pipeline.once(scenario, &plan, &Options::default()).map_err(harness)?;
    match ran.judgement.verdict {
        Verdict::Held => Ok(()),
        Verdict::Violated(all) => {
            let message = all.into_iter().next().map_or(String::new(), |violation| violation.message);
            Err((exit::VIOLATED, message))
        }
        Verdict::Undecided(why) => Err((exit::UNDECIDED, why)),
        Verdict::Invalid(why) => Err((exit::USAGE, why)),
        Verdict::Harness(error) => Err((exit::HARNESS, error)),
    }
}

pub(super) fn first_seeds(cx: &Context<'_>, pipeline: Pipeline, seeds: u64) -> Option<Exploration> {
    let request = request(&cx.catalogue, seeds, 2)?;
    Some(explore(&cx.catalogue, pipeline, request, &AtomicBool::new(false), &mut |_| {}))
}

/// The first seeds of everything; none where there is no scenario.
pub(super) fn request(catalogue: &Catalogue, seeds: u64, jobs: usize) -> Option<Request> {
    let chosen = choose::scenarios(catalogue, &[], None).expect("no name is no unknown name");
    if chosen.is_empty() {
        return None;
    }
    Some(Request { jobs, ..Request::of(chosen, Seeds::range(0..seeds)) })
}
