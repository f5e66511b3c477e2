//! Gateway API routes, as users have them: whom they mirror, where to, and how many.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};
use bytes::Bytes;
use rig::{Backend, Body, Fields, Gate, Http2, Reply, Request, Response, Setup, load};
use serde_json::{Value, json};

use crate::configuration::rejected;
use crate::sampling::in_band;
use crate::stage::{Scenario, Stage, to_shadow};

/// The contract's own example.
const MANIFEST: &str = "
httpRoutes:
- apiVersion: gateway.networking.k8s.io/v1
  kind: HTTPRoute
  metadata: { name: production-route, namespace: nantian-demo }
  spec:
    parentRefs: [ { name: nantian-gateway } ]
    rules:
    - matches: [ { path: { type: PathPrefix, value: /api } } ]
      backendRefs: [ { name: production-service, port: 8080 } ]
      filters:
      - type: RequestMirror
        requestMirror:
          backendRef: { name: canary-service, namespace: nantian-demo, port: 8080 }
          percent: 5
";

/// What Istio calls the cluster of that example's `backendRef`.
const CANARY: &str = "outbound|8080||canary-service.nantian-demo.svc.cluster.local";

#[tokio::test]
async fn a_pasted_manifest_mirrors_its_share_of_its_path() -> Result<()> {
    manifest_mirrors(|setup, manifest| setup.plugin(manifest)).await
}

#[tokio::test]
async fn a_manifest_pasted_into_a_struct_does_the_same() -> Result<()> {
    manifest_mirrors(|setup, manifest| {
        let configuration =
            json!({ "@type": "type.googleapis.com/google.protobuf.Struct", "value": manifest });
        setup.patch(|config| config.mirror()["configuration"] = configuration)
    })
    .await
}

async fn manifest_mirrors(paste: impl FnOnce(Setup, &Value) -> Setup + 'static) -> Result<()> {
    const REQUESTS: usize = 1_000;
    let manifest: Value = serde_norway::from_str(MANIFEST)?;
    let canary = Backend::ok().await?;
    let address = canary.address();
    let sample = async |stage: &Stage| {
        let before = stage.shadow.counts().recorded;
        let answers = load(stage.envoy.address(), 2 * REQUESTS, 10, |number| {
            Request::get(if number % 2 == 0 { "/api/v1?q=1" } else { "/apis" })
        });
        let answers = answers.await?;
        ensure!(answers.all(200, 2 * REQUESTS), "not every request was answered: {answers:?}");
        let selected = stage.envoy.settled().await?.get("selected") as usize;
        let copies = stage.shadow.recorded(selected).await?;
        ensure!(copies.iter().all(|copy| copy.head.path == b"/api/v1?q=1"), "of another path");
        Ok(vec![((selected - before) as u64, REQUESTS, 0.05)])
    };
    let counters = Scenario::plugin(json!({}))
        .await?
        .shadow(canary)
        .setup(move |setup| paste(setup, &manifest).cluster(CANARY, &[address]))
        .play(async |stage| in_band(async || sample(stage).await).await)
        .await?;
    assert_eq!(counters.get("config_rejected"), 0);
    Ok(())
}

