//! The configurations of the filter in a file: by themselves, or in what carries them to a gateway.
//!
//! | in the file | is read |
//! |---|---|
//! | HTTPRoutes and GRPCRoutes, and none of the following | all together, as the routes of one configuration |
//! | WasmPlugin (Istio) | its `pluginConfig` |
//! | EnvoyExtensionPolicy (Envoy Gateway) | the `config` beside a `code` |
//! | a bootstrap or any piece of one, as in an EnvoyFilter | the `configuration` beside a `vm_config` |
//! | what is neither Kubernetes' nor Envoy's | all of it, as a plugin configuration |
//!
//! There may be several YAML documents, and Kubernetes objects may stand in a List.

use serde::Deserialize;
use serde_json::{Map, Value};

/// What a file has in which nothing is found.
pub const NOTHING: &str = "no configuration of request-mirror; expected is a plugin configuration, \
    an HTTPRoute, a GRPCRoute, or what names request-mirror: a WasmPlugin, an EnvoyExtensionPolicy \
    or Envoy's own configuration";

/// A configuration as the filter gets it.
#[derive(Debug, Default)]
pub struct Found {
    pub written: String,
    /// Its path in the file, empty if it is all of it.
    pub place: String,
    /// What the filter's messages begin with, and what they are to begin with instead.
    begins: Vec<(String, String)>,
}

impl Found {
    /// A message of the filter, with the path that its subject has in the file.
    pub fn locate(&self, message: &str) -> String {
        let mut begins = self.begins.iter();
        begins
            .find_map(|(ours, theirs)| Some(format!("{theirs}{}", message.strip_prefix(ours)?)))
            .unwrap_or_else(|| message.to_owned())
    }

    fn plugin(written: String, at: &str) -> Self {
        let place = at.trim_end_matches(": ").to_owned();
        let begins = match at {
            "" => vec![],
            _ => vec![("configuration".to_owned(), place.clone()), (String::new(), under(at, ""))],
        };
        Self { written, place, begins }
    }
}

/// The configurations in a file; `Err` says why it is no file to look into.
pub fn find(text: &str) -> Result<Vec<Found>, String> {
    let documents = documents(text)?;
    let mut search = Search::default();
    for (n, document) in documents.iter().enumerate().filter(|(_, it)| !it.is_null()) {
        let at = if documents.len() > 1 { format!("document {}: ", n + 1) } else { String::new() };
        let text = document.to_string();
        let is_envoys =
            ["static_resources", "vm_config", "vmConfig"].iter().any(|it| text.contains(it));
        match document.get("kind").is_some() || is_envoys {
            true => search.anywhere(document, &at),
            false => search.found.push(Found::plugin(text, &at)),
        }
    }
    Ok(search.end())
}

/// What begins as JSON must be JSON, since the filter takes nothing else: YAML is more lenient.
fn documents(text: &str) -> Result<Vec<Value>, String> {
    if text.trim_start().starts_with('{') {
        let document = serde_json::from_str(text).map_err(|why| format!("not JSON: {why}"))?;
        return Ok(vec![document]);
    }
    let documents = serde_norway::Deserializer::from_str(text).map(Value::deserialize);
    documents.collect::<Result<_, _>>().map_err(|why| format!("not YAML: {why}"))
}

/// What has been found so far.
#[derive(Default)]
struct Search {
    found: Vec<Found>,
    /// The manifests, by the field of a configuration that they belong in; and their places.
    routes: Map<String, Value>,
    places: Vec<(String, String)>,
}

impl Search {
    fn anywhere(&mut self, value: &Value, at: &str) {
        // What refers to a route has its kind, too.
        match (value["kind"].as_str(), value.get("spec")) {
            (Some("HTTPRoute"), Some(_)) => return self.route("httpRoutes", value, at),
            (Some("GRPCRoute"), Some(_)) => return self.route("grpcRoutes", value, at),
            _ => {}
        }
        let has = |key: &&str| value.get(key).is_some();
        let carriers = [
            ("pluginConfig", "pluginConfig"),
            ("code", "config"),
            ("vm_config", "configuration"),
            ("vmConfig", "configuration"),
        ];
        match carriers.into_iter().find(|(sign, _)| has(sign)) {
            Some((_, field)) if is_ours(value) => self.plugin(&value[field], &under(at, field)),
            Some(_) => {}
            None => {
                children(value, at).into_iter().for_each(|(child, at)| self.anywhere(child, &at))
            }
        }
    }

    fn plugin(&mut self, configuration: &Value, at: &str) {
        self.found.push(match configuration {
            Value::Null => Found::plugin("{}".to_owned(), at),
            // Envoy's: a StringValue holds text, a Struct an object.
            _ => match configuration.get("@type").and(configuration.get("value")) {
                None => Found::plugin(configuration.to_string(), at),
                Some(Value::String(text)) => Found::plugin(text.clone(), &under(at, "value")),
                Some(object) => Found::plugin(object.to_string(), &under(at, "value")),
            },
        });
    }

    fn route(&mut self, field: &str, manifest: &Value, at: &str) {
        let manifests = self.routes.entry(field).or_insert(Value::Array(vec![]));
        let manifests = manifests.as_array_mut().expect("made above");
        self.places.push((format!("{field}[{}].", manifests.len()), under(at, "")));
        manifests.push(manifest.clone());
    }

    fn end(mut self) -> Vec<Found> {
        // Beside a plugin they are for the gateway itself.
        if self.found.is_empty() && !self.routes.is_empty() {
            let written = Value::Object(self.routes).to_string();
            self.found.push(Found { written, begins: self.places, ..Found::default() });
        }
        self.found
    }
}

/// Whether a plugin is this filter: in its name, its module's or its configuration it says so.
fn is_ours(plugin: &Value) -> bool {
    let text = plugin.to_string().replace(['-', '_'], "").to_lowercase();
    text.contains("requestmirror")
}

/// What is in a list or an object, each with its path.
fn children<'a>(value: &'a Value, at: &str) -> Vec<(&'a Value, String)> {
    let items = value.as_array().into_iter().flatten().enumerate();
    let items = items.map(|(n, item)| (item, format!("{at}[{n}]")));
    let fields = value.as_object().into_iter().flatten();
    items.chain(fields.map(|(key, value)| (value, under(at, key)))).collect()
}

/// The path of a field.
fn under(at: &str, field: &str) -> String {
    let dot = if at.is_empty() || at.ends_with(": ") { "" } else { "." };
    format!("{at}{dot}{field}")
}

#[cfg(test)]
mod tests;
