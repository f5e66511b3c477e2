//! Gateway API manifests, an HTTPRoute or a GRPCRoute, as they are pasted.
//!
//! What concerns mirroring (which requests a rule is for, and its RequestMirror filters) is read
//! strictly; everything else belongs to the gateway and is passed over.

mod matches;

use std::rc::Rc;

use super::Target;
use super::document::{Error, Fields, Node};
use super::mirror::{self, Context};
use crate::route::{Hostname, Route, Rule, Seniority};

/// The kinds of routes.
#[derive(Clone, Copy)]
pub enum Kind {
    Http,
    Grpc,
}

/// The mirrors of a rule.
pub type Mirrors = Vec<Rc<Target>>;

const VERSIONS: [&str; 2] = ["gateway.networking.k8s.io/v1", "gateway.networking.k8s.io/v1beta1"];

/// Reads one manifest: a whole object, or its `spec` alone.
pub fn route(at: &Node, kind: Kind, context: &mut Context) -> Result<Route<Mirrors>, Error> {
    let object = at.foreign_fields()?;
    if let Some(version) = object.get("apiVersion") {
        version.one_of(&VERSIONS)?;
    }
    if let Some(written) = object.get("kind") {
        written.one_of(&[kind.name()])?;
    }
    let spec = object.get("spec").map_or(Ok(object.clone()), |spec| spec.foreign_fields())?;
    let metadata = object.get("metadata").map(|metadata| metadata.foreign_fields()).transpose()?;
    let meta = |key| metadata.as_ref().and_then(|metadata: &Fields| metadata.get(key));
    let namespace = meta("namespace").map(|at| at.dns_name()).transpose()?;
    let name = meta("name").map(|at| at.text()).transpose()?;
    let created = meta("creationTimestamp").map(|at| at.text()).transpose()?;
    let mut rules = Vec::new();
    for at in spec.items("rules")? {
        let rule = rule(&at, kind, namespace, context);
        rules.extend(context.keep(rule));
    }
    let mut hostnames = Vec::new();
    for at in spec.items("hostnames")? {
        hostnames.push(hostname(&at)?);
    }
    Ok(Route {
        hostnames,
        rules,
        seniority: Seniority {
            created: created.map(str::to_owned),
            name: name.map(|name| format!("{}/{name}", namespace.unwrap_or("default"))),
        },
    })
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Http => "HTTPRoute",
            Self::Grpc => "GRPCRoute",
        }
    }
}

fn hostname(at: &Node) -> Result<Hostname, Error> {
    let hostname = Hostname::parse(at.text()?);
    hostname.ok_or_else(|| at.error("is not a hostname such as example.com or *.example.com"))
}

fn rule(
    at: &Node,
    kind: Kind,
    namespace: Option<&str>,
    context: &mut Context,
) -> Result<Rule<Mirrors>, Error> {
    let fields = at.foreign_fields()?;
    let mut outcome = Vec::new();
    for mirror in mirrors(&fields)? {
        let target = mirror::read(&mirror, namespace, context);
        outcome.extend(context.keep(target).flatten().map(Rc::new));
    }
    // A filter of one backend is for the requests that go there. Which one Envoy will choose is not
    // known yet, so that backend's share of the rule's requests is mirrored, whichever they are.
    let mut backends = Vec::new();
    for backend in fields.items("backendRefs")? {
        let backend = backend.foreign_fields()?;
        let weight = backend.integer("weight", 0..=MAX_WEIGHT, 1)?;
        backends.push((backend, weight));
    }
    let total = backends.iter().fold(0, |sum: u64, (_, weight)| sum.saturating_add(*weight));
    for (backend, weight) in backends {
        for mirror in mirrors(&backend)? {
            let target = mirror::read(&mirror, namespace, context);
            let Some(mut target) = context.keep(target).flatten() else { continue };
            target.fraction = target.fraction.weighted(weight, total);
            if target.fraction.is_zero() {
                let why = "the backend has no weight, so it mirrors nothing";
                context.warnings.push(format!("{}: {why}", mirror.path()));
                continue;
            }
            outcome.push(Rc::new(target));
        }
    }
    Ok(Rule { matches: matches::read(&fields, kind)?, outcome })
}

/// The largest weight of a backend in the Gateway API.
const MAX_WEIGHT: u64 = 1_000_000;

/// The `requestMirror` objects among the filters of a rule or of a backend.
fn mirrors<'a>(fields: &Fields<'a>) -> Result<Vec<Node<'a>>, Error> {
    let mut mirrors = Vec::new();
    for filter in fields.items("filters")? {
        let filter = filter.foreign_fields()?;
        if filter.required("type")?.text()? == "RequestMirror" {
            mirrors.push(filter.required("requestMirror")?);
        }
    }
    Ok(mirrors)
}

#[cfg(test)]
mod tests;
