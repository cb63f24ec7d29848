//! The report for machines: JSON Lines, each with its `kind`, stable.

use super::{Due, Explored, Never, ToldFailure};
use crate::coverage::Exclusion;
use crate::explore::{PairTally, ScenarioTally};
use crate::fault::{KINDS, Place, What};
use crate::replay::{Answer, Difference};
use crate::shrink::{Ended, Size};
use crate::verdict::Verdict;
use serde::Serialize;
use std::collections::BTreeMap;

/// The version of every line.
pub const SCHEMA: &str = "in-doubt/report/1";

/// One line.
///
/// # Panics
/// Never: every value here can be written as JSON.
pub fn line(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("keys are text and numbers are finite")
}

#[derive(Serialize)]
struct FaultLine<'a> {
    n: u32,
    at: &'a Place,
    what: &'static str,
    how: &'a What,
    fired: bool,
    needed: bool,
}

fn fault_lines(answer: &Answer) -> Vec<FaultLine<'_>> {
    let each = answer.faults.iter().map(|told| FaultLine {
        n: told.n,
        at: &told.fault.at,
        what: told.fault.what.kind(),
        how: &told.fault.what,
        fired: told.fired,
        needed: told.need.is_needed(),
    });
    each.collect()
}

#[derive(Serialize)]
struct FailureLine<'a> {
    kind: &'static str,
    schema: &'static str,
    case: String,
    scenario: &'a str,
    contract: &'a str,
    seed: u64,
    mutant: Option<&'a str>,
    verdict: &'static str,
    invariant: &'static str,
    invariant_name: &'static str,
    message: &'a str,
    fingerprint: &'a str,
    also: Vec<&'static str>,
    blame: Vec<u32>,
    seeds_failing: u64,
    seeds_run: u64,
    faults: Vec<FaultLine<'a>>,
    faults_drawn: usize,
    operations: usize,
    story: Vec<String>,
    replay: String,
    artifacts: Option<&'a str>,
    file: Option<&'a str>,
    shrunk: ShrunkLine,
    history_hash: String,
}

/// Before and after.
#[derive(Serialize)]
struct ShrunkLine {
    faults: [usize; 2],
    operations: [usize; 2],
    deliveries: [usize; 2],
    runs: u32,
    seconds: Option<f64>,
    ended: &'static str,
}

impl ShrunkLine {
    fn of(answer: &Answer, seconds: Option<f64>) -> Self {
        let (before, after) = (answer.before, Size::of(&answer.ran.run.plan));
        ShrunkLine {
            faults: [before.faults, after.faults],
            operations: [before.operations, after.operations],
            deliveries: [before.deliveries, after.deliveries],
            runs: answer.tries,
            seconds,
            ended: match answer.ended {
                Ended::Smallest => "smallest",
                Ended::Runs => "runs",
                Ended::Cut => "cut",
                Ended::Nothing => "not-tried",
            },
        }
    }
}

/// A `failure` line.
pub fn failure(told: &ToldFailure<'_>, seeds_run: u64) -> String {
    let (failure, answer) = (told.failure, told.answer);
    let case = &answer.question.case;
    let violation = answer.violation();
    line(&FailureLine {
        kind: "failure",
        schema: SCHEMA,
        case: case.to_string(),
        scenario: &case.scenario,
        contract: &case.contract,
        seed: case.seed.0,
        mutant: answer.question.mutant.as_deref(),
        verdict: "violated",
        invariant: failure.invariant.id,
        invariant_name: failure.invariant.name,
        message: violation.map_or("", |violation| &violation.message),
        fingerprint: &failure.fingerprint.0,
        also: failure.also.iter().map(|id| id.id).collect(),
        blame: violation.map_or(vec![], |violation| violation.blame.iter().map(|step| step.0).collect()),
        seeds_failing: failure.seeds_failing,
        seeds_run,
        faults: fault_lines(answer),
        faults_drawn: answer.before.faults,
        operations: answer.ran.run.plan.workload.requests.len(),
        story: told.story(),
        replay: answer.question.to_string(),
        artifacts: told.artifacts,
        file: told.file.as_deref(),
        shrunk: ShrunkLine::of(answer, told.seconds),
        history_hash: hash(answer.ran.run.history.hash()),
    })
}

fn hash(hash: u64) -> String {
    format!("{hash:016x}")
}

#[derive(Serialize)]
struct NeverLine<'a> {
    kind: &'static str,
    due: Due,
    scenario: Option<&'static str>,
    goal: &'a str,
    seeds: u64,
}

/// A `never` line.
pub fn never(never: &Never) -> String {
    let Never { due, scenario, goal, seeds } = never;
    line(&NeverLine { kind: "never", due: *due, scenario: *scenario, goal, seeds: *seeds })
}

