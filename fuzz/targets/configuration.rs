//! Any bytes are a configuration or a list of errors; and a configuration says the same, be it
//! written as JSON or as a `google.protobuf.Struct`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use request_mirror::config::Config;
use serde_json::Value;

fuzz_target!(|written: &[u8]| {
    let read = said(written);
    // A number beyond what a double can hold is not the same in both.
    if let Ok(json @ Value::Object(_)) = serde_json::from_slice(written)
        && is_same_as_doubles(&json)
    {
        assert_eq!(read, said(&structure(&json)), "{json}");
    }
});

/// What is said of a configuration, and of each error in one.
fn said(written: &[u8]) -> Result<String, Vec<String>> {
    match Config::parse(written) {
        Ok(config) => Ok(format!("{config} {:?}", config.warnings)),
        // Which number was written shows in an error: 5 or 5.0.
        Err(errors) => {
            Err(errors.iter().map(|error| error.to_string().replace(".0", "")).collect())
        }
    }
}

fn is_same_as_doubles(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_f64().is_some_and(|number| number.abs() < 1e15),
        Value::Array(items) => items.iter().all(is_same_as_doubles),
        Value::Object(fields) => fields.values().all(is_same_as_doubles),
        _ => true,
    }
}

/// The wire format of a Struct with these fields.
fn structure(object: &Value) -> Vec<u8> {
    let fields = object.as_object().into_iter().flatten();
    let entry = |(key, item): (&String, &Value)| {
        field(1, &[field(1, key.as_bytes()), field(2, &value(item))].concat())
    };
    fields.flat_map(entry).collect()
}

fn value(value: &Value) -> Vec<u8> {
    match value {
        Value::Null => vec![0x08, 0],
        Value::Bool(flag) => vec![0x20, u8::from(*flag)],
        Value::Number(number) => {
            [[0x11].as_slice(), &number.as_f64().unwrap_or_default().to_le_bytes()].concat()
        }
        Value::String(text) => field(3, text.as_bytes()),
        Value::Object(_) => field(5, &structure(value)),
        Value::Array(items) => field(
            6,
            &items.iter().flat_map(|item| field(1, &self::value(item))).collect::<Vec<_>>(),
        ),
    }
}

/// A length-delimited field.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut encoded = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length >= 0x80 {
        encoded.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    encoded.push(length as u8);
    encoded.extend_from_slice(bytes);
    encoded
}
