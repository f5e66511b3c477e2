//! A VM that dies with permits out must not shrink the budget for ever.

use anyhow::{Result, ensure};
use rig::{Backend, Gate, Http1, Reply, Request, Response, load};
use serde_json::json;

use crate::stage::Scenario;

const BUDGET: usize = 8;

/// One worker's VM takes all permits and dies. Nobody tells; the lease it wrote runs out, and the
/// workers that are left have the whole budget again.
#[tokio::test]
async fn the_budget_is_whole_again_after_a_vm_has_died_with_permits_out() -> Result<()> {
    let trap_module = rig::artifacts::trap_module()?;
    let gate = Gate::closed();
    let held = Reply::After(gate.clone(), Response::new(200));
    let counters = Scenario::plugin(json!({
        "requestMirror": { "cluster": "shadow", "percent": 100, "timeout": "2s" },
        "requestMirrorBudget": BUDGET,
    }))
    .await?
    .shadow(Backend::always(held).await?)
    .setup(move |setup| setup.module(&trap_module).workers(4))
    .play_with_crash(async |stage| {
        // One connection stays with one worker, and so with one VM.
        let mut victim = Http1::connect(stage.envoy.address()).await?;
        for _ in 0..BUDGET {
            assert_eq!(victim.request(&Request::get("/")).await?.status, 200);
        }
        stage.shadow.recorded(BUDGET).await?;
        let trap = Request::get("/").header("x-request-mirror-trap", "now");
        assert_eq!(victim.request(&trap).await?.status, 503); // the one request that a trap costs
        stage
            .envoy
            .wait_for("the lease to run out", |now| now.get("lost") == BUDGET as u64)
            .await?;
        stage.envoy.wait_for("the permits to be back", |now| now.get("in_flight") == 0).await?;

        // Many connections, so that some are with the workers that are left.
        let answers = load(stage.envoy.address(), 200, 50, |_| Request::get("/")).await?;
        ensure!(answers.all(200, 200), "the crash is felt: {answers:?}");
        stage.shadow.recorded(2 * BUDGET).await?;
        gate.open();
        Ok(())
    })
    .await?;
    assert_eq!(counters.get("lost"), BUDGET as u64);
    ensure!(counters.get("dropped.budget") > 0, "{counters:?}");
    Ok(())
}