/// A gateway turns a RequestHeaderModifier into changes that Envoy makes on the way to the primary,
/// by a filter or in the route; three rules with such changes and a share each.
#[tokio::test]
async fn shares_hold_whatever_else_a_rule_does_to_its_requests() -> Result<()> {
    const REQUESTS: usize = 500;
    let shares = [("/fifth", 0.2), ("/half", 0.5), ("/35", 0.35)];
    let modified = json!({ "type": "RequestHeaderModifier", "requestHeaderModifier": {
        "set": [{ "name": "x-set", "value": "by the filter" }],
        "add": [{ "name": "x-added", "value": "by the route" }],
        "remove": ["x-removed"],
    } });
    let rule = |path: &str, share: Value| {
        let filters = [&modified, &mirror("shadow", share)];
        json!({ "matches": [prefix(path)], "filters": filters })
    };
    let rules = json!([
        rule("/fifth", json!({ "percent": 20 })),
        rule("/half", json!({ "fraction": { "numerator": 25, "denominator": 50 } })),
        rule("/35", json!({ "percent": 35 })),
    ]);
    let sample = async |stage: &Stage| {
        let before = stage.shadow.counts().recorded;
        let request = move |number: usize| {
            Request::get(shares[number % 3].0)
                .header("x-set", "by the client")
                .header("x-removed", "")
        };
        let answers = load(stage.envoy.address(), 3 * REQUESTS, 10, request).await?;
        ensure!(answers.all(200, 3 * REQUESTS), "not every request was answered: {answers:?}");
        let selected = stage.envoy.settled().await?.get("selected");
        let copies = stage.shadow.recorded(selected as usize).await?.split_off(before);
        let of =
            |path: &str| copies.iter().filter(|copy| copy.head.path == path.as_bytes()).count();
        Ok(shares.map(|(path, share)| (of(path) as u64, REQUESTS, share)).to_vec())
    };
    Scenario::plugin(route(rules))
        .await?
        .setup(|setup| setup.patch(modify_headers))
        .play(async |stage| {
            in_band(async || sample(stage).await).await?;
            stage.send_and_compare(&Request::get("/fifth")).await?;
            let added = Some(&b"by the route"[..]);
            for (requests, added) in
                [(stage.primary.so_far(), added), (stage.shadow.so_far(), None)]
            {
                for request in requests {
                    let seen = ["x-set", "x-added", "x-removed"];
                    let seen = seen.map(|name| request.head.headers.get(name));
                    let expected = [Some(&b"by the filter"[..]), added, None];
                    ensure!(seen == expected, "other headers:\n{request}");
                }
            }
            Ok(())
        })
        .await?;
    Ok(())
}

