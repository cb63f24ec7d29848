//! The fake's wire format: what an HTTP request asks of it.

use super::destination::{Reply, Request};
use crate::contract::{Carrier, Contract, LookupBy};
use serde_json::Value;

/// An HTTP request, as far as a fake needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpRequest {
    /// Method, in capitals.
    pub method: String,
    /// Path and query, percent-encoded.
    pub target: String,
    /// Headers; names in any case.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
}

/// What the look-ups can be by, each with its parameter.
const BY: [LookupBy; 4] = [LookupBy::ExternalRef, LookupBy::ClientId, LookupBy::Key, LookupBy::MarkerText];

/// What an HTTP request asks.
///
/// - `POST /tickets`: create; `external_id` in the body is the reference;
/// - `PUT /tickets/{client_id}`: create with an id of our choice, with `If-None-Match: *` only where there is
///   none;
/// - `PUT /tickets?external_id=…`: create or update by reference;
/// - `GET /tickets?external_id=…&page=1`: look up (`client_id`, `key`, `q`; without any of them, a scan);
/// - `GET /tickets/{id}`: read one.
///
/// The key travels as the contract declares: header, body field or query parameter (a directive as a body
/// field).
///
/// # Errors
/// The answer to a request that is none of these: 400, 404, 405 or 415.
pub fn parse(contract: &Contract, request: &HttpRequest) -> Result<Request, Reply> {
    let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
    let query = pairs(query)?;
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    let id = match segments[..] {
        ["tickets"] => None,
        ["tickets", id] if !id.is_empty() => Some(decoded(id)?),
        _ => return Err(Reply::error(404, "not_found")),
    };
    match (request.method.as_str(), id) {
        ("GET", Some(id)) => Ok(Request::Fetch { id }),
        ("GET", None) => find(contract, &query),
        ("POST", None) => {
            let body = json_body(request)?;
            let reference = text(&body, "external_id");
            let key = key(contract, request, &query, &body);
            let raw = request.body.clone();
            Ok(Request::Create { key, reference, client_id: None, condition: false, body, raw })
        }
        ("PUT", Some(id)) => {
            let body = json_body(request)?;
            let reference = text(&body, "external_id");
            let key = key(contract, request, &query, &body);
            let condition = header(request, "if-none-match").is_some_and(|value| value.trim() == "*");
            let raw = request.body.clone();
            Ok(Request::Create { key, reference, client_id: Some(id), condition, body, raw })
        }
        ("PUT", None) => {
            let body = json_body(request)?;
            let Some(reference) = parameter(&query, "external_id") else {
                return Err(Reply::error(400, "validation"));
            };
            let key = key(contract, request, &query, &body);
            Ok(Request::Upsert { key, reference: reference.to_owned(), body, raw: request.body.clone() })
        }
        _ => Err(Reply::error(405, "method_not_allowed")),
    }
}

fn find(contract: &Contract, query: &[(String, String)]) -> Result<Request, Reply> {
    let page = match parameter(query, "page").map(str::parse) {
        None => 1,
        Some(Ok(page)) if page > 0 => page,
        Some(_) => return Err(Reply::error(400, "validation")),
    };
    let asked = BY.into_iter().find_map(|by| Some((by, parameter(query, by.parameter())?)));
    let (by, value) = asked.unwrap_or((LookupBy::Scan, ""));
    if contract.lookup.iter().all(|lookup| lookup.by != by) {
        return Err(Reply::error(404, "not_found"));
    }
    Ok(Request::Find { by, value: value.to_owned(), page })
}

fn key(
    contract: &Contract,
    request: &HttpRequest,
    query: &[(String, String)],
    body: &Value,
) -> Option<String> {
    let declared = contract.dedup_key.as_ref()?;
    match declared.carrier {
        Carrier::Header => header(request, &declared.name).map(str::to_owned),
        Carrier::Query => parameter(query, &declared.name).map(str::to_owned),
        Carrier::Body | Carrier::Directive => text(body, &declared.name),
    }
}

fn json_body(request: &HttpRequest) -> Result<Value, Reply> {
    let kind = header(request, "content-type").unwrap_or("application/json");
    if !kind.trim().to_ascii_lowercase().starts_with("application/json") {
        return Err(Reply::error(415, "unsupported_media_type"));
    }
    match serde_json::from_slice(&request.body) {
        Ok(body @ Value::Object(_)) => Ok(body),
        Ok(_) | Err(_) => Err(Reply::error(400, "validation")),
    }
}

fn header<'a>(request: &'a HttpRequest, name: &str) -> Option<&'a str> {
    let found = request.headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name))?;
    Some(&found.1)
}

fn text(body: &Value, field: &str) -> Option<String> {
    body.get(field)?.as_str().map(str::to_owned)
}

fn parameter<'a>(query: &'a [(String, String)], name: &str) -> Option<&'a str> {
    query.iter().find(|(parameter, _)| parameter == name).map(|(_, value)| value.as_str())
}

/// The query's parameters, decoded; a plus is a space.
fn pairs(query: &str) -> Result<Vec<(String, String)>, Reply> {
    let parts = query.split('&').filter(|part| !part.is_empty());
    let decode = |part: &str| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        Ok((decoded(&name.replace('+', " "))?, decoded(&value.replace('+', " "))?))
    };
    parts.map(decode).collect()
}

/// Percent-decoded text.
fn decoded(text: &str) -> Result<String, Reply> {
    let bad = || Reply::error(400, "validation");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2).ok_or_else(bad)?;
        bytes.push(data_encoding::HEXLOWER_PERMISSIVE.decode(digits).map_err(|_| bad())?[0]);
        rest = after;
    }
    String::from_utf8(bytes).map_err(|_| bad())
}
