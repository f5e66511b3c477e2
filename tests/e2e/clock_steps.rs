//! A wall clock that is put forwards and back under Envoy. The mirror goes by the monotonic one.

use anyhow::{Context, Result, ensure};
use rig::wall_clock::WallClock;
use rig::{Backend, Counters, Gate, Http1, Reply, Request, Response, eventually, load};
use serde_json::json;

use crate::stage::{Scenario, Stage};

const BUDGET: usize = 32;
const DAY: i64 = 24 * 60 * 60;

#[tokio::test]
async fn a_step_of_the_wall_clock_ends_no_mirror_and_frees_no_permit() -> Result<()> {
    let clock = WallClock::new()?;
    let gate = Gate::closed();
    let counters = stepping(&clock, "1m")
        .await?
        .shadow(Backend::always(Reply::After(gate.clone(), Response::new(200))).await?)
        .play(async |stage| {
            burst(stage).await?;
            stage.shadow.recorded(BUDGET).await?;
            for (dropped, days) in [(BUDGET, 10), (2 * BUDGET, -10)] {
                step(stage, &clock, days).await?;
                burst(stage).await?; // has every worker look at the table
                let refused = |now: &Counters| now.get("dropped.budget") == dropped as u64;
                stage.envoy.wait_for("the drops", refused).await?;
            }
            gate.open();
            Ok(())
        })
        .await?;
    assert_eq!(counters.get("completed_2xx"), BUDGET as u64);
    assert_eq!((counters.get("lost"), counters.get("timed_out")), (0, 0));
    Ok(())
}

/// A worker dies with permits out, the clock steps, and no answer comes to the others.
#[tokio::test]
async fn after_a_step_of_the_wall_clock_mirrors_time_out_and_leases_end() -> Result<()> {
    for days in [10, -10] {
        let clock = WallClock::new()?;
        let trap_module = rig::artifacts::trap_module()?;
        let counters = stepping(&clock, "2s")
            .await?
            .shadow(Backend::always(Reply::Never).await?)
            .setup(move |setup| setup.module(&trap_module))
            .play_with_crash(async |stage| {
                let mut victim = Http1::connect(stage.envoy.address()).await?; // stays with one worker
                for _ in 0..BUDGET / 2 {
                    assert_eq!(victim.request(&Request::get("/")).await?.status, 200);
                }
                stage.shadow.recorded(BUDGET / 2).await?;
                let trap = Request::get("/").header("x-request-mirror-trap", "now");
                assert_eq!(victim.request(&trap).await?.status, 503);
                step(stage, &clock, days).await?;
                eventually("the lease to end, and mirrors to time out", async || {
                    burst(stage).await?;
                    let now = stage.envoy.counters().await?;
                    ensure!(now.get("lost") > 0 && now.get("timed_out") > 0, "{now:?}");
                    Ok(())
                })
                .await
            })
            .await?;
        assert_eq!(counters.get("completed") + counters.get("failed"), 0);
    }
    Ok(())
}

/// A budget of 32 calls, each of which may take so long, under this clock.
async fn stepping(clock: &WallClock, timeout: &str) -> Result<Scenario> {
    let mirror = json!({ "cluster": "shadow", "percent": 100, "timeout": timeout });
    let plugin = json!({ "requestMirror": mirror, "requestMirrorBudget": BUDGET });
    let environment = clock.environment();
    let scenario = Scenario::plugin(plugin).await?;
    Ok(scenario.setup(|setup| setup.workers(4).environment(environment)))
}

async fn burst(stage: &Stage) -> Result<()> {
    let answers = load(stage.envoy.address(), BUDGET, BUDGET, |_| Request::get("/")).await?;
    ensure!(answers.all(200, BUDGET), "not every request was answered: {answers:?}");
    Ok(())
}

/// Puts the clock off by so many days, and waits until Envoy has noticed: it tells clients the date.
async fn step(stage: &Stage, clock: &WallClock, days: i64) -> Result<()> {
    let date = async || {
        let mut plain = Http1::connect(stage.envoy.plain_address()).await?;
        let answer = plain.request(&Request::get("/")).await?;
        let date = answer.headers.get("date").map(|date| date[.."Mon, 01 Jan".len()].to_vec());
        date.context("an answer without its date")
    };
    let before = date().await?;
    clock.put(days * DAY)?;
    eventually("another date", async || {
        ensure!(date().await? != before, "it is the same day still");
        Ok(())
    })
    .await
}
