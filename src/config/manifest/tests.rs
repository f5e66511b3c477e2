use serde_json::{Value, json};

use crate::config::Config;
use crate::head::Head;
use crate::sampling::{Dice, Draws};
use crate::testing::serialize;

/// A request written as `METHOD authority/path header=value …`.
fn request(line: &str) -> Head {
    let mut words = line.split(' ');
    let method = words.next().unwrap();
    let target = words.next().unwrap();
    let (authority, path) = target.split_at(target.find('/').unwrap());
    let mut headers = vec![
        (":authority", authority.as_bytes()),
        (":path", path.as_bytes()),
        (":method", method.as_bytes()),
    ];
    let pairs = words.map(|pair| pair.split_once('=').unwrap());
    headers.extend(pairs.map(|(name, value)| (name, value.as_bytes())));
    Head::parse(serialize(&headers)).unwrap()
}

fn draws() -> Draws {
    Dice::new(1).for_request()
}

fn config(written: &Value) -> Result<Config, String> {
    Config::parse(written.to_string().as_bytes()).map_err(|errors| errors[0].to_string())
}

/// The clusters that requests of a configuration go to, all mirrors of it being for all requests.
fn clusters(config: &Config, line: &str) -> String {
    let targets = config.targets(&draws(), &request(line));
    targets.iter().map(|target| target.cluster.as_str()).collect::<Vec<_>>().join(" ")
}

/// A mirror of all requests to a cluster of this name.
fn mirror(cluster: &str) -> Value {
    json!({ "type": "RequestMirror", "requestMirror": { "cluster": cluster, "percent": 100 } })
}

/// A route whose rules have these matches, and a mirror to a cluster of the rule's name.
fn route(rules: &[(&str, Value)]) -> Value {
    let rule =
        |(name, matches): &(&str, Value)| json!({ "matches": matches, "filters": [mirror(name)] });
    json!({ "rules": rules.iter().map(rule).collect::<Vec<_>>() })
}

/// Checks which rule's mirror each request goes to; `""` for none.
fn check(routes: &Value, cases: &[(&str, &str)]) {
    let config = config(&json!({ "httpRoutes": routes })).unwrap();
    for (line, expected) in cases {
        assert_eq!(clusters(&config, line), *expected, "{line}");
    }
}

fn path(kind: &str, value: &str) -> Value {
    json!([{ "path": { "type": kind, "value": value } }])
}

/// The error that a configuration with one rule of this content is refused with.
fn wrong_rule(rule: Value) -> String {
    config(&json!({ "httpRoutes": [{ "spec": { "rules": [rule] } }] })).err().unwrap_or_default()
}

#[test]
fn the_manifest_of_the_contract_works_as_it_stands() {
    let manifest = json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": { "name": "production-route", "namespace": "nantian-demo" },
        "spec": {
            "parentRefs": [{ "name": "nantian-gateway" }],
            "rules": [{
                "matches": [{ "path": { "type": "PathPrefix", "value": "/api" } }],
                "backendRefs": [{ "name": "production-service", "port": 8080 }],
                "filters": [{
                    "type": "RequestMirror",
                    "requestMirror": {
                        "backendRef":
                            { "name": "canary-service", "namespace": "nantian-demo", "port": 8080 },
                        "percent": 5
                    }
                }]
            }]
        }
    });
    let config = config(&json!({ "httpRoutes": [manifest] })).unwrap();
    let dice = Dice::new(1);
    let draws = std::iter::repeat_with(|| dice.for_request()).take(10_000);
    let picked: Vec<_> = draws.filter(|draws| config.may_mirror(draws)).collect();
    let sigma = (10_000.0 * 0.05 * 0.95_f64).sqrt();
    assert!((picked.len() as f64 - 500.0).abs() <= 3.0 * sigma, "{} picked", picked.len());
    for draws in picked {
        let targets = config.targets(&draws, &request("GET example.com/api/x"));
        assert_eq!(
            targets[0].cluster,
            "outbound|8080||canary-service.nantian-demo.svc.cluster.local"
        );
        assert!(config.targets(&draws, &request("GET example.com/apix")).is_empty());
    }
}

