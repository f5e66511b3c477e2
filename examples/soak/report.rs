//! What happened, as a table, and what must hold of it.

use std::fmt;
use std::time::Duration;

use rig::Counters;

use crate::traffic::Answers;

/// What is dropped at the limits that the load must reach.
const LIMITS: [&str; 5] = [
    "dropped.budget",
    "dropped.body_too_large",
    "dropped.buffer_full",
    "dropped.no_cluster",
    "dropped.refused",
];

pub struct Report {
    pub answers: Answers,
    pub took: Duration,
    /// Envoy's, from time to time.
    pub memory: Vec<u64>,
    pub warnings: usize,
    pub errors: usize,
    /// At the end, when the rig has found both identities to hold and every gauge to be 0.
    pub counters: Counters,
}

impl Report {
    /// What must not be.
    pub fn wrong(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let failures = |of: &str| -> usize {
            let failed = |((listener, end), _): &(&(&'static str, String), &usize)| {
                *listener == of && end != "200"
            };
            self.answers.iter().filter(failed).map(|(_, count)| count).sum()
        };
        if failures("mirrored") > 0 {
            let plain = failures("plain");
            wrong.push(format!(
                "{} requests failed, {plain} without the mirror",
                failures("mirrored")
            ));
        }
        if self.errors > 0 {
            wrong.push(format!("{} errors in Envoy's log", self.errors));
        }
        for limit in LIMITS {
            if self.counters.get(limit) == 0 {
                wrong.push(format!("nothing is {limit}: the load is too weak"));
            }
        }
        let (third, last) = self.second_half();
        if last > third + third / 20 {
            wrong.push(format!("memory grows: {} MB, then {} MB", third >> 20, last >> 20));
        }
        wrong
    }

    /// The most memory in the third quarter, and in the last.
    fn second_half(&self) -> (u64, u64) {
        let quarter = self.memory.len() / 4;
        let most = |looks: &[u64]| looks.iter().max().copied().unwrap_or_default();
        let (rest, last) = self.memory.split_at(self.memory.len() - quarter);
        (most(&rest[rest.len() - quarter.min(rest.len())..]), most(last))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| what | how many |\n|---|---:|")?;
        for ((listener, end), count) in &self.answers {
            writeln!(f, "| answers, {listener}: {end} | {count} |")?;
        }
        for name in rig::counters::NAMES {
            writeln!(f, "| `{name}` | {} |", self.counters.get(name))?;
        }
        let all: usize = self.answers.values().sum();
        let seconds = self.took.as_secs_f64();
        writeln!(f, "| seconds | {seconds:.0} |")?;
        writeln!(f, "| requests a second | {:.0} |", all as f64 / seconds)?;
        writeln!(f, "| warnings and errors logged | {} and {} |", self.warnings, self.errors)?;
        let (third, last) = self.second_half();
        let first = self.memory.first().copied().unwrap_or_default();
        let [first, third, last] = [first, third, last].map(|bytes| bytes >> 20);
        write!(
            f,
            "| Envoy's memory: start, most in the third and the last quarter | {first}, {third}, {last} MB |"
        )
    }
}
