//! Further deliveries of a request: the same once more, or another of which only a part is the same.

use serde_json::{Map, Value};
use sim::fault::Variation;
use sim::plan::Delivery;

/// The `copy`-th further delivery of a request that differs in this way; none where the request is no JSON
/// that could be changed.
pub fn of(first: &Delivery, how: Variation, copy: u32) -> Option<Delivery> {
    let name = first.further_name(copy);
    let mut envelope: Map<String, Value> = serde_json::from_slice(&first.body).ok()?;
    envelope.insert("delivery_id".into(), name.clone().into());
    let body = match how {
        Variation::Same => first.body.clone(),
        Variation::NewId => Value::Object(envelope).to_string().into_bytes(),
        Variation::Volatile => {
            let request = envelope.get_mut("request")?.as_object_mut()?;
            request.insert("sent_at".into(), format!("2026-01-05T09:{copy:02}:00Z").into());
            backwards(&Value::Object(envelope)).into_bytes()
        }
        Variation::Meaning => {
            change_meaning(envelope.get_mut("request")?.as_object_mut()?, copy);
            Value::Object(envelope).to_string().into_bytes()
        }
        Variation::Poison => {
            let half = &first.body[..first.body.len() / 2];
            [half, b"\xff\xfe"].concat()
        }
    };
    Some(Delivery { name, body, ..first.clone() })
}

/// Another title under the same id; what is not valid stays not valid.
fn change_meaning(request: &mut Map<String, Value>, copy: u32) {
    match request.get_mut("title") {
        Some(Value::String(title)) if !title.is_empty() => title.push_str(&format!(", change {copy}")),
        _ => drop(request.insert("requester".into(), format!("c18-{copy}").into())),
    }
}

/// The same value with the fields of every object in the other order.
fn backwards(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let pair = |(name, value): (&String, &Value)| {
                format!("{}: {}", Value::String(name.clone()), backwards(value))
            };
            format!("{{{}}}", fields.iter().rev().map(pair).collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(backwards).collect::<Vec<_>>().join(", ")),
        plain => plain.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::plan::Expect;

    fn further(how: Variation) -> (Delivery, Delivery) {
        let ask = crate::access::ask(0, Expect::Recorded);
        let first = crate::access::delivery(&ask, 1, 5);
        let again = of(&first, how, 2).expect("a request in JSON");
        assert_eq!((again.name.as_str(), again.operation.as_str()), ("R17/1+2", first.operation.as_str()));
        (first, again)
    }

    fn read(delivery: &Delivery) -> Value {
        serde_json::from_slice(&delivery.body).expect("JSON")
    }

    #[test]
    fn each_variation_differs_in_what_it_says() {
        let (first, same) = further(Variation::Same);
        assert_eq!(same.body, first.body);
        let (first, new_id) = further(Variation::NewId);
        assert_eq!(read(&new_id)["request"], read(&first)["request"]);
        assert_eq!(read(&new_id)["delivery_id"], "R17/1+2");
        let (first, volatile) = further(Variation::Volatile);
        let (mut without, before) = (read(&volatile)["request"].clone(), read(&first)["request"].clone());
        assert!(without.as_object_mut().expect("an object").remove("sent_at").is_some());
        assert_eq!(without, before);
        assert!(volatile.body.starts_with(b"{\"source\""), "the order of the fields differs");
        let (first, meaning) = further(Variation::Meaning);
        assert_eq!(read(&meaning)["request"]["id"], read(&first)["request"]["id"]);
        assert_ne!(read(&meaning)["request"]["title"], read(&first)["request"]["title"]);
        let (_, poison) = further(Variation::Poison);
        assert!(serde_json::from_slice::<Value>(&poison.body).is_err());
    }

    #[test]
    fn a_request_that_lacks_its_title_lacks_it_in_its_other_meaning_too() {
        let ask = crate::access::ask(0, Expect::Rejected);
        let incomplete = serde_json::json!({"id": "R17", "requester": "c17"});
        let first = crate::access::delivery_of(&ask, 1, 5, &incomplete);
        let other = of(&first, Variation::Meaning, 1).expect("a request in JSON");
        assert!(read(&other)["request"].get("title").is_none());
        assert_ne!(read(&other)["request"], read(&first)["request"]);
    }
}
