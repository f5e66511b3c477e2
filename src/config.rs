//! The plugin configuration: what the user wrote, turned into what the filter goes by.
//!
//! Written is a JSON document ([`document`]) or the same as a `google.protobuf.Struct`
//! ([`protobuf`]); usable is [`Config`]. Nothing is checked later: what parses, works.

mod document;
mod duration;
mod protobuf;

use std::rc::Rc;
use std::time::Duration;

use serde_json::Value;

use crate::sampling::Fraction;
use document::{Fields, Node};

pub use document::Error;

/// Concurrent mirrors in the whole process: about the connections that Envoy's default circuit
/// breakers (1024) give the shadow's cluster.
pub const DEFAULT_BUDGET: u32 = 1024;
/// The largest budget that may be asked for.
pub const MAX_BUDGET: u32 = 1_000_000;
/// Request-body bytes held for mirrors in the whole process: 64 MiB.
pub const DEFAULT_BUFFERED_BYTES: u64 = 64 * 1024 * 1024;
/// A longer body is not mirrored: 1 MiB, which is also Envoy's default connection buffer.
pub const DEFAULT_BODY_BYTES: u64 = 1024 * 1024;
/// The most that either byte limit may be: 256 MiB. A VM may grow to 1 GiB and traps beyond; a
/// growing buffer briefly needs three times its content.
pub const MAX_BYTES: u64 = 256 * 1024 * 1024;
/// How long a mirror may take, from dispatch to the end of the answer.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_millis(100);
/// The shortest timeout. Zero would be none at all to Envoy.
pub const MIN_TIMEOUT: Duration = Duration::from_millis(1);
/// The longest timeout, and so the longest time that a crashed VM's permits stay out.
pub const MAX_TIMEOUT: Duration = Duration::from_secs(3600);
/// `fraction.denominator` where it is absent, as in the Gateway API.
pub const DEFAULT_DENOMINATOR: u32 = 100;

/// What one root context goes by.
#[derive(Debug, PartialEq)]
pub struct Config {
    pub limits: Limits,
    /// The mirrors of every request; those that mirror nothing are left out.
    pub targets: Vec<Rc<Target>>,
    /// What is legal but perhaps not meant, a line each.
    pub warnings: Vec<String>,
}

/// What all mirrors of the process share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Concurrent mirrors, 1 to [`MAX_BUDGET`].
    pub mirrors: u32,
    /// Request-body bytes held, 0 to [`MAX_BYTES`].
    pub bytes: u64,
}

/// Where one mirror sends which share of the requests, and what a copy may cost.
#[derive(Debug, PartialEq)]
pub struct Target {
    /// The name of an Envoy cluster, which need not exist yet.
    pub cluster: String,
    pub fraction: Fraction,
    /// [`MIN_TIMEOUT`] to [`MAX_TIMEOUT`].
    pub timeout: Duration,
    /// A body of more bytes is not mirrored; 0 to [`MAX_BYTES`].
    pub max_body_bytes: u64,
}

impl Config {
    /// Reads the plugin configuration as Envoy hands it over.
    pub fn parse(written: &[u8]) -> Result<Self, Error> {
        let document = decode(written)?;
        let root = Node::root(&document);
        let fields = root.fields(&["requestMirror", "requestMirrorBudget", "maxBufferedBytes"])?;
        let mut warnings = Vec::new();
        let target = mirror(&fields.required("requestMirror")?, &mut warnings)?;
        Ok(Self {
            limits: Limits {
                mirrors: fields.integer("requestMirrorBudget", 1..=MAX_BUDGET, DEFAULT_BUDGET)?,
                bytes: fields.integer("maxBufferedBytes", 0..=MAX_BYTES, DEFAULT_BUFFERED_BYTES)?,
            },
            targets: target.into_iter().map(Rc::new).collect(),
            warnings,
        })
    }

    /// The longest time that any mirror of this configuration may take.
    pub fn longest_timeout(&self) -> Duration {
        let timeouts = self.targets.iter().map(|target| target.timeout);
        timeouts.max().unwrap_or(DEFAULT_TIMEOUT)
    }
}

/// The document that the bytes hold: JSON, or a Struct in the protobuf wire format.
///
/// Envoy hands a `google.protobuf.Struct` over as its raw bytes. JSON comes first, since a Struct
/// begins with 0x0A, a newline, with which JSON may begin too.
fn decode(written: &[u8]) -> Result<Value, Error> {
    serde_json::from_slice(written).or_else(|not_json| {
        protobuf::decode_struct(written)
            .ok_or_else(|| Error::new("configuration", format!("not JSON: {not_json}")))
    })
}

/// One `requestMirror` object; `None`, and a warning, if it mirrors nothing.
fn mirror(at: &Node, warnings: &mut Vec<String>) -> Result<Option<Target>, Error> {
    let fields = at.fields(&["cluster", "percent", "fraction", "timeout", "maxBodyBytes"])?;
    let target = Target {
        cluster: cluster(&fields)?,
        fraction: share(&fields)?,
        timeout: match fields.get("timeout") {
            Some(timeout) => duration::parse(&timeout, MIN_TIMEOUT..=MAX_TIMEOUT)?,
            None => DEFAULT_TIMEOUT,
        },
        max_body_bytes: fields.integer("maxBodyBytes", 0..=MAX_BYTES, DEFAULT_BODY_BYTES)?,
    };
    if target.fraction.is_zero() {
        let why = match (fields.get("fraction"), fields.get("percent")) {
            (None, None) => "has neither percent nor fraction",
            _ => "has a share of zero",
        };
        warnings.push(format!("{} {why}: it mirrors nothing", at.path()));
        return Ok(None);
    }
    Ok(Some(target))
}

fn cluster(fields: &Fields) -> Result<String, Error> {
    let cluster = fields.required("cluster")?;
    match cluster.text()? {
        "" => Err(cluster.error("is empty; it must name an Envoy cluster")),
        name => Ok(name.to_owned()),
    }
}

/// The share of requests; both `fraction` and `percent` are checked, and `fraction` wins.
fn share(fields: &Fields) -> Result<Fraction, Error> {
    let percent = fields.integer("percent", 0..=100, 0)?;
    let (numerator, denominator) = match fields.get("fraction") {
        None => (percent, 100),
        Some(fraction) => {
            let parts = fraction.fields(&["numerator", "denominator"])?;
            let numerator = parts.required("numerator")?.integer(0..=u32::MAX)?;
            let denominator = parts.integer("denominator", 1..=u32::MAX, DEFAULT_DENOMINATOR)?;
            (numerator, denominator)
        }
    };
    Fraction::new(numerator, denominator).ok_or_else(|| {
        let above = format!("numerator {numerator} is above denominator {denominator}");
        fields.error("fraction", above)
    })
}

#[cfg(test)]
mod tests;
