//! A request as matches look at it.

use std::borrow::Cow;

use super::hostname;
use crate::head::Head;

/// The parts of a request that matches are about.
pub struct Request<'a> {
    pub host: String,
    /// Without the query, as it stands: what is normalised in it, Envoy has normalised before.
    pub path: &'a [u8],
    pub method: &'a [u8],
    query: &'a [u8],
    head: &'a Head,
}

impl<'a> Request<'a> {
    /// `None` for a request without a path or method.
    pub fn new(head: &'a Head) -> Option<Self> {
        let target = head.get(":path")?;
        let target = target.split(|byte| *byte == b'#').next()?;
        let mut parts = target.splitn(2, |byte| *byte == b'?');
        Some(Self {
            host: hostname::host(head.get(":authority").unwrap_or_default()),
            path: parts.next()?,
            query: parts.next().unwrap_or_default(),
            method: head.get(":method")?,
            head,
        })
    }

    /// A header's value; of a repeated one all values, joined by commas. The name in lower case.
    pub fn header(&self, name: &str) -> Option<Cow<'a, [u8]>> {
        let mut values = self.head.iter().filter(|header| header.0 == name.as_bytes());
        let first = Cow::Borrowed(values.next()?.1);
        Some(values.fold(first, |joined, (_, value)| [&joined, value].join(b",".as_slice()).into()))
    }

    /// The first value of a query parameter, decoded.
    pub fn query_param(&self, name: &str) -> Option<Cow<'a, str>> {
        let mut params = form_urlencoded::parse(self.query);
        params.find(|(key, _)| key == name).map(|(_, value)| value)
    }
}
