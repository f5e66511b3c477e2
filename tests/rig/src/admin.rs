//! What Envoy's admin interface says.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::client::Http1;
use crate::message::Request;

/// Envoy's admin interface.
#[derive(Clone, Copy, Debug)]
pub struct Admin(SocketAddr);

impl Admin {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self(address)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.0
    }

    /// The answer to a GET.
    pub async fn get(&self, target: &str) -> Result<String> {
        self.ask(Request::get(target)).await
    }

    /// The answer to a POST without a body.
    pub async fn post(&self, target: &str) -> Result<String> {
        self.ask(Request::post(target, "")).await
    }

    async fn ask(&self, request: Request) -> Result<String> {
        let target = request.target.clone();
        let answer = Http1::connect(self.0).await?.request(&request).await?;
        let text = String::from_utf8(answer.body.to_vec())?;
        ensure!(answer.status == 200, "the admin answers {} to {target}: {text}", answer.status);
        Ok(text)
    }

    /// The address of each listener, by its name.
    pub async fn listeners(&self) -> Result<BTreeMap<String, SocketAddr>> {
        let all: Value = serde_json::from_str(&self.get("/listeners?format=json").await?)?;
        let all = all["listener_statuses"].as_array().context("no listener yet")?;
        let address = |listener: &Value| {
            let socket = &listener["local_address"]["socket_address"];
            let text = format!("{}:{}", socket["address"].as_str()?, socket["port_value"]);
            Some((listener["name"].as_str()?.to_owned(), text.parse().ok()?))
        };
        all.iter().map(|listener| address(listener).context("a listener without address")).collect()
    }

    /// Every counter and gauge whose name matches the regular expression. `""` matches all.
    pub async fn stats(&self, filter: &str) -> Result<BTreeMap<String, u64>> {
        let text = self.get(&format!("/stats?filter={filter}")).await?;
        let numbers = text.lines().filter_map(|line| {
            let (name, value) = line.split_once(": ")?;
            Some((name.to_owned(), value.parse().ok()?)) // text values and histograms are no numbers
        });
        Ok(numbers.collect())
    }
}
