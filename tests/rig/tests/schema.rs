//! `envoy/config.schema.json`, which editors go by, and the code that reads configurations agree.
//!
//! First number by number and name by name, so that neither can change alone; then on whole
//! configurations. What a schema cannot say is listed at the end.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use jsonschema::Validator;
use request_mirror::config::{
    Config, DEFAULT_BODY_BYTES, DEFAULT_BUDGET, DEFAULT_BUFFERED_BYTES, DEFAULT_CLUSTER_DOMAIN,
    DEFAULT_DENOMINATOR, DEFAULT_TIMEOUT, MAX_BUDGET, MAX_BYTES,
};
use serde_json::{Value, json};

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../envoy/config.schema.json")).expect("it is JSON")
});

static VALIDATOR: LazyLock<Validator> =
    LazyLock::new(|| jsonschema::draft7::new(&SCHEMA).expect("it is a schema"));

/// Parts of the schema, by JSON pointer, and where [`everything`] has what they describe.
const PLACES: [(&str, &str); 20] = [
    ("", ""),
    ("/definitions/mirror", "/httpRoutes/0/spec/rules/0/filters/0/requestMirror"),
    ("/definitions/fraction", "/httpRoutes/0/spec/rules/0/filters/0/requestMirror/fraction"),
    (
        "/definitions/service",
        "/httpRoutes/0/spec/rules/0/backendRefs/0/filters/0/requestMirror/backendRef",
    ),
    ("/definitions/httpRoute", "/httpRoutes/0"),
    ("/definitions/grpcRoute", "/grpcRoutes/0"),
    ("/definitions/apiVersion", "/httpRoutes/0/apiVersion"),
    ("/definitions/metadata", "/httpRoutes/0/metadata"),
    ("/definitions/httpSpec", "/httpRoutes/0/spec"),
    ("/definitions/grpcSpec", "/grpcRoutes/0/spec"),
    ("/definitions/httpRule", "/httpRoutes/0/spec/rules/0"),
    ("/definitions/grpcRule", "/grpcRoutes/0/spec/rules/0"),
    ("/definitions/filters/items", "/httpRoutes/0/spec/rules/0/filters/0"),
    ("/definitions/backends/items", "/httpRoutes/0/spec/rules/0/backendRefs/0"),
    ("/definitions/httpMatch", "/httpRoutes/0/spec/rules/0/matches/0"),
    ("/definitions/grpcMatch", "/grpcRoutes/0/spec/rules/0/matches/0"),
    ("/definitions/path", "/httpRoutes/0/spec/rules/0/matches/0/path"),
    ("/definitions/grpcMethod", "/grpcRoutes/0/spec/rules/0/matches/0/method"),
    ("/definitions/condition", "/httpRoutes/0/spec/rules/0/matches/0/headers/0"),
    ("/definitions/valueType", "/httpRoutes/0/spec/rules/0/matches/0/queryParams/0/type"),
];

#[test]
fn every_number_and_default_is_the_codes() {
    let numbers = |node: &Value| {
        let mut numbers = node.clone();
        let object = numbers.as_object_mut().unwrap();
        object.retain(|key, _| ["minimum", "maximum", "default"].contains(&key.as_str()));
        (!object.is_empty()).then_some(numbers)
    };
    let parts = parts();
    let all = parts.iter().filter_map(|(at, node)| Some((at.clone(), numbers(node)?)));
    let expected = json!({
        "/properties/requestMirrorBudget":
            { "minimum": 1, "maximum": MAX_BUDGET, "default": DEFAULT_BUDGET },
        "/properties/maxBufferedBytes":
            { "minimum": 0, "maximum": MAX_BYTES, "default": DEFAULT_BUFFERED_BYTES },
        "/properties/clusterDomain": { "default": DEFAULT_CLUSTER_DOMAIN },
        "/definitions/mirror/properties/percent": { "minimum": 0, "maximum": 100 },
        "/definitions/mirror/properties/timeout": { "default": format!("{DEFAULT_TIMEOUT:?}") },
        "/definitions/mirror/properties/maxBodyBytes":
            { "minimum": 0, "maximum": MAX_BYTES, "default": DEFAULT_BODY_BYTES },
        "/definitions/fraction/properties/numerator": { "minimum": 0, "maximum": u32::MAX },
        "/definitions/fraction/properties/denominator":
            { "minimum": 1, "maximum": u32::MAX, "default": DEFAULT_DENOMINATOR },
        "/definitions/service/properties/group": { "default": "" },
        "/definitions/service/properties/kind": { "default": "Service" },
        "/definitions/service/properties/port": { "minimum": 1, "maximum": u16::MAX },
        "/definitions/backends/items/properties/weight":
            { "minimum": 0, "maximum": 1_000_000, "default": 1 },
        "/definitions/path/properties/type": { "default": "PathPrefix" },
        "/definitions/path/properties/value": { "default": "/" },
        "/definitions/valueType": { "default": "Exact" },
    });
    assert_eq!(Value::Object(all.collect()), expected);
    let hundredths = &SCHEMA["definitions"]["fraction"]["then"]["properties"]["numerator"];
    assert_eq!(*hundredths, json!({ "maximum": DEFAULT_DENOMINATOR }));
}

