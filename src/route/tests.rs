//! The chosen rule equals that of a reference which knows no index and no order: it asks every match
//! of every rule, and sorts those that fit by the words of the Gateway API.

use std::cmp::Reverse;

use super::*;
use crate::testing::serialize;

/// A match as a test writes it down.
#[derive(Clone, Debug)]
struct Plain {
    path: (&'static str, &'static str),
    method: Option<&'static str>,
    headers: Vec<(&'static str, &'static str)>,
    query_params: Vec<(&'static str, &'static str)>,
}

#[derive(Debug)]
struct PlainRoute {
    hostnames: Vec<&'static str>,
    rules: Vec<Vec<Plain>>,
    created: Option<&'static str>,
    name: Option<&'static str>,
}

#[derive(Debug)]
struct PlainRequest {
    host: &'static str,
    path: String,
    query: Vec<(&'static str, &'static str)>,
    method: &'static str,
    headers: Vec<(&'static str, &'static str)>,
}

const HOSTS: [&str; 6] =
    ["a.test", "b.a.test", "c.b.a.test", "other.test", "*.a.test", "*.b.a.test"];
const ELEMENTS: [&str; 4] = ["api", "apix", "v1", "x"];
const VALUES: [&str; 3] = ["1", "2", "12"];
const NAMES: [&str; 3] = ["p", "q", "r"];
const METHODS: [&str; 3] = ["GET", "POST", "HEAD"];
const PATHS: [(&str, &str); 11] = [
    ("prefix", "/"),
    ("prefix", "/api"),
    ("prefix", "/api/v1"),
    ("prefix", "/apix"),
    ("exact", "/"),
    ("exact", "/api"),
    ("exact", "/api/v1"),
    ("regex", "/api/.*"),
    ("regex", "/.*"),
    ("regex", "/(x|v1)(/x)?"),
    ("regex", "x"),
];

fn pick<T: Copy>(rng: &mut fastrand::Rng, from: &[T]) -> T {
    from[rng.usize(..from.len())]
}

fn maybe<T>(rng: &mut fastrand::Rng, make: impl FnOnce(&mut fastrand::Rng) -> T) -> Option<T> {
    rng.bool().then(|| make(rng))
}

fn pairs(rng: &mut fastrand::Rng) -> Vec<(&'static str, &'static str)> {
    let mut names = NAMES.to_vec();
    rng.shuffle(&mut names);
    names.truncate(rng.usize(..3));
    names.into_iter().map(|name| (name, pick(rng, &VALUES))).collect()
}

fn plain_match(rng: &mut fastrand::Rng) -> Plain {
    Plain {
        path: pick(rng, &PATHS),
        method: maybe(rng, |rng| pick(rng, &METHODS)),
        headers: maybe(rng, pairs).unwrap_or_default(),
        query_params: maybe(rng, pairs).unwrap_or_default(),
    }
}

fn plain_route(rng: &mut fastrand::Rng) -> PlainRoute {
    PlainRoute {
        hostnames: (0..rng.usize(..3)).map(|_| pick(rng, &HOSTS)).collect(),
        rules: (0..rng.usize(1..4))
            .map(|_| (0..rng.usize(1..3)).map(|_| plain_match(rng)).collect())
            .collect(),
        created: maybe(rng, |rng| pick(rng, &["2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"])),
        name: maybe(rng, |rng| pick(rng, &["a/a", "a/b", "b/a"])),
    }
}

fn plain_request(rng: &mut fastrand::Rng) -> PlainRequest {
    let elements = rng.usize(..4);
    let path: String = (0..elements).map(|_| format!("/{}", pick(rng, &ELEMENTS))).collect();
    PlainRequest {
        host: pick(rng, &HOSTS[..4]),
        path: if path.is_empty() { "/".to_owned() } else { path },
        query: pairs(rng),
        method: pick(rng, &METHODS),
        headers: pairs(rng),
    }
}

/// What the reference chooses: the number of a route and of its rule.
fn reference(routes: &[PlainRoute], request: &PlainRequest) -> Option<(usize, usize)> {
    let hostname_fits = |hostname: &str| match hostname.strip_prefix('*') {
        Some(suffix) => request.host.ends_with(suffix),
        None => request.host == hostname,
    };
    let specificity = |route: &PlainRoute| {
        let fitting = route.hostnames.iter().filter(|hostname| hostname_fits(hostname));
        let best = fitting.map(|name| (!name.starts_with('*'), name.len())).max();
        if route.hostnames.is_empty() { Some((false, 0)) } else { best }
    };
    let best = routes.iter().filter_map(specificity).max()?;
    let mut fitting = Vec::new();
    for (r, route) in routes.iter().enumerate() {
        // A route may name both the best hostname and worse ones that fit as well.
        if specificity(route) != Some(best) {
            continue;
        }
        for (n, rule) in route.rules.iter().enumerate() {
            for (m, plain) in rule.iter().enumerate().filter(|(_, plain)| plain.fits(request)) {
                let kind = ["exact", "regex", "prefix"].iter().position(|k| *k == plain.path.0);
                let length = plain.path.1.trim_end_matches('/').len();
                let of_match = (
                    kind,
                    Reverse(length),
                    plain.method.is_none(),
                    Reverse(plain.headers.len()),
                    Reverse(plain.query_params.len()),
                );
                let of_route =
                    (route.created.is_none(), route.created, route.name.is_none(), route.name);
                fitting.push((of_match, of_route, (r, n, m)));
            }
        }
    }
    fitting.into_iter().min().map(|(_, _, (r, n, _))| (r, n))
}

