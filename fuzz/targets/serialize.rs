//! A header map as the host serializes it.

use request_mirror::head::Header;

pub fn serialize(headers: &[Header]) -> Vec<u8> {
    let number = |n: usize| (n as u32).to_le_bytes();
    let mut map = number(headers.len()).to_vec();
    for (name, value) in headers {
        map.extend([number(name.len()), number(value.len())].concat());
    }
    for (name, value) in headers {
        map.extend([name, b"\0".as_slice(), value, b"\0"].concat());
    }
    map
}
