//! Listeners that change and go while mirrors are in flight.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use rig::{Backend, Counters, Gate, Reply, Request, Response, eventually, load};
use serde_json::{Value, json};

use crate::stage::{Scenario, all_within, repeats};
use crate::xds::{Listener, Plugin};

const MIRRORS: usize = 40;

/// After so many updates Envoy's memory must have found its size.
const LONG: usize = 200;

/// With the last filter of a `vm_id` Envoy ends its VMs, and with them their calls and counters.
#[tokio::test]
async fn the_last_filter_takes_its_mirrors_with_it_and_may_come_back() -> Result<()> {
    let gate = Gate::closed();
    let listener = Listener::new(&all_within(MIRRORS))?;
    let counters = listener
        .scenario(1)
        .await?
        .shadow(Backend::always(Reply::After(gate.clone(), Response::new(200))).await?)
        .play(async |stage| {
            let address = listener.address(stage).await?;
            burst(address, MIRRORS).await?;
            stage.shadow.recorded(MIRRORS).await?;
            listener.publish(None)?;
            stage.envoy.wait_for("the filter to go", |now| !now.has("sent")).await?;
            stage.shadow.wait_for("the calls to be given up", |now| now.running == 0).await?;
            burst(address, MIRRORS).await?;
            listener.publish(Some(&all_within(MIRRORS)))?;
            stage.envoy.wait_for("the filter to be back", |now| now.has("sent")).await?;
            gate.open();
            eventually("all of the budget", async || {
                let before = stage.envoy.settled().await?.get("sent");
                burst(address, MIRRORS).await?;
                let sent = stage.envoy.settled().await?.get("sent") - before;
                ensure!(sent == MIRRORS as u64, "{sent} of {MIRRORS} were sent");
                Ok(())
            })
            .await
        })
        .await?;
    assert_eq!(counters.get("lost"), 0);
    Ok(())
}

/// Another listener keeps the VM, and in it the root.
#[tokio::test]
async fn a_filter_that_is_removed_mirrors_nothing_more_and_its_mirrors_end_well() -> Result<()> {
    let gate = Gate::closed();
    let listener = Listener::new(&all_within(2 * MIRRORS))?;
    let source = listener.source();
    let counters = Scenario::all_within(MIRRORS)
        .await?
        .shadow(Backend::always(Reply::After(gate.clone(), Response::new(200))).await?)
        .setup(move |setup| {
            setup.arguments(&["--drain-time-s", "1"]).workers(4).patch(|config| {
                config.bootstrap()["dynamic_resources"] = json!({ "lds_config": source });
            })
        })
        .play(async |stage| {
            let address = listener.address(stage).await?;
            burst(address, MIRRORS).await?;
            stage.shadow.recorded(MIRRORS).await?;
            listener.publish(None)?;
            eventually("the filter to go", async || {
                let before = stage.envoy.counters().await?.get("selected");
                burst(address, 16).await?;
                let now = stage.envoy.counters().await?;
                ensure!(now.get("selected") == before, "it still selects requests");
                Ok(())
            })
            .await?;
            let running = |now: &Counters| now.get("in_flight") >= MIRRORS as u64;
            stage.envoy.wait_for("the mirrors", running).await?;
            gate.open();
            Ok(())
        })
        .await?;
    assert_eq!(counters.get("completed_2xx"), counters.get("sent"));
    Ok(())
}

