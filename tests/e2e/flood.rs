//! Many requests that begin and do not end: what they may take of a VM is bounded.

use anyhow::{Result, ensure};
use rig::broken::Deaf;
use rig::{Counters, Http1, Request, load};
use serde_json::json;

use crate::stage::Scenario;

/// Each of them has nearly all the headers that Envoy takes. Bodies are not what such a flood costs.
#[tokio::test]
async fn a_flood_of_slow_uploads_with_large_headers_finds_no_room_and_is_not_felt() -> Result<()> {
    const UPLOADS: usize = 620;
    let deaf = Deaf::new().await?;
    let nobody = deaf.address();
    let counters = Scenario::all()
        .await?
        .setup(move |setup| {
            setup.workers(1).cluster("deaf", &[nobody]).patch(|config| {
                let routes = config.virtual_host()["routes"].as_array_mut();
                let flood =
                    json!({ "match": { "prefix": "/flood" }, "route": { "cluster": "deaf" } });
                routes.expect("the example has routes").insert(0, flood);
            })
        })
        .play(async |stage| {
            let headers = "v".repeat(58_000);
            let head = format!(
                "POST /flood HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\nx: {headers}\r\n\r\n"
            );
            let mut clients = Vec::new();
            for _ in 0..UPLOADS {
                let mut client = Http1::connect(stage.envoy.address()).await?;
                client.send(head.as_bytes()).await?;
                clients.push(client);
            }
            let all = |now: &Counters| now.get("selected") == UPLOADS as u64;
            let full = stage.envoy.wait_for("the flood", all).await?;
            ensure!(full.get("dropped.buffer_full") > 0, "all of them fit: {full:?}");
            ensure!(full.get("dropped.buffer_full") < 100, "too few of them fit: {full:?}");

            let answers = load(stage.envoy.address(), 50, 4, |_| Request::get("/")).await?;
            ensure!(answers.all(200, 50), "the flood is felt: {answers:?}");
            drop(clients);
            let before = stage.envoy.settled().await?.get("sent");
            stage.send(&Request::post("/", "hello")).await?; // there is room again
            stage.envoy.wait_for("a copy", |now| now.get("sent") == before + 1).await?;
            Ok(())
        })
        .await?;
    ensure!(counters.get("dropped.incomplete") > 0, "{counters:?}");
    Ok(())
}
