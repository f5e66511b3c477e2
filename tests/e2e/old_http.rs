//! HTTP/1.0 without a Host: what Envoy makes of it is not changed, and mirrored where it is let in.

use anyhow::{Result, ensure};
use rig::{Http1, Response};
use serde_json::{Value, json};

use crate::stage::{Scenario, Stage};

const OLD: &[u8] = b"GET /old HTTP/1.0\r\n\r\n";

#[tokio::test]
async fn http_1_0_is_refused_as_without_the_mirror() -> Result<()> {
    let counters = old_http(json!({}), 426).await?;
    assert_eq!(counters.get("selected"), 0);
    Ok(())
}

#[tokio::test]
async fn http_1_0_without_a_host_is_refused_as_without_the_mirror() -> Result<()> {
    let counters = old_http(json!({ "accept_http_10": true }), 400).await?;
    assert_eq!(counters.get("selected"), 0);
    Ok(())
}

#[tokio::test]
async fn http_1_0_with_a_default_host_is_mirrored() -> Result<()> {
    let options = json!({ "accept_http_10": true, "default_host_for_http_10": "old.example" });
    let counters = old_http(options, 200).await?;
    assert_eq!(counters.get("completed_2xx"), 1);
    Ok(())
}

async fn old_http(options: Value, expected: u16) -> Result<rig::Counters> {
    let test = async |stage: &Stage| {
        let mut answers = Vec::new();
        for address in [stage.envoy.address(), stage.envoy.plain_address()] {
            let mut client = Http1::connect(address).await?;
            client.send(OLD).await?;
            let Response { status, headers, body, .. } = client.answer().await?;
            answers.push((
                status,
                headers.without(&["date", "x-envoy-upstream-service-time"]),
                body,
            ));
        }
        ensure!(answers[0] == answers[1], "the mirror changed an answer: {answers:?}");
        assert_eq!(answers[0].0, expected);
        if expected == 200 {
            let copies = stage.shadow.recorded(1).await?;
            assert_eq!(copies[0].head.authority, b"old.example");
            assert_eq!(copies[0].head.path, b"/old");
        }
        Ok(())
    };
    Scenario::all()
        .await?
        .setup(|setup| setup.patch(|config| config.http()["http_protocol_options"] = options))
        .play(test)
        .await
}
