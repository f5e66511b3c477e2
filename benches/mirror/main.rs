//! What the mirror costs, beside no filter and beside Envoy's own mirroring. See benches/README.md.
//!
//! One Envoy has a listener for each variant. Blocks of requests go to each in turn, in an order
//! drawn anew each round, so that whatever else the machine does falls on all alike; what counts is
//! the ratio within a round. Envoy has one core, the load and the backends have the other.

mod backends;
mod cost;
mod instructions;
mod latency;
mod load;
mod memory;
mod report;
mod scale;
mod statistics;
mod variants;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

/// Rounds of one block for each variant; `ROUNDS` in the environment asks for others.
const ROUNDS: usize = 60;
/// The core of Envoy, and that of everything else.
const ENVOY_CORE: usize = 0;
const OTHER_CORE: usize = 1;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let rounds = match std::env::var("ROUNDS") {
        Ok(rounds) => rounds.parse().context("ROUNDS must be a number")?,
        Err(_) => ROUNDS,
    };
    let compare = std::env::var_os("COMPARE").filter(|path| !path.is_empty()).map(PathBuf::from);
    // cargo adds flags of its own to what it runs.
    let mut chosen = std::env::args().skip(1).filter(|argument| !argument.starts_with('-'));
    match chosen.next().as_deref() {
        None | Some("cost") => cost::measure(rounds, compare.as_deref()).await,
        Some("instructions") => instructions::measure(compare.as_deref()).await,
        Some("latency") => latency::measure(rounds).await,
        Some("rules") => scale::rules(rounds).await,
        Some("workers") => scale::workers(rounds).await,
        Some("crowds") => scale::crowds(rounds).await,
        Some("shared") => scale::shared_data().await,
        Some("memory") => memory::measure().await,
        Some(other) => bail!("nothing measures {other}; see benches/README.md"),
    }
}
