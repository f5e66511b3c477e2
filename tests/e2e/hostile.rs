//! Shadows that behave as badly as they can, and mirrors whose ground goes away under them.

use std::time::Duration;

use anyhow::{Result, ensure};
use rig::broken::Deaf;
use rig::{Backend, Gate, Reply, Request, Response, load};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::stage::{Scenario, to_shadow};
use crate::xds::ShadowCluster;

const MANY: usize = 60;

/// At a timeout of 100 ms, an answer of that age may win or lose; either way it has one counter.
#[tokio::test]
async fn an_answer_at_the_very_moment_of_the_timeout_is_counted_once() -> Result<()> {
    let late = |head: &rig::Head| {
        let milliseconds = 99 + u64::from(head.path[1] - b'0');
        Reply::Later(Duration::from_millis(milliseconds), Response::new(200))
    };
    let counters = Scenario::mirror(json!({ "percent": 100, "timeout": "100ms" }))
        .await?
        .shadow(Backend::start(late).await?)
        .setup(|setup| setup.workers(4))
        .play(async |stage| {
            let requests = |number| Request::get(&format!("/{}", number % 3));
            let answers = load(stage.envoy.address(), MANY, MANY, requests).await?;
            ensure!(answers.all(200, MANY), "not every request was answered: {answers:?}");
            Ok(())
        })
        .await?;
    assert_eq!(counters.get("completed_2xx") + counters.get("timed_out"), MANY as u64);
    Ok(())
}

#[tokio::test]
async fn an_answer_of_thousands_of_tiny_chunks_is_one_answer() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = tokio::spawn(answer_in_tiny_chunks(listener));
    let counters = Scenario::all()
        .await?
        .setup(move |setup| setup.cluster("shadow", &[address]))
        .play(async |stage| {
            for _ in 0..20 {
                stage.send_and_compare(&Request::get("/")).await?;
            }
            Ok(())
        })
        .await?;
    server.abort();
    assert_eq!(counters.get("completed_2xx"), 20);
    Ok(())
}

async fn answer_in_tiny_chunks(listener: TcpListener) -> Result<()> {
    let chunks = "1\r\nx\r\n".repeat(20_000);
    let answer = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{chunks}0\r\n\r\n");
    loop {
        let (mut stream, _) = listener.accept().await?;
        let answer = answer.clone();
        tokio::spawn(async move {
            while stream.read(&mut [0; 4096]).await? > 0 {
                stream.write_all(answer.as_bytes()).await?;
            }
            std::io::Result::Ok(())
        });
    }
}

/// Envoy cannot get rid of the copies' bodies; the mirrors end with their time, not with a reader.
#[tokio::test]
async fn a_shadow_that_never_reads_costs_no_more_than_the_timeout() -> Result<()> {
    let deaf = Deaf::new().await?;
    let address = deaf.address();
    let counters = Scenario::mirror(json!({ "percent": 100, "timeout": "300ms" }))
        .await?
        .setup(move |setup| setup.cluster("shadow", &[address]))
        .play(async |stage| {
            let upload = vec![b'x'; 1 << 20];
            for _ in 0..20 {
                stage.send_and_compare(&Request::post("/", upload.clone())).await?;
            }
            Ok(())
        })
        .await?;
    assert_eq!(counters.get("timed_out"), 20);
    Ok(())
}

/// The runtime key that lowers the 32 MB which Envoy may hold for each answer.
#[tokio::test]
async fn an_answer_above_a_lowered_cap_is_a_failure() -> Result<()> {
    let answer = |head: &rig::Head| match head.path.as_slice() {
        b"/small" => Reply::Respond(Response::new(200).body(vec![b'x'; 60_000])),
        _ => Reply::Respond(Response::new(200).body(vec![b'x'; 70_000])),
    };
    let counters = Scenario::all()
        .await?
        .shadow(Backend::start(answer).await?)
        .setup(|setup| {
            setup.patch(|config| {
                config.bootstrap()["layered_runtime"]["layers"] = json!([{
                    "name": "static",
                    "static_layer": { "http.async_response_buffer_limit": 65_536 },
                }]);
            })
        })
        .play(async |stage| {
            for path in ["/small", "/large"] {
                stage.send_and_compare(&Request::get(path)).await?;
                stage.envoy.settled().await?;
            }
            Ok(())
        })
        .await?;
    assert_eq!((counters.get("completed_2xx"), counters.get("failed")), (1, 1));
    Ok(())
}

#[tokio::test]
async fn a_cluster_removed_under_its_mirrors_ends_them_all() -> Result<()> {
    let shadow = Backend::always(Reply::Never).await?;
    let cluster = ShadowCluster::absent()?;
    cluster.appear(shadow.address())?;
    let counters = Scenario::all()
        .await?
        .shadow(shadow)
        .setup(cluster.discovered())
        .play(async |stage| {
            let answers = load(stage.envoy.address(), MANY, 8, |_| Request::post("/", "hello"));
            ensure!(answers.await?.all(200, MANY), "not every request was answered");
            stage.shadow.recorded(MANY).await?;
            cluster.disappear()?;
            stage.envoy.wait_for("the mirrors to end", |now| now.get("in_flight") == 0).await?;
            stage.send_and_compare(&Request::get("/")).await?;
            Ok(())
        })
        .await?;
    assert_eq!((counters.get("failed"), counters.get("dropped.no_cluster")), (MANY as u64, 1));
    Ok(())
}

#[tokio::test]
async fn envoy_exits_cleanly_with_mirrors_in_flight() -> Result<()> {
    let gate = Gate::closed();
    let shadow = Backend::always(Reply::After(gate.clone(), Response::new(200))).await?;
    let primary = Backend::ok().await?;
    let envoy = rig::Setup::new()?
        .workers(4)
        .plugin(&json!({ "requestMirror": to_shadow(json!({ "percent": 100 })) }))
        .cluster("primary", &[primary.address()])
        .cluster("shadow", &[shadow.address()])
        .start()
        .await?;
    let answers = load(envoy.address(), MANY, 16, |_| Request::post("/", "hello")).await?;
    ensure!(answers.all(200, MANY), "not every request was answered: {answers:?}");
    shadow.recorded(MANY).await?;
    envoy.stop().await
}
