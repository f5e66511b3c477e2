//! The matches of a rule: which requests it is for.
//!
//! A field that is not known here is refused, since to pass over a condition would mirror requests
//! that were not meant.

use super::Kind;
use crate::config::document::{Error, Fields, Node};
use crate::route::{Condition, Match, PathMatch, Pattern, Value};

const EXACT: &str = "Exact";
const PREFIX: &str = "PathPrefix";
const REGEX: &str = "RegularExpression";

const METHODS: [&str; 9] =
    ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];

/// Every path.
const ANY_PATH: PathMatch = PathMatch::Prefix(String::new());

/// The matches of a rule; one that every request of its kind fits if it has none.
pub fn read(rule: &Fields, kind: Kind) -> Result<Vec<Match>, Error> {
    let mut matches = Vec::new();
    for at in rule.items("matches")? {
        matches.push(match kind {
            Kind::Http => http(&at)?,
            Kind::Grpc => grpc(&at)?,
        });
    }
    if matches.is_empty() {
        let headers = match kind {
            Kind::Http => vec![],
            Kind::Grpc => vec![is_grpc()],
        };
        matches.push(Match { path: ANY_PATH, method: None, headers, query_params: vec![] });
    }
    Ok(matches)
}

fn http(at: &Node) -> Result<Match, Error> {
    let fields = at.fields(&["path", "method", "headers", "queryParams"])?;
    Ok(Match {
        path: fields.get("path").map_or(Ok(ANY_PATH), |path| http_path(&path))?,
        method: match fields.get("method") {
            Some(method) => Some(method.one_of(&METHODS)?.to_owned()),
            None => None,
        },
        headers: headers(&fields)?,
        query_params: conditions(&fields, "queryParams", str::to_owned)?,
    })
}

fn http_path(at: &Node) -> Result<PathMatch, Error> {
    let fields = at.fields(&["type", "value"])?;
    let value = fields.get("value");
    let (at, value) = match &value {
        Some(value) => (value, value.text()?),
        None => (at, "/"),
    };
    match kind_of_value(&fields, &[PREFIX, EXACT, REGEX])? {
        REGEX => Ok(PathMatch::Regex(regex(at, value)?)),
        EXACT => Ok(PathMatch::Exact(path(at, value)?.to_owned())),
        _ => Ok(PathMatch::Prefix(path(at, value)?.trim_end_matches('/').to_owned())),
    }
}

/// A path as the Gateway API wants them: in the form that requests have after normalisation.
fn path<'a>(at: &Node, path: &'a str) -> Result<&'a str, Error> {
    if !path.starts_with('/') {
        return Err(at.error("does not start with /"));
    }
    // str::contains would bring 2 KB of code.
    let contains = |part: &str| path.as_bytes().windows(part.len()).any(|w| w == part.as_bytes());
    let foreign = ["//", "/./", "/../", "%2f", "%2F", "#", "?"].into_iter().find(|s| contains(s));
    if let Some(foreign) = foreign {
        return Err(at.error(&format!("contains {foreign}, so no request's path is like it")));
    }
    if path.ends_with("/.") || path.ends_with("/..") {
        return Err(at.error("ends with a dot segment, so no request's path is like it"));
    }
    Ok(path)
}

fn grpc(at: &Node) -> Result<Match, Error> {
    let fields = at.fields(&["method", "headers"])?;
    let mut headers = headers(&fields)?;
    headers.push(is_grpc());
    let path = fields.get("method").map_or(Ok(ANY_PATH), |method| grpc_path(&method))?;
    Ok(Match { path, method: None, headers, query_params: vec![] })
}

/// The path of a gRPC call is `/SERVICE/METHOD`.
fn grpc_path(at: &Node) -> Result<PathMatch, Error> {
    let fields = at.fields(&["type", "service", "method"])?;
    let part = |key| match fields.get(key).map(|node| node.text()).transpose() {
        Ok(Some("")) => Ok(None),
        part => part,
    };
    let (service, method) = (part("service")?, part("method")?);
    if let (None, None) = (service, method) {
        return Err(at.error("has neither service nor method; it must have one"));
    }
    if kind_of_value(&fields, &[EXACT, REGEX])? == REGEX {
        let any = "[^/]+";
        let (service, method) = (service.unwrap_or(any), method.unwrap_or(any));
        return Ok(PathMatch::Regex(regex(at, &format!("/(?:{service})/(?:{method})"))?));
    }
    Ok(match (service, method) {
        (Some(service), Some(method)) => PathMatch::Exact(format!("/{service}/{method}")),
        (Some(service), None) => PathMatch::Prefix(format!("/{service}")),
        (None, method) => PathMatch::Suffix(format!("/{}", method.unwrap_or_default())),
    })
}

/// What tells a gRPC call from other requests.
fn is_grpc() -> Condition {
    let value = Value::Prefix("application/grpc".to_owned());
    Condition { name: "content-type".to_owned(), value }
}

fn headers(fields: &Fields) -> Result<Vec<Condition>, Error> {
    conditions(fields, "headers", |name| match name.to_ascii_lowercase().as_str() {
        "host" => ":authority".to_owned(),
        name => name.to_owned(),
    })
}

/// The conditions in a list. Of several with the same name the first one counts.
fn conditions(
    fields: &Fields,
    key: &str,
    canonical: fn(&str) -> String,
) -> Result<Vec<Condition>, Error> {
    let mut conditions: Vec<Condition> = Vec::new();
    for at in fields.items(key)? {
        let fields = at.fields(&["type", "name", "value"])?;
        let name = canonical(fields.required("name")?.text()?);
        let value = fields.required("value")?;
        let value = match kind_of_value(&fields, &[EXACT, REGEX])? {
            REGEX => Value::Regex(regex(&value, value.text()?)?),
            _ => Value::Exact(value.text()?.to_owned()),
        };
        if conditions.iter().all(|earlier| earlier.name != name) {
            conditions.push(Condition { name, value });
        }
    }
    Ok(conditions)
}

/// The `type` of a value, the first of the known ones where it is absent.
fn kind_of_value(fields: &Fields, known: &[&'static str]) -> Result<&'static str, Error> {
    let default = known.first().copied().unwrap_or_default();
    fields.get("type").map_or(Ok(default), |kind| kind.one_of(known))
}

fn regex(at: &Node, pattern: &str) -> Result<Pattern, Error> {
    Pattern::parse(pattern)
        .map_err(|wrong| at.error(&format!("is not a regular expression: {wrong}")))
}
