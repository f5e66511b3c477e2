//! The configuration that users read, `envoy/envoy.yaml`, and the places in it that a test changes.
//!
//! Starting from the shipped file makes every test a test of that file too.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// The name of the example's listener.
pub const GATEWAY: &str = "gateway";

/// The name of the copy of that listener which lacks the mirror.
pub const PLAIN: &str = "plain";

const MIRROR: &str = "request_mirror";

/// An Envoy bootstrap configuration made from the example.
///
/// The accessors panic when the example no longer has the place they name: the rig and the
/// example belong together.
#[derive(Clone, Debug)]
pub struct Config(Value);

impl Config {
    /// Reads the example and lets Envoy pick the ports.
    pub fn example() -> Result<Self> {
        let path = crate::artifacts::example();
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let bootstrap = serde_norway::from_str(&text)
            .with_context(|| format!("{} is not YAML", path.display()))?;
        let mut config = Self(bootstrap);
        config.bootstrap()["node"] = json!({ "id": "rig", "cluster": "rig" }); // for discovery
        config.bootstrap()["admin"]["address"] = address(([127, 0, 0, 1], 0).into());
        config.listener()["address"] = address(([127, 0, 0, 1], 0).into());
        Ok(config)
    }

    /// All of it.
    pub fn bootstrap(&mut self) -> &mut Value {
        &mut self.0
    }

    /// The listener with the mirror.
    pub fn listener(&mut self) -> &mut Value {
        &mut self.0["static_resources"]["listeners"][0]
    }

    /// Its HTTP connection manager.
    pub fn http(&mut self) -> &mut Value {
        &mut self.listener()["filter_chains"][0]["filters"][0]["typed_config"]
    }

    /// The virtual host that takes every request.
    pub fn virtual_host(&mut self) -> &mut Value {
        &mut self.http()["route_config"]["virtual_hosts"][0]
    }

    /// The action of the one route: to the primary.
    pub fn route(&mut self) -> &mut Value {
        &mut self.virtual_host()["routes"][0]["route"]
    }

    /// The mirror's entry in the list of HTTP filters.
    pub fn mirror_filter(&mut self) -> &mut Value {
        let filters = self.http()["http_filters"].as_array_mut();
        let mirror = filters.and_then(|all| all.iter_mut().find(|filter| filter["name"] == MIRROR));
        mirror.expect("the example has the mirror filter")
    }

    /// The mirror's `PluginConfig`: `configuration`, `failure_policy`, `vm_config`, …
    pub fn mirror(&mut self) -> &mut Value {
        &mut self.mirror_filter()["typed_config"]["config"]
    }

    /// The cluster of that name, added when the example has none.
    pub fn cluster(&mut self, name: &str) -> &mut Value {
        let clusters = self.0["static_resources"]["clusters"].as_array_mut();
        let clusters = clusters.expect("the example has clusters");
        let place = clusters.iter().position(|cluster| cluster["name"] == name);
        let place = place.unwrap_or_else(|| {
            clusters.push(json!({ "name": name, "type": "STATIC", "connect_timeout": "1s" }));
            clusters.len() - 1
        });
        &mut clusters[place]
    }

    /// Removes the cluster of that name.
    pub fn remove_cluster(&mut self, name: &str) {
        let clusters = self.0["static_resources"]["clusters"].as_array_mut();
        clusters.expect("the example has clusters").retain(|cluster| cluster["name"] != name);
    }

    pub(crate) fn into_bootstrap(self) -> Value {
        self.0
    }

    pub(crate) fn set_module(&mut self, module: &Path) {
        self.mirror()["vm_config"]["code"]["local"]["filename"] = json!(module);
    }

    /// Adds the listener without the mirror, after every other change, so that it differs in nothing else.
    pub(crate) fn add_plain_listener(&mut self) {
        let mut with_mirror = self.listener().clone();
        std::mem::swap(self.listener(), &mut with_mirror);
        self.listener()["name"] = json!(PLAIN);
        let filters = self.http()["http_filters"].as_array_mut();
        filters.expect("the example has filters").retain(|filter| filter["name"] != MIRROR);
        let plain = std::mem::replace(self.listener(), with_mirror);
        let listeners = self.0["static_resources"]["listeners"].as_array_mut();
        listeners.expect("the example has listeners").push(plain);
    }
}

/// A `core.v3.Address`.
pub fn address(socket: SocketAddr) -> Value {
    json!({ "socket_address": { "address": socket.ip().to_string(), "port_value": socket.port() } })
}

/// A `ClusterLoadAssignment` of these endpoints.
pub fn load_assignment(cluster: &str, endpoints: &[SocketAddr]) -> Value {
    let hosts =
        endpoints.iter().map(|endpoint| json!({ "endpoint": { "address": address(*endpoint) } }));
    json!({ "cluster_name": cluster, "endpoints": [{ "lb_endpoints": hosts.collect::<Vec<_>>() }] })
}
