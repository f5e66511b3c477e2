//! The stage of every test: a primary, a shadow, and an Envoy with the mirror between them.

use anyhow::{Result, ensure};
use rig::{Backend, Counters, Envoy, Fields, Http1, Request, Response, Setup};
use serde_json::{Value, json};

/// A test about to begin.
pub struct Scenario {
    plugin: Value,
    primary: Backend,
    shadow: Backend,
    changes: Vec<Box<dyn FnOnce(Setup) -> Setup>>,
}

/// A test under way.
pub struct Stage {
    pub primary: Backend,
    pub shadow: Backend,
    pub envoy: Envoy,
}

impl Scenario {
    /// With this plugin configuration; both backends answer with an empty 200.
    pub async fn plugin(plugin: Value) -> Result<Self> {
        let (primary, shadow) = (Backend::ok().await?, Backend::ok().await?);
        Ok(Self { plugin, primary, shadow, changes: Vec::new() })
    }

    /// With one mirror to the shadow, of this share and these limits.
    pub async fn mirror(mirror: Value) -> Result<Self> {
        Self::plugin(json!({ "requestMirror": to_shadow(mirror) })).await
    }

    /// With a copy of each request, as far as so many permits go.
    pub async fn all_within(budget: usize) -> Result<Self> {
        Self::plugin(all_within(budget)).await
    }

    /// With a copy of each request.
    pub async fn all() -> Result<Self> {
        Self::mirror(json!({ "percent": 100 })).await
    }

    pub fn primary(mut self, primary: Backend) -> Self {
        self.primary = primary;
        self
    }

    pub fn shadow(mut self, shadow: Backend) -> Self {
        self.shadow = shadow;
        self
    }

    /// Changes what is started.
    pub fn setup(mut self, change: impl FnOnce(Setup) -> Setup + 'static) -> Self {
        self.changes.push(Box::new(change));
        self
    }

    /// Runs the test, and ends it as every test must end: nothing is in flight, each mirror is in
    /// exactly one counter, and Envoy exits with success. Returns the counters at the end.
    pub async fn play(self, test: impl AsyncFnOnce(&Stage) -> Result<()>) -> Result<Counters> {
        let stage = self.start().await?;
        test(&stage).await?;
        stage.envoy.finish().await
    }

    /// Like [`Scenario::play`], for a test that crashes a VM: what that one held and had not sent
    /// yet is in no counter.
    pub async fn play_with_crash(
        self,
        test: impl AsyncFnOnce(&Stage) -> Result<()>,
    ) -> Result<Counters> {
        let stage = self.start().await?;
        test(&stage).await?;
        stage.envoy.finish_after_crash().await
    }

    async fn start(self) -> Result<Stage> {
        let Self { plugin, primary, shadow, changes } = self;
        let setup = Setup::new()?
            .plugin(&plugin)
            .cluster("primary", &[primary.address()])
            .cluster("shadow", &[shadow.address()]);
        let setup = changes.into_iter().fold(setup, |setup, change| change(setup));
        Ok(Stage { envoy: setup.start().await?, primary, shadow })
    }
}

impl Stage {
    /// Sends a request on a connection of its own.
    pub async fn send(&self, request: &Request) -> Result<Response> {
        Http1::connect(self.envoy.address()).await?.request(request).await
    }

    /// Sends a request with the mirror and one without, and fails unless their answers are equal.
    pub async fn send_and_compare(&self, request: &Request) -> Result<Response> {
        let mirrored = self.send(request).await?;
        let plain = Http1::connect(self.envoy.plain_address()).await?.request(request).await?;
        let (with, without) = (comparable(&mirrored), comparable(&plain));
        ensure!(with == without, "the mirror changed an answer: {with:?} instead of {without:?}");
        Ok(mirrored)
    }

    /// Fails unless every worker still mirrors, told by requests enough to reach each.
    pub async fn still_mirrors<T>(&self, send: impl AsyncFn() -> Result<T>) -> Result<()> {
        let before = self.envoy.settled().await?.get("sent");
        for _ in 0..32 {
            send().await?;
        }
        let sent = self.envoy.settled().await?.get("sent") - before;
        ensure!(sent == 32, "{sent} of 32 are mirrored");
        Ok(())
    }
}

/// How often a test repeats what it tries. `make soak` asks for more, with this variable.
pub fn repeats(variable: &str, usual: usize) -> usize {
    std::env::var(variable).ok().and_then(|times| times.parse().ok()).unwrap_or(usual)
}

/// A configuration that copies each request to the shadow, as far as so many permits go.
pub fn all_within(budget: usize) -> Value {
    json!({
        "requestMirror": to_shadow(json!({ "percent": 100 })),
        "requestMirrorBudget": budget,
    })
}

/// A `requestMirror` to the shadow. Only a test of the timeout itself should have a short one:
/// the default of 100 ms may pass on a loaded machine.
pub fn to_shadow(mirror: Value) -> Value {
    let mut all = json!({ "cluster": "shadow", "timeout": "1m" });
    let (Value::Object(all_fields), Value::Object(fields)) = (&mut all, mirror) else {
        panic!("a mirror is an object");
    };
    all_fields.extend(fields);
    all
}

/// What a client sees of an answer that does not change by itself from one to the next.
fn comparable(answer: &Response) -> (u16, Fields, &[u8], &Fields) {
    let headers = answer.headers.without(&["date", "x-envoy-upstream-service-time"]);
    (answer.status, headers, &answer.body, &answer.trailers)
}
