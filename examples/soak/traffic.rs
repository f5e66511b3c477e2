//! The requests and the clients: what each request is follows from its number.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use anyhow::Result;
use bytes::Bytes;
use rig::{Http1, Http2, Request};
use tokio::task::JoinSet;

use crate::behaviour;
use crate::shadows::HUGE_IN;

/// Of the clients of a kind, one in so many uses the listener without the mirror.
const PLAIN_IN: usize = 6;
/// Clients of each kind.
const CLIENTS: usize = 12;
/// Bodies of these lengths, and GETs.
const LENGTHS: [Option<usize>; 6] =
    [None, Some(0), None, Some(500), Some(8 * 1024), Some(64 * 1024)];

/// When to stop.
#[derive(Clone, Copy)]
pub struct Plan {
    pub requests: usize,
    pub end: Instant,
}

/// How many requests ended so, by listener (`mirrored`, `plain`) and by status or error.
pub type Answers = BTreeMap<(&'static str, String), usize>;

/// How a client's connections are.
#[derive(Clone, Copy)]
enum Kind {
    KeptAlive,
    New,
    Http2,
}

pub struct Clients;

impl Clients {
    /// Sends all requests, and tells of all answers.
    pub async fn start(
        plan: Plan,
        next: Arc<AtomicUsize>,
        mirrored: SocketAddr,
        plain: SocketAddr,
    ) -> Result<Answers> {
        let mut clients = JoinSet::new();
        let body = Bytes::from(vec![b'b'; 64 * 1024]);
        for kind in [Kind::KeptAlive, Kind::New, Kind::Http2] {
            for number in 0..CLIENTS {
                let (listener, address) = match number % PLAIN_IN {
                    0 => ("plain", plain),
                    _ => ("mirrored", mirrored),
                };
                let (next, body) = (next.clone(), body.clone());
                clients.spawn(async move { run(plan, &next, kind, listener, address, body).await });
            }
        }
        let mut all = Answers::new();
        while let Some(answers) = clients.join_next().await {
            for (key, count) in answers? {
                *all.entry(key).or_default() += count;
            }
        }
        Ok(all)
    }
}

/// One client: a request after the other, on a new connection where the last one failed.
async fn run(
    plan: Plan,
    next: &AtomicUsize,
    kind: Kind,
    listener: &'static str,
    address: SocketAddr,
    body: Bytes,
) -> Answers {
    let mut answers = Answers::new();
    let mut http1: Option<Http1> = None;
    let mut http2: Option<Http2> = None;
    while Instant::now() < plan.end {
        let number = next.fetch_add(1, Relaxed);
        if number >= plan.requests {
            break;
        }
        let request = request(number, &body);
        let answer = match kind {
            Kind::Http2 => match http2.take() {
                Some(client) => exchange2(client, &request, &mut http2).await,
                None => match Http2::connect(address).await {
                    Ok(client) => exchange2(client, &request, &mut http2).await,
                    Err(error) => Err(error),
                },
            },
            Kind::KeptAlive | Kind::New => match http1.take() {
                Some(client) => exchange1(client, &request, &mut http1, kind).await,
                None => match Http1::connect(address).await {
                    Ok(client) => exchange1(client, &request, &mut http1, kind).await,
                    Err(error) => Err(error),
                },
            },
        };
        let end = answer.map_or_else(|error| format!("{error:#}"), |status| status.to_string());
        *answers.entry((listener, end)).or_default() += 1;
    }
    answers
}

async fn exchange1(
    mut client: Http1,
    request: &Request,
    kept: &mut Option<Http1>,
    kind: Kind,
) -> Result<u16> {
    let status = client.request(request).await?.status;
    *kept = matches!(kind, Kind::KeptAlive).then_some(client);
    Ok(status)
}

async fn exchange2(mut client: Http2, request: &Request, kept: &mut Option<Http2>) -> Result<u16> {
    let status = client.request(request).await?.status;
    *kept = Some(client);
    Ok(status)
}

fn request(number: usize, body: &Bytes) -> Request {
    let behaviour = behaviour(number);
    let is_huge = behaviour == "huge" && number.is_multiple_of(HUGE_IN);
    let path = format!("/{behaviour}/{}", if is_huge { "huge" } else { "x" });
    match LENGTHS[number % LENGTHS.len()] {
        None => Request::get(&path),
        Some(length) => Request::post(&path, body.slice(..length)),
    }
}
