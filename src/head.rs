//! A request's headers, byte for byte.

/// A header's name, in lower case, and its value, which need not be text.
pub type Header<'a> = (&'a [u8], &'a [u8]);

/// A request's headers as the host serializes them, kept in its one allocation:
/// the number of headers, the lengths of each name and value (all little-endian u32), then each
/// name and value followed by a zero byte.
pub struct Head {
    serialized: Vec<u8>,
}

/// What a request's headers say of its body.
#[derive(Debug, PartialEq, Eq)]
pub enum Body {
    /// None that ends: what follows is a tunnel's.
    Tunnel,
    /// At least so many bytes.
    Bytes(u64),
}

impl Head {
    /// `None` if the bytes are not a header map.
    pub fn parse(serialized: Vec<u8>) -> Option<Self> {
        let head = Self { serialized };
        let count = u32::from_le_bytes(*head.serialized.first_chunk()?);
        (head.iter().count() == usize::try_from(count).ok()?).then_some(head)
    }

    /// The bytes it takes.
    pub fn size(&self) -> usize {
        self.serialized.len()
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

    /// What the headers say of the body.
    ///
    /// Envoy leaves `upgrade` only on requests that are an upgrade, and turns HTTP/2's extended
    /// CONNECT into one.
    pub fn announces(&self) -> Body {
        let mut body = Body::Bytes(0);
        for header in self.iter() {
            match header {
                (b":method", b"CONNECT") | (b"upgrade", _) => return Body::Tunnel,
                (b"content-length", length) => body = Body::Bytes(number(length).unwrap_or(0)),
                _ => {}
            }
        }
        body
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

/// A number as it stands in a header.
pub fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{post, serialize};

    #[test]
    fn tunnels_are_told_from_other_requests() {
        let connect = serialize(&[(":authority", b"a"), (":method", b"CONNECT")]);
        assert_eq!(Head::parse(connect).unwrap().announces(), Body::Tunnel);
        assert_eq!(post(&[("upgrade", b"websocket")]).announces(), Body::Tunnel);
        assert_eq!(post(&[("x-upgrade", b"CONNECT")]).announces(), Body::Bytes(0));
    }

    #[test]
    fn a_body_has_the_bytes_that_its_length_says_and_perhaps_more_if_nothing_does() {
        for (length, announced) in [("17", 17), ("0", 0), ("x", 0), ("-1", 0)] {
            let head = post(&[("content-length", length.as_bytes())]);
            assert_eq!(head.announces(), Body::Bytes(announced), "{length}");
        }
        assert_eq!(post(&[]).announces(), Body::Bytes(0));
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