#[test]
fn paths_match_exactly_by_element_or_by_a_whole_regular_expression() {
    check(
        &json!([route(&[
            ("exact", path("Exact", "/exact")),
            ("exact-slash", path("Exact", "/slash/")),
            ("api", path("PathPrefix", "/api")),
            ("v1", path("PathPrefix", "/api/v1/")),
            ("regex", path("RegularExpression", "/r/[0-9]+")),
            ("case", path("RegularExpression", "(?i)/CASE")),
            ("either", path("RegularExpression", "/left|/right")),
            ("root", json!([{ "path": { "type": "RegularExpression" } }])),
        ])]),
        &[
            ("GET a/exact", "exact"),
            ("GET a/exact?x=1", "exact"),
            ("GET a/exact/", ""),
            ("GET a/exactly", ""),
            ("GET a/EXACT", ""),
            ("GET a/slash/", "exact-slash"),
            ("GET a/slash", ""),
            ("GET a/api", "api"),
            ("GET a/api/", "api"),
            ("GET a/api?x=1", "api"),
            ("GET a/api/x", "api"),
            ("GET a/api/v2", "api"),
            ("GET a/api/v1", "v1"),
            ("GET a/api/v1/", "v1"),
            ("GET a/api/v1/x", "v1"),
            ("GET a/api/v1?x", "v1"),
            ("GET a/api/v11", "api"),
            ("GET a/apix", ""),
            ("GET a/ap", ""),
            ("GET a/x/api", ""),
            ("GET a//api", ""),
            ("GET a/%61pi", ""),
            ("GET a/r/12", "regex"),
            ("GET a/r/12?x=/r/y", "regex"),
            ("GET a/r/12/x", ""),
            ("GET a/r/", ""),
            ("GET a/x/r/12", ""),
            ("GET a/case", "case"),
            ("GET a/left", "either"),
            ("GET a/right", "either"),
            ("GET a/leftright", ""),
            ("GET a/", "root"),
        ],
    );
}

#[test]
fn an_exact_path_goes_before_a_regular_expression_and_that_before_the_longest_prefix() {
    check(
        &json!([route(&[
            ("all", path("PathPrefix", "/")),
            ("prefix", path("PathPrefix", "/a/b/c/d")),
            ("regex", path("RegularExpression", "/a/.*")),
            ("longer-regex", path("RegularExpression", "/a/b/[c]+")),
            ("exact", path("Exact", "/a/b")),
        ])]),
        &[
            ("GET h/a/b", "exact"),
            ("GET h/a/b/c", "longer-regex"),
            ("GET h/a/b/c/d", "regex"),
            ("GET h/a/b/c/d/e", "regex"),
            ("GET h/b", "all"),
            ("GET h/", "all"),
        ],
    );
}

#[test]
fn of_equal_paths_a_method_goes_first_then_most_headers_then_most_query_params_then_the_order() {
    let p = json!({ "type": "PathPrefix", "value": "/p" });
    let header =
        |names: &[&str]| names.iter().map(|n| json!({"name": n, "value": "1"})).collect::<Vec<_>>();
    check(
        &json!([route(&[
            ("none", json!([{ "path": p }])),
            ("same", json!([{ "path": p }])),
            ("query", json!([{ "path": p, "queryParams": header(&["q"]) }])),
            ("queries", json!([{ "path": p, "queryParams": header(&["q", "r"]) }])),
            ("header", json!([{ "path": p, "headers": header(&["x"]) }])),
            ("headers", json!([{ "path": p, "headers": header(&["x", "y"]) }])),
            ("method", json!([{ "path": p, "method": "PUT" }])),
            ("longer", json!([{ "path": { "value": "/p/longer" } }])),
        ])]),
        &[
            ("GET h/p", "none"),
            ("GET h/p?q=1", "query"),
            ("GET h/p?r=1", "none"),
            ("GET h/p?q=1&r=1", "queries"),
            ("GET h/p?r=1&q=1", "queries"),
            ("GET h/p x=1", "header"),
            ("GET h/p?q=1&r=1 x=1", "header"),
            ("GET h/p x=1 y=1", "headers"),
            ("GET h/p x=2 y=1", "none"),
            ("PUT h/p x=1 y=1", "method"),
            ("PUT h/p?q=1 x=1", "method"),
            ("PUT h/p/longer x=1 y=1", "longer"),
        ],
    );
}

