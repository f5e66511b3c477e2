//! What a backend remembers of its requests.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::watch;

use super::{Counts, Reply};
use crate::message::Fields;

/// The protocol of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    Http1,
    Http2,
}

/// A request's head as it came.
#[derive(Clone, Debug)]
pub struct Head {
    pub version: Version,
    pub method: String,
    pub path: Vec<u8>,
    /// The `:authority` of HTTP/2, the Host of HTTP/1.
    pub authority: Vec<u8>,
    /// Every field in its order, the Host of HTTP/1 among them, the pseudo-fields of HTTP/2 not.
    pub headers: Fields,
    /// The number of its connection: requests of one connection share it.
    pub connection: usize,
}

/// A whole request as it came.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub head: Head,
    pub body: Bytes,
    pub trailers: Fields,
}

/// As HTTP/1 would write it, with the body's size instead of the body.
impl fmt::Display for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Head { method, path, headers, .. } = &self.head;
        write!(f, "{method} {}\n{headers}", path.escape_ascii())?;
        write!(f, "({} bytes of body)\n{}", self.body.len(), self.trailers)
    }
}

/// A backend's memory, shared by its connections.
pub(super) struct Record {
    reply: Box<dyn Fn(&Head) -> Reply + Send + Sync>,
    requests: Mutex<Vec<Arc<Recorded>>>,
    forgets: AtomicBool,
    counts: watch::Sender<Counts>,
}

impl Record {
    pub(super) fn new(reply: impl Fn(&Head) -> Reply + Send + Sync + 'static) -> Self {
        Self {
            reply: Box::new(reply),
            requests: Mutex::default(),
            forgets: AtomicBool::default(),
            counts: watch::Sender::default(),
        }
    }

    pub(super) fn counts(&self) -> watch::Receiver<Counts> {
        self.counts.subscribe()
    }

    pub(super) fn requests(&self) -> Vec<Arc<Recorded>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A connection has come; its number.
    pub(super) fn connected(&self) -> usize {
        let mut number = 0;
        self.counts.send_modify(|counts| {
            number = counts.connections;
            counts.connections += 1;
        });
        number
    }

    /// A head has come. The request runs until the guard is dropped.
    pub(super) fn arrived(self: &Arc<Self>, head: &Head) -> (Reply, Run) {
        self.counts.send_modify(|counts| {
            counts.arrived += 1;
            counts.running += 1;
            counts.peak = counts.peak.max(counts.running);
        });
        ((self.reply)(head), Run(self.clone()))
    }

    /// From now on requests are counted and not kept.
    pub(super) fn forget(&self) {
        self.forgets.store(true, Relaxed);
    }

    /// A request has come whole.
    pub(super) fn whole(&self, request: Recorded) {
        if !self.forgets.load(Relaxed) {
            self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::new(request));
        }
        self.counts.send_modify(|counts| counts.recorded += 1);
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record").field("counts", &*self.counts.borrow()).finish_non_exhaustive()
    }
}

/// A request under way.
pub(super) struct Run(Arc<Record>);

impl Drop for Run {
    fn drop(&mut self) {
        self.0.counts.send_modify(|counts| counts.running -= 1);
    }
}
