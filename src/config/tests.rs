use super::*;

fn parse(json: &str) -> Result<Config, String> {
    Config::parse(json.as_bytes()).map_err(|errors| lines(&errors))
}

fn lines(errors: &[Error]) -> String {
    errors.iter().map(Error::to_string).collect::<Vec<_>>().join("\n")
}

/// What is wrong with a configuration.
fn wrong(json: &str) -> String {
    parse(json).err().unwrap_or_else(|| panic!("{json} was taken"))
}

/// The one target of a configuration with this mirror.
fn mirror(json: &str) -> Target {
    let config = parse(&format!(r#"{{"requestMirror": {{"cluster": "shadow", {json}}}}}"#));
    only_target(config.unwrap())
}

fn only_target(config: Config) -> Target {
    let Mirrors::Every(mut targets) = config.mirrors else { panic!("not the short form") };
    Rc::into_inner(targets.remove(0)).unwrap()
}

fn fraction(numerator: u32, denominator: u32) -> Fraction {
    Fraction::new(numerator, denominator).unwrap()
}

#[test]
fn what_is_absent_has_the_documented_default() {
    let config = parse(r#"{"requestMirror": {"cluster": "shadow", "percent": 5}}"#).unwrap();
    assert_eq!(config.limits, Limits { mirrors: 1024, bytes: 67_108_864 });
    let expected = Target {
        cluster: "shadow".to_owned(),
        fraction: fraction(5, 100),
        timeout: Duration::from_millis(100),
        max_body_bytes: 1_048_576,
    };
    assert!(config.warnings.is_empty());
    assert_eq!(only_target(config), expected);
}

#[test]
fn what_is_written_is_used() {
    let config = r#"{"requestMirrorBudget": 8, "maxBufferedBytes": 1000, "requestMirror":
        {"cluster": "a|b", "percent": 100, "timeout": "1m30s", "maxBodyBytes": 0}}"#;
    let config = parse(config).unwrap();
    assert_eq!(config.limits, Limits { mirrors: 8, bytes: 1000 });
    assert_eq!(config.longest_timeout(), Duration::from_secs(90));
    let target = only_target(config);
    assert_eq!((target.cluster.as_str(), target.max_body_bytes), ("a|b", 0));
}

#[test]
fn fraction_wins_over_percent() {
    for (json, expected) in [
        (r#""percent": 20"#, fraction(1, 5)),
        (r#""percent": 5.0"#, fraction(5, 100)),
        (r#""fraction": {"numerator": 25}"#, fraction(1, 4)),
        (r#""fraction": {"numerator": 1, "denominator": 1000}"#, fraction(1, 1000)),
        (r#""percent": 100, "fraction": {"numerator": 1, "denominator": 4}"#, fraction(1, 4)),
        (r#""percent": null, "fraction": {"numerator": 3, "denominator": 3}"#, fraction(1, 1)),
    ] {
        assert_eq!(mirror(json).fraction, expected, "{json}");
    }
}

#[test]
fn a_mirror_without_a_share_or_with_none_mirrors_nothing_and_says_so() {
    for (share, why) in [
        ("", "requestMirror: has neither percent nor fraction, so it mirrors nothing"),
        (r#", "percent": 0"#, "requestMirror: has a share of zero, so it mirrors nothing"),
        (
            r#", "percent": 9, "fraction": {"numerator": 0}"#,
            "requestMirror: has a share of zero, so it mirrors nothing",
        ),
    ] {
        let config = parse(&format!(r#"{{"requestMirror": {{"cluster": "s"{share}}}}}"#)).unwrap();
        assert_eq!((config.ceilings, config.warnings), (vec![], vec![why.to_owned()]));
    }
}

#[test]
fn a_struct_says_the_same_as_json() {
    // {"requestMirror": {"cluster": "shadow", "percent": 5}}
    let wire = b"\x0a\x3e\x0a\x0drequestMirror\x12\x2d\x2a\x2b\
        \x0a\x13\x0a\x07cluster\x12\x08\x1a\x06shadow\
        \x0a\x14\x0a\x07percent\x12\x09\x11\0\0\0\0\0\0\x14\x40";
    let json = parse("\n{\"requestMirror\": {\"cluster\": \"shadow\", \"percent\": 5}}").unwrap();
    assert_eq!(only_target(Config::parse(wire).unwrap()), only_target(json));
}

#[test]
fn an_error_names_the_place_the_value_and_the_rule() {
    for (json, expected) in [
        ("", "configuration: has neither requestMirror nor httpRoutes; it must have one"),
        ("{", "configuration: not JSON: EOF while parsing an object at line 1 column 1"),
        ("[]", "configuration: is not an object"),
        ("5", "configuration: 5 is not an object"),
        ("{}", "configuration: has neither requestMirror nor httpRoutes; it must have one"),
        (r#"{"requestMirror": "shadow"}"#, r#"requestMirror: "shadow" is not an object"#),
        (r#"{"requestmirror": {}}"#, "requestmirror: unknown field; did you mean requestMirror?"),
        (
            "{\"a\\nb\": 1}",
            "a\\nb: unknown field; known are requestMirror, httpRoutes, grpcRoutes, \
             requestMirrorBudget, maxBufferedBytes, clusterDomain",
        ),
        (
            r#"{"mirror": {}}"#,
            "mirror: unknown field; known are requestMirror, httpRoutes, grpcRoutes, \
             requestMirrorBudget, maxBufferedBytes, clusterDomain",
        ),
        (
            r#"{"requestMirror": {}}"#,
            "requestMirror: has neither cluster nor backendRef; it must have one",
        ),
        (
            r#"{"requestMirror": {"cluster": ""}}"#,
            r#"requestMirror.cluster: "" is empty; it must name an Envoy cluster"#,
        ),
        (r#"{"requestMirror": {"cluster": 7}}"#, "requestMirror.cluster: 7 is not a string"),
        (
            r#"{"requestMirror": {"cluster": "s", "precent": 5}}"#,
            "requestMirror.precent: unknown field; did you mean percent?",
        ),
        (
            r#"{"requestMirror": {"cluster": "s", "percent": 150}}"#,
            "requestMirror.percent: 150 is not in 0..=100",
        ),
        (
            r#"{"requestMirror": {"cluster": "s", "percent": 0.5}}"#,
            "requestMirror.percent: 0.5 is not in 0..=100",
        ),
        (
            r#"{"requestMirror": {"cluster": "s", "percent": -1}}"#,
            "requestMirror.percent: -1 is not in 0..=100",
        ),
        (
            r#"{"requestMirror": {"cluster": "s", "percent": "5"}}"#,
            r#"requestMirror.percent: "5" is not a whole number in 0..=100"#,
        ),
        (
            r#"{"requestMirror": {"cluster": "s", "percent": 150, "fraction": {"numerator": 1}}}"#,
            "requestMirror.percent: 150 is not in 0..=100",
        ),
        (
            r#"{"requestMirror": {"cluster": "s", "fraction": {"denominator": 3}}}"#,
            "requestMirror.fraction.numerator: is missing",
        ),
        (
            r#"{"requestMirror": {"cluster": "s", "fraction": {"numerator": 1, "denominator": 0}}}"#,
            "requestMirror.fraction.denominator: 0 is not in 1..=4294967295",
        ),
        (
            r#"{"requestMirror": {"cluster": "s", "fraction": {"numerator": 101}}}"#,
            "requestMirror.fraction: numerator 101 is above denominator 100",
        ),
        (
            r#"{"requestMirror": {"cluster": "s", "timeout": "0s"}}"#,
            r#"requestMirror.timeout: "0s" is not in 1ms..=3600s"#,
        ),
        (
            r#"{"requestMirror": {"cluster": "s", "timeout": "61m"}}"#,
            r#"requestMirror.timeout: "61m" is not in 1ms..=3600s"#,
        ),
        (
            r#"{"requestMirror": {"cluster": "s", "timeout": 100}}"#,
            "requestMirror.timeout: 100 is not a string",
        ),
        (
            r#"{"requestMirror": {"cluster": "s", "timeout": "soon"}}"#,
            r#"requestMirror.timeout: "soon" is not a duration such as 100ms, 1s or 1m30s"#,
        ),
        (
            r#"{"requestMirror": {"cluster": "s", "maxBodyBytes": 1099511627777}}"#,
            "requestMirror.maxBodyBytes: 1099511627777 is not in 0..=1099511627776",
        ),
        (
            r#"{"requestMirrorBudget": 0, "requestMirror": {"cluster": "s"}}"#,
            "requestMirrorBudget: 0 is not in 1..=1000000",
        ),
        (
            r#"{"maxBufferedBytes": "64Mi", "requestMirror": {"cluster": "s"}}"#,
            r#"maxBufferedBytes: "64Mi" is not a whole number in 0..=1099511627776"#,
        ),
    ] {
        assert_eq!(wrong(json), expected);
    }
}

#[test]
fn all_that_is_wrong_is_found_at_once() {
    let json = r#"{"requestMirrorBudget": 0, "httpRoutes": [
        {"kind": "Service"},
        {"rules": [{"filters": [
            {"type": "RequestMirror", "requestMirror": {"cluster": "s", "percent": 101}},
            {"type": "RequestMirror", "requestMirror": {"cluster": ""}}
        ]}, {"matches": [{"method": "get"}]}]}
    ]}"#;
    let errors = wrong(json);
    let places: Vec<_> = errors.lines().map(|line| line.split(": ").next().unwrap()).collect();
    let expected = [
        "httpRoutes[0].kind",
        "httpRoutes[1].rules[0].filters[0].requestMirror.percent",
        "httpRoutes[1].rules[0].filters[1].requestMirror.cluster",
        "httpRoutes[1].rules[1].matches[0].method",
        "requestMirrorBudget",
    ];
    assert_eq!(places, expected);
}

#[test]
fn a_configuration_can_be_said_in_words() {
    let short = parse(r#"{"requestMirror": {"cluster": "shadow", "percent": 5}}"#).unwrap();
    let expected =
        "every request: 5 % to shadow, each within 100ms, bodies of up to 1048576 bytes\n";
    assert_eq!(short.to_string(), expected);
    let routes = parse(
        r#"{"httpRoutes": [{"hostnames": ["a.test", "*.b.test"], "rules": [
            {"matches": [{"path": {"value": "/api"}, "method": "GET"}, {"path": {"type": "Exact", "value": "/x"},
                "headers": [{"name": "V", "value": "1"}], "queryParams": [{"name": "q", "type": "RegularExpression", "value": "[0-9]"}]}],
             "filters": [{"type": "RequestMirror", "requestMirror": {"cluster": "s", "timeout": "1s", "maxBodyBytes": 0,
                "fraction": {"numerator": 1, "denominator": 3000}}}]}]},
            {"rules": [{"matches": [{"path": {"type": "RegularExpression", "value": "/r.*"}}, {}]}]}]}"#,
    );
    let mirrored = "0.0333333333 % to s, each within 1s, bodies of up to 0 bytes";
    let expected = format!(
        "a.test/x, header v=1, query q like [0-9]: {mirrored}\n\
         a.test/api/…, GET: {mirrored}\n\
         *.b.test/x, header v=1, query q like [0-9]: {mirrored}\n\
         *.b.test/api/…, GET: {mirrored}\n\
         * with a path like /r.*: not mirrored\n\
         */…: not mirrored\n\
         any other request: not mirrored\n"
    );
    assert_eq!(routes.unwrap().to_string(), expected);
}