#[test]
fn the_examples_of_the_gateway_api_choose_as_it_says() {
    // A rule is matched if any one of its matches is, and a match if all of its conditions are.
    check(
        &json!([route(&[(
            "either",
            json!([
                { "path": { "value": "/foo" }, "headers": [{ "name": "version", "value": "v2" }] },
                { "path": { "value": "/v2/foo" } }
            ])
        )])]),
        &[
            ("GET h/foo version=v2", "either"),
            ("GET h/foo/bar version=v2", "either"),
            ("GET h/foo version=v1", ""),
            ("GET h/foo", ""),
            ("GET h/v2/foo", "either"),
            ("GET h/v2/foo version=v1", "either"),
            ("GET h/v2", ""),
        ],
    );
    // /abc as a prefix.
    check(
        &json!([route(&[("abc", path("PathPrefix", "/abc"))])]),
        &[
            ("GET h/abc", "abc"),
            ("GET h/abc/", "abc"),
            ("GET h/abc/def", "abc"),
            ("GET h/abcd", ""),
        ],
    );
}

#[test]
fn the_most_specific_hostname_chooses_the_routes_and_others_are_not_asked() {
    let hosts = |names: Value, rules: &[(&str, Value)]| {
        let mut route = route(rules);
        route["hostnames"] = names;
        route
    };
    check(
        &json!([
            route(&[("any", json!([{}])), ("any-x", path("Exact", "/x"))]),
            hosts(json!(["*.example.com"]), &[("wild", json!([{}]))]),
            hosts(json!(["*.b.example.com"]), &[("wilder", json!([{}]))]),
            hosts(json!(["a.example.com", "Other.test"]), &[("exact", path("PathPrefix", "/e"))]),
            hosts(json!(["a.example.com"]), &[("exact-too", path("Exact", "/e/2"))]),
        ]),
        &[
            ("GET a.example.com/e", "exact"),
            ("GET a.example.com/e/2", "exact-too"),
            ("GET a.example.com/x", ""),
            ("GET A.EXAMPLE.com/e", "exact"),
            ("GET a.example.com:8080/e", "exact"),
            ("GET other.test/e", "exact"),
            ("GET other.test/x", ""),
            ("GET c.example.com/x", "wild"),
            ("GET c.d.example.com/x", "wild"),
            ("GET b.example.com/x", "wild"),
            ("GET a.b.example.com/x", "wilder"),
            ("GET z.a.b.example.com:1/x", "wilder"),
            ("GET example.com/x", "any-x"),
            ("GET notexample.com/y", "any"),
            ("GET [::1]:80/y", "any"),
            ("GET /y", "any"),
        ],
    );
}

#[test]
fn across_routes_the_more_specific_match_wins_then_the_older_route_then_its_name() {
    let named = |name: &str, created: Option<&str>, rules: &[(&str, Value)]| {
        let metadata = json!({ "name": name, "namespace": "n", "creationTimestamp": created });
        json!({ "metadata": metadata, "spec": route(rules) })
    };
    let x = || path("Exact", "/x");
    check(
        &json!([
            named("d", None, &[("d", x()), ("d-api", path("PathPrefix", "/api"))]),
            named(
                "c",
                Some("2025-01-01T00:00:00Z"),
                &[("younger", x()), ("c-yz", path("Exact", "/y"))]
            ),
            named("b", Some("2024-01-01T00:00:00Z"), &[("older", x())]),
            named(
                "a",
                None,
                &[("a", path("Exact", "/z")), ("a-api", path("PathPrefix", "/api/v1"))]
            ),
            named("e", None, &[("e", path("Exact", "/z"))]),
        ]),
        &[
            ("GET h/x", "older"),
            ("GET h/y", "c-yz"),
            ("GET h/z", "a"),
            ("GET h/api", "d-api"),
            ("GET h/api/v1", "a-api"),
        ],
    );
}

#[test]
fn a_value_that_would_keep_a_regular_expression_busy_fits_none() {
    let config = config(&json!({ "httpRoutes": [route(&[
        ("regex", path("RegularExpression", "/.*")),
        ("all", path("PathPrefix", "/")),
    ])] }));
    let config = config.unwrap();
    assert_eq!(clusters(&config, &format!("GET h/{}", "x".repeat(4095))), "regex");
    assert_eq!(clusters(&config, &format!("GET h/{}", "x".repeat(4096))), "all");
}

