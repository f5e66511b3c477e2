//! Each request is drawn on its own, with the chance that the configuration names.

use anyhow::{Result, ensure};
use rig::{Http1, Request, eventually, load};
use serde_json::{Value, json};

use crate::stage::{Scenario, Stage};

#[tokio::test]
async fn one_percent_is_one_percent() -> Result<()> {
    share_is(0.01, 5_000, json!({ "percent": 1 })).await
}

#[tokio::test]
async fn twenty_percent_are_twenty_percent() -> Result<()> {
    share_is(0.2, 2_000, json!({ "percent": 20 })).await
}

#[tokio::test]
async fn a_hundred_percent_are_all() -> Result<()> {
    share_is(1.0, 500, json!({ "percent": 100 })).await
}

#[tokio::test]
async fn a_quarter_is_a_quarter() -> Result<()> {
    share_is(0.25, 2_000, json!({ "fraction": { "numerator": 1, "denominator": 4 } })).await
}

#[tokio::test]
async fn a_thousandth_is_a_thousandth() -> Result<()> {
    share_is(0.001, 20_000, json!({ "fraction": { "numerator": 1, "denominator": 1000 } })).await
}

#[tokio::test]
async fn a_fraction_without_denominator_is_in_hundredths() -> Result<()> {
    share_is(0.3, 1_000, json!({ "fraction": { "numerator": 30 } })).await
}

#[tokio::test]
async fn a_fraction_beats_a_percentage() -> Result<()> {
    share_is(0.5, 1_000, json!({ "percent": 3, "fraction": { "numerator": 50 } })).await
}

/// Legal, and perhaps not meant: the Gateway API reads absence as all of them. So a warning says it.
#[tokio::test]
async fn no_share_and_a_share_of_zero_mirror_nothing_and_say_so() -> Result<()> {
    for nothing in [
        json!({}),
        json!({ "percent": 0 }),
        json!({ "fraction": { "numerator": 0 } }),
        json!({ "percent": 100, "fraction": { "numerator": 0, "denominator": 7 } }),
    ] {
        let scenario = Scenario::mirror(nothing.clone()).await?;
        let counters = scenario
            .play(async |stage| {
                let answers = load(stage.envoy.address(), 200, 8, |_| Request::get("/")).await?;
                assert!(answers.all(200, 200), "{answers:?}");
                let warnings = stage.envoy.mirror_log("warning");
                ensure!(
                    warnings
                        .iter()
                        .any(|line| line.contains("requestMirror")
                            && line.contains("mirrors nothing")),
                    "no warning that {nothing} mirrors nothing: {warnings:?}"
                );
                Ok(())
            })
            .await?;
        assert_eq!(counters.get("selected"), 0, "of {nothing}");
        assert_eq!(counters.get("config_rejected"), 0, "of {nothing}");
    }
    Ok(())
}

/// What a period, or a generator with a bad low bit, would look like: a request's fate tells that
/// of a later one. For no distance up to 64 it may, beyond what chance allows.
#[tokio::test]
async fn the_draws_of_one_connection_are_not_periodic() -> Result<()> {
    Scenario::mirror(json!({ "percent": 50 }))
        .await?
        .play(async |stage| {
            let mut client = Http1::connect(stage.envoy.address()).await?;
            let draws = draws(stage, &mut client, "a", 3_000).await?;
            for distance in 1..=64 {
                independent(&draws[distance..], &draws[..draws.len() - distance])
                    .map_err(|error| error.context(format!("at distance {distance}")))?;
            }
            Ok(())
        })
        .await?;
    Ok(())
}

/// Both workers' first draws, compared at once and shifted: seeds that are equal, or apart by
/// little, would show.
#[tokio::test]
async fn two_workers_do_not_sample_alike() -> Result<()> {
    Scenario::mirror(json!({ "percent": 50 }))
        .await?
        .setup(|setup| {
            setup.workers(2).patch(|config| config.listener()["stat_prefix"] = "gateway".into())
        })
        .play(async |stage| {
            let [mut first, mut second] = one_connection_each(stage).await?;
            let first = draws(stage, &mut first, "a", 1_000).await?;
            let second = draws(stage, &mut second, "b", 1_000).await?;
            for shift in 0..8 {
                independent(&first[shift..], &second[..1_000 - shift])?;
                independent(&second[shift..], &first[..1_000 - shift])?;
            }
            Ok(())
        })
        .await?;
    Ok(())
}

