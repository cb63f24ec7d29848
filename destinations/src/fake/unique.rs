//! Identities: which existing record a request meets.

use super::record::Record;
use crate::contract::{Atomic, Contract, Converge, ConvergeKind, Permanence};
use crate::ledger::Millis;

/// When an identity is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// When the request arrives.
    Begin,
    /// When its effect comes to be.
    Commit,
}

/// What a request says about its identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) reference: Option<String>,
    pub(super) client_id: Option<String>,
    /// Whether it says `If-None-Match: *`.
    pub(super) condition: bool,
    pub(super) upsert: bool,
}

/// The identity that a request violates, and the records that it meets, at this moment.
///
/// An atomic identity is checked at both moments, a sequential one only when the request arrives: two at once
/// pass. What is only enforced if configured, or is not documented, is not enforced.
pub(super) fn meets<'a>(
    contract: &'a Contract,
    records: &[Record],
    identity: &Identity,
    moment: Moment,
    now: Millis,
) -> Option<(&'a Converge, Vec<usize>)> {
    contract.converge.iter().filter(|rule| enforced(rule, identity, moment)).find_map(|rule| {
        let wanted = match rule.kind {
            ConvergeKind::ClientId | ConvergeKind::ConditionalCreate => &identity.client_id,
            ConvergeKind::UniqueRef | ConvergeKind::Upsert => &identity.reference,
        };
        let same = |record: &Record| match rule.kind {
            ConvergeKind::ClientId | ConvergeKind::ConditionalCreate => record.client_id == *wanted,
            ConvergeKind::UniqueRef | ConvergeKind::Upsert => record.reference == *wanted,
        };
        wanted.as_ref()?;
        let met: Vec<usize> =
            (0..records.len()).filter(|n| taken(rule, &records[*n], now) && same(&records[*n])).collect();
        (!met.is_empty()).then_some((rule, met))
    })
}

/// Whether a record still holds its identity: for the declared time after its request arrived, and not at its
/// end.
fn taken(rule: &Converge, record: &Record, now: Millis) -> bool {
    match rule.permanence {
        Permanence::For(period) => now < record.began.after(period),
        Permanence::WhileRecordExists | Permanence::Unknown => true,
    }
}

fn enforced(rule: &Converge, identity: &Identity, moment: Moment) -> bool {
    let on_time = match rule.atomic {
        Atomic::Yes => true,
        Atomic::Sequential => moment == Moment::Begin,
        Atomic::IfConfigured | Atomic::Unknown => false,
    };
    let path = if identity.upsert || identity.client_id.is_some() { "PUT" } else { "POST" };
    let on_path = rule.only_on.as_deref().is_none_or(|only| only.starts_with(path));
    let asked = match rule.kind {
        ConvergeKind::Upsert => identity.upsert,
        ConvergeKind::UniqueRef => !identity.upsert,
        // Without its condition a conditional create overwrites.
        ConvergeKind::ClientId | ConvergeKind::ConditionalCreate => true,
    };
    on_time && on_path && asked
}
