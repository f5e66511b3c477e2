//! `make soak`: a million requests of every kind, all mirrored, to shadows that do their worst and up to
//! limits that they reach.
//!
//! | module | idea |
//! |---|---|
//! | `traffic` | the requests and the clients that send them |
//! | `shadows` | the shadows, a cluster for each kind of behaviour |
//! | `report` | what happened, and what must hold of it |
//!
//! `REQUESTS` and `SECONDS` in the environment bound it; whichever comes first ends it.

mod report;
mod shadows;
mod traffic;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rig::{Backend, Response, Setup};
use serde_json::json;
use tokio::time::interval;

use report::Report;
use shadows::{SHADOWS, Shadows};
use traffic::{Clients, Plan};

const REQUESTS: usize = 1_000_000;
const SECONDS: usize = 3600;
/// Enough of them to get in each other's way.
const WORKERS: u32 = 4;
/// Envoy keeps no more of one answer; a huge one is longer.
const ANSWER_LIMIT: usize = 256 * 1024;
/// Between two looks at Envoy's memory.
const LOOK: Duration = Duration::from_millis(500);

#[tokio::main]
async fn main() -> ExitCode {
    match soak().await {
        Ok(report) => {
            println!("{report}");
            let wrong = report.wrong();
            wrong.iter().for_each(|wrong| eprintln!("soak: {wrong}"));
            ExitCode::from(u8::from(!wrong.is_empty()))
        }
        Err(error) => {
            eprintln!("soak: {error:?}");
            ExitCode::FAILURE
        }
    }
}

async fn soak() -> Result<Report> {
    let plan = Plan {
        requests: number("REQUESTS", REQUESTS)?,
        end: Instant::now() + Duration::from_secs(number("SECONDS", SECONDS)? as u64),
    };
    let primary = Backend::always(rig::Reply::Respond(Response::new(200).body("fine"))).await?;
    let primary = primary.forgetful();
    let shadows = Shadows::start().await?;
    let setup = Setup::new()?
        .workers(WORKERS)
        .plugin(&shadows::plugin())
        .cluster("primary", &[primary.address()])
        .patch(|config| {
            config.bootstrap()["layered_runtime"]["layers"] = json!([{
                "name": "soak",
                "static_layer": { "http.async_response_buffer_limit": ANSWER_LIMIT },
            }]);
        });
    let envoy = shadows.add_to(setup)?.start().await?;

    let started = Instant::now();
    let done = Arc::new(AtomicUsize::new(0));
    let sent = Clients::start(plan, done.clone(), envoy.address(), envoy.plain_address());
    tokio::pin!(sent);
    let mut looks = interval(LOOK);
    let mut memory = Vec::new();
    let answers = loop {
        tokio::select! {
            answers = &mut sent => break answers?,
            _ = looks.tick() => {
                memory.push(envoy.memory()?);
                eprint!("\r{} of {} requests", done.load(Relaxed), plan.requests);
            }
        }
    };
    eprintln!();
    let took = started.elapsed();
    let warnings = envoy.mirror_log("warning").len();
    let errors = envoy.mirror_log("error").len() + envoy.mirror_log("critical").len();
    let counters = envoy.settled().await?; // both identities, and every gauge at 0
    envoy.stop().await?;
    Ok(Report { answers, took, memory, warnings, errors, counters })
}

fn number(variable: &str, otherwise: usize) -> Result<usize> {
    match std::env::var(variable) {
        Ok(text) if !text.is_empty() => {
            text.parse().with_context(|| format!("{variable} must be a number"))
        }
        _ => Ok(otherwise),
    }
}

/// The behaviour that requests of this number meet: each for a while, in turn.
fn behaviour(number: usize) -> &'static str {
    const WHILE: usize = 2_000;
    SHADOWS[number / WHILE % SHADOWS.len()]
}
