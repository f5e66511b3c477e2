//! Another plugin with the same `vm_id`, which writes what it likes under the key of the budget.

use anyhow::{Context, Result, ensure};
use rig::{Backend, Gate, Http1, Reply, Request, Response, Setup, eventually, load};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::stage::{Scenario, Stage};

const BUDGET: usize = 32;
const HELD: usize = BUDGET / 2;

/// What is no table is begun anew; a row that no worker can have written is dropped. Every worker
/// then writes what is true of it.
#[tokio::test]
async fn whatever_is_written_over_the_budget_it_is_whole_again_and_that_is_said_once() -> Result<()>
{
    let endless = [b"RMB1".as_slice(), &[7; 16], &[0xff; 36]].concat();
    let mut rng = fastrand::Rng::with_seed(4711);
    let random: Vec<u8> = std::iter::repeat_with(|| rng.u8(..)).take(1000).collect();
    let values: [&[u8]; 6] = [b"RMB2", b"RMB1\0\0\0", b"{}", &[0; 20], &random, &endless];
    let plugins = TempDir::new()?;
    let mut listeners = Vec::new();
    for (number, value) in values.into_iter().enumerate() {
        let module = plugins.path().join(format!("{number}.wasm"));
        std::fs::write(&module, spoiler(value)?)?;
        listeners.push((name(number), json!(module)));
    }
    let gates: Vec<Gate> = values.iter().map(|_| Gate::closed()).collect();
    let gate_of = gates.clone();
    let held = move |head: &rig::Head| {
        let number = usize::from(head.path[1] - b'0');
        Reply::After(gate_of[number].clone(), Response::new(200))
    };
    let counters = Scenario::all_within(BUDGET)
        .await?
        .shadow(Backend::start(held).await?)
        .setup(|setup| listeners.into_iter().fold(setup.workers(4), with_plugin))
        .play(async |stage| {
            for (number, gate) in gates.iter().enumerate() {
                burst(stage, number, HELD).await?;
                in_flight(stage, HELD).await?;
                spoil(stage, number).await?;
                eventually("the fault to be found", async || {
                    let said = stage.envoy.mirror_log("warning");
                    let said = said.iter().filter(|line| line.contains("no mirror has written"));
                    ensure!(said.count() == number + 1, "{:?}", stage.envoy.mirror_log("warning"));
                    Ok(())
                })
                .await?;
                burst(stage, number, 1).await?;
                in_flight(stage, HELD + 1).await?; // a sum that nobody could tell before all were heard
                burst(stage, number, 2 * BUDGET).await?;
                in_flight(stage, BUDGET).await?; // no more and no less
                gate.open();
                stage.envoy.settled().await?;
            }
            Ok(())
        })
        .await?;
    assert_eq!(counters.get("sent"), (values.len() * BUDGET) as u64);
    assert_eq!(counters.get("lost"), 0);
    Ok(())
}

/// A plugin that writes this under the key, at each request.
fn spoiler(value: &[u8]) -> Result<Vec<u8>> {
    let key = "request_mirror.budget.1"; // as in src/host.rs
    let bytes: String = value.iter().map(|byte| format!("\\{byte:02x}")).collect();
    let (key_size, size) = (key.len(), value.len());
    let text = format!(
        r#"(module
            (import "env" "proxy_set_shared_data"
                (func $set (param i32 i32 i32 i32 i32) (result i32)))
            (memory (export "memory") 1)
            (data (i32.const 0) "{key}")
            (data (i32.const 64) "{bytes}")
            (func (export "proxy_abi_version_0_2_1"))
            (func (export "proxy_on_memory_allocate") (param i32) (result i32) (i32.const 4096))
            (func (export "proxy_on_context_create") (param i32 i32))
            (func (export "proxy_on_request_headers") (param i32 i32 i32) (result i32)
                (call $set (i32.const 0) (i32.const {key_size})
                    (i32.const 64) (i32.const {size}) (i32.const 0))))"#
    );
    Ok(wat::parse_str(text)?)
}

fn name(number: usize) -> String {
    format!("spoiler-{number}")
}

/// Adds a listener with that plugin in place of the mirror.
fn with_plugin(setup: Setup, (name, module): (String, Value)) -> Setup {
    setup.patch(|config| {
        let mirroring = config.listener().clone();
        config.listener()["name"] = name.clone().into();
        config.mirror()["name"] = name.into();
        config.mirror()["vm_config"]["code"]["local"]["filename"] = module;
        let spoiling = std::mem::replace(config.listener(), mirroring);
        let listeners = config.bootstrap()["static_resources"]["listeners"].as_array_mut();
        listeners.expect("the example has listeners").push(spoiling);
    })
}

async fn spoil(stage: &Stage, number: usize) -> Result<()> {
    let listeners = stage.envoy.admin().listeners().await?;
    let address = listeners.get(&name(number)).context("no such listener")?;
    let answer = Http1::connect(*address).await?.request(&Request::get("/")).await?;
    ensure!(answer.status == 200, "the plugin fails: {answer:?}");
    Ok(())
}

/// So many requests, whose copies are held back by the gate of that number.
async fn burst(stage: &Stage, number: usize, requests: usize) -> Result<()> {
    let request = move |_| Request::post(&format!("/{number}"), "hello");
    let answers = load(stage.envoy.address(), requests, HELD, request).await?;
    ensure!(answers.all(200, requests), "not every request was answered: {answers:?}");
    Ok(())
}

/// Waits until so many mirrors are in flight, and none waits to be sent.
async fn in_flight(stage: &Stage, mirrors: usize) -> Result<()> {
    let all = |now: &rig::Counters| {
        now.get("in_flight") == mirrors as u64
            && now.get("selected") == now.get("sent") + now.dropped()
    };
    stage.envoy.wait_for("mirrors in flight", all).await?;
    Ok(())
}