/// Sends `requests` requests and checks how many were selected, and that each is copied once.
async fn share_is(share: f64, requests: usize, mirror: Value) -> Result<()> {
    let sample = async |stage: &Stage| {
        let before = stage.envoy.counters().await?.get("selected");
        let request = |number| Request::get(&format!("/{number}"));
        let answers = load(stage.envoy.address(), requests, 16, request).await?;
        ensure!(answers.all(200, requests), "not every request was answered: {answers:?}");
        let selected = stage.envoy.settled().await?.get("selected");
        stage.shadow.recorded(selected as usize).await?;
        Ok(vec![(selected - before, requests, share)])
    };
    let test = async |stage: &Stage| in_band(async || sample(stage).await).await;
    Scenario::mirror(mirror).await?.play(test).await?;
    Ok(())
}

/// Whether each part of a sample, `hits` of `trials`, lies within three sigma of what a chance of
/// `share` gives.
///
/// One in 370 lies outside by pure chance, so a sample with one that does is taken once more; two
/// in a row mean that a share is wrong.
pub async fn in_band(
    mut sample: impl AsyncFnMut() -> Result<Vec<(u64, usize, f64)>>,
) -> Result<()> {
    let is_outside =
        |(hits, trials, share): (u64, usize, f64)| within(3.0, hits, trials, share).err();
    if sample().await?.into_iter().find_map(is_outside).is_none() {
        return Ok(());
    }
    sample().await?.into_iter().find_map(is_outside).map_or(Ok(()), Err)
}

/// Whether two sequences of even draws agree in half of their places. Five sigma, since a test
/// asks this many times: chance alone fails one in two million.
fn independent(one: &[bool], other: &[bool]) -> Result<()> {
    let equal = one.iter().zip(other).filter(|(one, other)| one == other).count();
    within(5.0, equal as u64, one.len(), 0.5)
}

fn within(sigmas: f64, hits: u64, trials: usize, share: f64) -> Result<()> {
    let mean = trials as f64 * share;
    let reach = sigmas * (mean * (1.0 - share)).sqrt();
    let apart = (hits as f64 - mean).abs();
    ensure!(apart <= reach, "{hits} of {trials} is not in {mean:.0} ± {reach:.1}");
    Ok(())
}

/// Which of `requests` requests on one connection, one after another, were copied.
async fn draws(
    stage: &Stage,
    client: &mut Http1,
    name: &str,
    requests: usize,
) -> Result<Vec<bool>> {
    for number in 0..requests {
        client.request(&Request::get(&format!("/{name}/{number}"))).await?;
    }
    let selected = stage.envoy.settled().await?.get("selected");
    let mut draws = vec![false; requests];
    for copy in stage.shadow.recorded(selected as usize).await? {
        let path = std::str::from_utf8(&copy.head.path)?;
        if let Some(number) = path.strip_prefix(&format!("/{name}/")) {
            draws[number.parse::<usize>()?] = true;
        }
    }
    Ok(draws)
}

/// A connection to each of two workers. The kernel deals connections out, so it may take a few;
/// those not needed stay open until both are found, as closing one would change the numbers.
async fn one_connection_each(stage: &Stage) -> Result<[Http1; 2]> {
    let (mut all, mut first_of) = (Vec::new(), [None, None]);
    while first_of.contains(&None) {
        let number = all.len();
        all.push(Some(Http1::connect(stage.envoy.address()).await?));
        let accepted = eventually("a worker to accept", async || {
            let accepted = [0, 1]
                .map(|worker| format!("listener.gateway.worker_{worker}.downstream_cx_total"));
            let stats = stage.envoy.admin().stats("^listener.gateway.worker_").await?;
            let accepted = accepted.map(|name| stats.get(&name).copied().unwrap_or(0));
            ensure!(accepted.iter().sum::<u64>() == number as u64 + 1, "{stats:?}");
            Ok(accepted)
        });
        let accepted = accepted.await?;
        for worker in [0, 1] {
            if accepted[worker] > 0 && first_of[worker].is_none() {
                first_of[worker] = Some(number);
            }
        }
    }
    Ok(first_of.map(|number| number.and_then(|number| all[number].take()).expect("found above")))
}
