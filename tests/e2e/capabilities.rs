//! What the module may be kept from doing: everything that it does not do.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use rig::{Backend, Body, Fields, Gate, Http2, Reply, Request, Response, Setup, eventually};
use serde_json::json;

use crate::examples;
use crate::stage::{Scenario, to_shadow};
use crate::xds::Plugin;

/// `envoy/locked-down.yaml` lists all that the module does in its life, and nothing else. The SDK
/// imports more than that, and calls none of it.
#[tokio::test]
async fn the_capabilities_that_are_listed_are_the_least_set() -> Result<()> {
    let listed = examples::capabilities()?;
    let restriction = examples::restriction()?;
    let locked_down = Setup::new()?.patch(|config| {
        config.mirror()[examples::RESTRICTION] = restriction;
        // What it reads where a configuration is no good.
        config.mirror()["vm_config"]["environment_variables"] =
            json!({ "key_values": { "REQUEST_MIRROR_STRICT": "false" } });
    });
    let mirror =
        |percent: u32| json!({ "requestMirror": to_shadow(json!({ "percent": percent })) });
    let plugin = Plugin::of(locked_down, &mirror(100))?;
    let gate = Gate::closed();
    plugin
        .scenario()
        .await?
        .shadow(Backend::always(Reply::After(gate.clone(), Response::new(200))).await?)
        .setup(|setup| setup.trace())
        .play(async |stage| {
            for request in [Request::get("/"), Request::post("/", "hello")] {
                stage.send_and_compare(&request).await?;
            }
            let mut trailers = Fields::default();
            trailers.push("checksum", "42");
            let upload = Request::new("POST", "/").body(Body::Pieces(vec![], trailers));
            let mut client = Http2::connect(stage.envoy.address()).await?;
            assert_eq!(client.request(&upload).await?.status, 200);
            stage.shadow.recorded(3).await?;
            // A root that ends with mirrors in flight, and one whose configuration is no good.
            plugin.publish(&mirror(150))?;
            stage.envoy.wait_for("the update", |now| now.get("config_rejected") == 1).await?;
            gate.open();
            eventually("all that is listed to be done", async || {
                let log = stage.envoy.log();
                ensure!(!log.contains("restricted"), "it did what is not listed");
                let needless: Vec<_> = listed.difference(&done(&log)).cloned().collect();
                ensure!(needless.is_empty(), "listed for nothing: {needless:?}");
                Ok(())
            })
            .await
        })
        .await?;
    Ok(())
}

/// The host calls and callbacks in a log of all of them.
fn done(log: &str) -> BTreeSet<String> {
    let called = log.lines().filter_map(|line| {
        let (_, call) = line.split_once("[vm->host] ")?;
        call.split_once('(')?.0.split_once('.').map(|(_, name)| name)
    });
    let callbacks = log.lines().filter_map(|line| {
        let (name, _) = line.split_once("[host->vm] ")?.1.split_once('(')?;
        // Memory is always allowed.
        (name.starts_with("proxy_on_") && name != "proxy_on_memory_allocate").then_some(name)
    });
    called.chain(callbacks).map(str::to_owned).collect()
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
