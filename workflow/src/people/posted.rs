//! A person's act as it is posted: its words, its fields, and what is wrong with them.

use super::{Decider, Verdict};
use crate::clock::Timestamp;
use serde::Deserialize;

/// The acts, as their paths and the command line call them.
pub const ACTIONS: [&str; 9] = [
    "confirm_found",
    "reject",
    "declare_absent",
    "authorise_resend",
    "authorise_creation",
    "assign",
    "snooze",
    "add_evidence",
    "cancel",
];

/// What people can say of a discrepancy, and what it is after that.
pub const SAID: [(&str, &str); 2] = [("explain", "explained"), ("accept", "accepted")];

/// Who says something of a discrepancy, and why.
///
/// # Errors
/// A sentence that names the field.
pub(crate) fn read_said(body: &[u8]) -> Result<Decider, String> {
    let mut posted: Posted =
        serde_json::from_slice(body).map_err(|e| format!("the decision is unreadable: {e}"))?;
    match posted.left() {
        Some(field) => Err(format!("a discrepancy takes no `{field}`")),
        None if posted.version.take().is_some() => Err("a discrepancy takes no `version`".into()),
        None => Ok(Decider { by: posted.by, reason: posted.reason, version: None }),
    }
}

impl Verdict {
    /// The act, as its path calls it.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::ConfirmFound { .. } => ACTIONS[0],
            Verdict::Reject { .. } => ACTIONS[1],
            Verdict::DeclareAbsent { .. } => ACTIONS[2],
            Verdict::AuthoriseResend => ACTIONS[3],
            Verdict::AuthoriseCreation => ACTIONS[4],
            Verdict::Assign { .. } => ACTIONS[5],
            Verdict::Snooze { .. } => ACTIONS[6],
            Verdict::AddEvidence { .. } => ACTIONS[7],
            Verdict::Cancel => ACTIONS[8],
        }
    }
}

/// Every field that some act takes.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with the fields of a decision")]
struct Posted {
    by: String,
    reason: String,
    version: Option<u32>,
    #[serde(rename = "ref")]
    external_ref: Option<String>,
    accept_risk: Option<bool>,
    how: Option<String>,
    checked_at: Option<Timestamp>,
    owner: Option<String>,
    until: Option<Timestamp>,
    kind: Option<String>,
    note: Option<String>,
}

/// Reads an act.
///
/// # Errors
/// A sentence that names the field.
pub(crate) fn read(action: &str, body: &[u8]) -> Result<(Verdict, Decider), String> {
    let mut posted: Posted =
        serde_json::from_slice(body).map_err(|e| format!("the decision is unreadable: {e}"))?;
    let verdict = posted.verdict(action)?;
    if let Some(field) = posted.left() {
        return Err(format!("`{action}` takes no `{field}`"));
    }
    let Posted { by, reason, version, .. } = posted;
    Ok((verdict, Decider { by, reason, version }))
}

impl Posted {
    fn verdict(&mut self, action: &str) -> Result<Verdict, String> {
        Ok(match action {
            "confirm_found" => {
                let external_ref = text(&mut self.external_ref, "`ref` must name the record that was found")?;
                Verdict::ConfirmFound { external_ref }
            }
            "reject" => Verdict::Reject { accept_risk: self.accept_risk.take().unwrap_or_default() },
            "declare_absent" => Verdict::DeclareAbsent {
                how: text(&mut self.how, "`how` must say where and how you looked")?,
                checked_at: time(&mut self.checked_at, "`checked_at` must say when you looked")?,
                accept_risk: self.accept_risk.take().unwrap_or_default(),
            },
            "authorise_resend" => Verdict::AuthoriseResend,
            "authorise_creation" => Verdict::AuthoriseCreation,
            "cancel" => Verdict::Cancel,
            "assign" => Verdict::Assign { owner: text(&mut self.owner, "`owner` must name who sees to it")? },
            "snooze" => Verdict::Snooze { until: time(&mut self.until, "`until` must say until when")? },
            "add_evidence" => Verdict::AddEvidence {
                kind: text(&mut self.kind, "`kind` must say what it is: call, mail, screenshot")?,
                note: text(&mut self.note, "`note` must say what it shows")?,
            },
            _ => return Err(format!("there is no act `{action}`")),
        })
    }

    /// A field that was given and that the act does not take.
    fn left(&self) -> Option<&'static str> {
        [
            ("ref", self.external_ref.is_some()),
            ("accept_risk", self.accept_risk.is_some()),
            ("how", self.how.is_some()),
            ("checked_at", self.checked_at.is_some()),
            ("owner", self.owner.is_some()),
            ("until", self.until.is_some()),
            ("kind", self.kind.is_some()),
            ("note", self.note.is_some()),
        ]
        .into_iter()
        .find_map(|(name, given)| given.then_some(name))
    }
}

fn time(field: &mut Option<Timestamp>, otherwise: &str) -> Result<Timestamp, String> {
    field.take().ok_or_else(|| format!("{otherwise}, in milliseconds since 1970"))
}

/// A text that says something, of a length that people read.
fn text(field: &mut Option<String>, otherwise: &str) -> Result<String, String> {
    match field.take() {
        Some(text) if !text.trim().is_empty() && text.chars().count() <= 2_000 => Ok(text),
        Some(text) if !text.trim().is_empty() => Err(format!("{otherwise}, in at most 2,000 characters")),
        _ => Err(otherwise.to_owned()),
    }
}
