//! What the mirror costs: CPU time of the Envoy process per request, beside no filter and beside
//! Envoy's own mirroring. See benches/README.md.
//!
//! One Envoy has a listener for each variant. Blocks of requests go to each in turn, in an order
//! drawn anew each round, so that whatever else the machine does falls on all alike; what counts is
//! the ratio within a round. Envoy has one core, the load and the backends have the other.

mod backends;
mod load;
mod report;
mod statistics;
mod variants;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use rig::Setup;

use backends::Backends;
use load::{Load, cpu_nanoseconds, pin};
use report::{Measured, Report};
use variants::Variant;

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
    let variants = variants::all(compare.is_some());

    let backends = Backends::start(OTHER_CORE).await?;
    let setup = Setup::new()?
        .workers(1)
        .cluster("primary", &[backends.primary()])
        .cluster("shadow", &[backends.shadow()])
        .patch(|config| variants::listeners(config, &variants, compare.as_deref()));
    let envoy = setup.start().await?;
    pin(envoy.id(), ENVOY_CORE)?;
    let addresses = envoy.admin().listeners().await?;

    let mut report = Report::default();
    for load in Load::ALL {
        let mut costs: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        let mut order: Vec<&Variant> = variants.iter().filter(|it| it.is_for(load)).collect();
        for round in 0..=rounds {
            fastrand::shuffle(&mut order);
            for variant in &order {
                let address = addresses.get(variant.name).context("a listener is missing")?;
                let before = cpu_nanoseconds(envoy.id())?;
                load.run(*address, OTHER_CORE)?;
                let spent = cpu_nanoseconds(envoy.id())? - before;
                // The first round warms up: connections, code, caches.
                if round > 0 {
                    let cost = spent as f64 / 1000.0 / load.requests() as f64;
                    costs.entry(variant.name).or_default().push(cost);
                }
            }
            eprint!("\r{load}: round {round} of {rounds} ");
        }
        eprintln!();
        report.add(load, Measured { rounds, costs });
    }
    envoy.settled().await?;
    envoy.stop().await?;
    println!("{report}");
    report.save()
}
