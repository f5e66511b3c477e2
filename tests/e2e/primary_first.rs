//! The primary never notices: whatever the shadow does, the client gets the answer it would get
//! without a mirror, and does not wait for the shadow.
//!
//! Where a shadow is silent, its mirror's timeout is a minute and the test ends the shadow
//! itself: a client that waited for it would get no answer before the deadline of the rig.

use std::net::SocketAddr;

use anyhow::Result;
use bytes::Bytes;
use rig::broken::{BlackHole, ClosedPort, Reset};
use rig::{Backend, Counters, Gate, Head, Http1, Reply, Request, Response, Setup};
use serde_json::{Value, json};

use crate::stage::{Scenario, Stage};

/// How many requests a client sends in each of these tests.
const REQUESTS: usize = 20;
const MIRRORS: u64 = REQUESTS as u64;

#[tokio::test]
async fn nobody_waits_for_a_shadow_that_never_answers() -> Result<()> {
    let counters = Scenario::all()
        .await?
        .shadow(Backend::always(Reply::Never).await?)
        .play(async |stage| {
            unnoticed(stage).await?; // every client has its answer,
            stage
                .envoy
                .wait_for("all mirrors to be under way", |now| now.get("in_flight") == MIRRORS)
                .await?;
            stage.shadow.close();
            Ok(())
        })
        .await?;
    assert_eq!(counters.get("failed"), MIRRORS);
    Ok(())
}

#[tokio::test]
async fn a_shadow_that_never_answers_is_given_up_after_the_timeout() -> Result<()> {
    let shadow = Backend::always(Reply::Never).await?;
    let counters = unnoticed_with_short_timeout(shadow).await?;
    assert_eq!(counters.get("timed_out"), MIRRORS);
    Ok(())
}

/// Envoy reports such a call without any header, as it does a broken one: only the time tells.
#[tokio::test]
async fn a_shadow_that_stalls_after_its_headers_is_given_up_after_the_timeout() -> Result<()> {
    let stall = Reply::Stall(Response::new(200).body("never comes"));
    let counters = unnoticed_with_short_timeout(Backend::always(stall).await?).await?;
    assert_eq!(counters.get("timed_out"), MIRRORS);
    Ok(())
}

#[tokio::test]
async fn a_shadow_whose_port_is_closed_is_not_noticed() -> Result<()> {
    let shadow = ClosedPort::new()?;
    let counters = unnoticed_at(shadow.address()?).await?;
    assert_eq!(counters.get("failed"), MIRRORS);
    Ok(())
}

#[tokio::test]
async fn a_shadow_that_is_a_black_hole_is_not_noticed() -> Result<()> {
    let shadow = BlackHole::new().await?;
    let counters = unnoticed_at(shadow.address()).await?;
    assert_eq!(counters.get("failed"), MIRRORS);
    Ok(())
}

#[tokio::test]
async fn a_shadow_that_resets_connections_is_not_noticed() -> Result<()> {
    let shadow = Reset::new().await?;
    let counters = unnoticed_at(shadow.address()).await?;
    assert_eq!(counters.get("failed"), MIRRORS);
    Ok(())
}

#[tokio::test]
async fn a_shadow_that_resets_requests_is_not_noticed() -> Result<()> {
    let counters = unnoticed_by(Reply::Reset).await?;
    assert_eq!(counters.get("failed"), MIRRORS);
    Ok(())
}

#[tokio::test]
async fn a_shadow_that_answers_with_errors_is_not_noticed() -> Result<()> {
    let errors = |head: &Head| match head.method.as_str() {
        "GET" => Reply::Respond(Response::new(500)),
        _ => Reply::Respond(Response::new(404)),
    };
    let shadow = Backend::start(errors).await?;
    let counters = Scenario::all().await?.shadow(shadow).play(unnoticed).await?;
    assert_eq!(counters.get("completed_5xx"), MIRRORS / 2);
    assert_eq!(counters.get("completed_4xx"), MIRRORS / 2);
    Ok(())
}

/// Envoy buffers the answer of a call, up to a cap; beyond it the call fails, with no headers.
#[tokio::test]
async fn a_shadow_that_answers_200_megabytes_is_not_noticed() -> Result<()> {
    let huge = Response::new(200).body(Bytes::from(vec![0; 200 << 20]));
    let counters = Scenario::all()
        .await?
        .shadow(Backend::always(Reply::Respond(huge)).await?)
        .play(async |stage| {
            stage.send_and_compare(&Request::get("/")).await?;
            stage.send_and_compare(&Request::post("/", "hello")).await?;
            Ok(())
        })
        .await?;
    assert_eq!(counters.get("failed"), 2);
    Ok(())
}

/// A connection that is closed just as the next copy takes it makes that one fail, never more.
#[tokio::test]
async fn a_shadow_that_closes_idle_connections_is_not_noticed() -> Result<()> {
    let counters = unnoticed_by(Reply::RespondAndClose(Response::new(200))).await?;
    assert_eq!(counters.get("completed_2xx") + counters.get("failed"), MIRRORS);
    Ok(())
}

