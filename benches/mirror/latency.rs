//! Latency of the primary's answers at seven tenths of what one worker can do, every request
//! mirrored: beside Envoy's own mirroring, and with a shadow that is well, dead or silent.

use std::collections::BTreeMap;
use std::net::TcpListener;

use anyhow::Result;
use rig::Setup;
use rig::broken::ClosedPort;

use crate::OTHER_CORE;
use crate::backends::Backends;
use crate::cost::{Bench, STARTS};
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

    let mut times: BTreeMap<&str, Vec<[f64; 2]>> = BTreeMap::new();
    let mut order: Vec<&Variant> = variants.iter().collect();
    let rounds_each = rounds.div_ceil(STARTS);
    for start in 0..rounds.div_ceil(rounds_each) {
        // It takes connections, as its backlog, and never reads.
        let silent = TcpListener::bind("127.0.0.1:0")?;
        let setup = setup.clone().cluster("silent", &[silent.local_addr()?]);
        let bench = Bench::start(setup, &variants).await?;
        for round in 0..=rounds_each {
            fastrand::shuffle(&mut order);
            for variant in &order {
                let mut all = load.run_at(pace, bench.address(&variant.name)?, OTHER_CORE)?;
                all.sort_by(f64::total_cmp);
                if round > 0 {
                    let both = [percentile(&all, 50.0), percentile(&all, 99.0)];
                    times.entry(&variant.name).or_default().push(both);
                }
            }
            eprint!("\rround {} of {rounds} ", start * rounds_each + round);
        }
        // Ends Envoy's own mirrors, too: with thousands of them under way it has crashed at its end, once.
        drop(silent);
        bench.stop().await?;
    }
    eprintln!();
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
