//! The contracts that come with the crate.

use super::Contract;

const TEXTS: [(&str, &str); 5] = [
    ("desk_nothing", include_str!("../../contracts/desk_nothing.toml")),
    ("desk_strong_lookup", include_str!("../../contracts/desk_strong_lookup.toml")),
    ("desk_unique_ref", include_str!("../../contracts/desk_unique_ref.toml")),
    ("jira_cloud_issue", include_str!("../../contracts/jira_cloud_issue.toml")),
    ("zendesk_ticket", include_str!("../../contracts/zendesk_ticket.toml")),
];

/// The contracts that come with the crate, as id and text, in the order of their ids.
pub fn builtin_text() -> &'static [(&'static str, &'static str)] {
    &TEXTS
}

/// The contracts that come with the crate, in the order of their ids.
pub fn builtin() -> Vec<Contract> {
    let read = |(id, text): &(&str, &str)| {
        Contract::from_toml(&format!("{id}.toml"), text).expect("a test reads every contract of the crate")
    };
    TEXTS.iter().map(read).collect()
}

/// The contract of the crate with this id.
pub fn named(id: &str) -> Option<Contract> {
    builtin().into_iter().find(|contract| contract.id == id)
}
