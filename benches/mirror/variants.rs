//! What is measured beside what: a listener for each variant.

use std::path::{Path, PathBuf};

use anyhow::Result;
use rig::Config;
use serde_json::{Value, json};

pub struct Variant {
    pub name: String,
    mirror: Mirror,
    shadow: &'static str,
}

#[derive(Clone)]
enum Mirror {
    None,
    /// Envoy's own, with this percentage.
    Native(u32),
    /// The filter, with this percentage.
    Filter(u32),
    /// The filter with so many HTTPRoute rules of this percentage; requests belong to the last.
    Rules(u32, u32),
    /// The filter with bounds that thousands of requests at a time do not meet.
    Unbounded,
    /// Another module, configured like that.
    Other(PathBuf, Box<Mirror>),
}

/// The variant that all others are divided by.
pub const BASELINE: &str = "no filter";

/// No filter twice, which must come out as 1; a filter of which each callback does nothing, which is
/// the least that one can cost; and each way to mirror with several shares.
pub fn of_cost(empty: &Path, compare: Option<&Path>) -> Vec<Variant> {
    let mut variants = vec![
        (BASELINE.to_owned(), Mirror::None),
        ("no filter again".to_owned(), Mirror::None),
        ("empty filter".to_owned(), other(empty, Mirror::Filter(0))),
    ];
    for percent in [0, 5, 100] {
        variants.push((format!("native {percent} %"), Mirror::Native(percent)));
    }
    for percent in [0, 5, 100] {
        variants.push((format!("filter {percent} %"), Mirror::Filter(percent)));
    }
    if let Some(module) = compare {
        for percent in [0, 5, 100] {
            variants.push((format!("other {percent} %"), other(module, Mirror::Filter(percent))));
        }
    }
    with_shadow(variants)
}

/// Each way to mirror nothing and everything, with time for it under valgrind.
pub fn of_instructions(empty: &Path, compare: Option<&Path>) -> Vec<Variant> {
    let mut variants = vec![
        (BASELINE.to_owned(), Mirror::None),
        ("empty filter".to_owned(), other(empty, Mirror::Filter(0))),
        ("native 100 %".to_owned(), Mirror::Native(100)),
        ("filter 0 %".to_owned(), Mirror::Filter(0)),
        ("filter 100 %".to_owned(), Mirror::Unbounded),
    ];
    if let Some(module) = compare {
        variants.push(("other 0 %".to_owned(), other(module, Mirror::Filter(0))));
        variants.push(("other 100 %".to_owned(), other(module, Mirror::Unbounded)));
    }
    with_shadow(variants)
}

/// Each way to mirror everything, with each kind of shadow.
pub fn of_latency() -> Vec<Variant> {
    let mut variants = vec![Variant::new(BASELINE, Mirror::None, "shadow")];
    for (kind, shadow) in [("well", "shadow"), ("dead", "dead"), ("silent", "silent")] {
        variants.push(Variant::new(format!("native, shadow {kind}"), Mirror::Native(100), shadow));
        variants.push(Variant::new(format!("filter, shadow {kind}"), Mirror::Filter(100), shadow));
    }
    variants
}

/// The filter with ever more rules, at several shares.
pub fn of_rules() -> Vec<Variant> {
    let mut variants = vec![(BASELINE.to_owned(), Mirror::None)];
    for percent in [0, 5, 100] {
        for rules in [1, 100, 1000] {
            let name = format!("{percent} %, {rules} rules");
            variants.push((name, Mirror::Rules(rules, percent)));
        }
    }
    with_shadow(variants)
}

/// Each way to mirror nothing and everything.
pub fn of_scale() -> Vec<Variant> {
    with_shadow(vec![
        (BASELINE.to_owned(), Mirror::None),
        ("native 100 %".to_owned(), Mirror::Native(100)),
        ("filter 0 %".to_owned(), Mirror::Filter(0)),
        ("filter 100 %".to_owned(), Mirror::Unbounded),
    ])
}

/// Nothing and everything, for an Envoy each.
pub fn of_memory() -> Vec<Variant> {
    with_shadow(vec![
        (BASELINE.to_owned(), Mirror::None),
        ("filter 100 %".to_owned(), Mirror::Unbounded),
    ])
}

fn other(module: &Path, mirror: Mirror) -> Mirror {
    Mirror::Other(module.to_owned(), Box::new(mirror))
}

fn with_shadow(variants: Vec<(String, Mirror)>) -> Vec<Variant> {
    variants.into_iter().map(|(name, mirror)| Variant::new(name, mirror, "shadow")).collect()
}

/// Compiles the module of which each callback does nothing.
pub fn empty_module() -> Result<tempfile::NamedTempFile> {
    let module = tempfile::NamedTempFile::new()?;
    std::fs::write(module.path(), wat::parse_str(include_str!("empty.wat"))?)?;
    Ok(module)
}

impl Variant {
    fn new(name: impl Into<String>, mirror: Mirror, shadow: &'static str) -> Self {
        Self { name: name.into(), mirror, shadow }
    }

    pub fn apply(&self, config: &mut Config) {
        self.mirror.apply(config, self.shadow);
    }
}

impl Mirror {
    fn apply(&self, config: &mut Config, shadow: &str) {
        let share = |percent: u32| json!({ "cluster": shadow, "percent": percent });
        match self {
            Mirror::None => remove_filter(config),
            Mirror::Native(percent) => {
                remove_filter(config);
                config.route()["request_mirror_policies"] = json!([{
                    "cluster": shadow,
                    "runtime_fraction": { "default_value": { "numerator": percent } },
                }]);
            }
            Mirror::Filter(percent) => {
                configure(config, json!({ "requestMirror": share(*percent) }))
            }
            Mirror::Rules(rules, percent) => configure(config, rules_of(*rules, *percent)),
            Mirror::Unbounded => {
                let mirror = json!({ "cluster": shadow, "percent": 100, "timeout": "1m" });
                let plugin = json!({ "requestMirror": mirror, "requestMirrorBudget": 100_000 });
                configure(config, plugin);
            }
            Mirror::Other(module, mirror) => {
                mirror.apply(config, shadow);
                let vm = &mut config.mirror()["vm_config"];
                vm["vm_id"] = json!(module);
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

/// Rules of which none but the last is that of the requests.
fn rules_of(count: u32, percent: u32) -> Value {
    let rule = |n: u32| {
        let path = if n == count { "/api".to_owned() } else { format!("/rule/{n}") };
        let mirror = json!({ "cluster": "shadow", "percent": percent });
        json!({
            "matches": [{ "path": { "value": path } }],
            "filters": [{ "type": "RequestMirror", "requestMirror": mirror }],
        })
    };
    json!({ "httpRoutes": [{ "rules": (1..=count).map(rule).collect::<Vec<_>>() }] })
}
