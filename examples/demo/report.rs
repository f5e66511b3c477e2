//! What happened, for a person.

use std::time::Duration;

use rig::LoadReport;

use crate::drive::{LEGS, Outcome};
use crate::screen::{Screen, count};
use crate::verdict::{EXPECTED, band, faithful, within};

/// The counters to show, and those that are shown only if they counted.
const SHOWN: [&str; 4] = ["selected", "sent", "completed", "failed"];
const UNUSUAL: [&str; 8] = [
    "timed_out",
    "lost",
    "dropped.budget",
    "dropped.body_too_large",
    "dropped.buffer_full",
    "dropped.no_cluster",
    "dropped.refused",
    "dropped.incomplete",
];

pub fn show(screen: &Screen, outcome: &Outcome) {
    primary(screen, outcome);
    shadow(screen, outcome);
    counters(screen, outcome);
}

fn primary(screen: &Screen, outcome: &Outcome) {
    screen.heading("The primary's answers", "     200    other        p50        p99");
    for ((_, leg), report) in LEGS.iter().zip(&outcome.answers) {
        let good = report.by_status.get(&200).copied().unwrap_or_default();
        let other = report.by_status.values().sum::<usize>() - good;
        let (p50, p99) = (latency(report, 50), latency(report, 99));
        screen.row(leg, &format!("{:>8} {:>8} {p50:>10} {p99:>10}", count(good), count(other)));
    }
}

fn shadow(screen: &Screen, outcome: &Outcome) {
    let (copies, percent) = (outcome.copies.len(), outcome.percent);
    let (least, most) = band(percent, EXPECTED);
    let posts = outcome.copies.iter().filter(|copy| copy.head.method == "POST").count();
    let bytes: usize = outcome.copies.iter().map(|copy| copy.body.len()).sum();
    let row =
        |name, number, text: &str| screen.row(name, &format!("{:>8}    {text}", count(number)));

    screen.heading("The shadow's copies", "");
    let expected = format!("{least} to {most} expected ({percent} %, 3 sigma)");
    row("arrived", copies, &expected);
    if !within(percent, copies as u64, EXPECTED) {
        screen.row("", &format!("{:>8}    outside, as one run in 370 is", ""));
    }
    let methods = format!("GET {}, POST {}", count(copies - posts), count(posts));
    let like = faithful(outcome);
    row("like the original", like, &methods);
    row(
        "body bytes compared",
        bytes,
        if like == copies { "every one equal" } else { "not all equal" },
    );
}

fn counters(screen: &Screen, outcome: &Outcome) {
    screen.heading("The filter's counters", "shadow up   shadow dead");
    let [up, dead] = &outcome.counters;
    let unusual = UNUSUAL.into_iter().filter(|name| up.get(name) + dead.get(name) > 0);
    for name in SHOWN.into_iter().chain(unusual) {
        screen.row(name, &format!("{:>9} {:>13}", count(up.get(name)), count(dead.get(name))));
    }
}

fn latency(report: &LoadReport, percentile: usize) -> String {
    let took: Duration = report.percentile(percentile);
    format!("{:.2} ms", took.as_secs_f64() * 1_000.0)
}