#[derive(Serialize)]
struct ExcludedLine<'a> {
    kind: &'static str,
    #[serde(flatten)]
    excluded: &'a Exclusion,
}

/// An `excluded` line: cells that no run can fill.
pub fn excluded(excluded: &Exclusion) -> String {
    line(&ExcludedLine { kind: "excluded", excluded })
}

#[derive(Serialize)]
struct Determinism {
    checked: u64,
    differing: u64,
    examples: Vec<DifferenceLine>,
}

#[derive(Serialize)]
struct DifferenceLine {
    case: String,
    step: u32,
    a: String,
    b: String,
}

#[derive(Serialize)]
struct ScenarioLine {
    scenario: &'static str,
    runs: u64,
    held: u64,
    violated: u64,
    faults: u64,
    drift: u64,
    goals: BTreeMap<&'static str, u64>,
    settles_p99_s: Option<f64>,
}

impl ScenarioLine {
    fn of(tally: &ScenarioTally) -> Self {
        ScenarioLine {
            scenario: tally.name,
            runs: tally.runs,
            held: tally.held,
            violated: tally.violated,
            faults: tally.fired.iter().sum(),
            drift: tally.drifted.iter().sum(),
            goals: tally.goals.iter().copied().collect(),
            settles_p99_s: tally.settles_p99_s(),
        }
    }
}

#[derive(Serialize)]
struct RecordsLine {
    none: u64,
    one: u64,
    several: u64,
}

#[derive(Serialize)]
struct ResultLine<'a> {
    kind: &'static str,
    schema: &'static str,
    scenario: &'static str,
    contract: &'a str,
    contract_digest: &'a str,
    workflow_digest: Option<&'a str>,
    mutant: Option<&'a str>,
    runs: u64,
    held: u64,
    violated: u64,
    undecided: u64,
    invalid: u64,
    harness_errors: u64,
    operations: RecordsLine,
    cases: &'a BTreeMap<String, u64>,
}

/// The `result` lines: what the runs of each scenario with each contract came to.
pub fn results(explored: &Explored<'_>) -> Vec<String> {
    let mutant = explored.request.mutant.as_deref();
    explored.done.pairs.iter().filter(|pair| pair.runs > 0).map(|pair| result(pair, mutant)).collect()
}

fn result(pair: &PairTally, mutant: Option<&str>) -> String {
    let records = pair.records;
    line(&ResultLine {
        kind: "result",
        schema: SCHEMA,
        scenario: pair.scenario,
        contract: &pair.contract,
        contract_digest: &pair.contract_digest,
        workflow_digest: pair.workflow_digest.as_deref(),
        mutant,
        runs: pair.runs,
        held: pair.held,
        violated: pair.violated,
        undecided: pair.undecided,
        invalid: pair.invalid,
        harness_errors: pair.harness,
        operations: RecordsLine { none: records.none, one: records.one, several: records.several },
        cases: &pair.cases,
    })
}

#[derive(Serialize)]
struct ExampleLine {
    case: String,
    why: String,
}

#[derive(Serialize)]
struct SummaryLine<'a> {
    kind: &'static str,
    schema: &'static str,
    version: &'static str,
    commit: Option<&'a str>,
    seeds: String,
    shard: String,
    scenarios: usize,
    runs: u64,
    held: u64,
    violated: u64,
    undecided: u64,
    invalid: u64,
    harness_errors: u64,
    failures: usize,
    never: usize,
    cells: usize,
    cells_hit: usize,
    drift: u64,
    drift_by_kind: BTreeMap<&'static str, u64>,
    faults: BTreeMap<&'static str, u64>,
    events: u64,
    simulated_s: f64,
    wall_s: f64,
    cpu_s: Option<f64>,
    runs_per_cpu_s: Option<f64>,
    peak_rss_bytes: Option<u64>,
    determinism: Determinism,
    results_hash: String,
    interrupted: bool,
    by_scenario: Vec<ScenarioLine>,
    evaluated: BTreeMap<&'static str, u64>,
    undecided_examples: Vec<ExampleLine>,
    invalid_examples: Vec<ExampleLine>,
    harness_examples: Vec<ExampleLine>,
    exit: u8,
}

