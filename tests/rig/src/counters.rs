//! The mirror's own counters, and the two identities they must hold.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Result, ensure};

/// What Envoy puts before each name in `/stats`.
pub(crate) const PREFIX: &str = "wasmcustom.request_mirror.";

/// Every counter and gauge, as the contract with users names it (`request_mirror.` before each).
pub const NAMES: [&str; 19] = [
    "selected",
    "sent",
    "completed",
    "completed_2xx",
    "completed_3xx",
    "completed_4xx",
    "completed_5xx",
    "timed_out",
    "failed",
    "lost",
    "dropped.budget",
    "dropped.body_too_large",
    "dropped.buffer_full",
    "dropped.no_cluster",
    "dropped.refused",
    "dropped.incomplete",
    "skipped.upgrade",
    "in_flight",
    "buffered_bytes",
];

/// The gauge that tells of a bad configuration; apart from [`NAMES`], since it counts nothing.
pub const CONFIG_REJECTED: &str = "config_rejected";

/// One look at the mirror's counters.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Counters(BTreeMap<String, u64>);

impl Counters {
    /// From Envoy's statistics, other ones among them.
    pub fn from_stats(stats: BTreeMap<String, u64>) -> Self {
        let own = stats
            .into_iter()
            .filter_map(|(name, value)| Some((name.strip_prefix(PREFIX)?.to_owned(), value)));
        Self(own.collect())
    }

    /// A counter's value, 0 when Envoy does not have it.
    ///
    /// # Panics
    /// When no counter has that name, so that a misspelt one is no zero.
    pub fn get(&self, name: &str) -> u64 {
        assert!(NAMES.contains(&name) || name == CONFIG_REJECTED, "no counter is called {name}");
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Whether Envoy has that counter at all.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Every name in Envoy that is the mirror's.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Mirrors that never left, whatever the reason.
    pub fn dropped(&self) -> u64 {
        self.sum("dropped.")
    }

    /// Whether nothing is under way and each mirror ended in exactly one counter.
    pub fn settled(&self) -> Result<()> {
        self.idle()?;
        let ended = self.get("sent") + self.dropped();
        ensure!(
            self.get("selected") == ended,
            "selected is not sent + dropped.* ({ended}): {self:?}"
        );
        Ok(())
    }

    /// Like [`Counters::settled`], after a VM crashed: what it held and had not sent yet is in no counter.
    pub fn settled_after_crash(&self) -> Result<()> {
        self.idle()?;
        let ended = self.get("sent") + self.dropped();
        ensure!(self.get("selected") >= ended, "more ended ({ended}) than were selected: {self:?}");
        Ok(())
    }

    fn idle(&self) -> Result<()> {
        ensure!(self.get("in_flight") == 0, "mirrors are in flight: {self:?}");
        ensure!(self.get("buffered_bytes") == 0, "bytes are held: {self:?}");
        let outcomes: u64 =
            ["completed", "timed_out", "failed", "lost"].iter().map(|name| self.get(name)).sum();
        ensure!(
            self.get("sent") == outcomes,
            "sent is not the sum of its outcomes ({outcomes}): {self:?}"
        );
        let by_class = self.sum("completed_");
        ensure!(
            self.get("completed") == by_class,
            "completed is not the sum of its classes ({by_class}): {self:?}"
        );
        Ok(())
    }

    fn sum(&self, prefix: &str) -> u64 {
        self.0.iter().filter(|(name, _)| name.starts_with(prefix)).map(|(_, value)| value).sum()
    }
}

/// Only what is not zero: that is what one looks for.
impl fmt::Debug for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.iter().filter(|(_, value)| **value > 0)).finish()
    }
}
