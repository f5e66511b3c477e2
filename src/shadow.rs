//! The copy's headers, made from the original's.

/// Request headers that are not copied.
///
/// `expect` would make the shadow answer 100 first. The `x-envoy-*` ones steer the router that sends
/// the copy: they lift its time limit, retry it or turn its timeout into a success.
const NOT_COPIED: [&[u8]; 9] = [
    b"expect",
    b"x-envoy-hedge-on-per-try-timeout",
    b"x-envoy-max-retries",
    b"x-envoy-retry-grpc-on",
    b"x-envoy-retry-on",
    b"x-envoy-upstream-alt-stat-name",
    b"x-envoy-upstream-rq-per-try-timeout-ms",
    b"x-envoy-upstream-rq-timeout-alt-response",
    b"x-envoy-upstream-rq-timeout-ms",
];

/// Without these Envoy sends nothing.
const REQUIRED: [&[u8]; 3] = [b":authority", b":method", b":path"];

pub type Header<'a> = (&'a [u8], &'a [u8]);

/// A request's headers as the host serializes them, kept in its one allocation:
/// the number of headers, the lengths of each name and value (all little-endian u32), then each
/// name and value followed by a zero byte.
pub struct Head {
    serialized: Vec<u8>,
}

impl Head {
    /// `None` if the bytes are not a header map.
    pub fn parse(serialized: Vec<u8>) -> Option<Self> {
        let head = Self { serialized };
        let (count, _) =
            head.serialized.split_first_chunk().map(|(n, rest)| (u32::from_le_bytes(*n), rest))?;
        (head.iter().count() == usize::try_from(count).ok()?).then_some(head)
    }

    /// The headers in order, pseudo-headers among them.
    pub fn iter(&self) -> impl Iterator<Item = Header<'_>> {
        let (lengths, mut text) = self.sections().unwrap_or_default();
        lengths.chunks_exact(8).map_while(move |pair| {
            let (name, value) = pair.split_first_chunk::<4>()?;
            Some((take(&mut text, name)?, take(&mut text, value.try_into().ok()?)?))
        })
    }

    /// The first value of a header; the name in lower case.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter().find(|header| header.0 == name.as_bytes()).map(|header| header.1)
    }

    /// Whether this request opens a tunnel, whose body never ends.
    ///
    /// Envoy leaves `upgrade` only on requests that are an upgrade, and turns HTTP/2's extended
    /// CONNECT into one.
    pub fn is_upgrade(&self) -> bool {
        self.iter().any(|header| matches!(header, (b":method", b"CONNECT") | (b"upgrade", _)))
    }

    /// The body's length, if the request says so.
    pub fn content_length(&self) -> Option<u64> {
        number(self.get("content-length")?)
    }

    /// The headers of a copy with a body of `body_length` bytes; `None` if Envoy could not send it.
    ///
    /// `content-length` stays in its place where it is true. Where it is not, or is absent, Envoy
    /// adds its own for a body; on a copy without one the shadow would wait for bytes that never
    /// come.
    pub fn for_copy(&self, body_length: usize) -> Option<Vec<Header<'_>>> {
        let copied = |(name, value): &Header| match *name {
            b"content-length" => number(value) == u64::try_from(body_length).ok(),
            name => !NOT_COPIED.contains(&name),
        };
        let headers: Vec<_> = self.iter().filter(copied).collect();
        let complete = REQUIRED.iter().all(|name| headers.iter().any(|header| header.0 == *name));
        complete.then_some(headers)
    }

    /// The lengths, and the text they measure.
    fn sections(&self) -> Option<(&[u8], &[u8])> {
        let (count, rest) = self.serialized.split_first_chunk()?;
        let lengths = usize::try_from(u32::from_le_bytes(*count)).ok()?.checked_mul(8)?;
        rest.split_at_checked(lengths)
    }
}

/// Takes a string of the given length and the zero byte behind it off the text.
fn take<'a>(text: &mut &'a [u8], length: &[u8; 4]) -> Option<&'a [u8]> {
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (string, rest) = text.split_at_checked(length)?;
    *text = rest.get(1..)?;
    Some(string)
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{post, serialize};

    /// The copy's headers besides those of every [`post`], as text where they are text.
    fn copied(headers: &[(&str, &[u8])], body_length: usize) -> Vec<(String, Vec<u8>)> {
        let head = post(headers).unwrap();
        let copy = head.for_copy(body_length).unwrap();
        let text = |name: &[u8]| String::from_utf8(name.to_vec()).unwrap();
        copy.iter().skip(3).map(|(name, value)| (text(name), value.to_vec())).collect()
    }

    fn owned(headers: &[(&str, &[u8])]) -> Vec<(String, Vec<u8>)> {
        headers.iter().map(|(name, value)| (name.to_string(), value.to_vec())).collect()
    }

    #[test]
    fn every_byte_of_every_header_is_copied_in_order_with_duplicates() {
        let headers: [(&str, &[u8]); 5] =
            [("b", b"1"), ("a", b"\xe9\xff"), ("b", b"2"), ("empty", b""), ("a", b"\xe9\xff")];
        assert_eq!(copied(&headers, 0), owned(&headers));
    }

    #[test]
    fn what_would_steer_the_router_of_the_copy_is_not_copied() {
        for name in NOT_COPIED {
            let name = std::str::from_utf8(name).unwrap();
            assert_eq!(copied(&[("a", b"1"), (name, b"2"), ("b", b"3")], 0).len(), 2, "{name}");
        }
        assert_eq!(copied(&[("x-envoy-peer-metadata", b"1")], 0).len(), 1);
    }

    #[test]
    fn content_length_is_copied_where_it_is_true() {
        for (value, body_length, stays) in
            [("5", 5, true), ("0", 0, true), ("5", 0, false), ("4", 5, false), ("x", 0, false)]
        {
            let copy = copied(&[("content-length", value.as_bytes())], body_length);
            assert_eq!(!copy.is_empty(), stays, "{value} on {body_length} bytes");
        }
    }

    #[test]
    fn a_request_that_envoy_could_not_send_has_no_copy() {
        let head = Head::parse(serialize(&[(":method", b"GET"), (":path", b"/")])).unwrap();
        assert_eq!(head.for_copy(0), None);
    }

    #[test]
    fn tunnels_are_told_from_other_requests() {
        let connect = serialize(&[(":authority", b"a"), (":method", b"CONNECT")]);
        assert!(Head::parse(connect).unwrap().is_upgrade());
        assert!(post(&[("upgrade", b"websocket")]).unwrap().is_upgrade());
        assert!(!post(&[("x-upgrade", b"CONNECT")]).unwrap().is_upgrade());
    }

    #[test]
    fn bytes_that_are_no_header_map_are_refused() {
        let map = serialize(&[(":path", b"/"), ("a", b"1")]);
        for length in 0..map.len() {
            assert!(Head::parse(map[..length].to_vec()).is_none(), "{length} bytes");
        }
        assert!(Head::parse(vec![0xff; 64]).is_none());
        assert_eq!(Head::parse(serialize(&[])).unwrap().iter().count(), 0);
    }
}
