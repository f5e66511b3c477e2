//! What the module may be kept from doing: everything that it does not do.

use anyhow::{Result, ensure};
use rig::Request;
use serde_json::{Map, Value, json};

use crate::stage::{Scenario, to_shadow};

/// What it needs for all that it does. The SDK imports more, and calls none of that.
const NEEDED: [&str; 30] = [
    "clock_time_get",
    "environ_get",
    "environ_sizes_get",
    "fd_write",
    "proc_exit",
    "proxy_define_metric",
    "proxy_done",
    "proxy_get_buffer_bytes",
    "proxy_get_header_map_pairs",
    "proxy_get_header_map_value",
    "proxy_get_log_level",
    "proxy_get_shared_data",
    "proxy_http_call",
    "proxy_increment_metric",
    "proxy_log",
    "proxy_on_configure",
    "proxy_on_context_create",
    "proxy_on_delete",
    "proxy_on_done",
    "proxy_on_http_call_response",
    "proxy_on_request_body",
    "proxy_on_request_headers",
    "proxy_on_request_trailers",
    "proxy_on_tick",
    "proxy_on_vm_start",
    "proxy_record_metric",
    "proxy_set_effective_context",
    "proxy_set_shared_data",
    "proxy_set_tick_period_milliseconds",
    "random_get",
];

#[tokio::test]
async fn the_module_works_with_the_least_set_of_capabilities() -> Result<()> {
    let allowed: Map<_, _> = NEEDED.iter().map(|name| (name.to_string(), json!({}))).collect();
    let counters = Scenario::all()
        .await?
        .setup(|setup| {
            setup.patch(|config| {
                config.mirror()["capability_restriction_config"]["allowed_capabilities"] =
                    Value::Object(allowed);
            })
        })
        .play(async |stage| {
            for request in [Request::get("/"), Request::post("/", "hello")] {
                stage.send_and_compare(&request).await?;
            }
            let copies = stage.shadow.recorded(2).await?;
            ensure!(copies.iter().any(|copy| *copy.body == *b"hello"), "no body came");
            ensure!(!stage.envoy.log().contains("restricted"), "it called what it may not");
            Ok(())
        })
        .await?;
    assert_eq!(counters.get("completed_2xx"), 2);
    Ok(())
}

/// Not in a warning, not in an error, whatever becomes of its copy.
#[tokio::test]
async fn nothing_of_a_request_reaches_the_log() -> Result<()> {
    const SECRET: &str = "secret-4711";
    let counters = Scenario::plugin(json!({
        "requestMirror": to_shadow(json!({ "percent": 100, "maxBodyBytes": 100 })),
        "requestMirrorBudget": 1,
    }))
    .await?
    .shadow(rig::Backend::always(rig::Reply::Never).await?)
    .play(async |stage| {
        for length in [1, 1, 1, 20] {
            let path = format!("/{SECRET}?{SECRET}=%ff");
            let request = Request::post(&path, SECRET.repeat(length));
            let request = request.header("authorization", SECRET).header(SECRET, b"\xff");
            stage.send_and_compare(&request).await?;
        }
        let dropped = |now: &rig::Counters| now.dropped() == 3;
        stage.envoy.wait_for("drops", dropped).await?;
        stage.shadow.close();
        stage.envoy.settled().await?;
        ensure!(!stage.envoy.mirror_log("warning").is_empty(), "the drops are not told of");
        ensure!(!stage.envoy.log().contains(SECRET), "the log tells: {}", stage.envoy.log());
        Ok(())
    })
    .await?;
    assert_eq!((counters.get("dropped.budget"), counters.get("dropped.body_too_large")), (2, 1));
    Ok(())
}