#[tokio::test]
async fn a_shadow_slower_than_the_primary_is_read_to_the_end() -> Result<()> {
    let gate = Gate::closed();
    let slow = Reply::After(gate.clone(), Response::new(200).body("at last"));
    let counters = Scenario::all()
        .await?
        .shadow(Backend::always(slow).await?)
        .play(async |stage| {
            unnoticed(stage).await?; // the primary's answers are done
            stage
                .envoy
                .wait_for("all mirrors to be under way", |now| now.get("in_flight") == MIRRORS)
                .await?;
            gate.open();
            Ok(())
        })
        .await?;
    assert_eq!(counters.get("completed_2xx"), MIRRORS);
    Ok(())
}

#[tokio::test]
async fn the_primarys_own_errors_reach_the_client_and_are_mirrored() -> Result<()> {
    let failing = Response::new(503).header("why", "maintenance").body("come back later");
    let counters = Scenario::all()
        .await?
        .primary(Backend::always(Reply::Respond(failing)).await?)
        .play(unnoticed)
        .await?;
    assert_eq!(counters.get("completed_2xx"), MIRRORS);
    Ok(())
}

#[tokio::test]
async fn a_dead_primary_is_answered_for_as_without_the_mirror() -> Result<()> {
    let primary = ClosedPort::new()?;
    let address = primary.address()?;
    let setup = move |setup: Setup| setup.cluster("primary", &[address]);
    let counters = Scenario::all().await?.setup(setup).play(unnoticed).await?;
    assert_eq!(counters.get("completed_2xx"), MIRRORS);
    Ok(())
}

#[tokio::test]
async fn a_client_that_leaves_after_its_request_is_mirrored() -> Result<()> {
    let counters = Scenario::all()
        .await?
        .primary(Backend::always(Reply::Never).await?)
        .play(async |stage| {
            let mut client = Http1::connect(stage.envoy.address()).await?;
            client.send(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello").await?;
            stage.primary.recorded(1).await?; // it has left only when it has arrived whole
            drop(client);
            assert_eq!(stage.shadow.recorded(1).await?[0].body, "hello");
            Ok(())
        })
        .await?;
    assert_eq!(counters.get("completed_2xx"), 1);
    Ok(())
}

/// Nothing of it may reach the shadow, and what was held of it is given back (which the end of
/// every test checks).
#[tokio::test]
async fn a_client_that_leaves_in_the_middle_of_its_request_is_not_mirrored() -> Result<()> {
    let counters = Scenario::all()
        .await?
        .play(async |stage| {
            let mut client = Http1::connect(stage.envoy.address()).await?;
            client.send(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nhello").await?;
            stage
                .envoy
                .wait_for("the half to be held", |now| now.get("buffered_bytes") == 5)
                .await?;
            drop(client);
            stage
                .envoy
                .wait_for("the mirror to be dropped", |now| now.get("dropped.incomplete") == 1)
                .await?;
            assert_eq!(stage.shadow.counts().arrived, 0);
            Ok(())
        })
        .await?;
    assert_eq!(counters.get("selected"), 1);
    Ok(())
}

/// A primary may answer before it has read the request, and the connection then ends.
#[tokio::test]
async fn an_early_answer_ends_the_mirror_of_an_unfinished_request() -> Result<()> {
    let early = Response::new(413).header("connection", "close").body("too much");
    let counters = Scenario::all()
        .await?
        .primary(Backend::always(Reply::Early(early)).await?)
        .play(async |stage| {
            let mut answers = Vec::new();
            for address in [stage.envoy.address(), stage.envoy.plain_address()] {
                let mut client = Http1::connect(address).await?;
                client
                    .send(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nhello")
                    .await?;
                let answer = client.answer().await?;
                answers.push((answer.status, answer.body));
            }
            assert_eq!(answers[0], (413, "too much".into()));
            assert_eq!(answers[0], answers[1]);
            Ok(())
        })
        .await?;
    assert_eq!(counters.get("dropped.incomplete"), 1);
    Ok(())
}

async fn unnoticed_by(reply: Reply) -> Result<Counters> {
    Scenario::all().await?.shadow(Backend::always(reply).await?).play(unnoticed).await
}

async fn unnoticed_at(shadow: SocketAddr) -> Result<Counters> {
    Scenario::all()
        .await?
        .setup(move |setup| setup.cluster("shadow", &[shadow]))
        .play(unnoticed)
        .await
}

async fn unnoticed_with_short_timeout(shadow: Backend) -> Result<Counters> {
    let mirror: Value = json!({ "percent": 100, "timeout": "100ms" });
    Scenario::mirror(mirror).await?.shadow(shadow).play(unnoticed).await
}

/// Sends requests with bodies and without, and compares their answers with those of no mirror.
async fn unnoticed(stage: &Stage) -> Result<()> {
    for number in 0..REQUESTS {
        let path = format!("/{number}");
        let request = match number % 2 {
            0 => Request::get(&path),
            _ => Request::post(&path, "hello"),
        };
        stage.send_and_compare(&request).await?;
    }
    Ok(())
}