#[test]
fn headers_match_by_a_name_in_any_case_and_by_their_joined_value() {
    let header = |name: &str, kind: &str, value: &str| json!([{ "headers": [{ "name": name, "type": kind, "value": value }] }]);
    check(
        &json!([route(&[
            ("exact", header("X-Exact", "Exact", "one")),
            ("joined", header("x-many", "Exact", "1,2")),
            ("regex", header("x-regex", "RegularExpression", "v[0-9]+")),
            ("host", header("Host", "Exact", "h.test")),
            (
                "first",
                json!([{ "headers": [
                { "name": "x-twice", "value": "a" }, { "name": "X-Twice", "value": "b" }
            ] }])
            ),
        ])]),
        &[
            ("GET a/ x-exact=one", "exact"),
            ("GET a/ x-exact=One", ""),
            ("GET a/ x-exact=one2", ""),
            ("GET a/ x-many=1 x-many=2", "joined"),
            ("GET a/ x-many=1,2", "joined"),
            ("GET a/ x-many=1", ""),
            ("GET a/ x-regex=v12", "regex"),
            ("GET a/ x-regex=v12b", ""),
            ("GET a/ x-regex=av1", ""),
            ("GET h.test/", "host"),
            ("GET a/ x-twice=a", "first"),
            ("GET a/ x-twice=b", ""),
        ],
    );
}

#[test]
fn query_params_match_by_their_first_value_decoded() {
    let param = |name: &str, kind: &str, value: &str| json!([{ "queryParams": [{ "name": name, "type": kind, "value": value }] }]);
    check(
        &json!([route(&[
            ("exact", param("q", "Exact", "a b")),
            ("regex", param("n", "RegularExpression", "[0-9]+")),
            ("empty", param("e", "RegularExpression", "")),
        ])]),
        &[
            ("GET a/?q=a%20b", "exact"),
            ("GET a/?q=a+b", "exact"),
            ("GET a/?%71=a%20b", "exact"),
            ("GET a/?Q=a%20b", ""),
            ("GET a/?q=a%20b&q=x", "exact"),
            ("GET a/?q=x&q=a%20b", ""),
            ("GET a/?x=1&n=12", "regex"),
            ("GET a/?n=12x", ""),
            ("GET a/?n", ""),
            ("GET a/?e", "empty"),
            ("GET a/?e=", "empty"),
            ("GET a/#?q=a%20b", ""),
        ],
    );
}

#[test]
fn a_chosen_rule_without_mirrors_mirrors_nothing() {
    let routes = json!([{ "rules": [
        { "matches": path("PathPrefix", "/"), "filters": [mirror("all")] },
        { "matches": path("PathPrefix", "/quiet") },
    ] }]);
    check(&routes, &[("GET h/quiet/x", ""), ("GET h/x", "all")]);
}

#[test]
fn a_rule_may_have_several_mirrors_among_other_filters() {
    let routes = json!([{ "rules": [{ "filters": [
        mirror("one"),
        { "type": "RequestHeaderModifier", "requestHeaderModifier": { "set": [] } },
        mirror("two"),
        { "type": "SomethingNew" },
    ], "timeouts": { "request": "1s" } }] }]);
    check(&routes, &[("GET h/", "one two")]);
}

#[test]
fn a_mirror_of_one_backend_gets_that_backends_share_of_the_rule() {
    let backends = |a: u32, b: u32| {
        json!({ "httpRoutes": [{ "rules": [{ "backendRefs": [
            { "name": "a", "port": 1, "weight": a, "filters": [mirror("of-a")] },
            { "name": "b", "port": 1, "weight": b },
        ] }] }] })
    };
    for (a, b, percent) in [(1, 3, 25.0), (5, 0, 100.0)] {
        let config = config(&backends(a, b)).unwrap();
        assert_eq!(config.ceilings[0].percent(), percent, "{a}:{b}");
    }
    for (a, b) in [(0, 5), (0, 0)] {
        let config = config(&backends(a, b)).unwrap();
        let place = "httpRoutes[0].rules[0].backendRefs[0].filters[0].requestMirror";
        let warning = format!("{place}: the backend has no weight, so it mirrors nothing");
        assert_eq!((config.ceilings, config.warnings[0].clone()), (vec![], warning), "{a}:{b}");
    }
}

#[test]
fn grpc_calls_match_by_service_and_method() {
    let rule = |name: &str, method: Value| json!({ "matches": [{ "method": method }], "filters": [mirror(name)] });
    let routes = json!([{ "kind": "GRPCRoute", "spec": { "rules": [
        rule("method", json!({ "method": "Get" })),
        rule("service", json!({ "service": "pkg.Users" })),
        rule("both", json!({ "service": "pkg.Users", "method": "Get" })),
        rule("regex", json!({ "type": "RegularExpression", "service": "re\\..*|X", "method": "(Get|Put)" })),
        { "matches": [{ "headers": [{ "name": "all", "value": "1" }] }], "filters": [mirror("header")] },
    ] } }]);
    let config = config(&json!({ "grpcRoutes": routes })).unwrap();
    for (path, expected) in [
        ("/pkg.Users/Get", "both"),
        ("/pkg.Users/Put", "service"),
        ("/pkg.Other/Get", "method"),
        ("/pkg.Other/Put", ""),
        ("/pkg.Users2/Put", ""),
        ("/re.x/Put", "regex"),
        ("/X/Get", "regex"),
        ("/X/GetAll", ""),
    ] {
        let line = format!("POST h{path} content-type=application/grpc+proto");
        assert_eq!(clusters(&config, &line), expected, "{line}");
    }
    let all = "POST h/a.B/C content-type=application/grpc all=1";
    assert_eq!(clusters(&config, all), "header");
    assert_eq!(clusters(&config, "POST h/pkg.Users/Get content-type=application/json"), "");
}

