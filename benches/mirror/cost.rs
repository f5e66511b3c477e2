//! CPU time of the Envoy process per request.

use std::path::Path;

use anyhow::{Context, Result};
use rig::Setup;

use crate::backends::Backends;
use crate::load::{Load, cpu_nanoseconds, pin};
use crate::report::{Measured, Report};
use crate::variants::{self, Variant};
use crate::{ENVOY_CORE, OTHER_CORE};

pub async fn measure(rounds: usize, compare: Option<&Path>) -> Result<()> {
    let variants = variants::of_cost(compare);
    let backends = Backends::start(OTHER_CORE).await?;
    let setup = Setup::new()?
        .workers(1)
        .cluster("primary", &[backends.primary()])
        .cluster("shadow", &[backends.shadow()])
        .patch(|config| variants::listeners(config, &variants));
    let envoy = setup.start().await?;
    pin(envoy.id(), ENVOY_CORE)?;
    let addresses = envoy.admin().listeners().await?;

    let mut report = Report::default();
    for load in Load::ALL {
        let mut order: Vec<&Variant> = variants.iter().filter(|it| it.is_for(load)).collect();
        let mut costs: Vec<(&str, Vec<f64>)> = order.iter().map(|it| (it.name, vec![])).collect();
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
                    let series = costs.iter_mut().find(|(name, _)| *name == variant.name);
                    series.context("an unknown variant")?.1.push(cost);
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
    // A comparison of two modules says nothing of the shipped one that is worth keeping.
    if compare.is_none() { report.save() } else { Ok(()) }
}
