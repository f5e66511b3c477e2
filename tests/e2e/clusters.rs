//! The shadow's cluster may be missing, empty or full; each has its counter, and none is final.

use anyhow::{Result, ensure};
use rig::{Backend, Request, Setup, eventually, load};
use serde_json::json;

use crate::stage::Scenario;
use crate::xds::ShadowCluster;

#[tokio::test]
async fn a_cluster_that_appears_later_is_mirrored_to_from_then_on() -> Result<()> {
    let cluster = ShadowCluster::absent()?;
    let shadow = Backend::ok().await?;
    let shadow_address = shadow.address();
    let counters = Scenario::all()
        .await?
        .shadow(shadow)
        .setup(cluster.discovered())
        .play(async |stage| {
            stage.send_and_compare(&Request::get("/early")).await?;
            stage
                .envoy
                .wait_for("the missing cluster", |now| now.get("dropped.no_cluster") == 1)
                .await?;

            cluster.appear(shadow_address)?;
            eventually("a first copy", async || {
                stage.send_and_compare(&Request::get("/late")).await?;
                ensure!(stage.shadow.counts().recorded > 0, "no copy has come");
                Ok(())
            })
            .await?;
            assert!(stage.shadow.so_far().iter().all(|copy| copy.head.path == b"/late"));
            Ok(())
        })
        .await?;
    ensure!(counters.get("completed_2xx") > 0, "{counters:?}");
    Ok(())
}

#[tokio::test]
async fn a_cluster_without_hosts_refuses() -> Result<()> {
    refuses(|setup| setup.cluster("shadow", &[])).await
}

/// The shadow's own circuit breaker: the primary's are not touched by it.
#[tokio::test]
async fn a_cluster_whose_circuit_breaker_is_open_refuses() -> Result<()> {
    let nothing = json!({ "max_connections": 0, "max_pending_requests": 0, "max_requests": 0 });
    refuses(move |setup| {
        setup.patch(|config| {
            config.cluster("shadow")["circuit_breakers"] = json!({ "thresholds": [nothing] })
        })
    })
    .await
}

async fn refuses(setup: impl FnOnce(Setup) -> Setup + 'static) -> Result<()> {
    let counters = Scenario::all()
        .await?
        .setup(setup)
        .play(async |stage| {
            let answers =
                load(stage.envoy.address(), 50, 4, |_| Request::post("/", "hello")).await?;
            ensure!(answers.all(200, 50), "not every request was answered: {answers:?}");
            Ok(())
        })
        .await?;
    assert_eq!(counters.get("dropped.refused"), 50);
    Ok(())
}
