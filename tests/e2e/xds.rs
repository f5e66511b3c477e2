//! Configuration that changes while Envoy runs, read from a file that it watches.

use std::cell::Cell;

use anyhow::{Result, ensure};
use rig::{Request, Setup, eventually};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::stage::{Scenario, Stage};

/// A file of resources of one kind.
pub struct Resources {
    folder: TempDir,
    version: Cell<u32>,
}

impl Resources {
    pub fn new(resources: &[Value]) -> Result<Self> {
        let file = Self { folder: tempfile::tempdir()?, version: Cell::new(0) };
        file.publish(resources)?;
        Ok(file)
    }

    /// The `ConfigSource` that reads it.
    pub fn source(&self) -> Value {
        let file = self.folder.path().join("resources.json");
        json!({ "path_config_source": { "path": file }, "resource_api_version": "V3" })
    }

    /// Replaces all resources in one step: Envoy watches for files that are moved.
    pub fn publish(&self, resources: &[Value]) -> Result<()> {
        self.version.set(self.version.get() + 1);
        let response =
            json!({ "version_info": self.version.get().to_string(), "resources": resources });
        let next = self.folder.path().join("next.json");
        std::fs::write(&next, response.to_string())?;
        Ok(std::fs::rename(next, self.folder.path().join("resources.json"))?)
    }
}

/// The mirror's plugin as Istio brings it: by discovery, again and again.
pub struct Plugin(Resources);

impl Plugin {
    /// With this configuration to begin with.
    pub fn new(configuration: &impl ToString) -> Result<Self> {
        Ok(Self(Resources::new(&[plugin(configuration)?])?))
    }

    /// A scenario that takes its plugin from here.
    pub async fn scenario(&self) -> Result<Scenario> {
        let filter = json!({
            "name": "request_mirror",
            "config_discovery": {
                "config_source": self.0.source(),
                "type_urls": ["type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm"],
            },
        });
        let scenario = Scenario::all().await?;
        Ok(scenario.setup(|setup| setup.patch(|config| *config.mirror_filter() = filter)))
    }

    /// Replaces the configuration.
    pub fn publish(&self, configuration: &impl ToString) -> Result<()> {
        self.0.publish(&[plugin(configuration)?])
    }

    /// Replaces the configuration by one that is rejected, and waits until no worker mirrors.
    pub async fn reject(&self, stage: &Stage, configuration: &impl ToString) -> Result<()> {
        self.publish(configuration)?;
        stage.envoy.wait_for("the rejection", |now| now.get("config_rejected") == 1).await?;
        in_force(stage, false).await
    }

    /// Replaces the configuration by one that mirrors all, and waits until each worker does.
    pub async fn accept(&self, stage: &Stage, configuration: &impl ToString) -> Result<()> {
        self.publish(configuration)?;
        in_force(stage, true).await?;
        stage
            .envoy
            .wait_for("the end of the rejection", |now| now.get("config_rejected") == 0)
            .await?;
        Ok(())
    }
}

/// The example's filter with this configuration, as a resource to discover.
fn plugin(configuration: &impl ToString) -> Result<Value> {
    let mut filter = Value::Null;
    let setup = Setup::new()?.plugin(&configuration.to_string());
    setup.patch(|config| filter = config.mirror_filter().clone());
    Ok(json!({
        "@type": "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig",
        "name": "request_mirror",
        "typed_config": filter["typed_config"],
    }))
}

/// Waits until all requests are mirrored, or none is: an update reaches one worker after another.
async fn in_force(stage: &Stage, mirroring: bool) -> Result<()> {
    const REQUESTS: u64 = 8; // each on a connection of its own, so that each worker gets some
    eventually(&format!("an update with mirroring {mirroring}"), async || {
        let before = stage.envoy.settled().await?.get("selected");
        for _ in 0..REQUESTS {
            stage.send_and_compare(&Request::post("/", "hello")).await?;
        }
        let selected = stage.envoy.settled().await?.get("selected") - before;
        let expected = if mirroring { REQUESTS } else { 0 };
        ensure!(selected == expected, "{selected} of {REQUESTS} are selected");
        Ok(())
    })
    .await
}
