//! A request as matches look at it.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;

use super::hostname;
use crate::head::Head;

/// Values by name.
type Values<'a> = BTreeMap<Cow<'a, [u8]>, Cow<'a, [u8]>>;

/// The parts of a request that matches are about.
///
/// Headers and query are sorted once, when the first match asks: a client may send thousands of each,
/// and there may be hundreds of matches.
pub struct Request<'a> {
    pub host: String,
    /// Without the query, as it stands: what is normalised in it, Envoy has normalised before.
    pub path: &'a [u8],
    pub method: &'a [u8],
    query: &'a [u8],
    head: &'a Head,
    headers: OnceCell<Values<'a>>,
    query_params: OnceCell<Values<'a>>,
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
            headers: OnceCell::new(),
            query_params: OnceCell::new(),
        })
    }

    /// A header's value; of a repeated one all values, joined by commas. The name in lower case.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        let headers = self.headers.get_or_init(|| {
            let mut headers = Values::new();
            for (name, value) in self.head.iter() {
                headers
                    .entry(Cow::Borrowed(name))
                    .and_modify(|joined| {
                        joined.to_mut().push(b',');
                        joined.to_mut().extend(value);
                    })
                    .or_insert(Cow::Borrowed(value));
            }
            headers
        });
        headers.get(name.as_bytes()).map(AsRef::as_ref)
    }

    /// The first value of a query parameter, decoded.
    pub fn query_param(&self, name: &str) -> Option<&[u8]> {
        let params = self.query_params.get_or_init(|| {
            let mut params = Values::new();
            for (name, value) in form_urlencoded::parse(self.query) {
                params.entry(bytes(name)).or_insert_with(|| bytes(value));
            }
            params
        });
        params.get(name.as_bytes()).map(AsRef::as_ref)
    }
}

fn bytes(text: Cow<str>) -> Cow<[u8]> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}
