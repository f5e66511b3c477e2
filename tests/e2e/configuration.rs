//! A bad configuration mirrors nothing, takes no traffic down, and says what is wrong with it.

use anyhow::{Result, ensure};
use rig::{Request, Setup};
use serde_json::{Value, json};

use crate::stage::{Scenario, Stage, to_shadow};
use crate::xds::Plugin;

#[tokio::test]
async fn a_share_that_is_none_is_rejected() -> Result<()> {
    rejected_mirrors(&[
        (json!({ "percent": 150 }), "requestMirror.percent: 150 is not in 0..=100"),
        (json!({ "percent": -1 }), "requestMirror.percent: -1 "),
        (json!({ "percent": 0.5 }), "requestMirror.percent: 0.5 "),
        (json!({ "percent": "5" }), "requestMirror.percent: \"5\" "),
        (
            json!({ "fraction": { "numerator": 5, "denominator": 4 } }),
            "requestMirror.fraction: numerator 5 ",
        ),
        (
            json!({ "fraction": { "numerator": 1, "denominator": 0 } }),
            "requestMirror.fraction.denominator: 0 ",
        ),
        (json!({ "fraction": { "numerator": -1 } }), "requestMirror.fraction.numerator: -1 "),
        (
            json!({ "fraction": { "denominator": 4 } }),
            "requestMirror.fraction.numerator: is missing",
        ),
        (json!({ "fraction": 0.5 }), "requestMirror.fraction: 0.5 is not an object"),
        // The one that wins does not excuse the other.
        (
            json!({ "percent": 150, "fraction": { "numerator": 1 } }),
            "requestMirror.percent: 150 is not in 0..=100",
        ),
    ])
    .await
}

#[tokio::test]
async fn a_limit_out_of_its_range_is_rejected() -> Result<()> {
    rejected_mirrors(&[
        (json!({ "timeout": "0s" }), "requestMirror.timeout: \"0s\" is not in 1ms..="),
        (json!({ "timeout": "1h1ms" }), "requestMirror.timeout: \"1h1ms\" is not in 1ms..="),
        (json!({ "timeout": "1.5s" }), "requestMirror.timeout: \"1.5s\" is not a duration"),
        (json!({ "timeout": 100 }), "requestMirror.timeout: 100 "),
        (json!({ "maxBodyBytes": -1 }), "requestMirror.maxBodyBytes: -1 is not in 0..="),
    ])
    .await?;
    let mirror = to_shadow(json!({ "percent": 100 }));
    rejected(&[
        (
            json!({ "requestMirror": mirror, "requestMirrorBudget": 0 }),
            "requestMirrorBudget: 0 is not in 1..=1000000",
        ),
        (
            json!({ "requestMirror": mirror, "requestMirrorBudget": 1_000_001 }),
            "requestMirrorBudget: 1000001 is not in 1..=1000000",
        ),
        (
            json!({ "requestMirror": mirror, "maxBufferedBytes": "64Mi" }),
            "maxBufferedBytes: \"64Mi\" ",
        ),
    ])
    .await
}

/// An unknown field is most often a known one, misspelt: it would silently mirror nothing.
#[tokio::test]
async fn an_unknown_field_is_rejected_with_the_nearest_known_one() -> Result<()> {
    rejected_mirrors(&[
        (json!({ "precent": 5 }), "requestMirror.precent: unknown field; did you mean percent?"),
        (json!({ "fraction": { "numerator": 1, "denominater": 2 } }), "did you mean denominator?"),
    ])
    .await?;
    let mirror = to_shadow(json!({ "percent": 100 }));
    let misspelt = json!({ "requestMirror": mirror, "requestMirrorBuget": 5 });
    rejected(&[(misspelt, "requestMirrorBuget: unknown field; did you mean requestMirrorBudget?")])
        .await
}

#[tokio::test]
async fn a_mirror_without_a_target_is_rejected() -> Result<()> {
    rejected(&[
        (
            json!({ "requestMirror": { "percent": 5 } }),
            "requestMirror: has neither cluster nor backendRef",
        ),
        (
            json!({ "requestMirror": { "cluster": "", "percent": 5 } }),
            "requestMirror.cluster: \"\" is empty",
        ),
        (
            json!({ "requestMirror": { "cluster": 5, "percent": 5 } }),
            "requestMirror.cluster: 5 is not a string",
        ),
    ])
    .await
}

