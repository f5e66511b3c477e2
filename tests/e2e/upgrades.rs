//! A connection that becomes a tunnel has no end to its request: it is never copied.

use anyhow::Result;
use rig::{Backend, Http1, Reply, Response, Setup};
use serde_json::json;

use crate::stage::{Scenario, Stage};

const WEBSOCKET: &str = "GET /chat HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
    sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

const CONNECT: &str = "CONNECT db.example:5432 HTTP/1.1\r\nhost: db.example:5432\r\n\r\n";

#[tokio::test]
async fn a_websocket_is_never_copied_and_its_data_flows() -> Result<()> {
    let switched =
        Response::new(101).header("connection", "Upgrade").header("upgrade", "websocket");
    tunnel(WEBSOCKET, switched, |setup| {
        let upgrades = json!([{ "upgrade_type": "websocket" }]);
        setup.patch(|config| config.http()["upgrade_configs"] = upgrades)
    })
    .await
}

#[tokio::test]
async fn a_connect_is_never_copied_and_its_data_flows() -> Result<()> {
    tunnel(CONNECT, Response::new(200), |setup| {
        setup.patch(|config| {
            config.http()["upgrade_configs"] = json!([{ "upgrade_type": "CONNECT" }]);
            config.virtual_host()["routes"] =
                json!([{ "match": { "connect_matcher": {} }, "route": { "cluster": "primary" } }]);
        })
    })
    .await
}

/// Through the tunnel that this request makes, bytes come back from the primary, and go on coming.
async fn tunnel(
    request: &str,
    accepted: Response,
    setup: impl FnOnce(Setup) -> Setup + 'static,
) -> Result<()> {
    let status = accepted.status;
    let test = async |stage: &Stage| {
        let mut client = Http1::connect(stage.envoy.address()).await?;
        client.send(request.as_bytes()).await?;
        assert_eq!(client.answer_without_body().await?.status, status);
        for words in ["hello", "and hello again"] {
            client.send(words.as_bytes()).await?;
            assert_eq!(client.receive(words.len()).await?, words);
        }
        stage
            .envoy
            .wait_for("the upgrade to be counted", |now| now.get("skipped.upgrade") == 1)
            .await?;
        assert_eq!(stage.shadow.counts().arrived, 0);
        Ok(())
    };
    let primary = Backend::always(Reply::Tunnel(accepted)).await?;
    let counters = Scenario::all().await?.primary(primary).setup(setup).play(test).await?;
    assert_eq!(counters.get("selected"), 0);
    Ok(())
}
