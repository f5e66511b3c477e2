//! The budget of concurrent mirrors holds for the whole process, whatever the workers do at once.

use anyhow::{Result, ensure};
use rig::{Backend, Gate, Reply, Request, Response, load};
use serde_json::json;

use crate::stage::{Scenario, to_shadow};

const BUDGET: usize = 8;
const REQUESTS: usize = 600;

/// On a cold start, when no worker has mirrored yet: their first requests race for the budget.
#[tokio::test]
async fn four_workers_share_one_budget_of_eight() -> Result<()> {
    let gate = Gate::closed();
    let held = Reply::After(gate.clone(), Response::new(200));
    let counters = Scenario::plugin(json!({
        "requestMirror": to_shadow(json!({ "percent": 100 })),
        "requestMirrorBudget": BUDGET,
    }))
    .await?
    .shadow(Backend::always(held).await?)
    .setup(|setup| setup.workers(4))
    .play(async |stage| {
        let drops = (REQUESTS - BUDGET) as u64;
        let answers =
            load(stage.envoy.address(), REQUESTS, REQUESTS, |_| Request::get("/")).await?;
        ensure!(answers.all(200, REQUESTS), "not every request was answered: {answers:?}");
        stage
            .envoy
            .wait_for("the drops to be counted", |now| now.get("dropped.budget") == drops)
            .await?;
        stage.shadow.recorded(BUDGET).await?; // all of it is used,
        let running = stage
            .envoy
            .wait_for("the mirrors in flight", |now| now.get("in_flight") == BUDGET as u64)
            .await?;
        assert_eq!(running.get("selected"), REQUESTS as u64);

        // One warning for the first drop, and one for every 256 more.
        let warnings = stage.envoy.mirror_log("warning");
        let about_drops = warnings.iter().filter(|line| line.contains("dropped so far")).count();
        assert_eq!(about_drops as u64, drops.div_ceil(256), "{warnings:?}");

        gate.open(); // and all of it comes back,
        stage.envoy.settled().await?;
        let more = load(stage.envoy.address(), BUDGET, BUDGET, |_| Request::get("/")).await?;
        ensure!(more.all(200, BUDGET), "not every request was answered: {more:?}");
        stage.shadow.recorded(2 * BUDGET).await?; // to be used again.
        assert!(stage.shadow.counts().peak <= BUDGET, "{:?}", stage.shadow.counts());
        Ok(())
    })
    .await?;
    assert_eq!(counters.get("completed_2xx"), 2 * BUDGET as u64);
    assert_eq!(counters.get("dropped.budget"), (REQUESTS - BUDGET) as u64);
    Ok(())
}

/// Load far above the budget and a shadow that answers: permits come and go all the time, and at
/// no moment are there more mirrors than the budget.
#[tokio::test]
async fn a_busy_shadow_never_sees_more_than_the_budget_at_once() -> Result<()> {
    let counters = Scenario::plugin(json!({
        "requestMirror": to_shadow(json!({ "percent": 100 })),
        "requestMirrorBudget": BUDGET,
    }))
    .await?
    .setup(|setup| setup.workers(4))
    .play(async |stage| {
        let answers = load(stage.envoy.address(), 5_000, 100, |_| Request::get("/")).await?;
        ensure!(answers.all(200, 5_000), "not every request was answered: {answers:?}");
        stage.envoy.settled().await?;
        assert!(stage.shadow.counts().peak <= BUDGET, "{:?}", stage.shadow.counts());
        Ok(())
    })
    .await?;
    assert_eq!(counters.get("selected"), 5_000);
    ensure!(
        counters.get("completed_2xx") > BUDGET as u64,
        "permits did not come back: {counters:?}"
    );
    ensure!(counters.get("dropped.budget") > 0, "the budget was never full: {counters:?}");
    Ok(())
}
