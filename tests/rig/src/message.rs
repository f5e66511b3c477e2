//! Requests and answers, whatever protocol carries them.

use std::fmt;

use bytes::Bytes;

/// Header or trailer fields in their order, duplicates and every byte kept.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Fields(pub Vec<(String, Vec<u8>)>);

impl Fields {
    /// Adds a field at the end.
    pub fn push(&mut self, name: &str, value: impl AsRef<[u8]>) {
        self.0.push((name.to_owned(), value.as_ref().to_owned()));
    }

    /// The first value of that name.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Every field in its order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    /// The fields without those of these names, in their order.
    pub fn without(&self, names: &[&str]) -> Self {
        let stay = self
            .0
            .iter()
            .filter(|(own, _)| !names.iter().any(|name| own.eq_ignore_ascii_case(name)));
        Self(stay.cloned().collect())
    }

    pub(crate) fn from_map(map: &http::HeaderMap) -> Self {
        Self(
            map.iter()
                .map(|(name, value)| (name.to_string(), value.as_bytes().to_owned()))
                .collect(),
        )
    }

    pub(crate) fn to_map(&self) -> http::Result<http::HeaderMap> {
        let mut map = http::HeaderMap::new();
        for (name, value) in self.iter() {
            map.append(http::HeaderName::try_from(name)?, http::HeaderValue::from_bytes(value)?);
        }
        Ok(map)
    }
}

/// One field a line, as on the wire, with unprintable bytes escaped.
impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|(name, value)| writeln!(f, "{name}: {}", value.escape_ascii()))
    }
}

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{self}")
    }
}

/// A request's or an answer's body, and how it is framed.
#[derive(Clone, Debug)]
pub enum Body {
    /// None, and no `content-length` either.
    Absent,
    /// With a `content-length`.
    Sized(Bytes),
    /// In pieces, then trailers: chunks in HTTP/1, DATA frames in HTTP/2.
    Pieces(Vec<Bytes>, Fields),
}

/// A request to send. Its `authority` is the Host of HTTP/1.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub target: String,
    pub authority: String,
    pub headers: Fields,
    pub body: Body,
}

impl Request {
    pub fn new(method: &str, target: &str) -> Self {
        Self {
            method: method.to_owned(),
            target: target.to_owned(),
            authority: "mirrored.example".to_owned(),
            headers: Fields::default(),
            body: Body::Absent,
        }
    }

    pub fn get(target: &str) -> Self {
        Self::new("GET", target)
    }

    pub fn post(target: &str, body: impl Into<Bytes>) -> Self {
        Self { body: Body::Sized(body.into()), ..Self::new("POST", target) }
    }

    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.headers.push(name, value);
        self
    }

    pub fn body(mut self, body: Body) -> Self {
        self.body = body;
        self
    }
}

/// An answer, to send or received.
#[derive(Clone, Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Fields,
    pub body: Bytes,
    pub trailers: Fields,
}

impl Response {
    pub fn new(status: u16) -> Self {
        Self { status, headers: Fields::default(), body: Bytes::new(), trailers: Fields::default() }
    }

    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.headers.push(name, value);
        self
    }

    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    pub fn trailer(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.trailers.push(name, value);
        self
    }
}
