//! Whether the cost stays flat as the work grows: with more rules, workers and requests at a time.

use std::time::Instant;

use anyhow::Result;
use rig::{Envoy, Setup};
use serde_json::json;

use crate::backends::Backends;
use crate::cost::interleave;
use crate::load::{Load, pin};
use crate::report::Report;
use crate::variants;
use crate::{ENVOY_CORE, OTHER_CORE};

const WORKERS: [u32; 4] = [1, 2, 4, 8];
/// Connections and streams on each.
const AT_A_TIME: [(usize, usize); 3] = [(1, 10), (10, 100), (100, 100)];
/// Requests a second, from few to more than a worker can do while it logs every host call.
const PACES: [f64; 3] = [50.0, 500.0, 5000.0];

pub async fn rules(rounds: usize) -> Result<()> {
    let backends = Backends::start().await?;
    let variants = variants::of_rules();
    let mut report = Report::new("µs");
    let measured = interleave(&backends.setup(1)?, &variants, Load::GET, rounds).await?;
    report.add("GET".to_owned(), measured);
    println!("{report}");
    Ok(())
}

pub async fn workers(rounds: usize) -> Result<()> {
    let backends = Backends::start().await?;
    let variants = variants::of_scale();
    let mut report = Report::new("µs");
    for workers in WORKERS {
        // Each of eight workers is to have some.
        let load = Load { connections: 64, ..Load::GET };
        let measured = interleave(&backends.setup(workers)?, &variants, load, rounds).await?;
        report.add(format!("GET, {workers} workers"), measured);
    }
    println!("{report}");
    Ok(())
}

pub async fn crowds(rounds: usize) -> Result<()> {
    let backends = Backends::start().await?;
    let variants = variants::of_scale();
    let mut setup = Setup::new()?.workers(1);
    for (name, address) in
        [("primary", backends.http2_primary()), ("shadow", backends.http2_shadow())]
    {
        let limits = json!({ "max_requests": 100_000, "max_pending_requests": 100_000 });
        setup = setup.cluster(name, &[address]).http2(name).patch(|config| {
            let cluster = config.cluster(name);
            cluster["circuit_breakers"] = json!({ "thresholds": [limits] });
            // Ten thousand requests keep the worker from a new connection for longer than a second.
            cluster["connect_timeout"] = json!("10s");
        });
    }
    let mut report = Report::new("µs");
    for (connections, streams) in AT_A_TIME {
        let at_a_time = connections * streams;
        let requests = (4 * at_a_time).max(Load::GET.requests);
        let load = Load { requests, connections, streams: Some(streams), ..Load::GET };
        report.add(
            format!("GET, {at_a_time} at a time"),
            // With so many in a block, fewer blocks are needed.
            interleave(&setup, &variants, load, rounds.min(400_000 / requests)).await?,
        );
    }
    println!("{report}");
    Ok(())
}

/// Reads and writes of shared data for each mirrored request. Envoy logs every host call at `trace`.
pub async fn shared_data() -> Result<()> {
    let backends = Backends::start().await?;
    println!("| workers | requests a second | reads | writes |\n|---|---|---|---|");
    for workers in [1, 4] {
        for pace in PACES {
            let envoy = backends
                .setup(workers)?
                .plugin(&json!({ "requestMirror": { "cluster": "shadow", "percent": 100 } }))
                .trace()
                .start()
                .await?;
            pin(envoy.id(), ENVOY_CORE)?;
            let (before, began) = (host_calls(&envoy), Instant::now());
            Load::GET.run_at(pace, envoy.address(), OTHER_CORE)?;
            let pace = Load::GET.requests as f64 / began.elapsed().as_secs_f64();
            envoy.settled().await?;
            let [reads, writes] = [0, 1].map(|call| {
                let calls = host_calls(&envoy)[call] - before[call];
                calls as f64 / Load::GET.requests as f64
            });
            println!("| {workers} | {pace:.0} | {reads:.2} | {writes:.2} |");
            envoy.stop().await?;
        }
    }
    println!();
    Ok(())
}

/// How often shared data was read, and written.
fn host_calls(envoy: &Envoy) -> [usize; 2] {
    let log = envoy.log();
    ["get", "set"].map(|call| log.matches(&format!("env.proxy_{call}_shared_data(")).count())
}
