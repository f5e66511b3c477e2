//! Servers that record each request byte for byte and answer as a test tells them.

mod http1;
mod http2;
mod record;
mod reply;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::{Result, ensure};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

pub use record::{Head, Recorded, Version};
pub use reply::{Gate, Reply};

use crate::message::Response;
use crate::wait::within_deadline;
use record::Record;

/// A server on a free port that speaks HTTP/1 and, to a client that begins with it, HTTP/2.
/// Dropped, it closes every connection.
#[derive(Debug)]
pub struct Backend {
    address: SocketAddr,
    record: Arc<Record>,
    accepting: JoinHandle<()>,
}

/// What a backend has seen so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections accepted.
    pub connections: usize,
    /// Requests whose head has come.
    pub arrived: usize,
    /// Requests that have come whole.
    pub recorded: usize,
    /// Requests that have come and are neither answered nor given up.
    pub running: usize,
    /// The most that ever ran at a time.
    pub peak: usize,
}

impl Backend {
    /// Answers each request as `reply` says, which sees the request's head before the rest is read.
    pub async fn start(reply: impl Fn(&Head) -> Reply + Send + Sync + 'static) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let record = Arc::new(Record::new(reply));
        let accepting = tokio::spawn(accept(listener, record.clone()));
        Ok(Self { address, record, accepting })
    }

    /// Answers each request with an empty 200.
    pub async fn ok() -> Result<Self> {
        Self::always(Reply::Respond(Response::new(200))).await
    }

    /// Does the same to each request.
    pub async fn always(reply: Reply) -> Result<Self> {
        Self::start(move |_| reply.clone()).await
    }

    /// Counts requests from now on, and does not keep them: there may be a million.
    pub fn forgetful(self) -> Self {
        self.record.forget();
        self
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes every connection, and refuses new ones from now on.
    pub fn close(&self) {
        self.accepting.abort(); // and with it every connection it holds
    }

    pub fn counts(&self) -> Counts {
        *self.record.counts().borrow()
    }

    /// Waits until the counts are as the condition wants them, and returns them.
    pub async fn wait_for(
        &self,
        what: &str,
        condition: impl Fn(&Counts) -> bool,
    ) -> Result<Counts> {
        let mut counts = self.record.counts();
        let reached = within_deadline(what, counts.wait_for(condition)).await;
        let reached = reached
            .map_err(|late| late.context(format!("the backend has seen {:?}", self.counts())))?;
        Ok(*reached?)
    }

    /// The requests that have come whole, in the order of their ends.
    pub fn so_far(&self) -> Vec<Arc<Recorded>> {
        self.record.requests()
    }

    /// Waits until that many requests have come whole, and returns them. More are an error.
    pub async fn recorded(&self, requests: usize) -> Result<Vec<Arc<Recorded>>> {
        self.wait_for(&format!("{requests} requests"), |counts| counts.recorded >= requests)
            .await?;
        let all = self.so_far();
        ensure!(all.len() == requests, "{} requests came instead of {requests}", all.len());
        Ok(all)
    }

    /// The request that comes whole after the first `seen`, however long that takes.
    pub async fn after(&self, seen: usize) -> Result<Arc<Recorded>> {
        self.record.counts().wait_for(|counts| counts.recorded > seen).await?;
        Ok(self.so_far()[seen].clone())
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.close();
    }
}

async fn accept(listener: TcpListener, record: Arc<Record>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let connection = record.connected();
                    connections.spawn(serve(stream, record.clone(), connection));
                }
                Err(_) => tokio::task::yield_now().await, // that client has gone, or files are short
            },
            Some(_) = connections.join_next() => {} // an end, orderly or not, is the client's business
        }
    }
}

async fn serve(stream: TcpStream, record: Arc<Record>, connection: usize) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut start = [0; 3];
    while stream.peek(&mut start).await? < start.len() {
        tokio::task::yield_now().await;
    }
    match &start {
        b"PRI" => http2::serve(stream, record, connection).await,
        _ => http1::serve(stream, record, connection).await,
    }
}
