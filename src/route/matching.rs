//! One match of a rule: the conditions that a request must meet, all of them.

use std::borrow::Cow;

use regex_lite::Regex;

use super::request::Request;

/// The conditions of one match.
#[derive(Debug)]
pub struct Match {
    pub path: PathMatch,
    /// In capitals, as in requests.
    pub method: Option<String>,
    /// By name, in lower case.
    pub headers: Vec<Condition>,
    pub query_params: Vec<Condition>,
}

/// What the path must be, without its query.
#[derive(Debug)]
pub enum PathMatch {
    Exact(String),
    /// The whole path; see [`Value::regex`].
    Regex(Regex),
    /// The path's first elements, without a slash at the end: `/api` is the prefix of `/api` and of
    /// `/api/x`, and not of `/apix`. Empty for every path.
    Prefix(String),
    /// The path's last element, with its slash: a gRPC method of any service.
    Suffix(String),
}

/// What a header or query parameter must be.
#[derive(Debug)]
pub struct Condition {
    pub name: String,
    pub value: Value,
}

#[derive(Debug)]
pub enum Value {
    Exact(String),
    /// The whole value; see [`Value::regex`].
    Regex(Regex),
    /// The value's beginning.
    Prefix(String),
}

/// How specific a match is; the greater goes first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    path: (PathKind, usize),
    has_method: bool,
    headers: usize,
    query_params: usize,
}

/// In this order Envoy Gateway asks regular expressions too, which the Gateway API leaves open.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PathKind {
    Suffix,
    Prefix,
    Regex,
    Exact,
}

impl Match {
    /// Whether a request meets every condition.
    pub fn accepts(&self, request: &Request) -> bool {
        self.path.accepts(request.path)
            && self.method.as_ref().is_none_or(|method| method.as_bytes() == request.method)
            && self.headers.iter().all(|header| {
                request.header(&header.name).is_some_and(|value| header.value.accepts(&value))
            })
            && self.query_params.iter().all(|param| {
                let value = request.query_param(&param.name);
                value.is_some_and(|value| param.value.accepts(value.as_bytes()))
            })
    }

    pub fn rank(&self) -> Rank {
        Rank {
            path: match &self.path {
                PathMatch::Suffix(suffix) => (PathKind::Suffix, suffix.len()),
                PathMatch::Prefix(prefix) => (PathKind::Prefix, prefix.len()),
                PathMatch::Regex(regex) => (PathKind::Regex, regex.as_str().len()),
                PathMatch::Exact(path) => (PathKind::Exact, path.len()),
            },
            has_method: self.method.is_some(),
            headers: self.headers.len(),
            query_params: self.query_params.len(),
        }
    }
}

impl PathMatch {
    fn accepts(&self, path: &[u8]) -> bool {
        match self {
            Self::Exact(exact) => path == exact.as_bytes(),
            Self::Regex(regex) => regex.is_match(&text(path)),
            Self::Prefix(prefix) => match path.strip_prefix(prefix.as_bytes()) {
                Some(rest) => rest.first().is_none_or(|byte| *byte == b'/'),
                None => false,
            },
            Self::Suffix(suffix) => path.ends_with(suffix.as_bytes()),
        }
    }
}

impl Value {
    fn accepts(&self, value: &[u8]) -> bool {
        match self {
            Self::Exact(exact) => value == exact.as_bytes(),
            Self::Regex(regex) => regex.is_match(&text(value)),
            Self::Prefix(prefix) => value.starts_with(prefix.as_bytes()),
        }
    }
}

/// A regular expression that must fit a whole value. `Err` says what is wrong with it.
pub fn whole(pattern: &str) -> Result<Regex, regex_lite::Error> {
    // On its own first: one such as `a)|(b` would make sense between the parentheses below alone.
    Regex::new(pattern)?;
    Regex::new(&format!(r"\A(?:{pattern})\z"))
}

/// Bytes as a regular expression sees them; those that are not UTF-8 are the replacement character.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}