#[tokio::test]
async fn what_is_no_configuration_at_all_is_rejected() -> Result<()> {
    rejected(&[
        (json!({}), "configuration: has neither requestMirror nor httpRoutes"),
        (json!([]), "configuration: is not an object"),
        (json!({ "requestMirror": "shadow" }), "requestMirror: \"shadow\" is not an object"),
    ])
    .await?;
    rejected(&[
        ("{ \"requestMirror\": ", "configuration: not JSON"),
        ("", "configuration: has neither requestMirror nor httpRoutes"),
    ])
    .await
}

#[tokio::test]
async fn a_good_configuration_passes_the_strict_check() -> Result<()> {
    let mirror = to_shadow(json!({ "percent": 5, "maxBodyBytes": 0 }));
    let good =
        json!({ "requestMirror": mirror, "requestMirrorBudget": 1_000_000, "maxBufferedBytes": 0 });
    let validation = Setup::new()?.plugin(&good).strict().validate().await?;
    ensure!(validation.status.success(), "{validation:?}");
    Ok(())
}

#[tokio::test]
async fn the_shipped_example_passes_the_strict_check() -> Result<()> {
    let validation = Setup::new()?.strict().validate().await?;
    ensure!(validation.status.success(), "{validation:?}");
    Ok(())
}

/// What users of plain Envoy write as YAML arrives as a protobuf message.
#[tokio::test]
async fn a_configuration_may_be_a_struct() -> Result<()> {
    let mirror = to_shadow(json!({ "fraction": { "numerator": 1, "denominator": 1 } }));
    let configuration = json!({
        "@type": "type.googleapis.com/google.protobuf.Struct",
        "value": { "requestMirror": mirror, "requestMirrorBudget": 10 },
    });
    let counters = Scenario::all()
        .await?
        .setup(|setup| setup.patch(|config| config.mirror()["configuration"] = configuration))
        .play(async |stage| {
            stage.send(&Request::get("/")).await?;
            stage.shadow.recorded(1).await?;
            Ok(())
        })
        .await?;
    assert_eq!(counters.get("config_rejected"), 0);
    Ok(())
}

/// Like [`rejected`], each a `requestMirror` to the shadow.
async fn rejected_mirrors(mirrors: &[(Value, &str)]) -> Result<()> {
    let configuration = |mirror: &Value| json!({ "requestMirror": to_shadow(mirror.clone()) });
    let all = mirrors.iter().map(|(mirror, complaint)| (configuration(mirror), *complaint));
    rejected(&all.collect::<Vec<_>>()).await
}

/// Each of these configurations leaves traffic flowing, unmirrored; the gauge is up, and an error
/// line holds the complaint. Asked to be strict, Envoy refuses the first with the same complaint.
pub async fn rejected<T: ToString>(configurations: &[(T, &str)]) -> Result<()> {
    let good = json!({ "requestMirror": to_shadow(json!({ "percent": 100 })) });
    let plugin = Plugin::new(&good)?;
    let each = async |stage: &Stage| {
        for (configuration, complaint) in configurations {
            plugin.accept(stage, &good).await?;
            let earlier = stage.envoy.mirror_log("error").len();
            plugin.reject(stage, configuration).await?;
            let errors = stage.envoy.mirror_log("error").split_off(earlier);
            ensure!(
                errors.iter().any(|line| line.contains(complaint)),
                "no {complaint:?} in {errors:?}"
            );
        }
        Ok(())
    };
    plugin.scenario().await?.play(each).await?;

    let (configuration, complaint) = &configurations[0];
    let strict = Setup::new()?.plugin(&configuration.to_string()).strict().validate().await?;
    ensure!(!strict.status.success(), "strictly valid: {}", configuration.to_string());
    ensure!(strict.log.contains(complaint), "no {complaint:?} in {}", strict.log);
    Ok(())
}