/// A new module, or a new environment, is a new VM. The calls of the old one are given up with it;
/// the new one finds its row, and counts them as lost when their time is over.
#[tokio::test]
async fn what_an_old_vm_leaves_behind_is_counted_by_the_new_one() -> Result<()> {
    let mirror = json!({
        "requestMirror": { "cluster": "shadow", "percent": 100, "timeout": "4s" },
        "requestMirrorBudget": MIRRORS,
    });
    let mut listener = Listener::new(&mirror)?;
    listener
        .scenario(1)
        .await?
        .shadow(Backend::always(Reply::Never).await?)
        .play_with_crash(async |stage| {
            let address = listener.address(stage).await?;
            burst(address, MIRRORS).await?;
            stage.shadow.recorded(MIRRORS).await?;
            listener.vm()["environment_variables"] = json!({ "key_values": { "NEW": "VM" } });
            listener.publish(Some(&mirror))?;
            // Lost with their VM; or, where Envoy keeps the VM for as long (up to 1.38), timed out in it.
            let ended = |now: &Counters| now.get("lost") + now.get("timed_out");
            let all = |now: &Counters| ended(now) == MIRRORS as u64;
            stage.envoy.wait_for("the old VM's mirrors", all).await?;
            Ok(())
        })
        .await?;
    Ok(())
}

/// Old and new root share a VM; each holds its own limit against what both have in flight.
#[tokio::test]
async fn a_new_budget_counts_what_the_old_root_still_has_in_flight() -> Result<()> {
    for (old, new) in [(20, 5), (20, 30)] {
        let gate = Gate::closed();
        let plugin = Plugin::new(&all_within(old))?;
        let counters = plugin
            .scenario()
            .await?
            .shadow(Backend::always(Reply::After(gate.clone(), Response::new(200))).await?)
            .setup(|setup| setup.workers(4))
            .play(async |stage| {
                burst(stage.envoy.address(), MIRRORS).await?;
                stage.shadow.recorded(old).await?;
                // Room for ten more in the wider one, and for none in the narrower one.
                let sent = old.max(new);
                plugin.publish(&all_within(new))?;
                eventually("all of the new budget", async || {
                    burst(stage.envoy.address(), 16).await?;
                    let running = stage.envoy.counters().await?.get("in_flight");
                    ensure!(running == sent as u64, "{running} in flight");
                    Ok(())
                })
                .await?;
                burst(stage.envoy.address(), MIRRORS).await?;
                ensure!(stage.shadow.counts().peak == sent, "{:?}", stage.shadow.counts());
                gate.open();
                stage.envoy.settled().await?;
                Ok(())
            })
            .await?;
        ensure!(counters.get("dropped.budget") > 0, "{counters:?}");
    }
    Ok(())
}

/// The old listener drains, and the root with the bad configuration lives as long.
#[tokio::test]
async fn a_rejection_ends_when_the_listener_that_had_it_has_drained() -> Result<()> {
    let listener = Listener::new(&all_within(MIRRORS))?;
    listener
        .scenario(1)
        .await?
        .play(async |stage| {
            let address = listener.address(stage).await?;
            for budget in [10, 20] {
                let mut bad = all_within(budget);
                bad["requestMirror"]["percent"] = json!(150);
                listener.publish(Some(&bad))?;
                let rejected = |now: &Counters| now.get("config_rejected") == 1;
                stage.envoy.wait_for("the rejection", rejected).await?;
                burst(address, 16).await?;
                listener.publish(Some(&all_within(budget)))?;
                let accepted = |now: &Counters| now.get("config_rejected") == 0;
                stage.envoy.wait_for("the end of the rejection", accepted).await?;
            }
            Ok(())
        })
        .await?;
    Ok(())
}

/// How long each took is told; the machine at hand decides on that, too.
#[tokio::test]
async fn an_update_takes_effect_for_the_connections_that_come_after_it() -> Result<()> {
    let updates = repeats("UPDATES", 10);
    let listener = Listener::new(&all_within(MIRRORS))?;
    listener
        .scenario(4)
        .await?
        .play(async |stage| {
            let address = listener.address(stage).await?;
            let mut slowest = Duration::ZERO;
            for number in 0..updates {
                let share = if number % 2 == 0 { 0 } else { 100 };
                let mut next = all_within(MIRRORS);
                next["requestMirror"]["percent"] = json!(share);
                listener.publish(Some(&next))?;
                let published = Instant::now();
                eventually("the update", async || {
                    let before = stage.envoy.counters().await?.get("selected");
                    burst(address, 4).await?;
                    let selected = stage.envoy.counters().await?.get("selected") - before;
                    ensure!(selected == share / 25, "{selected} of 4 requests were selected");
                    Ok(())
                })
                .await?;
                slowest = slowest.max(published.elapsed());
            }
            eprintln!("the slowest of {updates} updates took effect within {slowest:?}");
            Ok(())
        })
        .await?;
    Ok(())
}

