//! The copy's headers, made from the original's.

use crate::head::{self, Head, Header};

/// What follows `x-envoy-` in the headers that steer the router which sends the copy: they would move
/// its time limit, retry it or turn its timeout into a success.
const STEERING: [&[u8]; 9] = [
    b"hedge-on-per-try-timeout",
    b"max-retries",
    b"retry-grpc-on",
    b"retry-on",
    b"upstream-alt-stat-name",
    b"upstream-rq-per-try-timeout-ms",
    b"upstream-rq-timeout-alt-response",
    b"upstream-rq-timeout-ms",
    b"upstream-stream-duration-ms",
];

/// Without these Envoy sends nothing.
const REQUIRED: [&[u8]; 3] = [b":authority", b":method", b":path"];

/// The headers of a copy with a body of `body_length` bytes; `None` if Envoy could not send it.
///
/// `content-length` stays in its place where it is true. Where it is not, or is absent, Envoy adds
/// its own for a body; on a copy without one the shadow would wait for bytes that never come.
/// `expect` would make the shadow answer 100 first.
pub fn headers(original: &Head, body_length: u64) -> Option<Vec<Header<'_>>> {
    let copied = |(name, value): &Header| match *name {
        b"content-length" => head::number(value) == Some(body_length),
        b"expect" => false,
        name => name.strip_prefix(b"x-envoy-").is_none_or(|rest| !STEERING.contains(&rest)),
    };
    let headers: Vec<_> = original.iter().filter(copied).collect();
    let complete = REQUIRED.iter().all(|name| headers.iter().any(|header| header.0 == *name));
    complete.then_some(headers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{post, serialize};

    /// The copy's headers besides those of every [`post`], as text where they are text.
    fn copied(original: &[(&str, &[u8])], body_length: u64) -> Vec<(String, Vec<u8>)> {
        let head = post(original);
        let copy = headers(&head, body_length).unwrap();
        let text = |name: &[u8]| String::from_utf8(name.to_vec()).unwrap();
        copy.iter().skip(3).map(|(name, value)| (text(name), value.to_vec())).collect()
    }

    fn owned(headers: &[(&str, &[u8])]) -> Vec<(String, Vec<u8>)> {
        headers.iter().map(|(name, value)| (name.to_string(), value.to_vec())).collect()
    }

    #[test]
    fn every_byte_of_every_header_is_copied_in_order_with_duplicates() {
        let original: [(&str, &[u8]); 5] =
            [("b", b"1"), ("a", b"\xe9\xff"), ("b", b"2"), ("empty", b""), ("a", b"\xe9\xff")];
        assert_eq!(copied(&original, 0), owned(&original));
    }

    #[test]
    fn what_would_steer_the_router_of_the_copy_is_not_copied() {
        let steering = STEERING.map(|rest| format!("x-envoy-{}", str::from_utf8(rest).unwrap()));
        for name in steering.iter().map(String::as_str).chain(["expect"]) {
            assert_eq!(copied(&[("a", b"1"), (name, b"2"), ("b", b"3")], 0).len(), 2, "{name}");
        }
        for name in ["x-envoy-peer-metadata", "x-envoy-", "max-retries", "x-expect"] {
            assert_eq!(copied(&[(name, b"1")], 0).len(), 1, "{name}");
        }
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
        assert_eq!(headers(&head, 0), None);
    }
}
