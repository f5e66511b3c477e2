//! What becomes of Envoy's memory with the filter, and the time that loading the module takes.

use std::time::Duration;

use anyhow::Result;
use tokio::time::sleep;

use crate::OTHER_CORE;
use crate::backends::Backends;
use crate::load::{Load, nanoseconds};
use crate::variants::{self, Variant};

/// So many bodies at a time.
const BURST: Load = Load { requests: 1000, connections: 1000, ..Load::POST_64_KB };
const BURSTS: usize = 4;
const REST: Duration = Duration::from_secs(30);

pub async fn measure() -> Result<()> {
    let backends = Backends::start().await?;
    println!(
        "| workers | variant | idle, MB | after {BURSTS} bursts | {REST:?} later | start, ms |"
    );
    println!("|---|---|---|---|---|---|");
    for workers in [1, 8] {
        for variant in variants::of_memory() {
            measure_one(&backends, workers, &variant).await?;
        }
    }
    Ok(())
}

async fn measure_one(backends: &Backends, workers: u32, variant: &Variant) -> Result<()> {
    let envoy = backends.setup(workers)?.patch(|config| variant.apply(config)).start().await?;
    let megabytes = || Ok::<_, anyhow::Error>(envoy.memory()? / 1_000_000);
    let start = nanoseconds(&envoy, "")? / 1_000_000;
    let idle = megabytes()?;
    for _ in 0..BURSTS {
        BURST.run(envoy.address(), OTHER_CORE)?;
    }
    let after = megabytes()?;
    sleep(REST).await;
    println!("| {workers} | {} | {idle} | {after} | {} | {start} |", variant.name, megabytes()?);
    envoy.stop().await
}
