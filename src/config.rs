//! The plugin configuration: what the user wrote, turned into what the filter goes by.
//!
//! Written is a JSON document (`document`) or the same as a `google.protobuf.Struct`
//! (`protobuf`); usable is [`Config`]. Nothing is checked later: what parses, works.

mod document;
mod duration;
mod manifest;
mod mirror;
mod protobuf;
mod words;

use std::rc::Rc;
use std::time::Duration;

use serde_json::Value;

use crate::head::Head;
use crate::route::Routes;
use crate::sampling::{Draws, Fraction};
use document::{Fields, Node};
use manifest::Kind;
use mirror::Context;

pub use document::Error;

/// Concurrent mirrors in the whole process: as many connections as Envoy's default circuit breakers
/// give the shadow's cluster.
pub const DEFAULT_BUDGET: u32 = 1024;
/// The largest budget that may be asked for.
pub const MAX_BUDGET: u32 = 1_000_000;
/// Request-body bytes held for mirrors in the whole process: 64 MiB.
pub const DEFAULT_BUFFERED_BYTES: u64 = 64 * 1024 * 1024;
/// A longer body is not mirrored: 1 MiB, which is also Envoy's default connection buffer.
pub const DEFAULT_BODY_BYTES: u64 = 1024 * 1024;
/// The most that either byte limit may be: 1 TiB. What a VM can bear is a matter of the budget.
pub const MAX_BYTES: u64 = 1024 * 1024 * 1024 * 1024;
/// How long a mirror may take, from dispatch to the end of the answer.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_millis(100);
/// The shortest timeout. Zero would be none at all to Envoy.
pub const MIN_TIMEOUT: Duration = Duration::from_millis(1);
/// The longest timeout, and so the longest time that a crashed VM's permits stay out.
pub const MAX_TIMEOUT: Duration = Duration::from_secs(3600);
/// `fraction.denominator` where it is absent, as in the Gateway API.
pub const DEFAULT_DENOMINATOR: u32 = 100;
/// What Kubernetes calls its own domain where nobody says otherwise.
pub const DEFAULT_CLUSTER_DOMAIN: &str = "cluster.local";

/// The fields at the top of a configuration.
const FIELDS: [&str; 6] = [
    "requestMirror",
    "httpRoutes",
    "grpcRoutes",
    "requestMirrorBudget",
    "maxBufferedBytes",
    "clusterDomain",
];

/// What one root context goes by.
pub struct Config {
    pub limits: Limits,
    mirrors: Mirrors,
    /// For the nth mirror of a rule, the largest share that any rule gives it.
    ceilings: Vec<Fraction>,
    longest_timeout: Duration,
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

/// Which request has which mirrors.
pub enum Mirrors {
    /// Every request has these.
    Every(Vec<Rc<Target>>),
    /// The rule that a request belongs to tells.
    ByRule(Routes<Vec<Rc<Target>>>),
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
    /// Reads the plugin configuration as Envoy hands it over. `Err` lists what is wrong with it.
    pub fn parse(written: &[u8]) -> Result<Self, Vec<Error>> {
        let mut context = Context::default();
        let read = Self::read(written, &mut context);
        match context.keep(read) {
            Some(config) if context.errors.is_empty() => {
                Ok(Self { warnings: context.warnings, ..config })
            }
            _ => Err(context.errors),
        }
    }

    fn read(written: &[u8], context: &mut Context) -> Result<Self, Error> {
        let document = decode(written)?;
        let root = Node::root(&document);
        let fields = root.fields(&FIELDS)?;
        if let Some(domain) = fields.get("clusterDomain") {
            context.cluster_domain = domain.dns_name()?.to_owned();
        }
        let mirrors = mirrors(&root, &fields, context)?;
        let limits = Limits {
            mirrors: fields.integer("requestMirrorBudget", 1..=MAX_BUDGET, DEFAULT_BUDGET)?,
            bytes: fields.integer("maxBufferedBytes", 0..=MAX_BYTES, DEFAULT_BUFFERED_BYTES)?,
        };
        let rules = mirrors.rules();
        let timeouts = rules.iter().flat_map(|rule| rule.iter()).map(|target| target.timeout);
        Ok(Self {
            limits,
            ceilings: ceilings(&rules),
            longest_timeout: timeouts.max().unwrap_or(DEFAULT_TIMEOUT),
            mirrors,
            warnings: Vec::new(),
        })
    }

