//! What to start: the example configuration with a test's changes, and how many workers.

use std::fmt::Display;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::{Value, json};

use crate::config::{Config, load_assignment};
use crate::envoy::{Envoy, Validation};

/// Several, since what workers share is where a mirror goes wrong.
const WORKERS: u32 = 2;

/// An Envoy to be started.
#[derive(Clone, Debug)]
pub struct Setup {
    config: Config,
    pub(crate) workers: u32,
    pub(crate) strict: bool,
    pub(crate) trace: bool,
    pub(crate) under: Vec<String>,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: Vec<(&'static str, PathBuf)>,
}

impl Setup {
    /// The example as shipped, with the shipped module, on ports of Envoy's choice.
    pub fn new() -> Result<Self> {
        let mut config = Config::example()?;
        config.set_module(&crate::artifacts::module()?);
        Ok(Self {
            config,
            workers: WORKERS,
            strict: false,
            trace: false,
            under: Vec::new(),
            arguments: Vec::new(),
            environment: Vec::new(),
        })
    }

    /// Runs another module.
    pub fn module(mut self, module: &Path) -> Self {
        self.config.set_module(module);
        self
    }

    /// The plugin configuration, as the text in a `StringValue`: a `serde_json::Value`, or any text.
    pub fn plugin(mut self, configuration: &impl Display) -> Self {
        self.config.mirror()["configuration"] = json!({
            "@type": "type.googleapis.com/google.protobuf.StringValue",
            "value": configuration.to_string(),
        });
        self
    }

    /// The number of Envoy's workers.
    pub fn workers(mut self, workers: u32) -> Self {
        self.workers = workers;
        self
    }

    /// The endpoints of a cluster, which is added when the example has none of that name.
    pub fn cluster(mut self, name: &str, endpoints: &[SocketAddr]) -> Self {
        self.config.cluster(name)["load_assignment"] = load_assignment(name, endpoints);
        self
    }

    /// Makes Envoy speak HTTP/2 to a cluster.
    pub fn http2(mut self, cluster: &str) -> Self {
        self.config.cluster(cluster)["typed_extension_protocol_options"] = json!({
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
                "explicit_http_config": { "http2_protocol_options": {} },
            },
        });
        self
    }

    /// Has a bad plugin configuration refused (`REQUEST_MIRROR_STRICT=true` in the environment).
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    /// Has every call between Envoy and the module logged, with its arguments.
    pub fn trace(mut self) -> Self {
        self.trace = true;
        self
    }

    /// Runs Envoy under a command, which may make it many times slower: valgrind, with its options.
    pub fn under(mut self, command: &[&str]) -> Self {
        self.under.extend(command.iter().map(ToString::to_string));
        self
    }

    /// More of Envoy's command line.
    pub fn arguments(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(ToString::to_string));
        self
    }

    /// More of Envoy's environment.
    pub fn environment<const N: usize>(mut self, variables: [(&'static str, PathBuf); N]) -> Self {
        self.environment.extend(variables);
        self
    }

    /// Any other change.
    pub fn patch(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// Starts Envoy and waits until it serves.
    pub async fn start(self) -> Result<Envoy> {
        Envoy::start(self).await
    }

    /// Runs `envoy --mode validate` on this configuration.
    pub async fn validate(self) -> Result<Validation> {
        Envoy::validate(self).await
    }

    /// The configuration Envoy gets.
    pub(crate) fn bootstrap(mut self) -> Value {
        self.config.add_plain_listener();
        self.config.into_bootstrap()
    }
}
