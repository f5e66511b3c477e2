//! Shadows that do their worst, a cluster for each kind. The path of a request chooses one.

use std::time::Duration;

use anyhow::Result;
use rig::broken::{ClosedPort, Reset};
use rig::{Backend, Reply, Response, Setup};
use serde_json::{Value, json};

use crate::ANSWER_LIMIT;

/// The kinds, as in paths and names of clusters.
pub const SHADOWS: [&str; 8] =
    ["healthy", "slow", "silent", "closed", "resetting", "failing", "huge", "cutting"];

/// Of the requests to a shadow with huge answers, one in so many gets one.
pub const HUGE_IN: usize = 20;

pub struct Shadows {
    answering: Vec<(&'static str, Backend)>,
    closed: ClosedPort,
    reset: Reset,
}

impl Shadows {
    pub async fn start() -> Result<Self> {
        let fine = || Response::new(200).body("copied");
        let huge = Response::new(200).body(vec![b'x'; 2 * ANSWER_LIMIT]);
        let replies = [
            ("healthy", Reply::Respond(fine())),
            ("slow", Reply::Later(Duration::from_millis(90), fine())),
            ("silent", Reply::Never),
            ("failing", Reply::Respond(Response::new(500))),
            ("cutting", Reply::Reset),
        ];
        let mut answering = Vec::new();
        for (name, reply) in replies {
            answering.push((name, Backend::always(reply).await?.forgetful()));
        }
        let by_path = Backend::start(move |head| match head.path.ends_with(b"huge") {
            true => Reply::Respond(huge.clone()),
            false => Reply::Respond(fine()),
        });
        answering.push(("huge", by_path.await?.forgetful()));
        Ok(Self { answering, closed: ClosedPort::new()?, reset: Reset::new().await? })
    }

    /// Gives Envoy a cluster for each.
    pub fn add_to(&self, setup: Setup) -> Result<Setup> {
        let setup = setup
            .cluster("closed", &[self.closed.address()?])
            .cluster("resetting", &[self.reset.address()]);
        let all = self.answering.iter();
        Ok(all.fold(setup, |setup, (name, shadow)| setup.cluster(name, &[shadow.address()])))
    }
}

/// A rule for each kind, each with a copy of every request.
pub fn plugin() -> Value {
    let rule = |name: &str| {
        let mirror = json!({ "cluster": name, "percent": 100 });
        json!({
            "matches": [{ "path": { "type": "PathPrefix", "value": format!("/{name}") } }],
            "filters": [{ "type": "RequestMirror", "requestMirror": mirror }],
        })
    };
    json!({ "httpRoutes": [{ "spec": { "rules": SHADOWS.map(rule) } }] })
}