/// By a filter ahead of the mirror, and by the route, whose changes no filter sees, nor the copy.
fn modify_headers(config: &mut rig::Config) {
    const MUTATION: &str = "envoy.extensions.filters.http.header_mutation.v3.HeaderMutation";
    let set = |name: &str, value: &str| {
        let header = json!({ "key": name, "value": value });
        json!({ "header": header, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD" })
    };
    config.virtual_host()["routes"][0]["request_headers_to_add"] =
        json!([set("x-added", "by the route")]);
    let modifier = json!({
        "name": "modifier",
        "typed_config": {
            "@type": format!("type.googleapis.com/{MUTATION}"),
            "mutations": { "request_mutations":
                [{ "append": set("x-set", "by the filter") }, { "remove": "x-removed" }] },
        },
    });
    let filters = config.http()["http_filters"].as_array_mut();
    filters.expect("the example has filters").insert(0, modifier);
}

#[tokio::test]
async fn each_mirror_of_a_rule_gets_the_whole_request_and_its_own_time() -> Result<()> {
    let timed = |cluster, timeout| mirror(cluster, json!({ "timeout": timeout }));
    let [a, b, c] = [timed("a", "10s"), timed("b", "20s"), timed("c", "30s")];
    let rules = json!([
        { "matches": [prefix("/two")], "filters": [a, b] },
        { "matches": [prefix("/three")], "filters": [a, b, c] },
    ]);
    let shadows = Shadows::start(&["a", "b", "c"]).await?;
    let body = Bytes::from_iter((0..70_000).map(|index| (index % 251) as u8));
    let counters = shadows
        .scenario(rules)
        .await?
        .play(async |stage| {
            for path in ["/two", "/three"] {
                stage.send_and_compare(&Request::post(path, body.clone())).await?;
            }
            for (name, time, requests) in [("a", "10000", 2), ("b", "20000", 2), ("c", "30000", 1)]
            {
                for copy in shadows.of(name).recorded(requests).await? {
                    ensure!(copy.body == body, "another body at {name}:\n{copy}");
                    let own = copy.head.headers.get("x-envoy-expected-rq-timeout-ms");
                    ensure!(own == Some(time.as_bytes()), "another timeout at {name}:\n{copy}");
                }
            }
            Ok(())
        })
        .await?;
    assert_eq!(counters.get("completed_2xx"), 5);
    Ok(())
}

#[tokio::test]
async fn a_mirror_at_its_limit_is_dropped_and_the_others_go_on() -> Result<()> {
    let rules = json!([{ "filters": [
        mirror("small", json!({ "maxBodyBytes": 10 })),
        mirror("silent", json!({ "timeout": "1s" })),
        mirror("patient", json!({})),
    ] }]);
    let mut shadows = Shadows::start(&["small", "patient"]).await?;
    shadows.add("silent", Backend::always(Reply::Never).await?);
    let bodies = [5, 1_000, 1_000].map(|length| Bytes::from(vec![b'x'; length]));
    let counters = shadows
        .scenario(rules)
        .await?
        .play(async |stage| {
            let [short, sized, chunked] = bodies.clone();
            let chunked = Body::Pieces(vec![chunked], Fields::default());
            stage.send_and_compare(&Request::post("/", short)).await?;
            stage.send_and_compare(&Request::post("/", sized)).await?;
            stage.send_and_compare(&Request::new("POST", "/").body(chunked)).await?;
            stage.envoy.settled().await?;
            assert_eq!(shadows.of("small").recorded(1).await?[0].body, bodies[0]);
            for cluster in ["silent", "patient"] {
                let copies = shadows.of(cluster).recorded(3).await?;
                let whole = copies.iter().map(|copy| &copy.body).collect::<BTreeSet<_>>();
                ensure!(whole == bodies.iter().collect(), "other bodies at {cluster}");
            }
            Ok(())
        })
        .await?;
    assert_eq!(counters.get("dropped.body_too_large"), 2);
    assert_eq!(counters.get("timed_out"), 3);
    assert_eq!(counters.get("completed_2xx"), 4);
    Ok(())
}

#[tokio::test]
async fn a_body_with_several_copies_is_held_and_counted_once() -> Result<()> {
    const LENGTH: usize = 100_000;
    let names = ["a", "b", "c"];
    let rules = json!([{ "filters": names.map(|name| mirror(name, json!({}))) }]);
    let gate = Gate::closed();
    let mut shadows = Shadows::default();
    for name in names {
        let waiting = Reply::After(gate.clone(), Response::new(200));
        shadows.add(name, Backend::always(waiting).await?);
    }
    let counters = shadows
        .plugin(json!({ "maxBufferedBytes": LENGTH, "httpRoutes": [{ "rules": rules }] }))
        .await?
        .play(async |stage| {
            stage.send(&Request::post("/", vec![b'x'; LENGTH])).await?;
            let held = |now: &rig::Counters| {
                now.get("in_flight") == 3 && now.get("buffered_bytes") == LENGTH as u64
            };
            stage.envoy.wait_for("one body in three copies", held).await?;
            gate.open();
            Ok(())
        })
        .await?;
    assert_eq!(counters.get("completed_2xx"), 3);
    Ok(())
}

#[tokio::test]
async fn two_mirrors_of_one_rule_are_drawn_independently() -> Result<()> {
    const REQUESTS: usize = 1_000;
    let half = |cluster| mirror(cluster, json!({ "percent": 50 }));
    let shadows = Shadows::start(&["a", "b"]).await?;
    let sample = async |stage: &Stage| {
        let before = ["a", "b"].map(|name| shadows.of(name).counts().recorded);
        let request = |number| Request::get(&format!("/{number}"));
        let answers = load(stage.envoy.address(), REQUESTS, 10, request).await?;
        ensure!(answers.all(200, REQUESTS), "not every request was answered: {answers:?}");
        stage.envoy.settled().await?;
        let copied = |name, before| -> BTreeSet<_> {
            let copies = shadows.of(name).so_far().split_off(before);
            copies.into_iter().map(|copy| copy.head.path.clone()).collect()
        };
        let (a, b) = (copied("a", before[0]), copied("b", before[1]));
        let neither = REQUESTS - a.union(&b).count();
        let cells = [
            a.intersection(&b).count(),
            a.difference(&b).count(),
            b.difference(&a).count(),
            neither,
        ];
        Ok(cells.map(|cell| (cell as u64, REQUESTS, 0.25)).to_vec())
    };
    shadows
        .scenario(json!([{ "filters": [half("a"), half("b")] }]))
        .await?
        .play(async |stage| in_band(async || sample(stage).await).await)
        .await?;
    Ok(())
}

#[tokio::test]
async fn the_most_specific_hostname_chooses_the_route() -> Result<()> {
    let route = |hostnames: Value, cluster| {
        let filters = [mirror(cluster, json!({}))];
        json!({ "hostnames": hostnames, "rules": [{ "filters": filters }] })
    };
    let routes = json!([
        route(json!([]), "any"),
        route(json!(["*.example.com"]), "wildcard"),
        route(json!(["Shop.example.com", "other.test"]), "exact"),
    ]);
    let to = |authority: &str| Request { authority: authority.to_owned(), ..Request::get("/") };
    goes_to(
        json!({ "httpRoutes": routes }),
        &[
            (to("shop.example.com"), "exact"),
            (to("shop.example.com:8443"), "exact"),
            (to("SHOP.Example.COM"), "exact"),
            (to("other.test:80"), "exact"),
            (to("x.example.com"), "wildcard"),
            (to("X.Y.EXAMPLE.com:1"), "wildcard"),
            (to("example.com"), "any"),
            (to("shop.example.com.test"), "any"),
            (to("127.0.0.1:10000"), "any"),
        ],
    )
    .await
}

#[tokio::test]
async fn a_regular_expression_fits_a_whole_path_header_or_query_parameter() -> Result<()> {
    let regex = |value| json!({ "type": "RegularExpression", "value": value });
    let named = |name: &str, value| {
        let mut condition = regex(value);
        condition["name"] = json!(name);
        json!([condition])
    };
    let rule =
        |fits, cluster| json!({ "matches": [fits], "filters": [mirror(cluster, json!({}))] });
    let rules = json!([
        rule(json!({ "path": regex("/item/[0-9]+|/list") }), "path"),
        rule(json!({ "headers": named("X-Version", "v[0-9]+(,v[0-9]+)*") }), "header"),
        rule(json!({ "queryParams": named("debug", "yes|1") }), "query"),
    ]);
    goes_to(
        route(rules),
        &[
            (Request::get("/item/12"), "path"),
            (Request::get("/list?item=/x"), "path"),
            (Request::get("/item/12/x"), ""),
            (Request::get("/a/item/12"), ""),
            (Request::get("/").header("x-version", "v12"), "header"),
            (Request::get("/").header("x-version", "v1").header("X-VERSION", "v2"), "header"),
            (Request::get("/").header("x-version", "v12-beta"), ""),
            (Request::get("/?a=b&debug=%79es"), "query"),
            (Request::get("/?debug=no&debug=yes"), ""),
        ],
    )
    .await
}

/// A request has only the mirrors of the one rule that it belongs to, which may be none.
#[tokio::test]
async fn the_most_specific_match_wins_even_without_a_mirror() -> Result<()> {
    let rule = |fits: Value, clusters: &[&str]| {
        let mirrors = clusters.iter().map(|cluster| mirror(cluster, json!({})));
        json!({ "matches": [fits], "filters": mirrors.collect::<Vec<_>>() })
    };
    let path = |kind: &str, path: &str| json!({ "path": { "type": kind, "value": path } });
    let method = |path: &str| json!({ "path": { "value": path }, "method": "POST" });
    let header = json!({ "path": { "value": "/api" }, "headers": [{ "name": "a", "value": "1" }] });
    let rules = json!([
        rule(prefix("/"), &["all"]),
        rule(prefix("/api"), &["api", "twice"]),
        rule(header, &["header"]),
        rule(method("/api"), &["post"]),
        rule(prefix("/api/internal"), &[]),
        rule(path("RegularExpression", "/api/[a-z]+/x"), &["regex"]),
        rule(path("Exact", "/api/exact/x"), &["exact"]),
    ]);
    goes_to(
        route(rules),
        &[
            (Request::get("/"), "all"),
            (Request::get("/apis"), "all"),
            (Request::get("/api"), "api twice"),
            (Request::get("/api/x"), "api twice"),
            (Request::get("/api").header("a", "1"), "header"),
            (Request::post("/api", "x").header("a", "1"), "post"),
            (Request::get("/api/internal"), ""),
            (Request::post("/api/internal/y", "x"), ""),
            (Request::get("/api/internal/x"), "regex"),
            (Request::get("/api/exact/x?y"), "exact"),
        ],
    )
    .await
}

#[tokio::test]
async fn a_grpc_route_mirrors_calls_of_its_methods() -> Result<()> {
    let add = json!({ "method": { "service": "shop.Cart", "method": "Add" } });
    let manifest = json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "GRPCRoute",
        "spec": { "rules": [{ "matches": [add], "filters": [mirror("shadow", json!({}))] }] },
    });
    let done = Response::new(200).header("content-type", "application/grpc");
    let done = Reply::Respond(done.body(&b"\0\0\0\0\0"[..]).trailer("grpc-status", "0"));
    let call = |path: &str, content_type: &str| {
        Request::post(path, &b"\0\0\0\0\x05hello"[..]).header("content-type", content_type)
    };
    let counters = Scenario::plugin(json!({ "grpcRoutes": [manifest] }))
        .await?
        .primary(Backend::always(done.clone()).await?)
        .shadow(Backend::always(done).await?)
        .setup(|setup| setup.http2("primary").http2("shadow"))
        .play(async |stage| {
            let mut client = Http2::connect(stage.envoy.address()).await?;
            for request in [
                call("/shop.Cart/Add", "application/grpc+proto"),
                call("/shop.Cart/Remove", "application/grpc"),
                call("/shop.Carts/Add", "application/grpc"),
                call("/shop.Cart/Add", "application/json"),
            ] {
                assert_eq!(client.request(&request).await?.status, 200);
            }
            stage.envoy.settled().await?;
            let copy = &stage.shadow.recorded(1).await?[0];
            assert_eq!(copy.head.headers.get("content-type"), Some(&b"application/grpc+proto"[..]));
            assert_eq!(copy.body, &b"\0\0\0\0\x05hello"[..]);
            Ok(())
        })
        .await?;
    assert_eq!(counters.get("completed_2xx"), 1);
    Ok(())
}

