//! What is measured beside what: a listener for each variant.

use std::path::{Path, PathBuf};

use rig::Config;
use serde_json::{Value, json};

use crate::load::Load;

pub struct Variant {
    pub name: &'static str,
    mirror: Mirror,
    shadow: &'static str,
}

#[derive(Clone, PartialEq)]
enum Mirror {
    None,
    /// Envoy's own, with this percentage.
    Native(u32),
    /// The filter, with this percentage.
    Filter(u32),
    /// The filter with this many HTTPRoute rules, none of which mirrors more than 0.0001 %.
    Rules(u32),
    /// The module to compare with, with this percentage.
    Other(PathBuf, u32),
}

/// The variant that all others are divided by.
pub const BASELINE: &str = "no filter";

/// No filter twice, which must come out as 1, and each way to mirror with several shares.
pub fn of_cost(compare: Option<&Path>) -> Vec<Variant> {
    let mut variants = vec![
        (BASELINE, Mirror::None),
        ("no filter again", Mirror::None),
        ("native 0 %", Mirror::Native(0)),
        ("native 5 %", Mirror::Native(5)),
        ("native 100 %", Mirror::Native(100)),
        ("filter 0 %", Mirror::Filter(0)),
        ("filter 5 %", Mirror::Filter(5)),
        ("filter 100 %", Mirror::Filter(100)),
        ("filter 1000 rules", Mirror::Rules(1000)),
    ];
    if let Some(other) = compare {
        variants.extend([
            ("other 0 %", Mirror::Other(other.to_owned(), 0)),
            ("other 5 %", Mirror::Other(other.to_owned(), 5)),
            ("other 100 %", Mirror::Other(other.to_owned(), 100)),
        ]);
    }
    let variant = |(name, mirror)| Variant { name, mirror, shadow: "shadow" };
    variants.into_iter().map(variant).collect()
}

/// Each way to mirror everything, with each kind of shadow.
pub fn of_latency() -> Vec<Variant> {
    let variants = [
        (BASELINE, Mirror::None, "shadow"),
        ("native, shadow well", Mirror::Native(100), "shadow"),
        ("native, shadow dead", Mirror::Native(100), "dead"),
        ("native, shadow silent", Mirror::Native(100), "silent"),
        ("filter, shadow well", Mirror::Filter(100), "shadow"),
        ("filter, shadow dead", Mirror::Filter(100), "dead"),
        ("filter, shadow silent", Mirror::Filter(100), "silent"),
    ];
    variants.map(|(name, mirror, shadow)| Variant { name, mirror, shadow }).into()
}

impl Variant {
    /// Bodies matter to what is copied alone.
    pub fn is_for(&self, load: Load) -> bool {
        match self.mirror {
            Mirror::Rules(_) => load == Load::Get,
            _ => true,
        }
    }

    fn apply(&self, config: &mut Config) {
        let share = |percent: u32| json!({ "cluster": self.shadow, "percent": percent });
        match &self.mirror {
            Mirror::None => remove_filter(config),
            Mirror::Native(percent) => {
                remove_filter(config);
                config.route()["request_mirror_policies"] = json!([{
                    "cluster": self.shadow,
                    "runtime_fraction": { "default_value": { "numerator": percent } },
                }]);
            }
            Mirror::Filter(percent) => {
                configure(config, json!({ "requestMirror": share(*percent) }))
            }
            Mirror::Rules(rules) => configure(config, rules_of(*rules)),
            Mirror::Other(module, percent) => {
                configure(config, json!({ "requestMirror": share(*percent) }));
                let vm = &mut config.mirror()["vm_config"];
                vm["vm_id"] = json!("other");
                vm["code"]["local"]["filename"] = json!(module);
            }
        }
    }
}

/// Replaces the example's one listener by one for each variant.
pub fn listeners(config: &mut Config, variants: &[Variant]) {
    let example = config.listener().clone();
    let made: Vec<Value> = variants
        .iter()
        .map(|variant| {
            *config.listener() = example.clone();
            variant.apply(config);
            config.listener()["name"] = json!(variant.name);
            config.listener().clone()
        })
        .collect();
    *config.listener() = example;
    let all = config.bootstrap()["static_resources"]["listeners"].as_array_mut();
    all.expect("the example has listeners").extend(made);
}

fn configure(config: &mut Config, plugin: Value) {
    config.mirror()["configuration"]["value"] = json!(plugin.to_string());
}

fn remove_filter(config: &mut Config) {
    let filters = config.http()["http_filters"].as_array_mut();
    filters.expect("the example has filters").remove(0);
}

fn rules_of(count: u32) -> Value {
    let rule = |n: u32| {
        json!({
            "matches": [{ "path": { "value": format!("/rule/{n}") } }],
            "filters": [{ "type": "RequestMirror", "requestMirror":
                { "cluster": "shadow", "fraction": { "numerator": 1, "denominator": 1_000_000 } } }],
        })
    };
    json!({ "httpRoutes": [{ "rules": (0..count).map(rule).collect::<Vec<_>>() }] })
}