#[test]
fn http_and_grpc_routes_stand_beside_each_other() {
    let written = json!({
        "httpRoutes": [route(&[("http", path("PathPrefix", "/web"))])],
        "grpcRoutes": [{ "rules": [{ "filters": [mirror("grpc")] }] }],
    });
    let config = config(&written).unwrap();
    assert_eq!(clusters(&config, "GET h/web"), "http");
    assert_eq!(clusters(&config, "POST h/a.B/C content-type=application/grpc"), "grpc");
    assert_eq!(clusters(&config, "GET h/other"), "");
}

#[test]
fn what_is_legal_but_mirrors_nothing_is_said() {
    for (written, expected) in [
        (json!({ "httpRoutes": [] }), vec![]),
        (
            json!({ "httpRoutes": [{ "rules": [{}] }] }),
            vec!["configuration: no rule mirrors anything"],
        ),
        (
            json!({ "httpRoutes": [{ "rules": [{ "filters": [
                { "type": "RequestMirror", "requestMirror": { "cluster": "s" } }, mirror("t"),
            ] }] }] }),
            vec![
                "httpRoutes[0].rules[0].filters[0].requestMirror: has neither percent nor \
                 fraction, so it mirrors nothing",
            ],
        ),
    ] {
        assert_eq!(config(&written).unwrap().warnings, expected);
    }
}

#[test]
fn a_backend_names_its_cluster_as_istio_does() {
    let backend = |backend: Value, namespace: Option<&str>| {
        let mirror = json!({ "percent": 100, "backendRef": backend });
        let filters = json!([{ "type": "RequestMirror", "requestMirror": mirror }]);
        let metadata = json!({ "namespace": namespace });
        let route = json!({ "metadata": metadata, "spec": { "rules": [{ "filters": filters }] } });
        let written = json!({ "httpRoutes": [route], "clusterDomain": "corp.local" });
        config(&written).map(|config| clusters(&config, "GET h/"))
    };
    let of = |name: &str| Ok(name.to_owned());
    assert_eq!(
        backend(json!({ "name": "s", "port": 80 }), Some("ns")),
        of("outbound|80||s.ns.svc.corp.local")
    );
    assert_eq!(
        backend(
            json!({ "group": "", "kind": "Service", "name": "s", "namespace": "m", "port": 8080.0 }),
            None
        ),
        of("outbound|8080||s.m.svc.corp.local")
    );
    let at = "httpRoutes[0].spec.rules[0].filters[0].requestMirror.backendRef";
    for (written, expected) in [
        (
            json!({ "name": "s", "port": 1 }),
            ".namespace: is missing, and the route has none either",
        ),
        (json!({ "name": "s", "namespace": "n" }), ".port: is missing"),
        (json!({ "name": "s", "namespace": "n", "port": 0 }), ".port: 0 is not in 1..=65535"),
        (json!({ "port": 1, "namespace": "n" }), ".name: is missing"),
        (
            json!({ "name": "S", "port": 1, "namespace": "n" }),
            ".name: \"S\" is not a name of lower-case letters, digits, - and .",
        ),
        (
            json!({ "kind": "Backend", "name": "s", "port": 1 }),
            ".kind: \"Backend\" is not a Service; name its Envoy cluster in `cluster` instead",
        ),
        (
            json!({ "group": "multicluster.x-k8s.io", "name": "s", "port": 1 }),
            ".group: \"multicluster.x-k8s.io\" is not a Service; name its Envoy cluster in `cluster` instead",
        ),
        (json!({ "nmae": "s" }), ".nmae: unknown field; did you mean name?"),
    ] {
        assert_eq!(backend(written, None), Err(format!("{at}{expected}")));
    }
}

