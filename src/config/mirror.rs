//! A `requestMirror` object, in the short form and in a route's filter alike.

use super::document::{Error, Fields, Node};
use super::{
    DEFAULT_BODY_BYTES, DEFAULT_CLUSTER_DOMAIN, DEFAULT_DENOMINATOR, DEFAULT_TIMEOUT, MAX_BYTES,
    Target, duration,
};
use crate::sampling::Fraction;

/// What reading a configuration needs to know, and where it leaves what it finds.
pub struct Context {
    /// The domain of Kubernetes services.
    pub cluster_domain: String,
    pub warnings: Vec<String>,
    pub errors: Vec<Error>,
}

impl Default for Context {
    fn default() -> Self {
        let cluster_domain = DEFAULT_CLUSTER_DOMAIN.to_owned();
        Self { cluster_domain, warnings: Vec::new(), errors: Vec::new() }
    }
}

impl Context {
    /// What was read, if it could be. An error does not end the reading, so that all are found.
    pub fn keep<T>(&mut self, read: Result<T, Error>) -> Option<T> {
        read.map_err(|error| self.errors.push(error)).ok()
    }
}

/// Reads one mirror; `None`, and a warning, if it mirrors nothing. `namespace` is that of the route
/// it stands in, if known.
pub fn read(
    at: &Node,
    namespace: Option<&str>,
    context: &mut Context,
) -> Result<Option<Target>, Error> {
    let fields =
        at.fields(&["cluster", "backendRef", "percent", "fraction", "timeout", "maxBodyBytes"])?;
    let target = Target {
        cluster: cluster(at, &fields, namespace, &context.cluster_domain)?,
        fraction: share(&fields)?,
        timeout: match fields.get("timeout") {
            Some(timeout) => duration::timeout(&timeout)?,
            None => DEFAULT_TIMEOUT,
        },
        max_body_bytes: fields.integer("maxBodyBytes", 0..=MAX_BYTES, DEFAULT_BODY_BYTES)?,
    };
    if target.fraction.is_zero() {
        let why = match (fields.get("fraction"), fields.get("percent")) {
            (None, None) => "has neither percent nor fraction",
            _ => "has a share of zero",
        };
        context.warnings.push(format!("{}: {why}, so it mirrors nothing", at.path()));
        return Ok(None);
    }
    Ok(Some(target))
}

fn cluster(
    at: &Node,
    fields: &Fields,
    namespace: Option<&str>,
    domain: &str,
) -> Result<String, Error> {
    match (fields.get("cluster"), fields.get("backendRef")) {
        (Some(cluster), None) => match cluster.text()? {
            "" => Err(cluster.error("is empty; it must name an Envoy cluster")),
            name => Ok(name.to_owned()),
        },
        (None, Some(backend)) => service(&backend, namespace, domain),
        (Some(_), Some(_)) => Err(at.error("has both cluster and backendRef; it must have one")),
        (None, None) => Err(at.error("has neither cluster nor backendRef; it must have one")),
    }
}

/// The name that Istio gives the cluster of a Kubernetes service.
fn service(backend: &Node, namespace: Option<&str>, domain: &str) -> Result<String, Error> {
    let fields = backend.fields(&["group", "kind", "name", "namespace", "port"])?;
    for (key, of_services) in [("group", ""), ("kind", "Service")] {
        if let Some(other) = fields.get(key).filter(|node| node.text() != Ok(of_services)) {
            return Err(
                other.error("is not a Service; name its Envoy cluster in `cluster` instead")
            );
        }
    }
    let name = fields.required("name")?.dns_name()?;
    let namespace = match (fields.get("namespace"), namespace) {
        (Some(own), _) => own.dns_name()?,
        (None, Some(of_the_route)) => of_the_route,
        (None, None) => {
            return Err(fields.error("namespace", "is missing, and the route has none either"));
        }
    };
    let port = fields.required("port")?.integer(1..=u16::MAX)?;
    Ok(format!("outbound|{port}||{name}.{namespace}.svc.{domain}"))
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
        fields.error("fraction", &above)
    })
}
