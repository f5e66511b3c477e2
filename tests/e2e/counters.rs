//! What users read: names that are there from the start, in both of Envoy's formats, and numbers
//! that add up.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use anyhow::{Result, ensure};
use rig::{Backend, Http1, Reply, Request, Response, eventually, load};
use serde_json::json;

use crate::stage::{Scenario, to_shadow};

#[tokio::test]
async fn every_counter_is_there_before_the_first_request() -> Result<()> {
    Scenario::all()
        .await?
        .play(async |stage| {
            let counters = stage.envoy.counters().await?;
            let expected = rig::counters::NAMES.iter().chain([&rig::counters::CONFIG_REJECTED]);
            for name in expected.clone() {
                ensure!(counters.has(name), "{name} is missing");
            }
            for name in counters.names() {
                ensure!(
                    expected.clone().any(|known| *known == name),
                    "{name} is not in the contract"
                );
            }
            Ok(())
        })
        .await?;
    Ok(())
}

/// Without Envoy's prefix, and with underscores for dots. Envoy adds up a histogram only when it
/// flushes its statistics, which is why that one is waited for.
#[tokio::test]
async fn prometheus_sees_the_counters_and_the_durations() -> Result<()> {
    Scenario::all()
        .await?
        .setup(|setup| {
            setup.patch(|config| config.bootstrap()["stats_flush_interval"] = "0.1s".into())
        })
        .play(async |stage| {
            stage.send(&Request::get("/")).await?;
            stage.envoy.wait_for("the copy's answer", |now| now.get("completed_2xx") == 1).await?;
            eventually("the duration in a histogram", async || {
                let page = stage.envoy.admin().get("/stats/prometheus").await?;
                for line in [
                    "request_mirror_selected{} 1",
                    "request_mirror_completed_2xx{} 1",
                    "request_mirror_dropped_budget{} 0",
                    "request_mirror_in_flight{} 0",
                    "request_mirror_duration_ms_count{} 1",
                ] {
                    ensure!(page.lines().any(|own| own == line), "{line} is missing");
                }
                Ok(())
            })
            .await
        })
        .await?;
    Ok(())
}

/// Everything at once: a shadow of every kind, bodies up to and over every limit, clients that
/// leave in the middle. The end of this test, as of each, is that each mirror is in one counter.
#[tokio::test]
async fn in_a_storm_no_mirror_vanishes() -> Result<()> {
    let replies = [
        Reply::Respond(Response::new(200).body("fine")),
        Reply::Respond(Response::new(500)),
        Reply::Never,
        Reply::RespondAndClose(Response::new(404)),
        Reply::Reset,
        Reply::Stall(Response::new(200).body("never comes")),
    ];
    let next = AtomicUsize::new(0);
    let shadow =
        Backend::start(move |_| replies[next.fetch_add(1, Relaxed) % replies.len()].clone());
    let counters = Scenario::plugin(json!({
        "requestMirror": to_shadow(json!({ "percent": 90, "timeout": "200ms", "maxBodyBytes": 2_000 })),
        "requestMirrorBudget": 20,
        "maxBufferedBytes": 10_000,
    }))
    .await?
    .shadow(shadow.await?)
    .setup(|setup| setup.workers(4))
    .play(async |stage| {
        let requests = load(stage.envoy.address(), 4_000, 60, |number| match number % 4 {
            0 => Request::get("/"),
            part => Request::post("/", vec![b'x'; part * 800]),
        });
        let leavers = async {
            for _ in 0..200 {
                let mut client = Http1::connect(stage.envoy.address()).await?;
                client.send(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nhello").await?;
            }
            anyhow::Ok(())
        };
        let (answers, left) = tokio::join!(requests, leavers);
        left?;
        let answers = answers?;
        ensure!(answers.all(200, 4_000), "not every request was answered: {answers:?}");
        Ok(())
    })
    .await?;
    for counter in
        ["completed_2xx", "timed_out", "failed", "dropped.budget", "dropped.body_too_large"]
    {
        ensure!(counters.get(counter) > 0, "the storm was too weak for {counter}: {counters:?}");
    }
    Ok(())
}