#[test]
fn an_error_names_the_place_in_the_manifest() {
    for (written, expected) in [
        (json!({ "httpRoutes": {} }), "httpRoutes: is not a list"),
        (json!({ "httpRoutes": ["x"] }), "httpRoutes[0]: \"x\" is not an object"),
        (
            json!({ "httpRoutes": [{ "kind": "Service" }] }),
            "httpRoutes[0].kind: \"Service\" is not one of HTTPRoute",
        ),
        (
            json!({ "httpRoutes": [{}, { "apiVersion": "v1" }] }),
            "httpRoutes[1].apiVersion: \"v1\" is not one of gateway.networking.k8s.io/v1, \
             gateway.networking.k8s.io/v1beta1",
        ),
        (
            json!({ "httpRoutes": [{ "spec": { "hostnames": ["*"] } }] }),
            "httpRoutes[0].spec.hostnames[0]: \"*\" is not a hostname such as example.com or *.example.com",
        ),
        (
            json!({ "requestMirror": { "cluster": "s" }, "httpRoutes": [] }),
            "configuration: has both requestMirror and routes; it must have one of them",
        ),
        (
            json!({ "grpcRoutes": [{ "rules": [{ "matches": [{ "method": {} }] }] }] }),
            "grpcRoutes[0].rules[0].matches[0].method: has neither service nor method; it must have one",
        ),
        (
            json!({ "httpRoutes": [], "clusterDomain": "a|b" }),
            "clusterDomain: \"a|b\" is not a name of lower-case letters, digits, - and .",
        ),
    ] {
        assert_eq!(config(&written).err().unwrap_or_default(), expected);
    }
    let at = "httpRoutes[0].spec.rules[0]";
    for (rule, expected) in [
        (
            json!({ "filters": [{ "type": "RequestMirror", "requestMirror": { "cluster": "s", "percent": 150 } }] }),
            ".filters[0].requestMirror.percent: 150 is not in 0..=100",
        ),
        (
            json!({ "filters": [{ "type": "RequestMirror" }] }),
            ".filters[0].requestMirror: is missing",
        ),
        (json!({ "filters": [{}] }), ".filters[0].type: is missing"),
        (
            json!({ "backendRefs": [{ "filters": [{ "type": "RequestMirror", "requestMirror": {} }] }] }),
            ".backendRefs[0].filters[0].requestMirror: has neither cluster nor backendRef; it must have one",
        ),
        (
            json!({ "filters": [{ "type": "RequestMirror", "requestMirror":
                { "cluster": "s", "backendRef": { "name": "t" } } }] }),
            ".filters[0].requestMirror: has both cluster and backendRef; it must have one",
        ),
        (
            json!({ "matches": [{ "pth": {} }] }),
            ".matches[0].pth: unknown field; did you mean path?",
        ),
        (
            json!({ "matches": [{ "method": "get" }] }),
            ".matches[0].method: \"get\" is not one of GET, HEAD, POST, PUT, DELETE, CONNECT, OPTIONS, TRACE, PATCH",
        ),
        (
            json!({ "matches": path("Prefix", "/") }),
            ".matches[0].path.type: \"Prefix\" is not one of PathPrefix, Exact, RegularExpression",
        ),
        (
            json!({ "matches": path("Exact", "api") }),
            ".matches[0].path.value: \"api\" does not start with /",
        ),
        (
            json!({ "matches": path("PathPrefix", "/a/../b") }),
            ".matches[0].path.value: \"/a/../b\" contains /../, so no request's path is like it",
        ),
        (
            json!({ "matches": path("Exact", "/a/..") }),
            ".matches[0].path.value: \"/a/..\" ends with a dot segment, so no request's path is like it",
        ),
        (
            json!({ "matches": path("RegularExpression", "/(") }),
            ".matches[0].path.value: \"/(\" is not a regular expression: found open group without closing ')'",
        ),
        (
            json!({ "matches": path("RegularExpression", "/a)|(/b") }),
            ".matches[0].path.value: \"/a)|(/b\" is not a regular expression: found closing ')' without matching '('",
        ),
        (
            json!({ "matches": path("RegularExpression", "/(.{1,200}/){1,20}") }),
            ".matches[0].path.value: \"/(.{1,200}/){1,20}\" is not a regular expression: compiled regex exceeded size limit",
        ),
        (
            json!({ "matches": [{ "headers": [{ "name": "a" }] }] }),
            ".matches[0].headers[0].value: is missing",
        ),
    ] {
        assert_eq!(wrong_rule(rule), format!("{at}{expected}"));
    }
}
