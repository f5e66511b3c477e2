use request_mirror::config::Config;

use super::find;

/// What the filter says about each configuration in a file: words, or what is wrong.
fn check(text: &str) -> String {
    let said = find(text).unwrap().into_iter().map(|found| {
        match Config::parse(found.written.as_bytes()) {
            Ok(config) => format!("{config}"),
            Err(errors) => errors.iter().map(|e| found.locate(&e.to_string()) + "\n").collect(),
        }
    });
    said.collect()
}

const FIVE: &str =
    "every request: 5 % to shadow, each within 100ms, bodies of up to 1048576 bytes\n";

#[test]
fn the_shipped_example_mirrors_five_percent() {
    assert_eq!(check(include_str!("../../../envoy/envoy.yaml")), FIVE);
}

#[test]
fn a_configuration_is_found_wherever_it_may_stand() {
    let mirror = "{ requestMirror: { cluster: shadow, percent: 5 } }";
    let json = r#"{"requestMirror": {"cluster": "shadow", "percent": 5}}"#;
    for text in [
        json.to_owned(),
        json.replace('{', "{\n\t"),
        format!("---\n---\n# nothing\n---\n  {}", mirror.trim_matches(['{', '}'])),
        format!("kind: WasmPlugin\nspec: {{ pluginConfig: {mirror} }}"),
        format!("kind: List\nitems: [ {{ kind: Service }}, {{ kind: X, a: {} }} ]", policy(mirror)),
        format!("- {}", envoy("Struct", &mirror.replace('5', "5.0"))),
        format!("kind: EnvoyFilter\nspec: {}", envoy("StringValue", &format!("'{json}'"))),
        format!("kind: HTTPRoute\nspec: {{}}\n---\nkind: X\nspec: {}", policy(mirror)),
    ] {
        assert_eq!(check(&text), FIVE, "{text}");
    }
}

#[test]
fn a_file_without_one_holds_none() {
    for text in [
        "",
        "kind: Service",
        "kind: WasmPlugin\nspec: { pluginConfig: {} }",
        "static_resources: { listeners: [] }",
        "kind: EnvoyExtensionPolicy\nspec: { targetRefs: [ { kind: HTTPRoute, name: a } ] }",
    ] {
        assert_eq!(find(text).unwrap().len(), 0, "{text}");
    }
}

#[test]
fn what_is_no_yaml_or_json_is_told_with_its_place() {
    for (text, expected) in [
        ("{\n  \"requestMirror\": {},\n}", "not JSON: trailing comma at line 3 column 1"),
        ("a: [\n", "not YAML: did not find expected node content at line 2 column 1"),
    ] {
        let why = find(text).unwrap_err();
        assert!(why.starts_with(expected), "{why}");
    }
}

#[test]
fn an_error_has_its_path_in_the_file() {
    let route = |kind: &str| {
        let filter = "{ type: RequestMirror, requestMirror: { cluster: s, percent: 150 } }";
        format!("{{ kind: {kind}, spec: {{ rules: [ {{ filters: [ {filter} ] }} ] }} }}")
    };
    let [http, grpc] = ["HTTPRoute", "GRPCRoute"].map(route);
    let too_much = "spec.rules[0].filters[0].requestMirror.percent: 150 is not in 0..=100\n";
    let mirror = "{ requestMirror: { cluster: s, percnt: 5 } }";
    let misspelt = "requestMirror.percnt: unknown field; did you mean percent?\n";
    let nothing = "has neither requestMirror nor httpRoutes; it must have one\n";
    for (text, expected) in [
        (format!("---\n{mirror}"), misspelt.to_owned()),
        (format!("---\n{http}"), too_much.to_owned()),
        (
            format!("---\n{http}\n---\n{grpc}\n---\n{http}"),
            format!("document 1: {too_much}document 3: {too_much}document 2: {too_much}"),
        ),
        (
            format!("kind: List\nitems: [ {{ kind: Service }}, {http} ]"),
            format!("items[1].{too_much}"),
        ),
        (
            format!("kind: WasmPlugin\nspec: {{ pluginConfig: {mirror} }}"),
            format!("spec.pluginConfig.{misspelt}"),
        ),
        (
            "kind: WasmPlugin\nspec: { url: 'oci://x/request-mirror', pluginConfig: }".to_owned(),
            format!("spec.pluginConfig: {nothing}"),
        ),
        (
            format!("kind: Service\n---\nkind: X\nspec: {}", policy(mirror)),
            format!("document 2: spec.wasm[1].config.{misspelt}"),
        ),
        (
            format!("a: {}", envoy("Struct", mirror)),
            format!("a.config.configuration.value.{misspelt}"),
        ),
        (
            format!("a: {}", envoy("StringValue", "'{'")),
            "a.config.configuration.value: not JSON: EOF while parsing an object at line 1 column 1\n"
                .to_owned(),
        ),
        (
            "a: { name: request_mirror, vm_config: {} }".to_owned(),
            format!("a.configuration: {nothing}"),
        ),
    ] {
        assert_eq!(check(&text), expected, "{text}");
    }
}

/// What an EnvoyExtensionPolicy specifies, with another plugin beside this filter.
fn policy(config: &str) -> String {
    let ours = format!("{{ code: {{}}, config: {config} }}");
    format!("{{ wasm: [ {{ name: other, code: {{}}, config: {{}} }}, {ours} ] }}")
}

/// A filter of Envoy's, its configuration a message of that type.
fn envoy(kind: &str, value: &str) -> String {
    let written = format!("{{ '@type': google.protobuf.{kind}, value: {value} }}");
    let plugin = format!("root_id: request_mirror, vm_config: {{}}, configuration: {written}");
    format!("{{ config: {{ {plugin} }} }}")
}
