//! When the next tick comes, and how much it sends.
//!
//! To come to a tick may cost a worker as much as a call does, where it slept in between; so a tick
//! waits for company. And until it is over the worker serves no primary request, while a call takes
//! Envoy some 40 µs; so a burst is spread over some ticks.

use std::time::Duration;

/// The tick while there is enough to do: the least that Envoy's timers allow. A busy worker comes to it
/// after 3 or 4 ms (seen on Envoy 1.40).
pub const SOON: Duration = Duration::from_millis(1);
/// The tick while there is less to do. No one waits for a copy.
pub const SHORTLY: Duration = Duration::from_millis(10);
/// The tick otherwise: renews this root's row, and reclaims those of dead ones, well within
/// [`crate::budget::GRACE`].
pub const HOUSEKEEPING: Duration = Duration::from_millis(250);
/// Enough to do: so many copies to send and ends to publish; of a budget of less than 1024 a 64th,
/// since what waits in each of many workers keeps permits from the others.
const ENOUGH: u32 = 16;
/// The fewest copies that a tick sends, if so many wait.
pub const LEAST: usize = 8;
/// A tick after more than this is late: the worker is so busy that it comes to few ticks.
pub const LATE: Duration = Duration::from_millis(5);
/// How many more a late tick sends for each millisecond, which leaves primary requests two thirds of
/// the worker's time.
pub const CATCH_UP: usize = 8;

/// How soon a root with so much to do wants its next tick, if it has anything to do.
pub fn tick_for(to_do: u32, budget: u32) -> Duration {
    if to_do < (budget / 64).clamp(1, ENOUGH) { SHORTLY } else { SOON }
}

/// How many of the copies that wait a tick sends, so long after the last one.
///
/// A quarter, so that four times as many wait as come between two ticks, whatever the rate; a budget
/// of four times as many bears it.
pub fn batch(waiting: usize, after: Duration) -> usize {
    let late = usize::try_from(after.saturating_sub(LATE).as_millis()).unwrap_or(usize::MAX);
    let batch = (waiting / 4).max(LEAST).saturating_add(late.saturating_mul(CATCH_UP));
    batch.min(waiting)
}
