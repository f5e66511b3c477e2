//! VMs that crash again and again.

use anyhow::{Result, ensure};
use rig::{Backend, Http1, Reply, Request, Setup, eventually, load};
use serde_json::{Value, json};

use crate::stage::{Scenario, Stage, repeats};
use crate::xds::Plugin;

const BUDGET: usize = 100;
/// Each takes a lease, and a little.
fn rounds() -> usize {
    repeats("CRASHES", 3)
}

fn configuration(milliseconds: usize) -> Value {
    json!({
        "requestMirror": {
            "cluster": "shadow",
            "percent": 100,
            "timeout": format!("{milliseconds}ms"),
        },
        "requestMirrorBudget": BUDGET,
    })
}

/// The trapping module, under that policy.
fn trapping(policy: &str) -> Result<Setup> {
    let setup = Setup::new()?.module(&rig::artifacts::trap_module()?);
    Ok(setup.patch(|config| config.mirror()["failure_policy"] = policy.into()))
}

fn trap() -> Request {
    Request::get("/").header("x-request-mirror-trap", "now")
}

/// Under FAIL_OPEN a worker whose VM has crashed goes on without one, until a configuration that is
/// not the one before reaches it.
#[tokio::test]
async fn nothing_that_follows_a_crash_feels_it_and_the_budget_is_whole_after_each() -> Result<()> {
    let plugin = Plugin::of(trapping("FAIL_OPEN")?, &configuration(300))?;
    let counters = plugin
        .scenario()
        .await?
        .shadow(Backend::always(Reply::Never).await?)
        .setup(|setup| setup.workers(4))
        .play_with_crash(async |stage| {
            for round in 1..=rounds() {
                crash(stage).await?;
                let after = load(stage.envoy.address(), 300, 16, |_| Request::post("/", "hello"));
                ensure!(after.await?.all(200, 300), "the crash is felt by those that follow it");
                healed(stage).await?;
                plugin.publish(&configuration(300 + round))?;
                eventually("each worker to mirror again", async || {
                    let before = selected(stage).await?;
                    for _ in 0..16 {
                        stage.send_and_compare(&Request::get("/")).await?;
                    }
                    let selected = selected(stage).await? - before;
                    ensure!(selected == 16, "{selected} of 16 are selected");
                    Ok(())
                })
                .await?;
            }
            Ok(())
        })
        .await?;
    ensure!(counters.get("lost") > 0, "no mirror was in flight in a crash: {counters:?}");
    Ok(())
}

/// Under FAIL_RELOAD a crash makes a new VM after a while; until then its worker answers with 503.
#[tokio::test]
async fn a_vm_that_is_made_again_finds_the_budget_whole() -> Result<()> {
    let plugin = Plugin::of(trapping("FAIL_RELOAD")?, &configuration(300))?;
    let counters = plugin
        .scenario()
        .await?
        .shadow(Backend::always(Reply::Never).await?)
        .setup(|setup| setup.workers(4))
        .play_with_crash(async |stage| {
            for _ in 0..rounds() {
                crash(stage).await?;
                healed(stage).await?;
                eventually("every worker to answer", async || {
                    for _ in 0..16 {
                        let status = stage.send(&Request::get("/")).await?.status;
                        ensure!(status == 200, "{status}");
                    }
                    Ok(())
                })
                .await?;
            }
            Ok(())
        })
        .await?;
    ensure!(counters.get("lost") > 0, "no mirror was in flight in a crash: {counters:?}");
    Ok(())
}

/// Envoy answers with 503 to all that is half-way through a VM when it dies, under any policy.
#[tokio::test]
async fn a_crash_costs_what_is_under_way_on_its_worker_and_nothing_on_the_others() -> Result<()> {
    const UPLOADS: usize = 64;
    let trap_module = rig::artifacts::trap_module()?;
    Scenario::plugin(configuration(100))
        .await?
        .setup(move |setup| setup.module(&trap_module).workers(4))
        .play_with_crash(async |stage| {
            let mut uploads = Vec::new();
            for _ in 0..UPLOADS {
                let mut upload = Http1::connect(stage.envoy.address()).await?;
                upload
                    .send(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nhello")
                    .await?;
                uploads.push(upload);
            }
            stage.primary.wait_for("all heads", |counts| counts.arrived == UPLOADS).await?;
            assert_eq!(stage.send(&trap()).await?.status, 503);
            let mut whole = 0;
            for mut upload in uploads {
                let _ = upload.send(b"world").await; // its connection may be gone
                match upload.answer().await?.status {
                    200 => whole += 1,
                    status => assert_eq!(status, 503),
                }
            }
            ensure!(whole > 0, "the crash is felt on every worker");
            let arrived = stage.primary.recorded(whole).await?;
            ensure!(arrived.iter().all(|upload| *upload.body == *b"helloworld"), "bytes were lost");
            Ok(())
        })
        .await?;
    Ok(())
}

/// Takes permits on one worker and kills its VM. Never are there more calls than permits.
async fn crash(stage: &Stage) -> Result<()> {
    let mut victim = Http1::connect(stage.envoy.address()).await?; // stays with one worker
    for _ in 0..BUDGET {
        assert_eq!(victim.request(&Request::get("/")).await?.status, 200);
    }
    stage.envoy.wait_for("mirrors to be sent", |now| now.get("in_flight") > 0).await?;
    assert_eq!(victim.request(&trap()).await?.status, 503); // the one request that a crash costs
    Ok(())
}

/// Waits until the leases have run out and nothing is in flight.
async fn healed(stage: &Stage) -> Result<()> {
    eventually("the leases to run out", async || {
        stage.envoy.counters().await?.settled_after_crash()
    })
    .await?;
    let peak = stage.shadow.counts().peak;
    ensure!(peak <= BUDGET, "{peak} mirrors were in flight at a time");
    Ok(())
}

async fn selected(stage: &Stage) -> Result<u64> {
    Ok(stage.envoy.counters().await?.get("selected"))
}