impl Plain {
    fn fits(&self, request: &PlainRequest) -> bool {
        let path = request.path.as_str();
        let elements = |path: &str| {
            path.split('/').filter(|e| !e.is_empty()).map(str::to_owned).collect::<Vec<_>>()
        };
        let path_fits = match self.path {
            ("exact", exact) => path == exact,
            ("prefix", prefix) => elements(path).starts_with(&elements(prefix)),
            (_, "/api/.*") => path.starts_with("/api/"),
            (_, "/.*") => true,
            (_, "/(x|v1)(/x)?") => ["/x", "/v1", "/x/x", "/v1/x"].contains(&path),
            _ => false,
        };
        path_fits
            && self.method.is_none_or(|method| method == request.method)
            && self.headers.iter().all(|header| request.headers.contains(header))
            && self.query_params.iter().all(|param| request.query.contains(param))
    }

    fn built(&self) -> Match {
        let conditions = |pairs: &[(&str, &str)]| {
            let condition = |(name, value): &(&str, &str)| Condition {
                name: name.to_string(),
                value: Value::Exact(value.to_string()),
            };
            pairs.iter().map(condition).collect()
        };
        Match {
            path: match self.path {
                ("exact", path) => PathMatch::Exact(path.to_owned()),
                ("prefix", path) => PathMatch::Prefix(path.trim_end_matches('/').to_owned()),
                (_, pattern) => PathMatch::Regex(Pattern::parse(pattern).unwrap()),
            },
            method: self.method.map(str::to_owned),
            headers: conditions(&self.headers),
            query_params: conditions(&self.query_params),
        }
    }
}

impl PlainRoute {
    fn built(&self, r: usize) -> Route<(usize, usize)> {
        let rules = self.rules.iter().enumerate();
        Route {
            hostnames: self.hostnames.iter().map(|name| Hostname::parse(name).unwrap()).collect(),
            rules: rules
                .map(|(n, rule)| Rule {
                    matches: rule.iter().map(Plain::built).collect(),
                    outcome: (r, n),
                })
                .collect(),
            seniority: Seniority {
                created: self.created.map(str::to_owned),
                name: self.name.map(str::to_owned),
            },
        }
    }
}

impl PlainRequest {
    fn head(&self) -> Head {
        let query: Vec<_> = self.query.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let path = format!("{}?{}", self.path, query.join("&"));
        let mut headers = vec![
            (":authority", self.host.as_bytes()),
            (":path", path.as_bytes()),
            (":method", self.method.as_bytes()),
        ];
        headers.extend(self.headers.iter().map(|(name, value)| (*name, value.as_bytes())));
        Head::parse(serialize(&headers)).unwrap()
    }
}

#[test]
fn the_chosen_rule_is_that_of_a_reference_which_sorts_all_candidates() {
    let mut rng = fastrand::Rng::with_seed(2024);
    let mut chosen = 0;
    for _ in 0..3_000 {
        let plain: Vec<_> = (0..rng.usize(1..6)).map(|_| plain_route(&mut rng)).collect();
        let built = plain.iter().enumerate().map(|(r, route)| route.built(r)).collect();
        let routes = Routes::new(built);
        for _ in 0..10 {
            let request = plain_request(&mut rng);
            let expected = reference(&plain, &request);
            chosen += usize::from(expected.is_some());
            assert_eq!(routes.choose(&request.head()), expected.as_ref(), "{request:?} {plain:#?}");
        }
    }
    assert!((5_000..25_000).contains(&chosen), "{chosen} of 30 000 requests had a rule");
}

#[test]
fn no_path_or_authority_whatsoever_is_too_much() {
    let all = PATHS.iter().map(|path| Plain {
        path: *path,
        method: None,
        headers: vec![],
        query_params: vec![("p", "1")],
    });
    let route = PlainRoute {
        hostnames: HOSTS.to_vec(),
        rules: vec![all.collect()],
        created: None,
        name: None,
    };
    let routes = Routes::new(vec![route.built(0)]);
    let mut rng = fastrand::Rng::with_seed(7);
    let pieces: [&[u8]; 12] =
        [b"/", b"?", b"#", b"%2", b"%zz", b"&", b"=", b"p=1", b"\xff\xfe", b"..", b"api", b":"];
    for _ in 0..20_000 {
        let mut junk =
            || (0..rng.usize(..8)).flat_map(|_| pick(&mut rng, &pieces).to_vec()).collect();
        let (path, host): (Vec<u8>, Vec<u8>) = (junk(), junk());
        let head = serialize(&[(":path", &path), (":authority", &host), (":method", b"GET")]);
        let _ = routes.choose(&Head::parse(head).unwrap());
    }
}
