//! An Envoy that stands still for longer than a lease.

use std::time::Duration;

use anyhow::{Result, ensure};
use rig::{Backend, Counters, Gate, Http1, Reply, Request, Response, eventually, load};
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

/// They all come in before a tick can send the first copy: no more of them may wait than the budget
/// has permits for.
#[tokio::test]
async fn requests_that_pour_in_while_the_process_stands_still_are_all_answered() -> Result<()> {
    const REQUESTS: usize = 10 * BUDGET;
    let gate = Gate::closed();
    let held = Reply::After(gate.clone(), Response::new(200));
    let counters = Scenario::all_within(BUDGET)
        .await?
        .shadow(Backend::always(held).await?)
        .setup(|setup| setup.workers(1))
        .play(async |stage| {
            let mut clients = Vec::new();
            for _ in 0..REQUESTS {
                clients.push(Http1::connect(stage.envoy.address()).await?);
            }
            stage.envoy.pause()?;
            for client in &mut clients {
                client.send(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await?;
            }
            stage.envoy.resume()?;
            for mut client in clients {
                assert_eq!(client.answer().await?.status, 200);
            }
            let decided = |now: &Counters| now.get("sent") + now.dropped() == REQUESTS as u64;
            stage.envoy.wait_for("each copy to be sent or dropped", decided).await?;
            gate.open();
            Ok(())
        })
        .await?;
    assert_eq!(counters.get("completed_2xx"), BUDGET as u64);
    assert_eq!(counters.get("dropped.budget"), (REQUESTS - BUDGET) as u64);
    Ok(())
}
