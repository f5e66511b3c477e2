//! The budget of concurrent mirrors holds for the whole process, whatever the workers do at once.

use anyhow::{Result, ensure};
use rig::{Backend, Counters, Gate, Reply, Request, Response, load};

use crate::stage::Scenario;

const BUDGET: usize = 8;
const REQUESTS: usize = 600;

/// On a cold start, when no worker has mirrored yet: their first requests race for the budget.
#[tokio::test]
async fn four_workers_share_one_budget_of_eight() -> Result<()> {
    let gate = Gate::closed();
    let held = Reply::After(gate.clone(), Response::new(200));
    let counters = Scenario::all_within(BUDGET)
        .await?
        .shadow(Backend::always(held).await?)
        .setup(|setup| setup.workers(4))
        .play(async |stage| {
            let drops = (REQUESTS - BUDGET) as u64;
            let answers =
                load(stage.envoy.address(), REQUESTS, REQUESTS, |_| Request::get("/")).await?;
            ensure!(answers.all(200, REQUESTS), "not every request was answered: {answers:?}");
            stage
                .envoy
                .wait_for("the drops to be counted", |now| now.get("dropped.budget") == drops)
                .await?;
            stage.shadow.recorded(BUDGET).await?; // all of it is used,
            let running = stage
                .envoy
                .wait_for("the mirrors in flight", |now| now.get("in_flight") == BUDGET as u64)
                .await?;
            assert_eq!(running.get("selected"), REQUESTS as u64);

            // One warning for the first drop, and one for every 256 more.
            let warnings = stage.envoy.mirror_log("warning");
            let about_drops =
                warnings.iter().filter(|line| line.contains("dropped so far")).count();
            assert_eq!(about_drops as u64, drops.div_ceil(256), "{warnings:?}");

            gate.open(); // and all of it comes back,
            stage.envoy.settled().await?;
            let more = load(stage.envoy.address(), BUDGET, BUDGET, |_| Request::get("/")).await?;
            ensure!(more.all(200, BUDGET), "not every request was answered: {more:?}");
            stage.shadow.recorded(2 * BUDGET).await?; // to be used again.
            assert!(stage.shadow.counts().peak <= BUDGET, "{:?}", stage.shadow.counts());
            Ok(())
        })
        .await?;
    assert_eq!(counters.get("completed_2xx"), 2 * BUDGET as u64);
    assert_eq!(counters.get("dropped.budget"), (REQUESTS - BUDGET) as u64);
    Ok(())
}

/// Permits go round: whichever worker had them in one burst, any worker may have them in the next.
#[tokio::test]
async fn each_burst_gets_all_of_the_budget_and_no_more() -> Result<()> {
    const BURST: usize = 200;
    let gates: [Gate; 5] = std::array::from_fn(|_| Gate::closed());
    let held = gates.clone();
    let shadow = Backend::start(move |head| match head.path.as_slice() {
        [b'/', round] => Reply::After(held[usize::from(round - b'0')].clone(), Response::new(200)),
        other => panic!("an unknown path: {}", other.escape_ascii()),
    });
    let counters = Scenario::all_within(BUDGET)
        .await?
        .shadow(shadow.await?)
        .setup(|setup| setup.workers(4))
        .play(async |stage| {
            for (round, gate) in gates.iter().enumerate() {
                let request = move |_| Request::get(&format!("/{round}"));
                let answers = load(stage.envoy.address(), BURST, 50, request).await?;
                ensure!(answers.all(200, BURST), "not every request was answered: {answers:?}");
                let drops = (round + 1) * (BURST - BUDGET);
                let dropped = |now: &Counters| now.get("dropped.budget") == drops as u64;
                stage.envoy.wait_for("the drops to be counted", dropped).await?;
                stage.shadow.recorded((round + 1) * BUDGET).await?;
                gate.open();
                stage.envoy.settled().await?;
            }
            assert_eq!(stage.shadow.counts().peak, BUDGET);
            Ok(())
        })
        .await?;
    assert_eq!(counters.get("completed_2xx"), (gates.len() * BUDGET) as u64);
    Ok(())
}