#[tokio::test]
async fn a_bad_manifest_is_rejected_with_the_place_in_it() -> Result<()> {
    let second = |rule: Value| {
        let spec = json!({ "rules": [{}, rule] });
        json!({ "httpRoutes": [{ "kind": "HTTPRoute", "spec": spec }] })
    };
    let mirrors = |mirror: Value| {
        let filter = json!({ "type": "RequestMirror", "requestMirror": mirror });
        second(json!({ "filters": [filter] }))
    };
    let matches = |fits: Value| second(json!({ "matches": [fits] }));
    let rule = "httpRoutes[0].spec.rules[1]";
    let mirror = format!("{rule}.filters[0].requestMirror");
    let cases = [
        (
            mirrors(json!({ "cluster": "shadow", "percent": 150 })),
            format!("{mirror}.percent: 150 is not in 0..=100"),
        ),
        (
            mirrors(json!({ "cluster": "shadow", "precent": 5 })),
            format!("{mirror}.precent: unknown field; did you mean percent?"),
        ),
        (
            mirrors(json!({ "backendRef": { "name": "s", "namespace": "n" } })),
            format!("{mirror}.backendRef.port: is missing"),
        ),
        (
            mirrors(json!({ "backendRef": { "name": "s", "port": 80 } })),
            format!("{mirror}.backendRef.namespace: is missing"),
        ),
        (
            matches(json!({ "path": { "type": "RegularExpression", "value": "/(" } })),
            format!("{rule}.matches[0].path.value: \"/(\" is not a regular expression"),
        ),
        (
            matches(json!({ "header": [] })),
            format!("{rule}.matches[0].header: unknown field; did you mean headers?"),
        ),
        (
            json!({ "httpRoutes": [{ "spec": { "hostnames": ["a:80"] } }] }),
            "httpRoutes[0].spec.hostnames[0]: \"a:80\" is not a hostname".to_owned(),
        ),
        (
            json!({ "httpRoutes": [], "grpcRoutes": [{ "kind": "HTTPRoute" }] }),
            "grpcRoutes[0].kind: \"HTTPRoute\" is not one of GRPCRoute".to_owned(),
        ),
    ];
    rejected(&cases.each_ref().map(|(config, complaint)| (config, complaint.as_str()))).await
}