#[test]
fn a_range_ends_for_the_code_where_it_ends_for_the_schema() {
    for (at, node) in parts() {
        for (end, beyond) in [("minimum", -1), ("maximum", 1)] {
            if let Some(end) = node[end].as_i64() {
                agree(&changed(&at, |value| *value = json!(end)), true);
                agree(&changed(&at, |value| *value = json!(end as f64)), true);
                agree(&changed(&at, |value| *value = json!(end + beyond)), false);
                agree(&changed(&at, |value| *value = json!(end as f64 + 0.5)), false);
            }
        }
    }
}

#[test]
fn absence_means_the_default_and_the_description_says_so() {
    let meaning = |config: &Value| {
        let config = Config::parse(config.to_string().as_bytes()).ok().unwrap();
        format!("{config}{:?}", config.limits)
    };
    for (at, node) in parts() {
        let Some(default) = node.get("default") else { continue };
        let place = place(&at);
        let (parent, field) = place.rsplit_once('/').unwrap();
        let mut absent = everything();
        absent.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(field);
        assert_eq!(
            meaning(&absent),
            meaning(&changed(&at, |value| *value = default.clone())),
            "{at}"
        );
        let said = node["description"].as_str().unwrap();
        let default = default.as_str().map_or(default.to_string(), str::to_owned);
        assert!(default.is_empty() || said.contains(&format!("Absent: {default}")), "{at}: {said}");
    }
}

/// The code lists what it knows when it meets what it does not.
#[test]
fn the_names_of_fields_are_the_codes() {
    const UNKNOWN: &str = "nothing-of-the-kind";
    for (at, node) in parts() {
        let Some(properties) = node["properties"].as_object() else { continue };
        let config = changed(&at, |value| value[UNKNOWN] = json!(1));
        let is_open = node.get("additionalProperties").is_none();
        agree(&config, is_open);
        if !is_open {
            let complaint = complaint(&config);
            let known = complaint.split_once("unknown field; known are ").expect(&complaint).1;
            let known: BTreeSet<_> = known.split(", ").collect();
            assert_eq!(
                properties.keys().map(String::as_str).collect::<BTreeSet<_>>(),
                known,
                "{at}"
            );
        }
    }
}

#[test]
fn the_names_of_values_are_the_codes() {
    for (at, node) in parts() {
        let Some(names) = node["enum"].as_array() else { continue };
        for name in names {
            agree(&changed(&at, |value| *value = name.clone()), true);
        }
        let unknown = changed(&at, |value| *value = json!("Unknown"));
        agree(&unknown, false);
        let names: Vec<_> = names.iter().filter_map(Value::as_str).collect();
        let one_of = format!("is not one of {}", names.join(", "));
        let complaint = complaint(&unknown);
        assert!(
            complaint.ends_with(&one_of) || complaint.contains("is not a Service"),
            "{complaint}"
        );
    }
}

#[test]
fn everything_in_the_schema_is_described() {
    assert!(jsonschema::draft7::meta::is_valid(&SCHEMA));
    for (at, node) in parts() {
        let is_field = at.rsplit('/').nth(1) == Some("properties");
        let said = node.get("$ref").or(node.get("description"));
        assert!(!is_field || said.is_some(), "{at} is not described");
    }
}

