//! A plugin whose configuration changes while it mirrors.

use anyhow::Result;
use rig::{Backend, Gate, Reply, Request, Response};
use serde_json::json;

use crate::stage::to_shadow;
use crate::xds::Plugin;

/// A rejected configuration mirrors nothing while it is in force. Going back to an earlier good one
/// is no new configuration to Envoy, and yet must end the rejection.
#[tokio::test]
async fn a_rejected_update_is_in_force_until_the_next_one() -> Result<()> {
    let good = json!({ "requestMirror": to_shadow(json!({ "percent": 100 })) });
    let bad = json!({ "requestMirror": to_shadow(json!({ "percent": 150 })) });
    let plugin = Plugin::new(&bad)?;
    plugin
        .scenario()
        .await?
        .play(async |stage| {
            for _ in 0..2 {
                plugin.reject(stage, &bad).await?;
                plugin.accept(stage, &good).await?;
            }
            plugin.reject(stage, &bad).await
        })
        .await?;
    Ok(())
}

/// Envoy keeps the old configuration until its listener has drained; the answers still come to it.
#[tokio::test]
async fn mirrors_in_flight_outlive_an_update() -> Result<()> {
    let gate = Gate::closed();
    let held = Reply::After(gate.clone(), Response::new(200));
    let plugin = Plugin::new(&json!({ "requestMirror": to_shadow(json!({ "percent": 100 })) }))?;
    let counters = plugin
        .scenario()
        .await?
        .shadow(Backend::always(held).await?)
        .play(async |stage| {
            for _ in 0..10 {
                stage.send(&Request::post("/", "hello")).await?;
            }
            stage.shadow.recorded(10).await?;
            plugin.publish(&json!({ "requestMirror": to_shadow(json!({ "percent": 150 })) }))?;
            stage.envoy.wait_for("the update", |now| now.get("config_rejected") == 1).await?;
            gate.open();
            Ok(())
        })
        .await?;
    assert_eq!(counters.get("completed_2xx"), 10);
    Ok(())
}
