//! Instructions that Envoy's worker runs for each request, counted by callgrind. Slow, and without the
//! kernel's; but the same each time, to within some thousandths, whatever else the machine does.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use rig::Envoy;
use tempfile::TempDir;

use crate::OTHER_CORE;
use crate::backends::Backends;
use crate::cost::Bench;
use crate::load::Load;
use crate::report::{Measured, Report};
use crate::variants;

/// Enough for the requests of a block to cost the same, however they fall into ticks.
const REQUESTS: usize = 800;
const ROUNDS: usize = 2;

pub async fn measure(compare: Option<&Path>) -> Result<()> {
    let empty = variants::empty_module()?;
    let variants = variants::of_instructions(empty.path(), compare);
    let backends = Backends::start().await?;
    let callgrind = Callgrind(TempDir::new()?);
    // V8 writes code as it goes.
    let setup = backends.setup(1)?.under(&[
        "valgrind",
        "--tool=callgrind",
        "--smc-check=all-non-file",
        "--separate-threads=yes",
        &callgrind.out_option(),
    ]);
    let bench = Bench::start(setup, &variants).await?;
    let mut report = Report::new("1000 instructions");
    for load in Load::ALL {
        let load = Load { requests: REQUESTS, ..load };
        let mut costs = Vec::new();
        for variant in &variants {
            let address = bench.address(&variant.name)?;
            let mut series = Vec::new();
            for round in 0..=ROUNDS {
                eprint!("\r{load}, {}: round {round} of {ROUNDS}      ", variant.name);
                callgrind.begin(&bench.envoy)?;
                load.run(address, OTHER_CORE)?;
                bench.envoy.settled().await?;
                let spent = callgrind.spent(&bench.envoy)?;
                // The first round warms up: the module's functions are compiled at their first call.
                if round > 0 {
                    series.push(spent as f64 / 1000.0 / load.requests as f64);
                }
            }
            costs.push((variant.name.clone(), series));
        }
        report.add(load.to_string(), Measured { costs });
    }
    eprintln!();
    bench.stop().await?;
    println!("{report}");
    Ok(())
}

/// Where callgrind writes what it has counted.
struct Callgrind(TempDir);

impl Callgrind {
    fn out_option(&self) -> String {
        format!("--callgrind-out-file={}/counts", self.0.path().display())
    }

    /// Counts from here.
    fn begin(&self, envoy: &Envoy) -> Result<()> {
        control(envoy, "--zero")
    }

    /// What the busiest thread has run since, which is the worker.
    fn spent(&self, envoy: &Envoy) -> Result<u64> {
        control(envoy, "--dump")?;
        let mut most = None;
        for file in std::fs::read_dir(self.0.path())? {
            let path = file?.path();
            let counts = std::fs::read_to_string(&path)?;
            let summary = counts.lines().find_map(|line| line.strip_prefix("summary: "));
            most = most.max(summary.and_then(|summary| summary.parse().ok()));
            std::fs::remove_file(path)?;
        }
        most.context("callgrind has counted nothing")
    }
}

fn control(envoy: &Envoy, what: &str) -> Result<()> {
    let mut command = Command::new("callgrind_control");
    command.args([what, &envoy.id().to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.status().context("cannot run callgrind_control")?;
    ensure!(status.success(), "callgrind_control {what} ended with {status}");
    Ok(())
}