#[test]
fn the_same_configurations_are_good_and_bad() {
    let whole = |json: &str| json.to_owned();
    let mirror = |fields: &str| format!(r#"{{"requestMirror": {{"cluster": "s", {fields}}}}}"#);
    let service = |fields: &str| format!(r#"{{"requestMirror": {{"backendRef": {{{fields}}}}}}}"#);
    let meta = |fields: &str| format!(r#"{{"httpRoutes": [{{"metadata": {{{fields}}}}}]}}"#);
    let rule =
        |fields: &str| format!(r#"{{"httpRoutes": [{{"spec": {{"rules": [{{{fields}}}]}}}}]}}"#);
    let path = |kind: &str, path: &str| {
        rule(&format!(r#""matches": [{{"path": {{"type": "{kind}", "value": "{path}"}}}}]"#))
    };
    let host = |name: &str| format!(r#"{{"httpRoutes": [{{"hostnames": ["{name}"]}}]}}"#);
    let call = |method: &str| {
        format!(r#"{{"grpcRoutes": [{{"rules": [{{"matches": [{{"method": {method}}}]}}]}}]}}"#)
    };
    for (config, is_good) in [
        (whole(r#"{}"#), false),
        (whole(r#"[]"#), false),
        (whole(r#"{"requestMirrorBudget": 5}"#), false),
        (whole(r#"{"httpRoutes": []}"#), true),
        (whole(r#"{"grpcRoutes": []}"#), true),
        (whole(r#"{"httpRoutes": [], "grpcRoutes": []}"#), true),
        (whole(r#"{"httpRoutes": {}}"#), false),
        (whole(r#"{"httpRoutes": ["a"]}"#), false),
        (meta(r#""namespace": "n", "creationTimestamp": null"#), true),
        (meta(r#""namespace": "N""#), false),
        (meta(r#""name": 5"#), false),
        (whole(r#"{"requestMirror": {"cluster": "s"}, "httpRoutes": []}"#), false),
        (whole(r#"{"requestMirror": {"cluster": "s"}, "grpcRoutes": []}"#), false),
        (whole(r#"{"requestMirror": "s"}"#), false),
        (whole(r#"{"requestMirror": {"percent": 5}}"#), false),
        (whole(r#"{"requestMirror": {"cluster": ""}}"#), false),
        (whole(r#"{"requestMirror": {"cluster": 5}}"#), false),
        (whole(r#"{"requestMirror": {"cluster": "s"}}"#), true),
        (service(r#""name": "s", "namespace": "n", "port": 80"#), true),
        (service(r#""name": "s", "namespace": "N", "port": 80"#), false),
        (service(r#""name": "s", "port": 80"#), false),
        (service(r#""name": "s", "namespace": "n""#), false),
        (service(r#""namespace": "n", "port": 80"#), false),
        (service(r#""name": "a|b", "namespace": "n", "port": 80"#), false),
        (service(r#""name": "s", "namespace": "n", "port": "80""#), false),
        (whole(r#"{"clusterDomain": "a.b", "httpRoutes": []}"#), true),
        (whole(r#"{"clusterDomain": "a|b", "httpRoutes": []}"#), false),
        (whole(r#"{"clusterDomain": "", "httpRoutes": []}"#), false),
        (mirror(r#""backendRef": {"name": "s", "namespace": "n", "port": 80}"#), false),
        (mirror(r#""percent": "5""#), false),
        (mirror(r#""percent": 5, "fraction": {"numerator": 1}"#), true),
        (mirror(r#""percent": 101, "fraction": {"numerator": 1}"#), false),
        (mirror(r#""fraction": 0.5"#), false),
        (mirror(r#""fraction": {}"#), false),
        (mirror(r#""fraction": {"denominator": 5}"#), false),
        (mirror(r#""fraction": {"numerator": 100}"#), true),
        (mirror(r#""fraction": {"numerator": 101}"#), false),
        (mirror(r#""fraction": {"numerator": 101, "denominator": 101}"#), true),
        (mirror(r#""timeout": "1ms""#), true),
        (mirror(r#""timeout": "1h""#), true),
        (mirror(r#""timeout": "1m30s""#), true),
        (mirror(r#""timeout": "10s10s""#), true),
        (mirror(r#""timeout": "0s""#), false),
        (mirror(r#""timeout": "0h00m""#), false),
        (mirror(r#""timeout": "1.5s""#), false),
        (mirror(r#""timeout": "100""#), false),
        (mirror(r#""timeout": "100000ms""#), false),
        (mirror(r#""timeout": "1s1s1s1s1s""#), false),
        (mirror(r#""timeout": """#), false),
        (mirror(r#""timeout": 100"#), false),
        (rule(""), true),
        (rule(r#""matches": {}"#), false),
        (rule(r#""matches": [{}]"#), true),
        (rule(r#""matches": [{"method": "get"}]"#), false),
        (rule(r#""matches": [{"path": {}}]"#), true),
        (rule(r#""matches": [{"path": {"type": "Exact"}}]"#), true),
        (rule(r#""matches": [{"headers": [{"name": "a"}]}]"#), false),
        (rule(r#""matches": [{"headers": [{"value": "a"}]}]"#), false),
        (rule(r#""matches": [{"headers": [{"name": "a", "value": 5}]}]"#), false),
        (rule(r#""matches": [{"queryParams": [{"name": "a", "value": ""}]}]"#), true),
        (path("Exact", "/a"), true),
        (path("Exact", "a"), false),
        (path("Exact", ""), false),
        (path("Prefix", "/"), false),
        (path("PathPrefix", "/a/"), true),
        (path("PathPrefix", "/a.b/..c/%2d"), true),
        (path("PathPrefix", "//"), false),
        (path("PathPrefix", "/a/./b"), false),
        (path("PathPrefix", "/a/../b"), false),
        (path("PathPrefix", "/a/."), false),
        (path("PathPrefix", "/a/.."), false),
        (path("PathPrefix", "/a%2Fb"), false),
        (path("PathPrefix", "/a%2fb"), false),
        (path("PathPrefix", "/a?b"), false),
        (path("PathPrefix", "/a#b"), false),
        (path("RegularExpression", ".*//"), true),
        (rule(r#""filters": [{}]"#), false),
        (rule(r#""filters": [{"type": "RequestMirror"}]"#), false),
        (rule(r#""filters": [{"type": "RequestMirror", "requestMirror": {}}]"#), false),
        (
            rule(r#""filters": [{"type": "RequestMirror", "requestMirror": {"cluster": "s"}}]"#),
            true,
        ),
        (rule(r#""filters": [{"type": "URLRewrite", "requestMirror": 5}]"#), true),
        (rule(r#""backendRefs": [{"name": "a", "filters": [{"type": "RequestMirror"}]}]"#), false),
        (rule(r#""backendRefs": [{"name": "a", "weight": -1}]"#), false),
        (rule(r#""timeouts": {"request": "1s"}, "retry": {}, "sessionPersistence": {}"#), true),
        (host("a"), true),
        (host("A.b-c.1"), true),
        (host("*.a.b"), true),
        (host("*"), false),
        (host("*.*.a"), false),
        (host("a.*.b"), false),
        (host("-a.b"), false),
        (host("a-.b"), false),
        (host("a..b"), false),
        (host("a.b:80"), false),
        (host(""), false),
        (host(&"a".repeat(253)), true),
        (host(&"a".repeat(254)), false),
        (call(r#"{"service": "s"}"#), true),
        (call(r#"{"method": "m"}"#), true),
        (call(r#"{"service": "", "method": "m"}"#), true),
        (call(r#"{"type": "Exact"}"#), false),
        (call(r#"{"service": "", "method": ""}"#), false),
        (call(r#"{"service": 5}"#), false),
    ] {
        agree(&serde_json::from_str(&config).expect(&config), is_good);
    }
}

/// What an editor lets pass, `make check` may still refuse; what it marks, the filter may take.
#[test]
fn what_a_schema_cannot_say_or_need_not_the_code_says() {
    let mirror = |fields: &str| format!(r#"{{"requestMirror": {{"cluster": "s", {fields}}}}}"#);
    let rule = |fields: &str| format!(r#"{{"httpRoutes": [{{"rules": [{{{fields}}}]}}]}}"#);
    for (why, config, schema_takes, code_takes) in [
        (
            "a numerator above its denominator",
            mirror(r#""fraction": {"numerator": 5, "denominator": 4}"#),
            true,
            false,
        ),
        ("a timeout of more than an hour", mirror(r#""timeout": "61m""#), true, false),
        (
            "a namespace that neither the route nor the service has",
            rule(
                r#""filters": [{"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "s", "port": 80}}}]"#,
            ),
            true,
            false,
        ),
        (
            "what is no regular expression",
            rule(r#""matches": [{"path": {"type": "RegularExpression", "value": "("}}]"#),
            true,
            false,
        ),
        (
            "null for absent, which kubectl prints and nobody need write",
            mirror(r#""percent": null"#),
            false,
            true,
        ),
    ] {
        let config = serde_json::from_str(&config).expect(&config);
        assert_eq!(VALIDATOR.is_valid(&config), schema_takes, "{why}: the schema");
        assert_eq!(complaint(&config).is_empty(), code_takes, "{why}: the code");
    }
}

/// A configuration that has every field but `requestMirror`, which excludes the others, with
/// values that are not their defaults.
fn everything() -> Value {
    json!({
        "requestMirrorBudget": 5,
        "maxBufferedBytes": 6,
        "clusterDomain": "corp.local",
        "httpRoutes": [{
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "HTTPRoute",
            "metadata":
                { "name": "n", "namespace": "ns", "creationTimestamp": "2025-01-01T00:00:00Z" },
            "spec": { "hostnames": ["a.test"], "rules": [{
                "matches": [{
                    "path": { "type": "Exact", "value": "/x" },
                    "method": "GET",
                    "headers": [{ "type": "RegularExpression", "name": "a", "value": "b" }],
                    "queryParams": [{ "type": "RegularExpression", "name": "a", "value": "b" }],
                }],
                "filters": [{ "type": "RequestMirror", "requestMirror": {
                    "cluster": "shadow",
                    "percent": 50,
                    "fraction": { "numerator": 1, "denominator": 4_294_967_295_u32 },
                    "timeout": "1s",
                    "maxBodyBytes": 7,
                } }],
                "backendRefs": [
                    { "name": "primary", "weight": 2, "filters": [{
                        "type": "RequestMirror",
                        "requestMirror": { "percent": 50, "backendRef": {
                            "group": "", "kind": "Service", "name": "s", "namespace": "n", "port": 80,
                        } },
                    }] },
                    { "name": "other", "weight": 5 },
                ],
            }] },
        }],
        "grpcRoutes": [{
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "GRPCRoute",
            "metadata": { "name": "n" },
            "spec": { "hostnames": ["a.test"], "rules": [{ "matches": [{
                "method": { "type": "RegularExpression", "service": "s", "method": "m" },
                "headers": [{ "name": "a", "value": "b" }],
            }] }] },
        }],
    })
}

/// Every part of the schema that describes a value on its own, by its JSON pointer.
fn parts() -> Vec<(String, Value)> {
    fn walk(at: String, node: &Value, parts: &mut Vec<(String, Value)>) {
        for inner in ["properties", "definitions"] {
            for (key, node) in node[inner].as_object().into_iter().flatten() {
                walk(format!("{at}/{inner}/{key}"), node, parts);
            }
        }
        if let Some(node) = node.get("items") {
            walk(format!("{at}/items"), node, parts);
        }
        parts.push((at, node.clone()));
    }
    let mut parts = Vec::new();
    walk(String::new(), &SCHEMA, &mut parts);
    parts
}

/// Where [`everything`] has what a part of the schema describes.
fn place(at: &str) -> String {
    let inside = PLACES.iter().filter_map(|(part, place)| Some((place, at.strip_prefix(part)?)));
    let (place, rest) = inside.min_by_key(|(_, rest)| rest.len()).unwrap();
    format!("{place}{}", rest.replace("/properties/", "/"))
}

/// [`everything`] with a change to what a part of the schema describes.
fn changed(at: &str, change: impl FnOnce(&mut Value)) -> Value {
    let mut config = everything();
    change(config.pointer_mut(&place(at)).unwrap_or_else(|| panic!("no place for {at}")));
    config
}

/// What the code has to say against a configuration.
fn complaint(config: &Value) -> String {
    let errors = Config::parse(config.to_string().as_bytes()).err().unwrap_or_default();
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// Fails unless the schema and the code both find a configuration good, or both bad.
fn agree(config: &Value, is_good: bool) {
    assert_eq!(VALIDATOR.is_valid(config), is_good, "the schema on {config}");
    assert_eq!(
        complaint(config).is_empty(),
        is_good,
        "the code on {config}: {}",
        complaint(config)
    );
}
