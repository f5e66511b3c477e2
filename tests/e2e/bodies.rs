//! A body is mirrored whole or not at all; the primary gets every byte of it either way.

use anyhow::{Result, ensure};
use bytes::Bytes;
use rig::{Backend, Body, Fields, Gate, Reply, Request, Response, Setup, load};
use serde_json::json;

use crate::stage::{Scenario, to_shadow};

/// The default of `maxBodyBytes`.
const LIMIT: usize = 1_048_576;

#[tokio::test]
async fn a_body_up_to_the_limit_is_mirrored_whole_and_a_longer_one_not_at_all() -> Result<()> {
    limit_holds(|setup| setup).await
}

/// A connection's buffer is no place to hold a body: the primary reads while the copy is made.
#[tokio::test]
async fn a_small_connection_buffer_changes_nothing_about_bodies() -> Result<()> {
    limit_holds(|setup| {
        setup.patch(|config| {
            config.listener()["per_connection_buffer_limit_bytes"] = json!(32 * 1024);
            for cluster in ["primary", "shadow"] {
                config.cluster(cluster)["per_connection_buffer_limit_bytes"] = json!(32 * 1024);
            }
        })
    })
    .await
}

/// A body that tells its length is known to be too long before its first byte; a chunked one is not.
async fn limit_holds(buffers: impl FnOnce(Setup) -> Setup + 'static) -> Result<()> {
    let lengths = [LIMIT - 1, LIMIT, LIMIT + 1, 10 << 20];
    let counters = Scenario::all()
        .await?
        .setup(buffers)
        .play(async |stage| {
            let (mut sent, mut copied) = (0, 0);
            for length in lengths {
                let body = noise(length);
                let pieces = body.chunks(100_000).map(|piece| body.slice_ref(piece)).collect();
                let chunked = Body::Pieces(pieces, Fields::default());
                for framed in [Body::Sized(body.clone()), chunked] {
                    let answer = stage.send(&Request::new("POST", "/").body(framed)).await?;
                    assert_eq!(answer.status, 200);
                    sent += 1;
                    let primary = stage.primary.recorded(sent).await?;
                    ensure!(primary[sent - 1].body == body, "the primary lost bytes of {length}");
                    if length <= LIMIT {
                        copied += 1;
                        let shadow = stage.shadow.recorded(copied).await?;
                        ensure!(
                            shadow[copied - 1].body == body,
                            "the copy of {length} bytes differs"
                        );
                    }
                    stage.envoy.settled().await?;
                }
            }
            stage.shadow.recorded(copied).await?; // and not one more
            Ok(())
        })
        .await?;
    assert_eq!(counters.get("completed_2xx"), 4);
    assert_eq!(counters.get("dropped.body_too_large"), 4);
    Ok(())
}

/// The held bytes of all uploads together stay within `maxBufferedBytes`, and come back.
#[tokio::test]
async fn parallel_uploads_hold_no_more_bytes_than_allowed() -> Result<()> {
    const UPLOADS: usize = 64;
    const LENGTH: usize = 100_000;
    const ALLOWED: usize = 10 * LENGTH;
    let gate = Gate::closed();
    let counters = Scenario::plugin(json!({
        "requestMirror": to_shadow(json!({ "percent": 100 })),
        "maxBufferedBytes": ALLOWED,
    }))
    .await?
    .shadow(Backend::always(Reply::After(gate.clone(), Response::new(200))).await?)
    .setup(|setup| setup.workers(4))
    .play(async |stage| {
        let body = noise(LENGTH);
        let upload = body.clone();
        let uploads = move |_| Request::post("/", upload.clone());
        let answers = load(stage.envoy.address(), UPLOADS, UPLOADS, uploads.clone()).await?;
        ensure!(answers.all(200, UPLOADS), "not every upload was answered: {answers:?}");
        ensure!(
            stage.primary.recorded(UPLOADS).await?.iter().all(|upload| upload.body == body),
            "bytes were lost"
        );

        let full = stage.envoy.wait_for("each upload to be sent or dropped", |now| {
            now.get("sent") + now.get("dropped.buffer_full") == UPLOADS as u64
                && now.get("buffered_bytes") == now.get("sent") * LENGTH as u64
        });
        let full = full.await?;
        ensure!(full.get("dropped.buffer_full") > 0, "all of them fit: {full:?}");
        ensure!(full.get("buffered_bytes") <= ALLOWED as u64, "too much is held: {full:?}");
        let copies = stage.shadow.recorded(full.get("sent") as usize).await?;
        ensure!(copies.iter().all(|copy| copy.body == body), "a copy differs");

        gate.open(); // Everything comes back: the same uploads, one at a time, are all mirrored.
        let before = stage.envoy.settled().await?.get("sent");
        for _ in 0..10 {
            stage.send(&uploads(0)).await?;
            stage.envoy.settled().await?;
        }
        assert_eq!(stage.envoy.counters().await?.get("sent"), before + 10);
        Ok(())
    })
    .await?;
    assert_eq!(counters.get("sent"), counters.get("completed_2xx"));
    Ok(())
}

/// Bytes without a pattern that a lost or swapped piece could hide in.
fn noise(length: usize) -> Bytes {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..length).map(|_| next()).collect()
}
