//! What is measured beside what: a listener for each variant.

use std::path::Path;

use rig::Config;
use serde_json::{Value, json};

use crate::load::Load;

pub struct Variant {
    pub name: &'static str,
    mirror: Mirror,
}

#[derive(Clone, Copy, PartialEq)]
enum Mirror {
    None,
    /// Envoy's own, with this percentage.
    Native(u32),
    /// The filter, with this percentage.
    Filter(u32),
    /// The filter with this many HTTPRoute rules, none of which mirrors more than 0.0001 %.
    Rules(u32),
    /// The module to compare with, with this percentage.
    Other(u32),
}

/// The variant that all others are divided by, and its twin, which must come out at 1.
pub const BASELINE: &str = "no filter";

const VARIANTS: [(&str, Mirror); 12] = [
    (BASELINE, Mirror::None),
    ("no filter again", Mirror::None),
    ("native 0 %", Mirror::Native(0)),
    ("native 5 %", Mirror::Native(5)),
    ("native 100 %", Mirror::Native(100)),
    ("filter 0 %", Mirror::Filter(0)),
    ("filter 5 %", Mirror::Filter(5)),
    ("filter 100 %", Mirror::Filter(100)),
    ("filter 1000 rules", Mirror::Rules(1000)),
    ("other 0 %", Mirror::Other(0)),
    ("other 5 %", Mirror::Other(5)),
    ("other 100 %", Mirror::Other(100)),
];

/// All variants, those of another module only where there is one to compare with.
pub fn all(compare: bool) -> Vec<Variant> {
    let variants = VARIANTS.into_iter().map(|(name, mirror)| Variant { name, mirror });
    variants.filter(|it| compare || !matches!(it.mirror, Mirror::Other(_))).collect()
}

impl Variant {
    /// Bodies matter to what is copied alone.
    pub fn is_for(&self, load: Load) -> bool {
        match self.mirror {
            Mirror::Rules(_) => load == Load::Get,
            _ => true,
        }
    }

    fn apply(&self, config: &mut Config, other: Option<&Path>) {
        let share = |percent: u32| json!({ "cluster": "shadow", "percent": percent });
        match self.mirror {
            Mirror::None => remove_filter(config),
            Mirror::Native(percent) => {
                remove_filter(config);
                config.route()["request_mirror_policies"] = json!([{
                    "cluster": "shadow",
                    "runtime_fraction": { "default_value": { "numerator": percent } },
                }]);
            }
            Mirror::Filter(percent) => {
                configure(config, json!({ "requestMirror": share(percent) }))
            }
            Mirror::Rules(rules) => configure(config, rules_of(rules)),
            Mirror::Other(percent) => {
                configure(config, json!({ "requestMirror": share(percent) }));
                let vm = &mut config.mirror()["vm_config"];
                vm["vm_id"] = json!("other");
                vm["code"]["local"]["filename"] = json!(other);
            }
        }
    }
}

/// Replaces the example's one listener by one for each variant.
pub fn listeners(config: &mut Config, variants: &[Variant], other: Option<&Path>) {
    let example = config.listener().clone();
    let made: Vec<Value> = variants
        .iter()
        .map(|variant| {
            *config.listener() = example.clone();
            variant.apply(config, other);
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
