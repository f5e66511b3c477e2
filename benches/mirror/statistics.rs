//! Medians of per-round ratios, and how far to trust them.

/// A median and the interval in which 95 % of its bootstrap resamples lie.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    pub low: f64,
    pub median: f64,
    pub high: f64,
}

const RESAMPLES: usize = 2000;

/// The ratio of two series that were measured side by side.
pub fn ratio(of: &[f64], to: &[f64]) -> Estimate {
    let ratios: Vec<f64> = of.iter().zip(to).map(|(of, to)| of / to).collect();
    let mut rng = fastrand::Rng::with_seed(1); // so that a table is the same for the same data
    let resample = |rng: &mut fastrand::Rng| {
        let drawn = (0..ratios.len()).map(|_| ratios[rng.usize(..ratios.len())]).collect();
        median(drawn)
    };
    let mut medians: Vec<f64> = (0..RESAMPLES).map(|_| resample(&mut rng)).collect();
    medians.sort_by(f64::total_cmp);
    let at = |share: f64| medians[(share * RESAMPLES as f64) as usize];
    Estimate { low: at(0.025), median: median(ratios), high: at(0.975) }
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Of sorted values, the one that this percentage is below.
pub fn percentile(sorted: &[f64], percent: f64) -> f64 {
    sorted[(sorted.len() as f64 * percent / 100.0) as usize]
}
