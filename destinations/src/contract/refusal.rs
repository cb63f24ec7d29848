//! Errors of a destination, recognised by status, by code, or by a part of the body.

use serde::{Deserialize, Serialize};

/// An error of a destination; every part that is given must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ErrorMatch {
    /// HTTP status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Error code in the JSON body (GraphQL answers 200 and tells by this).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// A part of the body's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
}

impl ErrorMatch {
    /// Whether an answer is this error; one without any part matches nothing.
    pub fn matches(&self, status: u16, body: &[u8]) -> bool {
        let given = self.status.is_some() || self.code.is_some() || self.contains.is_some();
        given
            && self.status.is_none_or(|wanted| wanted == status)
            && self.code.as_deref().is_none_or(|wanted| codes(body).iter().any(|code| code == wanted))
            && self.contains.as_deref().is_none_or(|part| contains(body, part.as_bytes()))
    }
}

/// The error codes of a JSON body: its own, those of `error`, and those of each of `errors`.
fn codes(body: &[u8]) -> Vec<String> {
    let Ok(body) = serde_json::from_slice::<serde_json::Value>(body) else { return Vec::new() };
    let inner = body.get("error").into_iter();
    let several = body.get("errors").and_then(|errors| errors.as_array()).into_iter().flatten();
    let extensions = several.clone().filter_map(|error| error.get("extensions"));
    [&body].into_iter().chain(inner).chain(several).chain(extensions).flat_map(codes_of).collect()
}

fn codes_of(error: &serde_json::Value) -> Vec<String> {
    let own = error.as_str().map(str::to_owned).into_iter();
    let named = ["code", "type", "error"].into_iter().filter_map(|name| error.get(name)?.as_str());
    own.chain(named.map(str::to_owned)).collect()
}

fn contains(body: &[u8], part: &[u8]) -> bool {
    !part.is_empty() && body.windows(part.len()).any(|window| window == part)
}
