//! Latency of the primary's answers at seven tenths of what one worker can do, every request
//! mirrored: beside Envoy's own mirroring, and with a shadow that is well, dead or silent.

use std::net::TcpListener;

use anyhow::Result;
use rig::Setup;
use rig::broken::ClosedPort;

use crate::OTHER_CORE;
use crate::backends::Backends;
use crate::cost::{Bench, in_rounds};
use crate::load::Load;
use crate::statistics::{median, percentile};
use crate::variants::{self, Variant};

/// The variant that sets the pace: the most a gateway with Envoy's own mirroring can do.
const PACEMAKER: &str = "native, shadow well";
const SATURATION: f64 = 0.7;

pub async fn measure(rounds: usize) -> Result<()> {
    let variants = variants::of_latency();
    let backends = Backends::start().await?;
    let dead = ClosedPort::new()?;
    let setup = backends.setup(1)?.cluster("dead", &[dead.address()?]);
    let load = Load::GET;
    let pace = pace(setup.clone().cluster("silent", &[]), &variants, load).await?;
    println!("{pace:.0} requests a second, {SATURATION} of what {PACEMAKER} can do\n");

    // It takes connections, as its backlog, and never reads. It goes before its Envoy does, and with it
    // Envoy's own mirrors: with thousands of them under way Envoy has crashed at its end, once.
    let start = || {
        let silent = TcpListener::bind("127.0.0.1:0")?;
        Ok((setup.clone().cluster("silent", &[silent.local_addr()?]), silent))
    };
    let measure = async |bench: &Bench, variant: &str| {
        let mut all = load.run_at(pace, bench.address(variant)?, OTHER_CORE)?;
        all.sort_by(f64::total_cmp);
        Ok([percentile(&all, 50.0), percentile(&all, 99.0)])
    };
    let times = in_rounds(start, &variants, "latency", rounds, measure).await?;
    println!("| variant | p50 µs | p99 µs |\n|---|---|---|");
    for (variant, times) in times {
        let middle = |which: usize| median(times.iter().map(|both| both[which]).collect());
        println!("| {variant} | {:.0} | {:.0} |", middle(0), middle(1));
    }
    Ok(())
}

/// Requests a second at that part of saturation.
async fn pace(setup: Setup, variants: &[Variant], load: Load) -> Result<f64> {
    let bench = Bench::start(setup, variants).await?;
    let saturated = (0..5)
        .map(|_| load.run(bench.address(PACEMAKER)?, OTHER_CORE))
        .collect::<Result<Vec<_>>>()?;
    bench.stop().await?;
    Ok(SATURATION * load.requests as f64 / median(saturated))
}
