//! One file a story.

pub mod blind_look_up;
pub mod cancelled;
pub mod changed_request;
pub mod concurrent_delivery;
pub mod crash_between_steps;
pub mod failed_commit;
pub mod first_delivery;
pub mod found_by_hand;
pub mod key_lapsed;
pub mod key_store_down;
pub mod late_commit;
pub mod look_up_fails;
pub mod made_anew;
pub mod no_guarantee;
pub mod one_ticket;
pub mod other_times;
pub mod permanent_validation_failure;
pub mod poison_delivery;
pub mod proxy_resends;
pub mod purged;
pub mod reconciled;
pub mod repeated_delivery;
pub mod retries_exhausted;
pub mod second_page;
pub mod several_matches;
pub mod source_gives_up;
pub mod success_without_id;
pub mod sync_kill_power_cut;
pub mod timeout_after_effect;
pub mod timeout_before_effect;
pub mod upgraded;
pub mod wrong_reference;

use crate::access::Access;

/// Every story, in the order in which they are listed.
pub const ALL: &[&Access] = &[
    &one_ticket::SCENARIO,
    &first_delivery::SCENARIO,
    &repeated_delivery::SCENARIO,
    &concurrent_delivery::SCENARIO,
    &source_gives_up::SCENARIO,
    &timeout_before_effect::SCENARIO,
    &timeout_after_effect::SCENARIO,
    &late_commit::SCENARIO,
    &sync_kill_power_cut::SCENARIO,
    &crash_between_steps::SCENARIO,
    &permanent_validation_failure::SCENARIO,
    &no_guarantee::SCENARIO,
    &made_anew::SCENARIO,
    &key_lapsed::SCENARIO,
    &success_without_id::SCENARIO,
    &retries_exhausted::SCENARIO,
    &changed_request::SCENARIO,
    &other_times::SCENARIO,
    &poison_delivery::SCENARIO,
    &proxy_resends::SCENARIO,
    &key_store_down::SCENARIO,
    &look_up_fails::SCENARIO,
    &second_page::SCENARIO,
    &several_matches::SCENARIO,
    &blind_look_up::SCENARIO,
    &failed_commit::SCENARIO,
    &wrong_reference::SCENARIO,
    &found_by_hand::SCENARIO,
    &cancelled::SCENARIO,
    &reconciled::SCENARIO,
    &purged::SCENARIO,
    &upgraded::SCENARIO,
];
