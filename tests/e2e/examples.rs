//! The other files under `envoy/`: each is started as it is shipped, but for the ports and the share.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use rig::{Config, Request, Setup, artifacts, eventually};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::stage::Scenario;

/// The key that keeps a module from doing more than it lists.
pub const RESTRICTION: &str = "capability_restriction_config";

/// Keys of the HTTP connection manager, to take the place of the example's.
const OVERLAYS: [&str; 3] = ["some-routes.yaml", "ecds.yaml", "locked-down.yaml"];

#[tokio::test]
async fn only_what_a_route_turns_on_is_mirrored() -> Result<()> {
    let counters = overlaid("some-routes.yaml")
        .await?
        .play(async |stage| {
            for target in ["/", "/apis", "/other?/api/"] {
                stage.send_and_compare(&Request::get(target)).await?;
            }
            stage.send_and_compare(&Request::post("/api/orders", "hello")).await?;
            ensure!(stage.shadow.recorded(1).await?[0].head.path == b"/api/orders");
            Ok(())
        })
        .await?;
    assert_eq!(counters.get("selected"), 1);
    Ok(())
}

#[tokio::test]
async fn a_file_brings_the_filter_and_until_it_is_good_nothing_is_mirrored() -> Result<()> {
    let folder = TempDir::new()?;
    let file = folder.path().join("resources.yaml");
    std::fs::write(&file, "resources: none")?;
    let source = json!({ "path": file });
    let scenario = overlaid("ecds.yaml").await?.setup(move |setup| {
        setup.patch(move |config| {
            let discovery = &mut config.mirror_filter()["config_discovery"];
            discovery["config_source"]["path_config_source"] = source;
        })
    });
    scenario
        .play(async |stage| {
            for _ in 0..5 {
                stage.send_and_compare(&Request::get("/")).await?;
            }
            ensure!(stage.envoy.settled().await?.get("selected") == 0);

            let next = folder.path().join("next.yaml");
            std::fs::write(&next, mirroring_all(read("ecds-resources.yaml")?)?.to_string())?;
            std::fs::rename(&next, &file)?;
            eventually("the filter to arrive", async || {
                stage.send_and_compare(&Request::get("/")).await?;
                let selected = stage.envoy.settled().await?.get("selected");
                ensure!(selected > 0, "nothing is selected");
                Ok(())
            })
            .await
        })
        .await?;
    Ok(())
}

#[tokio::test]
async fn a_module_that_may_do_nothing_else_mirrors() -> Result<()> {
    overlaid("locked-down.yaml")
        .await?
        .play(async |stage| {
            stage.send_and_compare(&Request::post("/", "hello")).await?;
            ensure!(stage.shadow.recorded(1).await?[0].body == "hello");
            Ok(())
        })
        .await?;
    Ok(())
}

/// What is said of one file is true of all.
#[test]
fn each_file_runs_the_filter_as_the_example_does() -> Result<()> {
    let example = plugins(&Config::example()?.bootstrap().clone());
    let [example] = &example[..] else { panic!("the example has one filter") };
    let files = ["ecds-resources.yaml", "compose/envoy.yaml"].iter().chain(&OVERLAYS);
    for file in files {
        let plugins = plugins(&read(file)?);
        ensure!(!plugins.is_empty(), "{file} has no filter");
        for plugin in plugins {
            for place in ["/root_id", "/name", "/failure_policy", "/vm_config/vm_id"] {
                let (own, examples) = (plugin.pointer(place), example.pointer(place));
                ensure!(own.is_some() && own == examples, "{file}: {place} is {own:?}");
            }
        }
    }
    Ok(())
}

#[test]
fn every_file_is_yaml() -> Result<()> {
    let mut folders = vec![folder()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "yaml") {
                documents(&path)?;
            }
        }
    }
    Ok(())
}

/// A scenario on the example with these keys in it, and with a copy of each request.
async fn overlaid(file: &str) -> Result<Scenario> {
    let mut overlay = overlay(file)?;
    let http = mirroring_all(overlay.http().clone())?;
    let scenario = Scenario::all().await?;
    Ok(scenario.setup(move |setup: Setup| setup.patch(move |config| *config.http() = http)))
}

/// How envoy/locked-down.yaml keeps the module from doing more.
pub fn restriction() -> Result<Value> {
    Ok(overlay("locked-down.yaml")?.mirror()[RESTRICTION].clone())
}

/// What the module may do by that: host calls and callbacks.
pub fn capabilities() -> Result<BTreeSet<String>> {
    let restriction = restriction()?;
    let listed = restriction["allowed_capabilities"].as_object().context("a list")?;
    Ok(listed.keys().cloned().collect())
}

/// The example with these keys in it.
fn overlay(file: &str) -> Result<Config> {
    let mut config = Config::example()?;
    let Value::Object(keys) = read(file)? else { panic!("{file} has no keys") };
    for (key, value) in keys {
        ensure!(config.http().get(&key).is_some(), "{file}: {key} takes the place of nothing");
        config.http()[key] = value;
    }
    Ok(config)
}

/// The same with the module where it is, and every request mirrored that would have been by chance.
fn mirroring_all(value: Value) -> Result<Value> {
    let module = artifacts::module()?;
    let module = module.to_str().context("a path that JSON can hold")?;
    let text = value.to_string().replace("dist/request_mirror.wasm", module);
    let all = text.replace(r#"\"percent\": 5"#, r#"\"percent\": 100, \"timeout\": \"1m\""#);
    Ok(serde_json::from_str(&all)?)
}

/// Every `PluginConfig` in it.
fn plugins(value: &Value) -> Vec<Value> {
    let inner: Vec<&Value> = match value {
        Value::Object(fields) if fields.contains_key("vm_config") => return vec![value.clone()],
        Value::Object(fields) => fields.values().collect(),
        Value::Array(items) => items.iter().collect(),
        _ => vec![],
    };
    inner.into_iter().flat_map(plugins).collect()
}

fn read(file: &str) -> Result<Value> {
    let mut documents = documents(&folder().join(file))?;
    ensure!(documents.len() == 1, "{file} has several documents");
    Ok(documents.remove(0))
}

fn documents(path: &Path) -> Result<Vec<Value>> {
    let text = std::fs::read_to_string(path)?;
    let documents = serde_norway::Deserializer::from_str(&text);
    let read = |document| serde::Deserialize::deserialize(document);
    documents.map(read).collect::<Result<_, _>>().with_context(|| path.display().to_string())
}

fn folder() -> PathBuf {
    artifacts::example().with_file_name("")
}
