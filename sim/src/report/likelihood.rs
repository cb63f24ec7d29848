//! The moment of no return for people, as a curve of bars, and for machines, as one line.

use super::json::{SCHEMA, line as json_line};
use super::text::{Style, Tone, grouped};
use crate::likelihood::{DECISIONS_MAX, Decision, Likelihood};
use crate::story::cut;
use serde::Serialize;

/// Columns of a report.
const WIDTH: usize = 100;
/// Columns of a bar when every run fails.
const BAR: usize = 20;

/// The curve and the sentence, a line each.
pub fn text(style: Style, likelihood: &Likelihood) -> Vec<String> {
    let runs = likelihood.runs;
    let head = [
        "The moment of no return".to_owned(),
        format!("  After each decision {} runs go on with everything drawn anew;", grouped(runs.into())),
        "  so many of them fail in the same way (the deliveries stay):".to_owned(),
        String::new(),
    ];
    let mut lines: Vec<String> = head.iter().map(|line| style.line(line)).collect();
    let decisions = &likelihood.decisions;
    let mut skipped = 0;
    for (index, decision) in decisions.iter().enumerate() {
        if is_dull(decisions, index) {
            skipped += 1;
            continue;
        }
        if skipped > 0 {
            lines.push(style.line(&format!("     …  {skipped} more, no change")));
            skipped = 0;
        }
        let decides = likelihood.deciding() == Some(decision);
        let line = row(decision, runs, decides);
        lines.push(if decides { style.tinted(Tone::Bad, &line) } else { style.line(&line) });
    }
    if decisions.len() > DECISIONS_MAX {
        lines.push(style.line("     …  what comes later was not looked at"));
    }
    lines.push(String::new());
    lines.extend(crate::story::wrap(&sentence(likelihood), 2, WIDTH).iter().map(|line| style.line(line)));
    lines
}

/// Whether a decision changes nothing, and its neighbours neither. Faults are always shown.
fn is_dull(decisions: &[Decision], index: usize) -> bool {
    let is_end = index == 0 || index + 1 == decisions.len();
    !is_end
        && decisions[index].fault.is_none()
        && decisions[index - 1..=index + 1].windows(2).all(|pair| pair[0].failed == pair[1].failed)
}

fn row(decision: &Decision, runs: u32, decides: bool) -> String {
    let filled = (decision.failed as usize * BAR).div_ceil(runs.max(1) as usize);
    let time = match decision.n {
        0 => String::new(),
        _ => format!("{:.3} s", decision.at.0 as f64 / 1e9),
    };
    let fault = decision.fault.map_or(String::new(), |n| format!("fault {n}: "));
    let mark = if decides { "  ◀ decides" } else { "" };
    let start = format!(
        "  {:>4}  {time:>11}  {:>4}/{runs}  {:<BAR$}  ",
        decision.n,
        decision.failed,
        "=".repeat(filled)
    );
    let room = WIDTH - start.chars().count() - mark.chars().count();
    format!("{start}{}{mark}", cut(&format!("{fault}{}", decision.words), room))
}

/// What decided it, in one sentence.
fn sentence(likelihood: &Likelihood) -> String {
    let runs = likelihood.runs;
    let Some(deciding) = likelihood.deciding() else {
        let failed = likelihood.decisions.first().map_or(0, |first| first.failed);
        return format!("No decision decides it: from the start {failed} of {runs} runs fail.");
    };
    let before = likelihood.before(deciding);
    let at = format!("{:.3} s", deciding.at.0 as f64 / 1e9);
    let what = match deciding.fault {
        Some(n) => format!("Fault {n} decides: {}, at {at}.", deciding.words),
        None => format!("Decided when the run came by this boundary: {}, at {at}.", deciding.words),
    };
    format!("{what} Before it {before} of {runs} runs fail, after it {}.", deciding.failed)
}

#[derive(Serialize)]
struct LikelihoodLine<'a> {
    kind: &'static str,
    schema: &'static str,
    case: String,
    mutant: Option<&'a str>,
    fingerprint: &'a str,
    runs: u32,
    decisions: Vec<DecisionLine<'a>>,
    deciding: Option<u32>,
    says: String,
}

#[derive(Serialize)]
struct DecisionLine<'a> {
    n: u32,
    t_ns: u64,
    fault: Option<u32>,
    words: &'a str,
    failed: u32,
}

/// The `likelihood` line.
pub fn json(likelihood: &Likelihood) -> String {
    let lines = likelihood.decisions.iter().map(|one| DecisionLine {
        n: one.n,
        t_ns: one.at.0,
        fault: one.fault,
        words: &one.words,
        failed: one.failed,
    });
    json_line(&LikelihoodLine {
        kind: "likelihood",
        schema: SCHEMA,
        case: likelihood.case.to_string(),
        mutant: likelihood.mutant.as_deref(),
        fingerprint: &likelihood.fingerprint.0,
        runs: likelihood.runs,
        decisions: lines.collect(),
        deciding: likelihood.deciding().map(|decision| decision.n),
        says: sentence(likelihood),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Nanos;
    use crate::verdict::Fingerprint;

    fn curve(failed: &[u32]) -> Likelihood {
        let decision = |(n, failed): (usize, &u32)| Decision {
            n: n as u32,
            at: Nanos(n as u64 * 1_500_000),
            fault: (n == 9).then_some(1),
            words: match n {
                0 => "nothing is kept".into(),
                9 => "the response is lost, silence (1st create of R17:create-ticket:v1)".into(),
                _ => "before sending, 1st create of R17:create-ticket:v1".into(),
            },
            failed: *failed,
        };
        Likelihood {
            case: "one-ticket/zendesk_ticket@0".parse().expect("a case"),
            mutant: Some("fresh-key-per-retry".into()),
            fingerprint: Fingerprint("stable-identity/helpdesk/9c1e".into()),
            runs: 30,
            decisions: failed.iter().enumerate().map(decision).collect(),
        }
    }

    #[test]
    fn the_curve_is_told() {
        let style = Style { color: false, ascii: false };
        let rising = curve(&[2, 2, 2, 2, 2, 3, 3, 3, 3, 30, 30, 30, 30]);
        let lines = text(style, &rising);
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH), "{lines:#?}");
        let flat = text(style, &curve(&[30, 30, 30]));
        let ascii = text(Style { color: false, ascii: true }, &rising);
        assert!(ascii.iter().all(|line| line.is_ascii() && !line.contains('?')), "{ascii:#?}");
        insta::assert_snapshot!("likelihood", [lines, vec!["----".into()], flat].concat().join("\n"));
    }

    #[test]
    fn machines_read_the_curve() {
        let read: serde_json::Value = serde_json::from_str(&json(&curve(&[0, 0, 5, 30]))).expect("JSON");
        assert_eq!(
            (&read["kind"], &read["deciding"], &read["runs"]),
            (&"likelihood".into(), &3.into(), &30.into())
        );
        let failed: Vec<_> =
            read["decisions"].as_array().expect("a list").iter().map(|one| one["failed"].clone()).collect();
        assert_eq!(failed, [0, 0, 5, 30]);
    }
}
