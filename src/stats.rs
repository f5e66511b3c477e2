//! Every counter, gauge and histogram in one place, and how a call's end is told apart.

use std::cell::RefCell;
use std::time::Duration;

/// What is counted: mirrors, and skipped requests. Each selected mirror ends in exactly one of the drops, or
/// is sent; each sent one ends in exactly one of completed, timed out, failed and lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    Selected,
    Sent,
    Completed,
    Completed2xx,
    Completed3xx,
    Completed4xx,
    Completed5xx,
    TimedOut,
    Failed,
    Lost,
    DroppedBudget,
    DroppedBodyTooLarge,
    DroppedBufferFull,
    DroppedNoCluster,
    DroppedRefused,
    DroppedIncomplete,
    SkippedUpgrade,
}

/// Every counter and its name.
pub const COUNTERS: [(Counter, &str); 17] = [
    (Counter::Selected, "request_mirror.selected"),
    (Counter::Sent, "request_mirror.sent"),
    (Counter::Completed, "request_mirror.completed"),
    (Counter::Completed2xx, "request_mirror.completed_2xx"),
    (Counter::Completed3xx, "request_mirror.completed_3xx"),
    (Counter::Completed4xx, "request_mirror.completed_4xx"),
    (Counter::Completed5xx, "request_mirror.completed_5xx"),
    (Counter::TimedOut, "request_mirror.timed_out"),
    (Counter::Failed, "request_mirror.failed"),
    (Counter::Lost, "request_mirror.lost"),
    (Counter::DroppedBudget, "request_mirror.dropped.budget"),
    (Counter::DroppedBodyTooLarge, "request_mirror.dropped.body_too_large"),
    (Counter::DroppedBufferFull, "request_mirror.dropped.buffer_full"),
    (Counter::DroppedNoCluster, "request_mirror.dropped.no_cluster"),
    (Counter::DroppedRefused, "request_mirror.dropped.refused"),
    (Counter::DroppedIncomplete, "request_mirror.dropped.incomplete"),
    (Counter::SkippedUpgrade, "request_mirror.skipped.upgrade"),
];

/// Values of the whole process. The first two are recorded from the shared table by whichever worker
/// read it last, the third by each root with a rejected configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gauge {
    InFlight,
    BufferedBytes,
    ConfigRejected,
}

/// Every gauge and its name.
pub const GAUGES: [(Gauge, &str); 3] = [
    (Gauge::InFlight, "request_mirror.in_flight"),
    (Gauge::BufferedBytes, "request_mirror.buffered_bytes"),
    (Gauge::ConfigRejected, "request_mirror.config_rejected"),
];

/// Milliseconds from dispatch to callback, of completed mirrors.
pub const DURATION: &str = "request_mirror.duration_ms";

/// Where counts go.
pub trait Meter {
    fn count(&self, counter: Counter, by: u64);
    fn gauge(&self, gauge: Gauge, value: u64);
    /// Adds to the [`DURATION`] histogram.
    fn duration(&self, milliseconds: u64);
}

/// The shadow's answer, or the one that Envoy made up in its place.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    pub status: u16,
    /// Made up by this Envoy: it could not connect, or time ran out.
    pub local: bool,
}

/// How a mirror that was sent has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With the shadow's answer, of this status.
    Completed(u16),
    TimedOut,
    Failed,
}

impl Outcome {
    /// Tells apart how a call with this timeout, now `elapsed`, has ended.
    ///
    /// An answer that stalls after its headers is handed over without any when its time is up; one
    /// that breaks off, or is too long for Envoy, likewise, but sooner.
    pub fn of(answer: Option<Answer>, elapsed: Duration, timeout: Duration) -> Self {
        let almost_over = elapsed.saturating_mul(10) >= timeout.saturating_mul(9);
        match answer {
            Some(Answer { status, local: false }) => Self::Completed(status),
            Some(Answer { status: 504, local: true }) => Self::TimedOut,
            None if almost_over => Self::TimedOut,
            _ => Self::Failed,
        }
    }
}

/// Outcomes that wait until the permits they free are published: were the VM to die before, other
/// workers would count these mirrors as lost, and each must be counted once.
#[derive(Default)]
pub struct Tally {
    counts: RefCell<[u64; COUNTERS.len()]>,
}

impl Tally {
    pub fn add(&self, outcome: Outcome) {
        match outcome {
            Outcome::Completed(status) => {
                self.increment(Counter::Completed);
                self.increment(match status {
                    ..300 => Counter::Completed2xx,
                    300..400 => Counter::Completed3xx,
                    400..500 => Counter::Completed4xx,
                    500.. => Counter::Completed5xx,
                });
            }
            Outcome::TimedOut => self.increment(Counter::TimedOut),
            Outcome::Failed => self.increment(Counter::Failed),
        }
    }

    fn increment(&self, counter: Counter) {
        if let Some(count) = self.counts.borrow_mut().get_mut(counter as usize) {
            *count = count.saturating_add(1);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.counts.borrow().iter().all(|count| *count == 0)
    }

    /// Hands the outcomes over to be counted, or to be forgotten.
    pub fn take(&self) -> impl Iterator<Item = (Counter, u64)> + use<> {
        let counts = self.counts.take();
        let named = COUNTERS.iter().map(|(counter, _)| *counter).zip(counts);
        named.filter(|(_, count)| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_in_the_order_of_their_counters_and_gauges() {
        assert!(
            COUNTERS.iter().enumerate().all(|(index, (counter, _))| *counter as usize == index)
        );
        assert!(GAUGES.iter().enumerate().all(|(index, (gauge, _))| *gauge as usize == index));
    }

    #[test]
    fn each_end_of_a_call_has_one_outcome() {
        let ms = Duration::from_millis;
        let shadow = |status| Some(Answer { status, local: false });
        let envoy = |status| Some(Answer { status, local: true });
        for (answer, elapsed, expected) in [
            (shadow(200), ms(5), Outcome::Completed(200)),
            (shadow(504), ms(5), Outcome::Completed(504)),
            (shadow(503), ms(100), Outcome::Completed(503)),
            (envoy(504), ms(100), Outcome::TimedOut),
            (envoy(503), ms(1), Outcome::Failed),
            (envoy(503), ms(100), Outcome::Failed),
            (None, ms(89), Outcome::Failed),
            (None, ms(90), Outcome::TimedOut),
        ] {
            assert_eq!(Outcome::of(answer, elapsed, ms(100)), expected, "{answer:?} {elapsed:?}");
        }
    }

    #[test]
    fn a_tally_is_handed_over_once() {
        let tally = Tally::default();
        tally.add(Outcome::Completed(204));
        tally.add(Outcome::Completed(503));
        tally.add(Outcome::TimedOut);
        let expected = [
            (Counter::Completed, 2),
            (Counter::Completed2xx, 1),
            (Counter::Completed5xx, 1),
            (Counter::TimedOut, 1),
        ];
        assert_eq!(tally.take().collect::<Vec<_>>(), expected);
        assert!(tally.is_empty());
        assert_eq!(tally.take().count(), 0);
    }
}
