//! Which requests are picked: a share of all, each request on its own.

use std::cell::Cell;

use fastrand::Rng;

/// A share of requests between none and all.
///
/// Held as a threshold on 63 random bits, so that a draw is one comparison; the share is exact to
/// within 2⁻⁶³.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fraction {
    threshold: u64,
}

impl Fraction {
    /// `numerator` of every `denominator` requests; `None` unless 0 ≤ numerator ≤ denominator and
    /// denominator ≥ 1.
    pub fn new(numerator: u32, denominator: u32) -> Option<Self> {
        if numerator > denominator {
            return None;
        }
        let (numerator, denominator) = (u64::from(numerator), u64::from(denominator));
        // By hand in two digits, of 31 bits and of 32, since the numerator with 63 zeros does not fit.
        let high = numerator << 31;
        let low = high.checked_rem(denominator)? << 32;
        let threshold = (high.checked_div(denominator)? << 32) | low.checked_div(denominator)?;
        Some(Self { threshold })
    }

    /// The part of this share that falls to `weight` of `total`; nothing if the total is 0. Exact as
    /// long as the two multiplied have no more than 64 bits.
    pub fn weighted(self, weight: u64, total: u64) -> Self {
        let Self { threshold } = self;
        let (Some(whole), Some(rest)) =
            (threshold.checked_div(total), threshold.checked_rem(total))
        else {
            return Self::default();
        };
        let rest = rest.saturating_mul(weight).checked_div(total).unwrap_or_default();
        let weighted = whole.saturating_mul(weight).saturating_add(rest);
        Self { threshold: weighted.min(threshold) }
    }

    /// The share in percent, to be shown.
    pub fn percent(self) -> f64 {
        self.threshold as f64 / (1_u64 << 63) as f64 * 100.0
    }

    /// Whether no request is ever picked.
    pub fn is_zero(self) -> bool {
        self.threshold == 0
    }

    /// Whether the request that drew this uniform random word is picked.
    pub fn picks(self, word: u64) -> bool {
        word >> 1 < self.threshold
    }
}

/// Where each request's own random generator comes from.
///
/// A request's generator is seeded with the next word of a generator that starts from the host's
/// entropy and counts requests. So workers do not sample alike, and requests are independent.
pub struct Dice {
    state: Cell<u64>,
}

impl Dice {
    pub fn new(entropy: u64) -> Self {
        Self { state: Cell::new(entropy) }
    }

    /// What chance has in store for one request.
    pub fn for_request(&self) -> Draws {
        let mut vm = Rng::with_seed(self.state.get());
        let request = vm.fork();
        self.state.set(vm.get_seed());
        Draws { request }
    }
}

/// One request's draws: the nth one decides on the nth mirror of whichever rule it belongs to.
///
/// They do not depend on the request, so they can be asked before anything is known about it: a
/// request that no rule could pick is let go at once.
pub struct Draws {
    request: Rng,
}

impl Draws {
    /// For each of these shares in turn, whether this request is among it. The same draws each time.
    pub fn pick(&self, shares: impl Iterator<Item = Fraction>) -> impl Iterator<Item = bool> {
        let mut rng = self.request.clone();
        shares.map(move |share| share.picks(rng.u64(..)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picked(fraction: Fraction, draws: u32) -> f64 {
        let dice = Dice::new(42);
        let is_hit = |_: &u32| dice.for_request().pick([fraction].into_iter()).all(|picked| picked);
        let hits = (0..draws).filter(is_hit).count();
        hits as f64
    }

    #[test]
    fn nothing_is_picked_at_zero_and_everything_at_one() {
        let none = Fraction::new(0, 100).unwrap();
        let all = Fraction::new(7, 7).unwrap();
        for word in [0, 1, u64::MAX / 2, u64::MAX - 1, u64::MAX] {
            assert!(!none.picks(word));
            assert!(all.picks(word));
        }
    }

    #[test]
    fn a_share_above_all_or_of_nothing_is_no_fraction() {
        assert_eq!(Fraction::new(2, 1), None);
        assert_eq!(Fraction::new(0, 0), None);
    }

    #[test]
    fn shares_are_exact_to_the_last_bit() {
        let mut rng = Rng::with_seed(3);
        for _ in 0..10_000 {
            let denominator = rng.u32(1..) >> rng.u32(..31) | 1;
            let numerator = rng.u32(..=denominator);
            let share = Fraction::new(numerator, denominator).unwrap();
            let exact = (u128::from(numerator) << 63) / u128::from(denominator);
            assert_eq!(u128::from(share.threshold), exact, "{numerator}/{denominator}");

            let (weight, others) = (rng.u64(..=1_000_000), rng.u64(1..=16_000_000));
            let exact = exact * u128::from(weight) / u128::from(weight + others);
            let weighted = share.weighted(weight, weight + others);
            assert_eq!(u128::from(weighted.threshold), exact, "{weight} beside {others}");
        }
    }

    #[test]
    fn the_share_picked_is_the_share_asked_for_within_three_sigma() {
        for (numerator, denominator) in [(1, 100), (1, 4), (1, 1000), (35, 100), (1, u32::MAX)] {
            let draws = 1_000_000;
            let p = f64::from(numerator) / f64::from(denominator);
            let sigma = (f64::from(draws) * p * (1.0 - p)).sqrt();
            let got = picked(Fraction::new(numerator, denominator).unwrap(), draws);
            let expected = f64::from(draws) * p;
            assert!(
                (got - expected).abs() <= 3.0 * sigma.max(1.0),
                "{numerator}/{denominator}: picked {got} of {draws}, expected {expected} ± 3·{sigma}"
            );
        }
    }

    #[test]
    fn two_draws_of_one_request_are_independent() {
        let half = Fraction::new(1, 2).unwrap();
        let dice = Dice::new(7);
        let draws = 100_000;
        let is_hit = |_: &i32| dice.for_request().pick([half; 2].into_iter()).all(|picked| picked);
        let both = (0..draws).filter(is_hit).count();
        let sigma = (draws as f64 * 0.25 * 0.75).sqrt();
        assert!((both as f64 - draws as f64 / 4.0).abs() <= 3.0 * sigma);
    }
}
