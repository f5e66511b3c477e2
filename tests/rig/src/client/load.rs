//! Many requests at once.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::task::JoinSet;

use super::Http1;
use crate::message::Request;

/// What came back.
#[derive(Clone, Debug, Default)]
pub struct LoadReport {
    /// How many answers had each status.
    pub by_status: BTreeMap<u16, usize>,
    /// How long each answer took, shortest first.
    pub latencies: Vec<Duration>,
}

impl LoadReport {
    /// Whether that many answers came, all of them with that status.
    pub fn all(&self, status: u16, requests: usize) -> bool {
        self.by_status == BTreeMap::from([(status, requests)])
    }

    /// The latency that this share of the requests did not exceed; zero when there were none.
    pub fn percentile(&self, percent: usize) -> Duration {
        let index = self.latencies.len() * percent / 100;
        let latency = self.latencies.get(index).or(self.latencies.last());
        latency.copied().unwrap_or_default()
    }
}

/// Sends `requests` requests over `parallel` kept-alive connections, each the next one that
/// `make` makes from its number. Fails when one gets no answer.
pub async fn load(
    address: SocketAddr,
    requests: usize,
    parallel: usize,
    make: impl Fn(usize) -> Request + Send + Sync + 'static,
) -> Result<LoadReport> {
    let make = Arc::new(make);
    let next = Arc::new(AtomicUsize::new(0));
    let mut connections = JoinSet::new();
    for _ in 0..parallel.min(requests) {
        let (make, next) = (make.clone(), next.clone());
        connections.spawn(async move {
            let mut connection = Http1::connect(address).await?;
            let mut answers = Vec::new();
            loop {
                let number = next.fetch_add(1, Relaxed);
                if number >= requests {
                    return Ok::<_, anyhow::Error>(answers);
                }
                let request = make(number);
                let sent = Instant::now();
                let answer = connection.request(&request).await?;
                answers.push((answer.status, sent.elapsed()));
                if answer.headers.get("connection").is_some_and(|value| value == b"close") {
                    connection = Http1::connect(address).await?;
                }
            }
        });
    }
    let mut report = LoadReport::default();
    while let Some(answers) = connections.join_next().await {
        for (status, latency) in answers?? {
            *report.by_status.entry(status).or_default() += 1;
            report.latencies.push(latency);
        }
    }
    report.latencies.sort_unstable();
    Ok(report)
}