/// Sends each of these requests, and fails unless it is copied to these clusters and to no other.
async fn goes_to(plugin: Value, cases: &[(Request, &str)]) -> Result<()> {
    let names = cases.iter().flat_map(|(_, clusters)| clusters.split_whitespace());
    let shadows = Shadows::start(&names.collect::<Vec<_>>()).await?;
    let each = async |stage: &Stage| {
        for (request, expected) in cases {
            let before = shadows.recorded();
            stage.send_and_compare(request).await?;
            stage.envoy.settled().await?;
            let now = shadows.recorded();
            let copied = |name: &&String| now[*name] == before[*name] + 1;
            let copied: Vec<_> = now.keys().filter(copied).map(String::as_str).collect();
            ensure!(copied.join(" ") == *expected, "{request:?} was copied to {copied:?}");
        }
        Ok(())
    };
    shadows.plugin(plugin).await?.play(each).await?;
    Ok(())
}

/// Clusters that mirrors go to, each with a backend of its own.
#[derive(Default)]
struct Shadows(BTreeMap<String, Backend>);

impl Shadows {
    async fn start(names: &[&str]) -> Result<Self> {
        let mut all = Self::default();
        for name in names {
            all.add(name, Backend::ok().await?);
        }
        Ok(all)
    }

    fn add(&mut self, name: &str, backend: Backend) {
        self.0.insert(name.to_owned(), backend);
    }

