//! CPU time of Envoy's workers per request.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use rig::envoy::WORKERS;
use rig::{Envoy, Setup};

use crate::backends::Backends;
use crate::load::{Load, nanoseconds, pin};
use crate::report::{Measured, Report};
use crate::variants::{self, Variant};
use crate::{ENVOY_CORE, OTHER_CORE};

pub async fn measure(rounds: usize, compare: Option<&Path>) -> Result<()> {
    let empty = variants::empty_module()?;
    let variants = variants::of_cost(empty.path(), compare);
    let backends = Backends::start().await?;
    let setup = backends.setup(1)?;
    let mut report = Report::new("µs");
    for load in Load::ALL {
        report.add(load.to_string(), interleave(&setup, &variants, load, rounds).await?);
    }
    println!("{report}");
    // A comparison of two modules says nothing of the shipped one that is worth keeping.
    if compare.is_none() { report.save() } else { Ok(()) }
}

/// Rounds are shared out among so many Envoys, one after the other: where a process happens to lie in
/// memory makes one variant some hundredths dearer or cheaper, for as long as it lives.
const STARTS: usize = 10;

/// The cost of one block of the load for each variant, in each round.
pub async fn interleave(
    setup: &Setup,
    variants: &[Variant],
    load: Load,
    rounds: usize,
) -> Result<Measured> {
    let start = || Ok((setup.clone(), ()));
    let cost = async |bench: &Bench, variant: &str| bench.cost(variant, load).await;
    Ok(Measured { costs: in_rounds(start, variants, &load.to_string(), rounds, cost).await? })
}

/// Measures each variant once in each round, in an order drawn anew. `start` tells how to start an
/// Envoy, and what it needs until just before its end.
pub async fn in_rounds<T, G>(
    start: impl Fn() -> Result<(Setup, G)>,
    variants: &[Variant],
    what: &str,
    rounds: usize,
    measure: impl AsyncFn(&Bench, &str) -> Result<T>,
) -> Result<Vec<(String, Vec<T>)>> {
    let mut measured: Vec<_> = variants.iter().map(|it| (it.name.clone(), vec![])).collect();
    let mut order: Vec<usize> = (0..variants.len()).collect();
    let rounds_each = rounds.div_ceil(STARTS);
    for envoy in 0..rounds.div_ceil(rounds_each) {
        let (setup, needed) = start()?;
        let bench = Bench::start(setup, variants).await?;
        for round in 0..=rounds_each {
            fastrand::shuffle(&mut order);
            for &at in &order {
                let (variant, series) = &mut measured[at];
                let one = measure(&bench, variant).await?;
                // The first round warms up: connections, code, caches.
                if round > 0 {
                    series.push(one);
                }
            }
            eprint!("\r{what}: round {} of {rounds} ", envoy * rounds_each + round);
        }
        drop(needed);
        bench.stop().await?;
    }
    eprintln!();
    Ok(measured)
}

/// An Envoy on its core, with a listener for each variant.
pub struct Bench {
    pub envoy: Envoy,
    addresses: BTreeMap<String, SocketAddr>,
}

impl Bench {
    pub async fn start(setup: Setup, variants: &[Variant]) -> Result<Self> {
        let setup = setup.patch(|config| variants::listeners(config, variants));
        let envoy = setup.start().await?;
        pin(envoy.id(), ENVOY_CORE)?;
        let addresses = envoy.admin().listeners().await?;
        Ok(Self { envoy, addresses })
    }

    pub fn address(&self, variant: &str) -> Result<SocketAddr> {
        self.addresses.get(variant).copied().context("a listener is missing")
    }

    /// Microseconds of CPU for each request of a block, its copies included that leave later.
    async fn cost(&self, variant: &str, load: Load) -> Result<f64> {
        let address = self.address(variant)?;
        let before = nanoseconds(&self.envoy, WORKERS)?;
        load.run(address, OTHER_CORE)?;
        self.envoy.settled().await?;
        let spent = nanoseconds(&self.envoy, WORKERS)? - before;
        Ok(spent as f64 / 1000.0 / load.requests as f64)
    }

    /// Ends it. Every mirror must be accounted for, and none dropped for want of room.
    pub async fn stop(self) -> Result<()> {
        let dropped = self.envoy.finish().await?.get("dropped.budget");
        ensure!(dropped == 0, "{dropped} mirrors were dropped");
        Ok(())
    }
}
