//! The destination's truth after a run: each effect, in order, for people and for machines.

use super::json::line;
use crate::run::Run;
use destinations::{Effect, EffectKind};
use serde::Serialize;

#[derive(Serialize)]
struct EffectLine<'a> {
    n: u32,
    at_ms: u64,
    kind: &'static str,
    record: &'a str,
    made_for: Option<&'a str>,
    key: Option<&'a str>,
    reference: Option<&'a str>,
    digest: &'a str,
    late: bool,
}

fn effects(run: &Run) -> impl Iterator<Item = EffectLine<'_>> {
    let made_for = run.made_for.iter().map(|name| Some(name.as_str())).chain(std::iter::repeat(None));
    run.ledger.effects().iter().zip(made_for).map(|(effect, made_for)| of(effect, made_for))
}

fn of<'a>(effect: &'a Effect, made_for: Option<&'a str>) -> EffectLine<'a> {
    EffectLine {
        n: effect.n,
        at_ms: effect.at.0,
        kind: match effect.kind {
            EffectKind::Created => "created",
            EffectKind::Updated => "updated",
            EffectKind::Deleted => "deleted",
        },
        record: &effect.record,
        made_for,
        key: effect.by.key.as_deref(),
        reference: effect.by.reference.as_deref(),
        digest: &effect.by.digest,
        late: effect.late,
    }
}

/// One effect a line, JSON.
pub fn json(run: &Run) -> Vec<String> {
    effects(run).map(|effect| line(&effect)).collect()
}

/// One effect a line, in words.
pub fn text(run: &Run) -> Vec<String> {
    let words = |effect: EffectLine<'_>| {
        let EffectLine { n, at_ms, kind, record, made_for, key, reference, late, .. } = effect;
        let seconds = at_ms as f64 / 1_000.0;
        let by = match (key, reference) {
            (Some(key), _) => format!(", key {key}"),
            (None, Some(reference)) => format!(", reference {reference}"),
            (None, None) => String::new(),
        };
        let late = if late { ", late" } else { "" };
        let made_for = made_for.unwrap_or("nobody knows what");
        format!("{n:>4} {seconds:>10.3} s  {record} {kind} for {made_for}{by}{late}")
    };
    let lines: Vec<String> = effects(run).map(words).collect();
    if lines.is_empty() { vec!["the destination holds nothing".into()] } else { lines }
}
