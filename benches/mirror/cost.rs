//! CPU time of the Envoy process per request.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result};
use rig::{Counters, Setup};

use crate::backends::Backends;
use crate::load::{Load, cpu_nanoseconds, pin};
use crate::report::{Measured, Report};
use crate::variants::{self, Variant};
use crate::{ENVOY_CORE, OTHER_CORE};

pub async fn measure(rounds: usize, compare: Option<&Path>) -> Result<()> {
    let empty = variants::empty_module()?;
    let variants = variants::of_cost(empty.path(), compare);
    let backends = Backends::start(OTHER_CORE).await?;
    let setup = Setup::new()?
        .workers(1)
        .cluster("primary", &[backends.primary()])
        .cluster("shadow", &[backends.shadow()]);
    let bench = Bench::start(setup, &variants).await?;
    let mut report = Report::default();
    for load in [Load::GET, Load::POST_1_KB, Load::POST_64_KB] {
        report.add(load.to_string(), bench.interleave(&variants, load, rounds)?);
    }
    bench.stop().await?;
    println!("{report}");
    // A comparison of two modules says nothing of the shipped one that is worth keeping.
    if compare.is_none() { report.save() } else { Ok(()) }
}

/// An Envoy on its core, with a listener for each variant.
pub struct Bench {
    envoy: rig::Envoy,
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

    /// One block of the load for each variant, in each round.
    pub fn interleave(&self, variants: &[Variant], load: Load, rounds: usize) -> Result<Measured> {
        let mut costs: Vec<_> = variants.iter().map(|it| (it.name.clone(), vec![])).collect();
        let mut order: Vec<usize> = (0..variants.len()).collect();
        for round in 0..=rounds {
            fastrand::shuffle(&mut order);
            for &at in &order {
                let (variant, series) = &mut costs[at];
                let address = self.address(variant)?;
                let before = cpu_nanoseconds(self.envoy.id())?;
                load.run(address, OTHER_CORE)?;
                let spent = cpu_nanoseconds(self.envoy.id())? - before;
                // The first round warms up: connections, code, caches.
                if round > 0 {
                    series.push(spent as f64 / 1000.0 / load.requests as f64);
                }
            }
            eprint!("\r{load}: round {round} of {rounds} ");
        }
        eprintln!();
        Ok(Measured { rounds, costs })
    }

    /// Ends it, and tells what has become of the mirrors.
    pub async fn stop(self) -> Result<Counters> {
        self.envoy.finish().await
    }
}
