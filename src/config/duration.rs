//! Gateway API durations (GEP-2257): one to four of `<1 to 5 digits><h|m|s|ms>`, added up.

use std::time::Duration;

use super::document::{Error, Node};
use super::{MAX_TIMEOUT, MIN_TIMEOUT};

/// The timeout at `node`.
pub fn timeout(node: &Node) -> Result<Duration, Error> {
    let text = node.text()?;
    match milliseconds(text).map(Duration::from_millis) {
        Some(timeout) if (MIN_TIMEOUT..=MAX_TIMEOUT).contains(&timeout) => Ok(timeout),
        // Written out, since nothing else needs the 2.5 KB of code that print a `Duration`.
        Some(_) => Err(node.error("is not in 1ms..=3600s")),
        None => Err(node.error("is not a duration such as 100ms, 1s or 1m30s")),
    }
}

fn milliseconds(mut text: &str) -> Option<u64> {
    let mut total = 0_u64;
    for _ in 0..4 {
        let digits = text.find(|c: char| !c.is_ascii_digit())?;
        if !(1..=5).contains(&digits) {
            return None;
        }
        let (number, rest) = text.split_at_checked(digits)?;
        // ms before m and s, of which it has the letters
        let units = [("ms", 1), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)];
        let (unit, factor) = units.into_iter().find(|(unit, _)| rest.starts_with(unit))?;
        total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(factor)?)?;
        text = rest.strip_prefix(unit)?;
        if text.is_empty() {
            return Some(total);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::milliseconds;

    #[test]
    fn durations_are_those_of_the_gateway_api() {
        for (text, expected) in [
            ("1ms", Some(1)),
            ("0s", Some(0)),
            ("100ms", Some(100)),
            ("1s", Some(1_000)),
            ("1m30s", Some(90_000)),
            ("1h2m3s4ms", Some(3_723_004)),
            ("10s10s", Some(20_000)),
            ("99999h", Some(359_996_400_000)),
            ("", None),
            ("100", None),
            ("s", None),
            ("1.5s", None),
            ("-1s", None),
            ("1 s", None),
            ("1d", None),
            ("100000ms", None),
            ("1h1h1h1h1h", None),
            ("1sé", None),
        ] {
            assert_eq!(milliseconds(text), expected, "{text}");
        }
    }
}
