//! `google.protobuf.Struct` in the protobuf wire format, as Envoy hands it to a plugin.
//!
//! A Struct is a map of Values, each one of null, number, string, bool, Struct or list. The few
//! lines here stand for a protobuf library, whose smallest costs more bytes than this module.

use serde_json::{Map, Number, Value};

/// Nesting beyond this is refused, as serde_json does, so that no input exhausts the stack.
const MAX_DEPTH: u32 = 128;

/// The object that the bytes encode, or `None` if they are no Struct.
pub fn decode_struct(bytes: &[u8]) -> Option<Value> {
    structure(bytes, MAX_DEPTH)
}

fn structure(bytes: &[u8], depth: u32) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    let mut object = Map::new();
    for entry in fields(bytes) {
        let (1, Wire::Bytes(entry)) = entry? else { return None };
        let (mut key, mut item) = (String::new(), Value::Null);
        for part in fields(entry) {
            match part? {
                (1, Wire::Bytes(name)) => key = text(name)?,
                (2, Wire::Bytes(bytes)) => item = value(bytes, depth)?,
                _ => return None,
            }
        }
        object.insert(key, item);
    }
    Some(Value::Object(object))
}

fn value(bytes: &[u8], depth: u32) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    // Of a oneof that is written more than once, the last one counts.
    fields(bytes).try_fold(Value::Null, |_, field| {
        Some(match field? {
            (1, Wire::Varint(_)) => Value::Null,
            (2, Wire::Fixed64(bits)) => Value::Number(Number::from_f64(f64::from_bits(bits))?),
            (3, Wire::Bytes(bytes)) => Value::String(text(bytes)?),
            (4, Wire::Varint(flag)) => Value::Bool(flag != 0),
            (5, Wire::Bytes(bytes)) => structure(bytes, depth)?,
            (6, Wire::Bytes(bytes)) => list(bytes, depth)?,
            _ => return None,
        })
    })
}

fn list(bytes: &[u8], depth: u32) -> Option<Value> {
    let mut items = Vec::new();
    for field in fields(bytes) {
        let (1, Wire::Bytes(bytes)) = field? else { return None };
        items.push(value(bytes, depth)?);
    }
    Some(Value::Array(items))
}

fn text(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}

enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message by number; `None` once where the bytes make no sense, then the end.
fn fields(mut bytes: &[u8]) -> impl Iterator<Item = Option<(u64, Wire<'_>)>> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let field = take_field(&mut bytes);
        if field.is_none() {
            bytes = &[];
        }
        Some(field)
    })
}

fn take_field<'a>(bytes: &mut &'a [u8]) -> Option<(u64, Wire<'a>)> {
    let key = take_varint(bytes)?;
    let wire = match key & 7 {
        0 => Wire::Varint(take_varint(bytes)?),
        1 => Wire::Fixed64(u64::from_le_bytes(take(bytes, 8)?.try_into().ok()?)),
        2 => {
            let length = usize::try_from(take_varint(bytes)?).ok()?;
            Wire::Bytes(take(bytes, length)?)
        }
        _ => return None,
    };
    Some((key >> 3, wire))
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = *take(bytes, 1)?.first()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// `{"requestMirror": {"cluster": "shadow", "percent": 5}}`, as protobuf's own library encodes it.
    const STRUCT: &[u8] = b"\x0a\x3e\x0a\x0drequestMirror\x12\x2d\x2a\x2b\
        \x0a\x13\x0a\x07cluster\x12\x08\x1a\x06shadow\
        \x0a\x14\x0a\x07percent\x12\x09\x11\0\0\0\0\0\0\x14\x40";

    #[test]
    fn a_struct_is_read_from_its_wire_bytes() {
        let expected = json!({ "requestMirror": { "cluster": "shadow", "percent": 5.0 } });
        assert_eq!(decode_struct(STRUCT), Some(expected));
    }

    #[test]
    fn every_kind_of_value_is_read() {
        let list = b"\x0a\x2a\x0a\x01l\x12\x25\x32\x23\x0a\x02\x08\0\x0a\x02\x20\x01\
            \x0a\x05\x1a\x03abc\x0a\x12\x2a\x10\x0a\x0e\x0a\x01n\x12\x09\x11\0\0\0\0\0\0\xf8\xbf";
        let expected = json!({ "l": [null, true, "abc", { "n": -1.5 }] });
        assert_eq!(decode_struct(list), Some(expected));
    }

    #[test]
    fn no_truncation_of_a_struct_is_taken_for_one() {
        for length in 1..STRUCT.len() {
            assert_eq!(decode_struct(&STRUCT[..length]), None, "{length} bytes");
        }
    }

    #[test]
    fn deep_nesting_is_refused() {
        let mut nested = Vec::new();
        for _ in 0..2 * MAX_DEPTH {
            let mut message = vec![0x0a];
            let value = [&[0x2a], varint(nested.len()).as_slice(), &nested].concat();
            let entry = [&[0x12], varint(value.len()).as_slice(), &value].concat();
            message.extend(varint(entry.len()));
            message.extend(entry);
            nested = message;
        }
        assert_eq!(decode_struct(&nested), None);
    }

    fn varint(mut number: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while number >= 0x80 {
            bytes.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
        bytes
    }
}
