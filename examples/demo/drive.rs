//! Starts everything, sends the traffic, gathers what happened.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use rig::broken::ClosedPort;
use rig::{Backend, Config, Counters, Envoy, LoadReport, Recorded, Setup, load};
use serde_json::Value;
use tokio::signal::ctrl_c;

use crate::screen::{Screen, count};
use crate::traffic::request;

/// Requests of each leg.
pub const REQUESTS: usize = ROUNDS * ROUND;

/// The legs take turns, so that whatever else the machine does meets them alike.
const ROUNDS: usize = 50;
const ROUND: usize = 100;

/// Connections of a leg: requests are concurrent, and two cores keep up.
const CONNECTIONS: usize = 4;

/// The three legs, in this order: their names in paths and for a person.
pub const LEGS: [(&str, &str); 3] =
    [("plain", "without the mirror"), ("mirror", "mirror on"), ("dead", "mirror on, shadow dead")];

/// What happened.
pub struct Outcome {
    /// The percentage of the example configuration.
    pub percent: u64,
    /// What the clients of each leg saw.
    pub answers: [LoadReport; 3],
    /// What the primary received, from all legs.
    pub originals: Vec<Arc<Recorded>>,
    /// What the shadow received.
    pub copies: Vec<Arc<Recorded>>,
    /// The filter's counters, with the shadow and with the dead one.
    pub counters: [Counters; 2],
}

/// One Envoy with the shadow up, one with nothing behind the shadow's port, the same primary.
pub async fn drive(screen: &Screen) -> Result<Outcome> {
    let percent = percent()?;
    let primary = Backend::ok().await?;
    let shadow = Backend::ok().await?;
    let nobody = ClosedPort::new()?;
    let up = start(&primary, shadow.address()).await?;
    let dead = start(&primary, nobody.address()?).await?;

    let version = version(&up).await?;
    screen.title(&format!("Request Mirror on Envoy {version}, with envoy/envoy.yaml"));
    screen.note(&format!(
        "A primary answers every request; a shadow gets a copy of {percent} % of them."
    ));
    screen.note("GET and POST in turn, bodies of 0 to 300 000 bytes, four connections.");
    println!();

    let legs = [up.plain_address(), up.address(), dead.address()];
    let answers = tokio::select! {
        answers = send(screen, legs, &shadow) => answers?,
        _ = ctrl_c() => {
            up.stop().await?;
            dead.stop().await?;
            bail!("interrupted");
        }
    };
    // Fails unless each mirror has ended in exactly one counter.
    let counters = [up.finish().await?, dead.finish().await?];
    screen.clear();
    let (originals, copies) = (primary.so_far(), shadow.so_far());
    Ok(Outcome { percent, answers, originals, copies, counters })
}

/// Sends every leg's requests, in turns.
async fn send(screen: &Screen, legs: [SocketAddr; 3], shadow: &Backend) -> Result<[LoadReport; 3]> {
    let mut answers: [LoadReport; 3] = Default::default();
    let total = ROUNDS * legs.len();
    for turn in 0..total {
        let round = turn / legs.len();
        let leg = (turn + round) % legs.len(); // a different one first each round
        let (from, name) = (round * ROUND, LEGS[leg].0);
        let report = load(legs[leg], ROUND, CONNECTIONS, move |n| request(name, from + n)).await?;
        add(&mut answers[leg], report);
        let (sent, all) = (count((turn + 1) * ROUND), count(total * ROUND));
        let copies = count(shadow.counts().recorded);
        screen.progress(turn + 1, total, &format!("{sent} of {all} requests, {copies} copies"));
    }
    Ok(answers)
}

/// The example as it is, between these.
async fn start(primary: &Backend, shadow: SocketAddr) -> Result<Envoy> {
    let setup = Setup::new()?;
    setup.cluster("primary", &[primary.address()]).cluster("shadow", &[shadow]).start().await
}

fn add(sum: &mut LoadReport, more: LoadReport) {
    for (status, answers) in more.by_status {
        *sum.by_status.entry(status).or_default() += answers;
    }
    sum.latencies.extend(more.latencies);
    sum.latencies.sort_unstable();
}

/// The percentage of the example configuration.
fn percent() -> Result<u64> {
    let mut example = Config::example()?;
    let text = example.mirror()["configuration"]["value"].as_str().unwrap_or_default();
    let plugin: Value = serde_json::from_str(text).context("the example's plugin configuration")?;
    plugin["requestMirror"]["percent"].as_u64().context("the example has no percent")
}

/// Envoy's version: `<commit>/1.40.0/Clean/RELEASE/BoringSSL` in its own words.
pub async fn version(envoy: &Envoy) -> Result<String> {
    let info: Value = serde_json::from_str(&envoy.admin().get("/server_info").await?)?;
    let version = info["version"].as_str().and_then(|version| version.split('/').nth(1));
    Ok(version.unwrap_or("of an unknown version").to_owned())
}
