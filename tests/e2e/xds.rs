//! Configuration that changes while Envoy runs, read from a file that it watches.

use std::cell::Cell;
use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use rig::config::load_assignment;
use rig::{Request, Setup, eventually};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::stage::{Scenario, Stage};

/// A file of resources of one kind.
struct Resources {
    folder: TempDir,
    version: Cell<u32>,
}

impl Resources {
    fn new(resources: &[Value]) -> Result<Self> {
        let file = Self { folder: tempfile::tempdir()?, version: Cell::new(0) };
        file.publish(resources)?;
        Ok(file)
    }

    /// The `ConfigSource` that reads it.
    fn source(&self) -> Value {
        let file = self.folder.path().join("resources.json");
        json!({ "path_config_source": { "path": file }, "resource_api_version": "V3" })
    }

    /// Replaces all resources in one step: Envoy watches for files that are moved.
    fn publish(&self, resources: &[Value]) -> Result<()> {
        self.version.set(self.version.get() + 1);
        let response =
            json!({ "version_info": self.version.get().to_string(), "resources": resources });
        let next = self.folder.path().join("next.json");
        std::fs::write(&next, response.to_string())?;
        Ok(std::fs::rename(next, self.folder.path().join("resources.json"))?)
    }
}

/// The shadow's cluster by discovery (CDS) alone.
pub struct ShadowCluster(Resources);

impl ShadowCluster {
    /// Not there yet.
    pub fn absent() -> Result<Self> {
        Ok(Self(Resources::new(&[])?))
    }

    /// Takes all discovered clusters from here.
    pub fn discovered(&self) -> impl FnOnce(Setup) -> Setup + use<> {
        let source = self.0.source();
        move |setup| {
            setup.patch(|config| {
                config.remove_cluster("shadow");
                config.bootstrap()["dynamic_resources"] = json!({ "cds_config": source });
            })
        }
    }

    pub fn appear(&self, shadow: SocketAddr) -> Result<()> {
        self.0.publish(&[json!({
            "@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster",
            "name": "shadow",
            "type": "STATIC",
            "connect_timeout": "1s",
            "load_assignment": load_assignment("shadow", &[shadow]),
        })])
    }

    pub fn disappear(&self) -> Result<()> {
        self.0.publish(&[])
    }
}

/// The mirror's plugin as Istio brings it: by discovery, again and again.
pub struct Plugin {
    resources: Resources,
    setup: Setup,
}

impl Plugin {
    /// With this configuration to begin with.
    pub fn new(configuration: &impl ToString) -> Result<Self> {
        Self::of(Setup::new()?, configuration)
    }

    /// With the filter of this setup, and this configuration to begin with.
    pub fn of(setup: Setup, configuration: &impl ToString) -> Result<Self> {
        let plugin = Self { resources: Resources::new(&[])?, setup };
        plugin.publish(configuration)?;
        Ok(plugin)
    }

    /// A scenario that takes its plugin from here.
    pub async fn scenario(&self) -> Result<Scenario> {
        let filter = json!({
            "name": "request_mirror",
            "config_discovery": {
                "config_source": self.resources.source(),
                "type_urls": ["type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm"],
            },
        });
        let scenario = Scenario::all().await?;
        Ok(scenario.setup(|setup| setup.patch(|config| *config.mirror_filter() = filter)))
    }

    /// Replaces the configuration.
    pub fn publish(&self, configuration: &impl ToString) -> Result<()> {
        let mut filter = Value::Null;
        let setup = self.setup.clone().plugin(&configuration.to_string());
        let _ = setup.patch(|config| filter = config.mirror_filter().clone());
        self.resources.publish(&[json!({
            "@type": "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig",
            "name": "request_mirror",
            "typed_config": filter["typed_config"],
        })])
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

/// A listener that comes by discovery.
pub struct Listener {
    resources: Resources,
    template: Value,
}

impl Listener {
    const NAME: &str = "discovered";

    /// With this plugin configuration to begin with.
    pub fn new(plugin: &Value) -> Result<Self> {
        let mut template = Value::Null;
        let _ = Setup::new()?.patch(|config| template = config.listener().clone());
        template["@type"] = "type.googleapis.com/envoy.config.listener.v3.Listener".into();
        template["name"] = Self::NAME.into();
        let listener = Self { resources: Resources::new(&[])?, template };
        listener.publish(Some(plugin))?;
        Ok(listener)
    }

    /// The VM of its plugin.
    pub fn vm(&mut self) -> &mut Value {
        let http = &mut self.template["filter_chains"][0]["filters"][0]["typed_config"];
        &mut http["http_filters"][0]["typed_config"]["config"]["vm_config"]
    }

    /// Replaces the listener by one with this plugin configuration, or without the mirror.
    pub fn publish(&self, plugin: Option<&Value>) -> Result<()> {
        let mut listener = self.template.clone();
        let filters =
            &mut listener["filter_chains"][0]["filters"][0]["typed_config"]["http_filters"];
        match plugin {
            Some(plugin) => {
                filters[0]["typed_config"]["config"]["configuration"]["value"] =
                    plugin.to_string().into();
            }
            None => drop(filters.as_array_mut().context("no filters")?.remove(0)),
        }
        self.resources.publish(&[listener])
    }

    /// The `ConfigSource` that it comes from.
    pub fn source(&self) -> Value {
        self.resources.source()
    }

    /// A scenario in which no other listener mirrors, and an old one goes after so many seconds.
    pub async fn scenario(&self, drain: u32) -> Result<Scenario> {
        let source = self.source();
        Ok(Scenario::all().await?.setup(move |setup| {
            setup.arguments(&["--drain-time-s", &drain.to_string()]).workers(4).patch(|config| {
                config.bootstrap()["dynamic_resources"] = json!({ "lds_config": source });
                let filters = config.http()["http_filters"].as_array_mut();
                filters.expect("the example has filters").remove(0);
            })
        }))
    }

    /// Where it listens, once it does.
    pub async fn address(&self, stage: &Stage) -> Result<SocketAddr> {
        eventually("the listener", async || {
            let all = stage.envoy.admin().listeners().await?;
            all.get(Self::NAME).copied().context("not there yet")
        })
        .await
    }
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
