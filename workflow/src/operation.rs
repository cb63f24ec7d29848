//! Who an operation is: its stable key, the key that goes on the wire, its fingerprint, and its frozen
//! request.

use data_encoding::{BASE32_NOPAD, HEXLOWER};
use destinations::contract::KeyFormat;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt;

/// `R17:create-ticket:v1`: request, step and version of the step, with `tenant/` before it where there are
/// several.
///
/// It is made of nothing else, so that the same business request always means the same operation: no time, no
/// attempt and no delivery id can get into it. Parts are percent-encoded, which keeps two different triples
/// apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OperationKey(String);

impl OperationKey {
    /// The key of one step for one request.
    pub fn new(tenant: Option<&str>, request: &str, step: &str, version: u32) -> OperationKey {
        let tenant = tenant.map(|t| format!("{}/", escape(t))).unwrap_or_default();
        OperationKey(format!("{tenant}{}:{}:v{version}", escape(request), escape(step)))
    }

    /// A key as it was printed or stored before.
    pub fn from_printed(text: impl Into<String>) -> OperationKey {
        OperationKey(text.into())
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The keys of every version of this step for this request lie from the first of these texts on and
    /// before the second.
    pub(crate) fn line(&self) -> (String, String) {
        // A version is digits, and `w` follows `v`.
        let line = self.0.rsplit_once(":v").map_or(self.0.as_str(), |(line, _)| line);
        (format!("{line}:v"), format!("{line}:w"))
    }
}

impl fmt::Display for OperationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Percent-encodes all but unreserved characters (RFC 3986 section 2.3).
fn escape(part: &str) -> String {
    const KEPT: percent_encoding::AsciiSet =
        percent_encoding::NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    percent_encoding::utf8_percent_encode(part, &KEPT).to_string()
}

/// The key or reference that an operation carries on the wire.
///
/// Bound to the operation, the destination's account and the generation, and to nothing else. Only a person's
/// consumed authorisation raises the generation, so a retry can never carry another key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WireKey(String);

impl WireKey {
    /// `wf1-` and 26 characters of the hash, or a UUID made of it where the contract asks for one.
    pub fn new(operation: &OperationKey, account: &str, generation: u32, format: KeyFormat) -> WireKey {
        let mut hasher = Sha256::new();
        for part in [operation.as_str().as_bytes(), account.as_bytes(), &generation.to_be_bytes()] {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        let hash = hasher.finalize();
        WireKey(match format {
            KeyFormat::Uuid4 => uuid(&hash),
            _ => format!("wf1-{}", BASE32_NOPAD.encode(&hash)[..26].to_lowercase()),
        })
    }

    /// A key as it was stored before.
    pub fn from_stored(text: impl Into<String>) -> WireKey {
        WireKey(text.into())
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WireKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The first 16 bytes of a hash with the version and variant bits of a UUID 4 (RFC 9562 section 5.4).
fn uuid(hash: &[u8]) -> String {
    let mut bytes = [0_u8; 16];
    bytes.copy_from_slice(&hash[..16]);
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex = HEXLOWER.encode(&bytes);
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// What a request means: the hash of the fields that change its meaning, in canonical JSON (RFC 8785).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// The fingerprint of an intent.
    ///
    /// # Errors
    /// When the intent holds a number that JSON cannot carry.
    pub fn of(intent: &serde_json::Value) -> Result<Fingerprint, serde_json::Error> {
        let canonical = serde_json_canonicalizer::to_vec(intent)?;
        Ok(Fingerprint(sha256_hex(&canonical)))
    }

    /// A fingerprint as it was stored before.
    pub fn from_stored(text: impl Into<String>) -> Fingerprint {
        Fingerprint(text.into())
    }

    /// As hexadecimal text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The request to a destination, rendered once and sent verbatim each time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrozenRequest {
    /// The HTTP method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Header lines without credentials, in order.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl FrozenRequest {
    /// The same request with another key in the place of this one.
    pub(crate) fn with_key(&self, old: &WireKey, new: &WireKey) -> FrozenRequest {
        let swapped = self.to_stored().replace(old.as_str(), new.as_str());
        FrozenRequest::from_stored(&swapped).expect("a key is plain text, and so is the other one")
    }

    /// SHA-256 of the whole of it, as hexadecimal text.
    pub(crate) fn whole_digest(&self) -> String {
        sha256_hex(self.to_stored().as_bytes())
    }

    /// SHA-256 of the body, as hexadecimal text.
    pub fn digest(&self) -> String {
        sha256_hex(self.body.as_bytes())
    }

    /// The form in which it is stored.
    pub fn to_stored(&self) -> String {
        serde_json::to_string(self).expect("strings always serialise")
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// When the text is not such a form.
    pub fn from_stored(text: &str) -> Result<FrozenRequest, serde_json::Error> {
        serde_json::from_str(text)
    }
}

/// SHA-256 as hexadecimal text.
pub fn sha256_hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn key(request: &str) -> OperationKey {
        OperationKey::new(None, request, "create-ticket", 1)
    }

    #[test]
    fn the_printed_form_is_the_one_that_people_know() {
        assert_eq!(key("R17").as_str(), "R17:create-ticket:v1");
        assert_eq!(
            OperationKey::new(Some("acme"), "R17", "create-ticket", 2).as_str(),
            "acme/R17:create-ticket:v2"
        );
        assert_eq!(key("R17:x/y").as_str(), "R17%3Ax%2Fy:create-ticket:v1");
    }

    #[test]
    fn the_wire_key_depends_on_operation_account_and_generation_alone() {
        let wire =
            |op: &OperationKey, account, generation| WireKey::new(op, account, generation, KeyFormat::Any);
        let first = wire(&key("R17"), "main", 0);
        assert_eq!(first, wire(&key("R17"), "main", 0));
        assert_eq!(first.as_str().len(), 30);
        for other in
            [wire(&key("R18"), "main", 0), wire(&key("R17"), "test", 0), wire(&key("R17"), "main", 1)]
        {
            assert_ne!(first, other);
        }
    }

    #[test]
    fn a_uuid_has_its_version_and_variant() {
        let text = WireKey::new(&key("R17"), "main", 0, KeyFormat::Uuid4);
        let parts: Vec<&str> = text.as_str().split('-').collect();
        assert_eq!(parts.iter().map(|p| p.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
        assert!(parts[2].starts_with('4') && "89ab".contains(&parts[3][..1]), "{text}");
    }

    #[test]
    fn the_fingerprint_ignores_how_json_is_written() {
        let one = Fingerprint::of(&json!({"title": "Access", "requester": "c17"}));
        let other: serde_json::Value =
            serde_json::from_str(r#"{ "requester":"c17",  "title":"Acc\u0065ss" }"#).expect("valid JSON");
        assert_eq!(one.expect("plain"), Fingerprint::of(&other).expect("plain"));
        assert_ne!(
            Fingerprint::of(&json!({"title": "Access"})).expect("plain"),
            Fingerprint::of(&json!({"title": "access"})).expect("plain")
        );
    }

    proptest! {
        #[test]
        fn two_different_identities_never_share_a_key(
            a in (proptest::option::of(".{0,6}"), ".{0,8}", ".{0,8}", 0_u32..3),
            b in (proptest::option::of(".{0,6}"), ".{0,8}", ".{0,8}", 0_u32..3),
        ) {
            let key = |t: &(Option<String>, String, String, u32)| {
                OperationKey::new(t.0.as_deref(), &t.1, &t.2, t.3)
            };
            prop_assert_eq!(a == b, key(&a) == key(&b));
        }

        #[test]
        fn a_frozen_request_survives_storage(method in "[A-Z]{1,6}", target in ".*", body in ".*", name in ".*") {
            let frozen = FrozenRequest { method, target, headers: vec![(name.clone(), name)], body };
            prop_assert_eq!(FrozenRequest::from_stored(&frozen.to_stored()).expect("own form"), frozen);
        }
    }
}
