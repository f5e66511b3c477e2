//! Retries and timeouts are between Envoy and the primary: a copy is sent once, for as long as the
//! mirror's own timeout allows.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use anyhow::Result;
use rig::{Backend, Reply, Request, Response};
use serde_json::json;

use crate::stage::Scenario;

/// What a client may ask Envoy to do with its request, each of which would do the same to a copy.
const WISHES: [(&str, &str); 8] = [
    ("x-envoy-upstream-rq-timeout-ms", "3600000"),
    ("x-envoy-upstream-rq-per-try-timeout-ms", "3600000"),
    ("x-envoy-retry-on", "5xx,reset,connect-failure"),
    ("x-envoy-retry-grpc-on", "unavailable"),
    ("x-envoy-max-retries", "3"),
    ("x-envoy-hedge-on-per-try-timeout", "true"),
    ("x-envoy-upstream-rq-timeout-alt-response", "true"),
    ("x-envoy-upstream-stream-duration-ms", "3600000"),
];

#[tokio::test]
async fn a_request_that_envoy_retries_is_mirrored_once() -> Result<()> {
    let attempts = AtomicUsize::new(0);
    let primary = Backend::start(move |_| match attempts.fetch_add(1, Relaxed) {
        0 => Reply::Respond(Response::new(503)),
        _ => Reply::Respond(Response::new(200)),
    });
    let counters = Scenario::all()
        .await?
        .primary(primary.await?)
        .setup(|setup| {
            let policy = json!({ "retry_on": "5xx", "num_retries": 2 });
            setup.patch(|config| config.route()["retry_policy"] = policy)
        })
        .play(async |stage| {
            assert_eq!(stage.send(&Request::post("/", "hello")).await?.status, 200);
            stage.primary.recorded(2).await?;
            assert_eq!(stage.shadow.recorded(1).await?[0].body, "hello");
            Ok(())
        })
        .await?;
    assert_eq!(counters.get("selected"), 1);
    Ok(())
}

#[tokio::test]
async fn a_client_cannot_have_a_copy_retried() -> Result<()> {
    let counters = wishes(Reply::Respond(Response::new(503)), "1m").await?;
    assert_eq!(counters.get("completed_5xx"), 1);
    Ok(())
}

/// The client asks for an hour, which would never pass here, and for a 204 when it has passed.
#[tokio::test]
async fn a_client_cannot_have_a_copy_waited_for() -> Result<()> {
    let counters = wishes(Reply::Never, "100ms").await?;
    assert_eq!(counters.get("timed_out"), 1);
    Ok(())
}

/// Sends one request with every wish, through a listener that takes this client for one of its
/// own (Envoy ignores and removes the wishes of others). The shadow gets one copy.
async fn wishes(shadow: Reply, timeout: &str) -> Result<rig::Counters> {
    Scenario::mirror(json!({ "percent": 100, "timeout": timeout }))
        .await?
        .shadow(Backend::always(shadow).await?)
        .setup(|setup| {
            let loopback = json!({ "address_prefix": "127.0.0.0", "prefix_len": 8 });
            setup.patch(|config| {
                config.http()["use_remote_address"] = true.into();
                config.http()["internal_address_config"] = json!({ "cidr_ranges": [loopback] });
            })
        })
        .play(async |stage| {
            let plain = Request::get("/");
            let request =
                WISHES.iter().fold(plain, |request, (name, value)| request.header(name, value));
            assert_eq!(stage.send(&request).await?.status, 200);
            stage.envoy.settled().await?; // no further attempt can follow
            let copies = stage.shadow.recorded(1).await?;
            for (name, _) in WISHES {
                assert_eq!(copies[0].head.headers.get(name), None, "{name} is on the copy");
            }
            Ok(())
        })
        .await
}
