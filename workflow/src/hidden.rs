//! What must not be stored or logged outside the request itself: credentials, and the values of fields that a
//! workflow declares personal.

use crate::definition::Definition;
use serde_json::Value;

/// What stands in the place of a hidden value.
const SECRET: &str = "[secret]";
const PERSONAL: &str = "[personal]";
/// A shorter value would be found in words that have nothing to do with it.
const SHORTEST: usize = 2;

/// The values to hide in words about one operation.
#[derive(Clone, Debug, Default)]
pub struct Hidden(Vec<(String, &'static str)>);

impl Hidden {
    /// The credentials, and what a request holds in its personal fields.
    pub(crate) fn of(definition: &Definition, credentials: Option<&(String, String)>, body: &str) -> Hidden {
        let mut hidden = Hidden::default();
        if let Some((_, credentials)) = credentials {
            hidden.add(credentials, SECRET);
            // `Bearer` and `Basic` are no secrets; what follows them is one without them, too.
            if let Some((_, token)) = credentials.split_once(' ') {
                hidden.add(token, SECRET);
            }
        }
        if !definition.personal.is_empty() {
            let body: Value = serde_json::from_str(body).unwrap_or_default();
            let personal = definition.personal.iter().filter_map(|field| body.get(field));
            personal.for_each(|value| hidden.add_value(value));
        }
        // The longest first: one may contain another.
        hidden.0.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        hidden
    }

    fn add(&mut self, value: &str, instead: &'static str) {
        if value.chars().count() >= SHORTEST {
            self.0.push((value.to_owned(), instead));
            let in_json = Value::from(value).to_string();
            let in_json = in_json.trim_matches('"');
            for form in [in_json, &in_ascii(in_json, false), &in_ascii(in_json, true)] {
                if form != value {
                    self.0.push((form.to_owned(), instead));
                }
            }
        }
    }

    fn add_value(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.add(text, PERSONAL),
            Value::Number(number) => self.add(&number.to_string(), PERSONAL),
            Value::Array(items) => items.iter().for_each(|item| self.add_value(item)),
            Value::Object(fields) => fields.values().for_each(|field| self.add_value(field)),
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// The text without them.
    pub(crate) fn clean(&self, text: &str) -> String {
        let hide = |text: String, (value, instead): &(String, &str)| text.replace(value.as_str(), instead);
        self.0.iter().fold(text.to_owned(), hide)
    }
}

/// A text inside JSON as programs write it that keep to ASCII: `Jos\u00e9`, with small or large digits.
fn in_ascii(text: &str, large: bool) -> String {
    let escaped = |unit: u16| if large { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") };
    let mut units = [0; 2];
    text.chars()
        .map(|c| match c {
            c if c.is_ascii() => c.to_string(),
            c => c.encode_utf16(&mut units).iter().map(|unit| escaped(*unit)).collect(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(personal: &[&str]) -> Definition {
        let contract = destinations::named("desk_nothing").expect("a built-in contract");
        let personal = personal.iter().map(|field| (*field).to_owned()).collect();
        Definition { personal, ..Definition::new("access-request", "create-ticket", contract) }
    }

    #[test]
    fn credentials_and_personal_values_are_hidden_in_every_form() {
        let credentials = ("authorization".to_owned(), "Bearer s3cr3t".to_owned());
        let body = r#"{"title": "Access", "requester": "Ada \"Q\" Test", "phones": ["555-0100", {"home": 5550199}],
            "initial": "A"}"#;
        let definition = definition(&["requester", "phones", "initial", "not-there"]);
        let hidden = Hidden::of(&definition, Some(&credentials), body);
        let said = r#"Access for Ada "Q" Test, {"requester":"Ada \"Q\" Test"} 555-0100 5550199 s3cr3t Bearer s3cr3t A"#;
        let clean =
            "Access for [personal], {\"requester\":\"[personal]\"} [personal] [personal] [secret] [secret] A";
        assert_eq!(hidden.clean(said), clean);
        assert_eq!(Hidden::default().clean(said), said);
        let hidden = Hidden::of(&definition, None, r#"{"requester": "José 𝕏"}"#);
        let said = r"José 𝕏, Jos\u00e9 \ud835\udd4f, Jos\u00E9 \uD835\uDD4F";
        assert_eq!(hidden.clean(said), "[personal], [personal], [personal]");
    }
}
