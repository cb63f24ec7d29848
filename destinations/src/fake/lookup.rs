//! Look-ups: what a search shows, and when.

use super::destination::Reply;
use super::record::Record;
use crate::contract::{Complete, Consistency, Lookup, LookupBy};
use crate::ledger::Millis;
use serde_json::{Value, json};

/// Records on a page where the contract does not say.
const PAGE: usize = 100;

/// One page of the records that match, as the index was at this instant, oldest first; pages count from 1.
pub(super) fn page(lookup: &Lookup, records: &[Record], value: &str, page: u32, as_of: Millis) -> Reply {
    if page == 0 {
        return Reply::error(400, "validation");
    }
    let most = match lookup.complete {
        Complete::Truncated(most) => most as usize,
        Complete::Yes | Complete::Tokenised | Complete::Unknown => usize::MAX,
    };
    let shown =
        records.iter().filter(|record| visible(lookup, record, as_of) && matches(lookup, record, value));
    let tickets: Vec<Value> = shown.take(most).map(Record::ticket).collect();
    let size = lookup.page_size.map_or(PAGE, |size| size as usize);
    let start = (page as usize - 1).saturating_mul(size);
    let next = (start.saturating_add(size) < tickets.len()).then(|| page + 1);
    let tickets: Vec<Value> = tickets.into_iter().skip(start).take(size).collect();
    Reply::new(200, json!({ "tickets": tickets, "next_page": next }))
}

fn visible(lookup: &Lookup, record: &Record, as_of: Millis) -> bool {
    let since = match lookup.consistency {
        Consistency::ReadYourWrites => record.made_at,
        Consistency::Eventual | Consistency::Unknown => record.visible_at,
    };
    let archived = record.archived.is_some_and(|since| as_of >= since);
    as_of >= since && (!archived || lookup.sees_archived == Some(true))
}

fn matches(lookup: &Lookup, record: &Record, value: &str) -> bool {
    match lookup.by {
        LookupBy::ExternalRef => record.reference.as_deref() == Some(value),
        LookupBy::ClientId => record.client_id.as_deref() == Some(value),
        LookupBy::Key => record.key.as_deref() == Some(value),
        LookupBy::MarkerText if lookup.complete == Complete::Tokenised => {
            let words = |text: &str| -> Vec<String> {
                text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase).collect()
            };
            let there = words(record.marker());
            words(value).iter().all(|word| there.contains(word))
        }
        LookupBy::MarkerText => !value.is_empty() && record.marker().contains(value),
        LookupBy::Scan => true,
    }
}