/// Every update another share, budget or cluster, and now and then one that is rejected.
#[tokio::test]
async fn updates_under_load_are_not_felt_and_lose_nothing() -> Result<()> {
    let updates = repeats("UPDATES", 40);
    let listener = Listener::new(&all_within(1000))?;
    let plugin = Plugin::new(&all_within(1000))?;
    let mirror_filter = plugin.scenario().await?; // the static listener's filter comes by ECDS
    let source = listener.source();
    let counters = mirror_filter
        .shadow(Backend::always(Reply::Later(Duration::from_millis(20), Response::new(200))).await?)
        .setup(move |setup| {
            // Longer than a burst: Envoy then closes what is left, answered or not.
            setup.arguments(&["--drain-time-s", "5"]).workers(4).patch(|config| {
                config.bootstrap()["dynamic_resources"] = json!({ "lds_config": source });
            })
        })
        .play(async |stage| {
            let done = AtomicBool::new(false);
            let mut memory = Vec::new();
            let discovered = listener.address(stage).await?;
            let loads = async |address| {
                while !done.load(Relaxed) {
                    burst(address, 200).await?;
                }
                anyhow::Ok(())
            };
            let churn = async {
                for number in 1..=updates {
                    let next = variant(number);
                    plugin.publish(&next)?;
                    listener.publish(Some(&next))?;
                    let rejected = u64::from(number % 8 == 0);
                    let in_force =
                        |now: &Counters| now.get("config_rejected") == rejected || rejected == 0;
                    stage.envoy.wait_for("the update", in_force).await?;
                    let before = stage.primary.counts().recorded;
                    stage.primary.wait_for("traffic", |now| now.recorded > before + 50).await?;
                    memory.push(stage.envoy.memory()?);
                }
                done.store(true, Relaxed);
                anyhow::Ok(())
            };
            tokio::try_join!(churn, loads(stage.envoy.address()), loads(discovered))?;
            if updates >= LONG {
                let most = |part: &[u64]| part.iter().max().copied().unwrap_or_default();
                let (third, last) = memory[updates / 2..].split_at(updates / 4);
                let (third, last) = (most(third), most(last));
                eprintln!("Envoy's memory after {updates} updates: {last} bytes, {third} before");
                ensure!(last < third + third / 10, "memory grows from {third} to {last} bytes");
            }
            plugin.publish(&all_within(MIRRORS))?;
            listener.publish(Some(&all_within(MIRRORS)))?;
            stage.envoy.wait_for("no rejection", |now| now.get("config_rejected") == 0).await?;
            Ok(())
        })
        .await?;
    for counter in ["completed_2xx", "dropped.budget", "dropped.no_cluster"] {
        ensure!(counters.get(counter) > 0, "the churn was too weak for {counter}: {counters:?}");
    }
    Ok(())
}

fn variant(number: usize) -> Value {
    let mut variant = all_within(1 + number % 5);
    let mirror = &mut variant["requestMirror"];
    match number % 8 {
        0 => mirror["percent"] = json!(100 + number),
        1 | 2 => mirror["percent"] = json!(10 * (number % 10)),
        3 => mirror["cluster"] = json!("nowhere"),
        _ => {}
    }
    variant
}

async fn burst(address: SocketAddr, requests: usize) -> Result<()> {
    let answers = load(address, requests, 8, |_| Request::post("/", "hello")).await?;
    ensure!(answers.all(200, requests), "not every request was answered: {answers:?}");
    Ok(())
}
