//! A plugin whose configuration changes while it mirrors.

use std::time::Duration;

use anyhow::{Result, ensure};
use rig::{Backend, Gate, Reply, Request, Response, eventually};
use serde_json::json;
use tokio::time::Instant;

use crate::stage::{Stage, to_shadow};
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

/// Envoy goes on with the timer of a root that is gone, unless the root has ended it.
#[tokio::test]
async fn the_roots_of_old_configurations_do_not_wake_the_workers() -> Result<()> {
    const UPDATES: u32 = 60;
    let mirror = |percent: u32, budget: u32| {
        let mirror = to_shadow(json!({ "percent": percent }));
        json!({ "requestMirror": mirror, "requestMirrorBudget": budget })
    };
    let plugin = Plugin::new(&mirror(100, 1))?;
    plugin
        .scenario()
        .await?
        .play(async |stage| {
            idle(stage).await?;
            for update in 1..=UPDATES {
                // Every second one is rejected, so that each can be seen to be in force.
                let rejected = update % 2;
                plugin.publish(&mirror(100 + rejected, 1 + update))?;
                let in_force =
                    |now: &rig::Counters| now.get("config_rejected") == u64::from(rejected);
                stage.envoy.wait_for("the update", in_force).await?;
            }
            idle(stage).await
        })
        .await?;
    Ok(())
}

/// Waits for a while in which nothing wakes the workers but Envoy's own timers and that of one root:
/// some thirty times a second. The timers of all the old roots would make it nine hundred.
async fn idle(stage: &Stage) -> Result<()> {
    const WHILE: Duration = Duration::from_millis(500);
    let (mut start, mut before) = (Instant::now(), stage.envoy.wakeups()?);
    eventually("idle workers", async || {
        ensure!(start.elapsed() >= WHILE, "not measured yet");
        let (took, now) = (start.elapsed(), stage.envoy.wakeups()?);
        let rate = (now - before) as f64 / took.as_secs_f64();
        (start, before) = (Instant::now(), now);
        ensure!(rate < 200.0, "{rate:.0} wakeups a second");
        Ok(())
    })
    .await
}
