//! Chance from a seed: the same draws in every run.

/// A seeded source of chance.
#[derive(Clone, Debug)]
pub(crate) struct Chance(fastrand::Rng);

impl Chance {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// A source of its own for somebody, so that what one draws does not change what others draw.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.0.fork())
    }

    /// Uniform in 0..1.
    pub(crate) fn unit(&mut self) -> f64 {
        self.0.f64()
    }

    pub(crate) fn word(&mut self) -> u32 {
        self.0.u32(..)
    }

    /// A count with this mean, from independent events.
    pub(crate) fn poisson(&mut self, mean: f64) -> u32 {
        // Above this the normal approximation is off by less than what a run can show.
        const LARGE: f64 = 50.0;
        if mean <= 0.0 {
            0
        } else if mean < LARGE {
            self.poisson_by_inversion(mean)
        } else {
            let count = mean + mean.sqrt() * self.normal();
            round(count)
        }
    }

    fn poisson_by_inversion(&mut self, mean: f64) -> u32 {
        let mut left = self.unit();
        let mut chance = (-mean).exp();
        let mut count = 0;
        while left > chance && count < 1000 {
            left -= chance;
            count += 1;
            chance *= mean / f64::from(count);
        }
        count
    }

    /// Box and Muller's; one of the pair is thrown away.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// The size of a batch: geometric, at least 1.
    pub(crate) fn batch(&mut self, mean: f64) -> u32 {
        let stay = 1.0 - 1.0 / mean.max(1.0);
        if stay <= 0.0 { 1 } else { 1 + round(((1.0 - self.unit()).ln() / stay.ln()).floor()) }
    }
}

/// The nearest count.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, and no count is below 0"
)]
pub(crate) fn round(count: f64) -> u32 {
    count.round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(mut draw: impl FnMut() -> u32) -> (f64, f64) {
        let draws: Vec<f64> = (0..20_000).map(|_| f64::from(draw())).collect();
        let mean = draws.iter().sum::<f64>() / 20_000.0;
        (mean, draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 20_000.0)
    }

    #[test]
    fn counts_have_the_mean_and_variance_of_independent_events() {
        for wanted in [0.1, 4.0, 400.0] {
            let mut chance = Chance::seeded(5);
            let (mean, variance) = moments(|| chance.poisson(wanted));
            assert!((mean / wanted - 1.0).abs() < 0.05, "{mean} for {wanted}");
            assert!((variance / wanted - 1.0).abs() < 0.05, "{variance} for {wanted}");
        }
    }

    #[test]
    fn batches_have_their_mean() {
        let mut chance = Chance::seeded(5);
        let (mean, _) = moments(|| chance.batch(4.0));
        assert!((mean - 4.0).abs() < 0.1, "{mean}");
        assert_eq!(chance.batch(1.0), 1);
    }
}