    fn of(&self, name: &str) -> &Backend {
        &self.0[name]
    }

    fn recorded(&self) -> BTreeMap<String, usize> {
        self.0.iter().map(|(name, shadow)| (name.clone(), shadow.counts().recorded)).collect()
    }

    async fn scenario(&self, rules: Value) -> Result<Scenario> {
        self.plugin(route(rules)).await
    }

    async fn plugin(&self, plugin: Value) -> Result<Scenario> {
        let all: Vec<_> = self.0.iter().map(|(name, it)| (name.clone(), it.address())).collect();
        let add = |setup: Setup| {
            all.into_iter().fold(setup, |setup, (name, address)| setup.cluster(&name, &[address]))
        };
        Ok(Scenario::plugin(plugin).await?.setup(add))
    }
}

/// A configuration with one route of these rules.
fn route(rules: Value) -> Value {
    json!({ "httpRoutes": [{ "rules": rules }] })
}

/// The match of all paths that begin so.
fn prefix(path: &str) -> Value {
    json!({ "path": { "value": path } })
}

/// A filter that mirrors all requests to that cluster, unless `fields` say otherwise.
fn mirror(cluster: &str, fields: Value) -> Value {
    let mut mirror = to_shadow(json!({ "cluster": cluster, "percent": 100 }));
    let own = fields.as_object().into_iter().flatten();
    own.for_each(|(name, value)| mirror[name] = value.clone());
    json!({ "type": "RequestMirror", "requestMirror": mirror })
}