    /// The longest time that any mirror of this configuration may take.
    pub fn longest_timeout(&self) -> Duration {
        self.longest_timeout
    }

    /// Whether a request with these draws may have to be mirrored, whatever it is. What this costs
    /// does not grow with the number of rules.
    pub fn may_mirror(&self, draws: &Draws) -> bool {
        draws.pick(self.ceilings.iter().copied()).any(|picked| picked)
    }

    /// The mirrors that a request with these draws goes to.
    pub fn targets(&self, draws: &Draws, head: &Head) -> Vec<Rc<Target>> {
        let mirrors = match &self.mirrors {
            Mirrors::Every(mirrors) => mirrors.as_slice(),
            Mirrors::ByRule(routes) => routes.choose(head).map(Vec::as_slice).unwrap_or_default(),
        };
        let picked = draws.pick(mirrors.iter().map(|target| target.fraction));
        mirrors
            .iter()
            .zip(picked)
            .filter(|(_, picked)| *picked)
            .map(|(t, _)| Rc::clone(t))
            .collect()
    }
}

impl Mirrors {
    /// The mirrors of each rule.
    fn rules(&self) -> Vec<&[Rc<Target>]> {
        match self {
            Self::Every(mirrors) => vec![mirrors],
            Self::ByRule(routes) => routes.outcomes().map(Vec::as_slice).collect(),
        }
    }
}

/// For the nth mirror of a rule, the largest share that any of these rules gives it.
fn ceilings(rules: &[&[Rc<Target>]]) -> Vec<Fraction> {
    let mut ceilings: Vec<Fraction> = Vec::new();
    for rule in rules {
        for (n, target) in rule.iter().enumerate() {
            match ceilings.get_mut(n) {
                Some(ceiling) => *ceiling = target.fraction.max(*ceiling),
                None => ceilings.push(target.fraction),
            }
        }
    }
    ceilings
}

/// Reads the mirrors in whichever form they are written.
fn mirrors(root: &Node, fields: &Fields, context: &mut Context) -> Result<Mirrors, Error> {
    let written = ["requestMirror", "httpRoutes", "grpcRoutes"].map(|key| fields.get(key));
    match written {
        [None, None, None] => {
            Err(root.error("has neither requestMirror nor httpRoutes; it must have one"))
        }
        [Some(mirror), None, None] => {
            let target = mirror::read(&mirror, None, context)?;
            Ok(Mirrors::Every(target.into_iter().map(Rc::new).collect()))
        }
        [Some(_), ..] => {
            Err(root.error("has both requestMirror and routes; it must have one of them"))
        }
        [None, ..] => {
            let mut routes = Vec::new();
            for (key, kind) in [("httpRoutes", Kind::Http), ("grpcRoutes", Kind::Grpc)] {
                for manifest in fields.items(key)? {
                    let route = manifest::route(&manifest, kind, context);
                    routes.extend(context.keep(route));
                }
            }
            let rules = routes.iter().flat_map(|route| &route.rules);
            if !routes.is_empty() && rules.into_iter().all(|rule| rule.outcome.is_empty()) {
                context.warnings.push("configuration: no rule mirrors anything".to_owned());
            }
            Ok(Mirrors::ByRule(Routes::new(routes)))
        }
    }
}

/// The document that the bytes hold: JSON, or a Struct in the protobuf wire format.
///
/// Envoy hands a `google.protobuf.Struct` over as its raw bytes. JSON comes first, since a Struct
/// begins with 0x0A, a newline, with which JSON may begin too.
fn decode(written: &[u8]) -> Result<Value, Error> {
    serde_json::from_slice(written).or_else(|not_json| {
        protobuf::decode_struct(written)
            .ok_or_else(|| Error::new("configuration", &format!("not JSON: {not_json}")))
    })
}

#[cfg(test)]
mod tests;
