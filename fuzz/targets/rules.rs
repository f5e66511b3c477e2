//! The rule of any request is the one that a reading of the Gateway API word by word gives.
//!
//! The input's lines are method, host, path with its query, and two values of one header.
#![no_main]

mod serialize;

use std::cell::LazyCell;

use libfuzzer_sys::fuzz_target;
use request_mirror::config::Config;
use request_mirror::head::Head;
use request_mirror::sampling::Dice;
use serde_json::{Value, json};
use serialize::serialize;

struct Request<'a> {
    method: &'a [u8],
    host: String,
    path: &'a [u8],
    query: Vec<(String, String)>,
    header: Vec<u8>,
}

impl Request<'_> {
    /// Whether a rule for every path is for this one: not for the asterisk of OPTIONS.
    fn has_path(&self) -> bool {
        self.path.is_empty() || self.path.starts_with(b"/")
    }
}

type Rule = (&'static str, Value, fn(&Request) -> bool);

/// The rules by name, the most specific one first.
fn rules() -> [Rule; 9] {
    [
        ("exact", json!({ "path": { "type": "Exact", "value": "/api" } }), |r| r.path == b"/api"),
        ("regex", json!({ "path": { "type": "RegularExpression", "value": "/v[0-9]+" } }), |r| {
            r.path
                .strip_prefix(b"/v")
                .is_some_and(|rest| !rest.is_empty() && rest.iter().all(u8::is_ascii_digit))
        }),
        ("longer", json!({ "path": { "value": "/api/v1/" } }), |r| {
            elements(r.path).starts_with(&[b"api", b"v1"])
        }),
        ("post", json!({ "path": { "value": "/api" }, "method": "POST" }), |r| {
            elements(r.path).starts_with(&[b"api"]) && r.method == b"POST"
        }),
        ("prefix", json!({ "path": { "value": "/api" } }), |r| {
            elements(r.path).starts_with(&[b"api"])
        }),
        ("put", json!({ "method": "PUT" }), |r| r.has_path() && r.method == b"PUT"),
        ("header", json!({ "headers": [{ "name": "X-A", "value": "1,2" }] }), |r| {
            r.has_path() && r.header == b"1,2"
        }),
        ("query", json!({ "queryParams": [{ "name": "a b", "value": "ü" }] }), |r| {
            let first = r.query.iter().find(|(name, _)| name == "a b");
            r.has_path() && first.is_some_and(|(_, value)| value == "ü")
        }),
        ("any", json!({}), |r| r.has_path()),
    ]
}

thread_local! {
    static CONFIG: LazyCell<Config> = LazyCell::new(|| {
        let all = rules();
        // In a wrong order, which must not matter.
        let rules: Vec<_> = all.iter().rev().map(|(name, fits, _)| rule(name, fits)).collect();
        let only = rule("wildcard", &json!({}));
        let routes = json!({ "httpRoutes": [
            { "spec": { "rules": rules } },
            { "spec": { "hostnames": ["*.b.test"], "rules": [only] } },
        ] });
        Config::parse(routes.to_string().as_bytes()).unwrap_or_else(|errors| panic!("{errors:?}"))
    });
}

fn rule(name: &str, fits: &Value) -> Value {
    let mirror = json!({ "cluster": name, "percent": 100 });
    let filter = json!({ "type": "RequestMirror", "requestMirror": mirror });
    json!({ "matches": [fits], "filters": [filter] })
}

fuzz_target!(|input: &[u8]| {
    let mut lines = input.split(|byte| *byte == b'\n').chain(std::iter::repeat(b"".as_slice()));
    let [method, authority, target, first, second] = std::array::from_fn(|_| lines.next().unwrap());
    let headers = [
        (b":method".as_slice(), method),
        (b":authority", authority),
        (b":path", target),
        (b"x-a", first),
        (b"x-a", second),
    ];
    let head = Head::parse(serialize(&headers)).expect("a header map");
    let chosen = CONFIG.with(|config| config.targets(&Dice::new(1).for_request(), &head));
    let chosen: Vec<_> = chosen.iter().map(|target| target.cluster.as_str()).collect();

    let end = |of: &[u8], byte| of.iter().position(|it| *it == byte).unwrap_or(of.len());
    let target = &target[..end(target, b'#')];
    let (path, query) = target.split_at(end(target, b'?'));
    let query = query.get(1..).unwrap_or_default().split(|byte| *byte == b'&');
    let query = query.filter(|pair| !pair.is_empty());
    let host = String::from_utf8_lossy(authority).to_ascii_lowercase();
    let host = match host.rfind(':') {
        Some(colon) if host[colon + 1..].bytes().all(|byte| byte.is_ascii_digit()) => {
            host[..colon].to_owned()
        }
        _ => host,
    };
    let request = Request {
        method,
        host,
        path,
        query: query
            .map(|pair| {
                let (name, value) = pair.split_at(end(pair, b'='));
                (decode(name), decode(value.get(1..).unwrap_or_default()))
            })
            .collect(),
        header: [first, second].join(b",".as_slice()),
    };
    let expected = match request.host.strip_suffix(".b.test") {
        Some(_) if request.has_path() => "wildcard",
        Some(_) => "",
        None => rules().iter().find(|(_, _, fits)| fits(&request)).map_or("", |(name, ..)| name),
    };
    assert_eq!(chosen.concat(), expected);
});

/// The path's elements; one at the end that is empty is none.
fn elements(path: &[u8]) -> Vec<&[u8]> {
    match path.strip_prefix(b"/") {
        Some(path) => path.split(|byte| *byte == b'/').collect(),
        None => vec![],
    }
}

/// What a form would send so.
fn decode(mut text: &[u8]) -> String {
    let mut bytes = Vec::new();
    while let Some((first, rest)) = text.split_first() {
        let hex = rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = hex.filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
        (bytes, text) = match (first, code.and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
            (b'%', Some(byte)) => ([bytes, vec![byte]].concat(), &rest[2..]),
            (b'+', _) => ([bytes, vec![b' ']].concat(), rest),
            _ => ([bytes, vec![*first]].concat(), rest),
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
