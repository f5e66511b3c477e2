//! One match of a rule: the conditions that a request must meet, all of them.

use std::fmt;

use regex_lite::{Regex, RegexBuilder};

use super::request::Request;

/// A longer value fits no regular expression: a worker that is busy with one (0.1 µs a byte and more)
/// serves no other request.
const MAX_MATCHED: usize = 4096;
/// A regular expression that takes more bytes is refused, since it would take longer still.
const MAX_COMPILED: usize = 64 * 1024;

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
    Regex(Pattern),
    /// The path's first elements, without a slash at the end: `/api` is the prefix of `/api` and of
    /// `/api/x`, and not of `/apix`. Empty for every path that begins with a slash.
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
    Regex(Pattern),
    /// The value's beginning.
    Prefix(String),
}

/// A regular expression that must fit a whole value, not a part of it.
#[derive(Debug)]
pub struct Pattern {
    written: String,
    regex: Regex,
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
        self.method.as_ref().is_none_or(|method| method.as_bytes() == request.method)
            && self.path.accepts(request.path)
            && self.headers.iter().all(|header| {
                request.header(&header.name).is_some_and(|value| header.value.accepts(value))
            })
            && self.query_params.iter().all(|param| {
                let value = request.query_param(&param.name);
                value.is_some_and(|value| param.value.accepts(value))
            })
    }

    pub fn rank(&self) -> Rank {
        Rank {
            path: match &self.path {
                PathMatch::Suffix(suffix) => (PathKind::Suffix, suffix.len()),
                PathMatch::Prefix(prefix) => (PathKind::Prefix, prefix.len()),
                PathMatch::Regex(pattern) => (PathKind::Regex, pattern.written.len()),
                PathMatch::Exact(path) => (PathKind::Exact, path.len()),
            },
            has_method: self.method.is_some(),
            headers: self.headers.len(),
            query_params: self.query_params.len(),
        }
    }
}

/// The conditions in words, such as `/api/… and GET`, to follow a hostname.
impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            PathMatch::Exact(path) => write!(f, "{path}")?,
            PathMatch::Regex(Pattern { written, .. }) => write!(f, " with a path like {written}")?,
            PathMatch::Prefix(prefix) => write!(f, "{prefix}/…")?,
            PathMatch::Suffix(method) => write!(f, "/…{method}")?,
        }
        if let Some(method) = &self.method {
            write!(f, ", {method}")?;
        }
        self.headers.iter().try_for_each(|condition| write!(f, ", header {condition}"))?;
        self.query_params.iter().try_for_each(|condition| write!(f, ", query {condition}"))
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match &self.value {
            Value::Exact(value) => write!(f, "{name}={value}"),
            Value::Regex(Pattern { written, .. }) => write!(f, "{name} like {written}"),
            Value::Prefix(prefix) => write!(f, "{name}={prefix}…"),
        }
    }
}

impl PathMatch {
    fn accepts(&self, path: &[u8]) -> bool {
        match self {
            Self::Exact(exact) => path == exact.as_bytes(),
            Self::Regex(pattern) => pattern.accepts(path),
            Self::Prefix(prefix) => match path.strip_prefix(prefix.as_bytes()) {
                Some(rest) => rest.first().is_none_or(|byte| *byte == b'/'),
                None => false,
            },
            Self::Suffix(suffix) => path.ends_with(suffix.as_bytes()),
        }
    }
}

impl Pattern {
    /// `Err` says what is wrong with the expression.
    pub fn parse(written: &str) -> Result<Self, regex_lite::Error> {
        // On its own first: one such as `a)|(b` would make sense between the parentheses alone.
        let compile = |text: &str| RegexBuilder::new(text).size_limit(MAX_COMPILED).build();
        compile(written)?;
        let regex = compile(&format!(r"\A(?:{written})\z"))?;
        Ok(Self { written: written.to_owned(), regex })
    }

    /// Bytes that are not UTF-8 are the replacement character to it.
    fn accepts(&self, value: &[u8]) -> bool {
        value.len() <= MAX_MATCHED && self.regex.is_match(&String::from_utf8_lossy(value))
    }
}

impl Value {
    fn accepts(&self, value: &[u8]) -> bool {
        match self {
            Self::Exact(exact) => value == exact.as_bytes(),
            Self::Regex(pattern) => pattern.accepts(value),
            Self::Prefix(prefix) => value.starts_with(prefix.as_bytes()),
        }
    }
}
