//! A certificate for people, and as one line for machines.

use super::json::line;
use super::text::{Style, Tone, count, grouped};
use crate::enumerate::Certificate;
use crate::story::wrap;
use serde::Serialize;

/// Columns of the block.
const WIDTH: usize = 100;
/// So many certificates are told in full.
const FULL_MAX: usize = 8;
/// Columns before what a status word is about.
const INDENT: usize = 13;
/// Characters of a digest that people see.
const SHORT: usize = 12;

#[derive(Serialize)]
struct CertificateLine<'a> {
    kind: &'static str,
    schema: &'static str,
    #[serde(flatten)]
    certificate: &'a Certificate,
}

/// A `certificate` line.
pub fn json(certificate: &Certificate) -> String {
    line(&CertificateLine { kind: "certificate", schema: super::json::SCHEMA, certificate })
}

/// The certificates of one exploration as text: each in full where there are few, else what is amiss, and the
/// sums.
pub fn texts(style: Style, all: &[Certificate]) -> Vec<String> {
    if all.len() <= FULL_MAX {
        return all.iter().flat_map(|one| text(style, one)).collect();
    }
    let is_amiss =
        |one: &&Certificate| !one.complete || one.violated + one.harness_errors + one.undecided > 0;
    let amiss: Vec<&Certificate> = all.iter().filter(is_amiss).collect();
    let mut lines: Vec<String> = amiss.iter().flat_map(|one| text(style, one)).collect();
    let sum = |of: fn(&Certificate) -> u64| all.iter().map(of).sum::<u64>();
    let (singles, pairs) = (sum(|one| one.singles), sum(|one| one.pairs));
    let how = match amiss.len() {
        0 => "all complete".to_owned(),
        n => format!("{n} of them above"),
    };
    let rest = format!(
        "{} scenarios and contracts: {}, {}; {how}; --format json has each",
        grouped(all.len() as u64),
        count(singles, "single"),
        count(pairs, "pair")
    );
    let tone = if amiss.is_empty() { Tone::Good } else { Tone::Warn };
    lines.extend(style.status_wrapped(tone, "ENUMERATED", &rest));
    lines
}

/// A certificate as a block of text.
pub fn text(style: Style, certificate: &Certificate) -> Vec<String> {
    let Certificate { scenario, contract, depth, .. } = certificate;
    let (tone, word) = match certificate {
        one if one.violated > 0 || one.harness_errors > 0 => (Tone::Bad, "ENUMERATED"),
        one if !one.complete || one.drift > 0 || one.undecided > 0 => (Tone::Warn, "ENUMERATED"),
        _ => (Tone::Good, "ENUMERATED"),
    };
    let mutant = certificate.mutant.as_ref().map(|name| format!(" with {name}")).unwrap_or_default();
    let head = format!("{scenario}/{contract}{mutant}  to depth {depth}: {}", completeness(certificate));
    let mut lines = vec![style.status(tone, word, &head)];
    let mut say = |text: String| {
        lines.extend(wrap(&text, INDENT, WIDTH).iter().map(|line| style.line(line)));
    };
    let kinds = certificate.boundaries_by_kind.iter().map(|(kind, n)| format!("{kind} {n}"));
    let kinds = kinds.collect::<Vec<_>>().join(", ");
    say(format!("{}: {kinds}", boundaries(certificate.boundaries)));
    say(format!("{}, skipped {}", tried(certificate), skipped(certificate)));
    say(came(certificate));
    for example in &certificate.drift_examples {
        say(format!("never struck: {example}"));
    }
    say(bounds(certificate));
    say(format!(
        "contract {}, scenario {}, menu {}",
        short(&certificate.contract_digest),
        short(&certificate.scenario_digest),
        short(&certificate.menu_digest)
    ));
    lines
}

/// One line of it, for who watches.
pub fn brief(style: Style, certificate: &Certificate) -> String {
    let Certificate { scenario, contract, wall_s, .. } = certificate;
    let rest = format!(
        "{scenario}/{contract}  {}, {}  [{wall_s:.1}s]",
        tried(certificate),
        completeness(certificate)
    );
    style.status(Tone::Plain, "Enumerated", &rest)
}

fn completeness(certificate: &Certificate) -> String {
    match &certificate.incomplete {
        None => "complete".into(),
        Some(why) => format!("INCOMPLETE, {why}"),
    }
}

fn boundaries(number: u64) -> String {
    if number == 1 { "1 boundary".into() } else { format!("{} boundaries", grouped(number)) }
}

fn tried(certificate: &Certificate) -> String {
    let Certificate { singles, pairs, triples, .. } = certificate;
    let mut tried = vec![count(*singles, "single")];
    if certificate.depth > 1 {
        tried.push(count(*pairs, "pair"));
    }
    if certificate.depth > 2 {
        tried.push(count(*triples, "triple"));
    }
    tried.join(", ")
}

fn skipped(certificate: &Certificate) -> String {
    if certificate.skipped.is_empty() {
        return "none".into();
    }
    let each = certificate.skipped.iter().map(|(why, n)| format!("{} ({why})", grouped(*n)));
    each.collect::<Vec<_>>().join(", ")
}

fn came(certificate: &Certificate) -> String {
    let Certificate { runs, held, violated, undecided, invalid, harness_errors, drift, .. } = certificate;
    let counts = [
        (*held, "held"),
        (*violated, "violated"),
        (*undecided, "undecided"),
        (*invalid, "invalid"),
        (*harness_errors, "harness errors"),
    ];
    let came = counts.iter().enumerate().filter(|(index, (n, _))| *index < 2 || *n > 0);
    let came = came.map(|(_, (n, word))| format!("{} {word}", grouped(*n))).collect::<Vec<_>>().join(", ");
    let drift = match drift {
        0 => "every fault struck".to_owned(),
        1 => "1 fault never struck".to_owned(),
        n => format!("{} faults never struck", grouped(*n)),
    };
    let prevented = match certificate.prevented {
        0 => String::new(),
        n => format!(", {} kept from striking by a later one", grouped(n)),
    };
    format!("{}: {came}; {drift}{prevented}", count(*runs, "run"))
}

fn bounds(certificate: &Certificate) -> String {
    let bounds = &certificate.bounds;
    let kinds = match bounds.kinds.as_deref() {
        None => String::new(),
        Some([]) => ", no faults".into(),
        Some(kinds) => format!(", only {}", kinds.join(", ")),
    };
    let steps = grouped(u64::from(bounds.steps_max));
    format!("bounds: seed {}, {steps} steps a run, {}{kinds}", bounds.seed, bounds.strengths)
}

fn short(digest: &str) -> &str {
    digest.get(..SHORT).unwrap_or(digest)
}
