//! How noisy a stream is: the variance of its counts over their mean.

/// Weight of one observation.
const WEIGHT: f64 = 0.05;
/// Least, that of a Poisson stream. Steadier traffic gains nothing from a narrower band.
const LEAST: f64 = 1.0;
/// Most: above, traffic is so bursty that a band for it would blind its reader to surges.
const MOST: f64 = 50.0;
/// Deviations beyond which an observation counts as this many: a step in demand is not noise, and one surge must not
/// widen the band for minutes.
const STEP: f64 = 3.0;

/// The variance of a count over its mean, measured: 1 for a Poisson stream, `2m − 1` for batches of `m` in the mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dispersion(f64);

impl Default for Dispersion {
    fn default() -> Self {
        Self(LEAST)
    }
}

impl Dispersion {
    /// The number itself.
    pub fn value(self) -> f64 {
        self.0
    }

    /// With one more observation: `seen` units where `expected` ones were due.
    #[must_use]
    pub fn with(self, expected: f64, seen: f64) -> Self {
        let deviation = seen - expected;
        self.observing(deviation * deviation / expected.max(1.0), WEIGHT)
    }

    /// With one more observation of this variance over its mean; `weight` is more for the first ones, of which there are
    /// few.
    #[must_use]
    pub fn observing(self, relative: f64, weight: f64) -> Self {
        let relative = relative.min(STEP * STEP * self.0);
        Self((self.0 + weight.max(WEIGHT) * (relative - self.0)).clamp(LEAST, MOST))
    }

    /// One standard deviation of a count that has this mean.
    pub fn deviation(self, mean: f64) -> f64 {
        (self.0 * mean.max(1.0)).sqrt()
    }
}
