//! Shadows that do their worst, a cluster for each kind. The path of a request chooses one.

use std::time::Duration;

use anyhow::Result;
use rig::broken::{ClosedPort, Reset};
use rig::{Backend, Reply, Response, Setup};
use serde_json::{Value, json};

use crate::ANSWER_LIMIT;

/// The kinds, as in paths and names of clusters. No cluster is called `absent`, and that of `narrow` has
/// a circuit breaker.
pub const SHADOWS: [&str; 10] = [
    "healthy",
    "slow",
    "silent",
    "closed",
    "resetting",
    "failing",
    "huge",
    "cutting",
    "absent",
    "narrow",
];

/// Calls to the narrow shadow at a time.
const NARROW: usize = 8;

/// Fewer than a shadow that lets its calls time out would need: hundreds.
const BUDGET: usize = 200;

/// Fewer than so many calls with bodies hold.
const MAX_BUFFERED_BYTES: usize = 2 * 1024 * 1024;

/// Enough for all bodies but the longest.
const MAX_BODY_BYTES: usize = 32 * 1024;

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
            ("narrow", Reply::Later(Duration::from_millis(20), fine())),
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
        let setup =
            all.fold(setup, |setup, (name, shadow)| setup.cluster(name, &[shadow.address()]));
        Ok(setup.patch(|config| {
            let limits = json!({ "max_requests": NARROW, "max_pending_requests": NARROW });
            config.cluster("narrow")["circuit_breakers"] = json!({ "thresholds": [limits] });
        }))
    }
}

/// A rule for each kind, each with a copy of every request. The limits are such that
/// each is reached.
pub fn plugin() -> Value {
    let rule = |name: &str| {
        let mut mirror = json!({ "cluster": name, "percent": 100 });
        if name == "healthy" {
            mirror["maxBodyBytes"] = MAX_BODY_BYTES.into();
        }
        json!({
            "matches": [{ "path": { "type": "PathPrefix", "value": format!("/{name}") } }],
            "filters": [{ "type": "RequestMirror", "requestMirror": mirror }],
        })
    };
    json!({
        "httpRoutes": [{ "spec": { "rules": SHADOWS.map(rule) } }],
        "requestMirrorBudget": BUDGET,
        "maxBufferedBytes": MAX_BUFFERED_BYTES,
    })
}
