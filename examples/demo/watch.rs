//! `make run`: the same rig for a person's own requests, each copy shown as it arrives.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use rig::{Backend, Recorded, Setup};
use serde_json::json;
use tokio::signal::ctrl_c;

use crate::drive::version;
use crate::screen::{Screen, count};

/// Of the headers, those that a person who looks on may wonder about.
const SHOWN: [&str; 4] = ["host", "user-agent", "content-type", "x-request-id"];

/// Every request, unless asked otherwise: someone who sends one wants to see it.
const PERCENT: &str = "100";

pub async fn run(screen: &Screen, percent: Option<&str>) -> Result<()> {
    let percent: u8 = percent.unwrap_or(PERCENT).parse().context("PERCENT is no number")?;
    ensure!(percent <= 100, "PERCENT={percent} is not in 0..=100");
    let primary = Backend::ok().await?;
    let shadow = Backend::ok().await?;
    let envoy = Setup::new()?
        .plugin(&json!({ "requestMirror": { "cluster": "shadow", "percent": percent } }))
        .cluster("primary", &[primary.address()])
        .cluster("shadow", &[shadow.address()])
        .start()
        .await?;

    screen.title(&format!("Request Mirror on Envoy {}", version(&envoy).await?));
    screen.note(&format!("The shadow gets a copy of {percent} % of the requests. Ctrl-C ends it."));
    println!();
    let admin = envoy.admin().address();
    screen.row("a request", &format!("curl -i {}/hello -d world", envoy.address()));
    screen.row("the counters", &format!("curl -s '{admin}/stats?filter=request_mirror'"));
    screen.row("Envoy's own pages", &format!("http://{admin}"));
    screen.heading("Copies at the shadow", "");

    let copies = async {
        for seen in 0.. {
            show(screen, &shadow.after(seen).await?);
        }
        anyhow::Ok(())
    };
    tokio::select! {
        ended = copies => ended?,
        interrupted = ctrl_c() => interrupted?,
    }
    let counters = envoy.finish().await?;
    let (selected, sent) = (counters.get("selected"), counters.get("sent"));
    screen.held(&format!("Envoy has ended; {selected} requests were selected and {sent} sent."));
    Ok(())
}

fn show(screen: &Screen, copy: &Arc<Recorded>) {
    let head = &copy.head;
    println!("  {} {}  {} bytes", head.method, head.path.escape_ascii(), count(copy.body.len()));
    for name in SHOWN {
        if let Some(value) = head.headers.get(name) {
            screen.note(&format!("    {name}: {}", value.escape_ascii()));
        }
    }
}
