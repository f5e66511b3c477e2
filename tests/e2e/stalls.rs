//! An Envoy that stands still for longer than a lease.

use std::time::Duration;

use anyhow::{Result, ensure};
use rig::{Backend, Gate, Reply, Request, Response, eventually, load};
use serde_json::json;
use tokio::time::Instant;

use crate::stage::Scenario;

const BUDGET: usize = 32;

/// Whichever worker wakes first takes the others for dead. What it has counted as lost must not be
/// counted again by those who were only asleep.
#[tokio::test]
async fn a_process_stopped_for_longer_than_a_lease_counts_no_mirror_twice() -> Result<()> {
    const LEASE: Duration = Duration::from_millis(2_000); // the timeout, and a second of grace
    let gate = Gate::closed();
    let held = Reply::After(gate.clone(), Response::new(200));
    let counters = Scenario::plugin(json!({
        "requestMirror": { "cluster": "shadow", "percent": 100, "timeout": "1s" },
        "requestMirrorBudget": BUDGET,
    }))
    .await?
    .shadow(Backend::always(held).await?)
    .setup(|setup| setup.workers(4))
    .play(async |stage| {
        let load =
            async || load(stage.envoy.address(), BUDGET, BUDGET, |_| Request::get("/")).await;
        ensure!(load().await?.all(200, BUDGET), "not every request was answered");
        stage.shadow.recorded(BUDGET).await?;
        stage.envoy.pause()?;
        let stopped = Instant::now();
        eventually("the lease to run out", async || {
            ensure!(stopped.elapsed() > LEASE, "the lease still runs");
            Ok(())
        })
        .await?;
        gate.open();
        stage.envoy.resume()?;
        stage.envoy.settled().await?;
        ensure!(load().await?.all(200, BUDGET), "not every request was answered");
        stage.shadow.recorded(2 * BUDGET).await?; // all of the budget is there again
        Ok(())
    })
    .await?;
    assert_eq!(counters.get("sent"), 2 * BUDGET as u64);
    ensure!(counters.get("lost") > 0, "no worker was taken for dead: {counters:?}");
    Ok(())
}
