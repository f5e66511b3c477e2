//! The one way to wait: for a condition, with a deadline. Nothing here waits for a time to pass.

use std::time::Duration;

use anyhow::{Result, bail};
use tokio::time::{Instant, sleep, timeout};

/// How long a condition may take to come true. Generous: only a failing test ever waits this long,
/// and a loaded machine must not fail one.
pub const DEADLINE: Duration = Duration::from_secs(20);

/// The pause between two looks at a condition.
const STEP: Duration = Duration::from_millis(5);

/// Calls `probe` until it succeeds. Its error says what is still missing; the last one becomes
/// the reason when the [`DEADLINE`] passes.
pub async fn eventually<T>(what: &str, probe: impl AsyncFnMut() -> Result<T>) -> Result<T> {
    eventually_within(DEADLINE, what, probe).await
}

/// [`eventually`] with a deadline of its own.
pub async fn eventually_within<T>(
    deadline: Duration,
    what: &str,
    mut probe: impl AsyncFnMut() -> Result<T>,
) -> Result<T> {
    let end = Instant::now() + deadline;
    loop {
        match probe().await {
            Ok(value) => return Ok(value),
            Err(missing) if Instant::now() >= end => {
                return Err(missing.context(format!("gave up waiting for {what}")));
            }
            Err(_) => sleep(STEP).await,
        }
    }
}

/// Awaits `future`, at most until the [`DEADLINE`].
pub async fn within_deadline<T>(what: &str, future: impl Future<Output = T>) -> Result<T> {
    match timeout(DEADLINE, future).await {
        Ok(value) => Ok(value),
        Err(_) => bail!("gave up waiting for {what}"),
    }
}
