//! What must hold of what happened: one line for each thing that did not. That each mirror ended in
//! exactly one counter is not among it: the rig has seen to that when it stopped the Envoys.

use std::collections::HashMap;
use std::sync::Arc;

use rig::{Counters, Recorded};

use crate::drive::{LEGS, Outcome, REQUESTS};
use crate::traffic::body;

/// What Envoy itself adds to a request, differently to the original and to the copy.
const OF_ENVOY: [&str; 2] = ["x-envoy-expected-rq-timeout-ms", "x-envoy-internal"];

/// Everything that did not hold.
pub fn broken(outcome: &Outcome) -> Vec<String> {
    let [up, dead] = &outcome.counters;
    let mut broken = Vec::from_iter(answers(outcome));
    broken.extend(originals(outcome));
    broken.extend(copies(outcome));
    broken.extend(arrivals(outcome.copies.len() as u64, up));
    if dead.get("failed") + dead.get("timed_out") != dead.get("sent") {
        broken.push("not every call to the dead shadow failed".to_owned());
    }
    for (selected, shadow) in [(up.get("selected"), "up"), (dead.get("selected"), "dead")] {
        if !within(outcome.percent, selected, IMPOSSIBLE) {
            let odd = format!("{selected} of {REQUESTS} selected, shadow {shadow}: not by chance");
            broken.push(odd);
        }
    }
    broken
}

/// Sigmas for a person to look at: one run in 370 is outside.
pub const EXPECTED: f64 = 3.0;

/// Sigmas that fail the demo: one run in two million, not one in 370.
const IMPOSSIBLE: f64 = 5.0;

/// How many of a leg's requests may be selected, at so many sigmas.
pub fn band(percent: u64, sigmas: f64) -> (f64, f64) {
    let (requests, chance) = (REQUESTS as f64, percent as f64 / 100.0);
    let spread = sigmas * (requests * chance * (1.0 - chance)).sqrt();
    ((requests * chance - spread).ceil(), (requests * chance + spread).floor())
}

/// Whether so many may be selected, at so many sigmas.
pub fn within(percent: u64, selected: u64, sigmas: f64) -> bool {
    let (least, most) = band(percent, sigmas);
    (least..=most).contains(&(selected as f64))
}

fn answers(outcome: &Outcome) -> Option<String> {
    let (report, (_, leg)) =
        outcome.answers.iter().zip(LEGS).find(|(report, _)| !report.all(200, REQUESTS))?;
    Some(format!("{leg}: answers by status were {:?}, not 200 each time", report.by_status))
}

/// The primary received each request once, with its body.
fn originals(outcome: &Outcome) -> Option<String> {
    let by_path = by_path(&outcome.originals);
    let expected = LEGS.len() * REQUESTS;
    if by_path.len() != expected || outcome.originals.len() != expected {
        let came = outcome.originals.len();
        return Some(format!("the primary received {came} requests instead of {expected}"));
    }
    let odd = outcome.originals.iter().find(|original| !has_its_body(original))?;
    Some(format!("a body changed on its way to the primary: {odd}"))
}

/// Each copy is like the request that the primary received, and there is one of each.
fn copies(outcome: &Outcome) -> Option<String> {
    let mirrored = format!("/{}/", LEGS[1].0);
    if outcome.copies.iter().any(|copy| !copy.head.path.starts_with(mirrored.as_bytes())) {
        return Some("a request was copied that the mirror never saw".to_owned());
    }
    if by_path(&outcome.copies).len() != outcome.copies.len() {
        return Some("a request was copied twice".to_owned());
    }
    let odd = outcome.copies.len() - faithful(outcome);
    (odd > 0).then(|| format!("{odd} copies are not like the request that the primary received"))
}

/// How many copies are like the request that the primary received.
pub fn faithful(outcome: &Outcome) -> usize {
    let originals = by_path(&outcome.originals);
    let like = |copy: &&Arc<Recorded>| {
        originals.get(&copy.head.path[..]).is_some_and(|original| same(original, copy))
    };
    outcome.copies.iter().filter(like).count()
}

fn same(original: &Recorded, copy: &Recorded) -> bool {
    original.head.method == copy.head.method
        && original.head.authority == copy.head.authority
        && original.head.headers.without(&OF_ENVOY) == copy.head.headers.without(&OF_ENVOY)
        && original.body == copy.body
        && has_its_body(copy)
}

fn has_its_body(request: &Recorded) -> bool {
    let number =
        request.head.headers.get("x-number").and_then(|text| std::str::from_utf8(text).ok());
    let number = number.and_then(|text| text.parse().ok());
    number.is_some_and(|number| request.body == body(number).unwrap_or_default())
}

fn by_path(requests: &[Arc<Recorded>]) -> HashMap<&[u8], &Recorded> {
    requests.iter().map(|request| (&request.head.path[..], &**request)).collect()
}

/// Every completed call is a copy that arrived; one that timed out or failed may have, too.
fn arrivals(arrived: u64, counters: &Counters) -> Option<String> {
    let (completed, sent) = (counters.get("completed"), counters.get("sent"));
    let wrong = !(completed..=sent).contains(&arrived);
    wrong.then(|| format!("{arrived} copies arrived, but {completed} completed of {sent} sent"))
}