/// The `summary` line, the last one.
pub fn summary(explored: &Explored<'_>) -> String {
    let done = explored.done;
    let examples = |list: &[(crate::plan::Case, String)]| {
        list.iter().map(|(case, why)| ExampleLine { case: case.to_string(), why: why.clone() }).collect()
    };
    let differences = done.difference_examples.iter().map(|(case, difference)| {
        let Difference { step, a, b } = difference.clone();
        DifferenceLine { case: case.to_string(), step, a, b }
    });
    let ids = crate::invariants::INVARIANTS.iter().map(|invariant| invariant.id);
    line(&SummaryLine {
        kind: "summary",
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        commit: explored.commit,
        seeds: explored.request.seeds.to_string(),
        shard: explored.request.shard.to_string(),
        scenarios: done.scenarios.iter().filter(|scenario| scenario.runs > 0).count(),
        runs: done.runs,
        held: done.held,
        violated: done.violated,
        undecided: done.undecided,
        invalid: done.invalid,
        harness_errors: done.harness,
        failures: done.failures.len(),
        never: explored.never().len(),
        cells: done.coverage.counts().0,
        cells_hit: done.coverage.counts().1,
        drift: done.drifted().iter().sum(),
        drift_by_kind: by_kind(done.drifted()),
        faults: by_kind(done.fired()),
        events: done.events,
        simulated_s: done.simulated_ns as f64 / 1e9,
        wall_s: explored.wall_s,
        cpu_s: explored.cpu_s,
        runs_per_cpu_s: explored.runs_per_cpu_s(),
        peak_rss_bytes: explored.peak_rss_bytes,
        determinism: Determinism {
            checked: done.checked,
            differing: done.differing,
            examples: differences.collect(),
        },
        results_hash: hash(done.hash()),
        interrupted: done.interrupted,
        by_scenario: done.scenarios.iter().map(ScenarioLine::of).collect(),
        evaluated: ids.zip(done.evaluated.iter().copied()).collect(),
        undecided_examples: examples(&done.undecided_examples),
        invalid_examples: examples(&done.invalid_examples),
        harness_examples: examples(&done.harness_examples),
        exit: explored.exit,
    })
}

fn by_kind(counts: [u64; KINDS.len()]) -> BTreeMap<&'static str, u64> {
    KINDS.into_iter().zip(counts).filter(|(_, count)| *count > 0).collect()
}

/// The history of a told run: one event a line.
pub fn history(answer: &Answer, until: Option<u32>) -> Vec<String> {
    let events = answer.ran.run.history.events().iter();
    events.filter(|event| until.is_none_or(|until| event.step.0 <= until)).map(line).collect()
}

#[derive(Serialize)]
struct ViolationLine<'a> {
    invariant: &'static str,
    invariant_name: &'static str,
    about: &'a str,
    message: &'a str,
    blame: Vec<u32>,
    fingerprint: Option<&'a str>,
}

#[derive(Serialize)]
struct VerdictLine<'a> {
    kind: &'static str,
    schema: &'static str,
    case: String,
    mutant: Option<&'a str>,
    verdict: &'static str,
    why: Option<&'a str>,
    invariant: Option<&'static str>,
    invariant_name: Option<&'static str>,
    fingerprint: Option<&'a str>,
    violations: Vec<ViolationLine<'a>>,
    faults: Vec<FaultLine<'a>>,
    faults_drawn: usize,
    replay: String,
    history_hash: String,
    events: usize,
    difference: Option<DifferenceLine>,
    exit: u8,
}

/// The `verdict` line after a history.
pub fn verdict(answer: &Answer, exit: u8) -> String {
    let judgement = &answer.ran.judgement;
    let (verdict, why) = match &judgement.verdict {
        Verdict::Held => ("held", None),
        Verdict::Violated(_) => ("violated", None),
        Verdict::Undecided(why) => ("undecided", Some(why.as_str())),
        Verdict::Invalid(why) => ("invalid", Some(why.as_str())),
        Verdict::Harness(error) => ("harness-error", Some(error.as_str())),
    };
    let violations = match &judgement.verdict {
        Verdict::Violated(all) => all.as_slice(),
        _ => &[],
    };
    let each = violations.iter().enumerate().map(|(index, violation)| ViolationLine {
        invariant: violation.invariant.id,
        invariant_name: violation.invariant.name,
        about: &violation.about,
        message: &violation.message,
        blame: violation.blame.iter().map(|step| step.0).collect(),
        fingerprint: judgement.fingerprints.get(index).map(|fingerprint| fingerprint.0.as_str()),
    });
    let case = answer.question.case.to_string();
    let difference = answer.difference.clone().map(|d| DifferenceLine {
        case: case.clone(),
        step: d.step,
        a: d.a,
        b: d.b,
    });
    line(&VerdictLine {
        kind: "verdict",
        schema: SCHEMA,
        case,
        mutant: answer.question.mutant.as_deref(),
        verdict,
        why,
        invariant: answer.violation().map(|violation| violation.invariant.id),
        invariant_name: answer.violation().map(|violation| violation.invariant.name),
        fingerprint: answer.fingerprint().map(|fingerprint| fingerprint.0.as_str()),
        violations: each.collect(),
        faults: fault_lines(answer),
        faults_drawn: answer.before.faults,
        replay: answer.question.to_string(),
        history_hash: hash(answer.ran.run.history.hash()),
        events: answer.ran.run.history.events().len(),
        difference,
        exit,
    })
}
