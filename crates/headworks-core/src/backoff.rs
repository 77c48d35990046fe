//! How long to wait before the next attempt, so that a fleet does not come back in one second.

use std::time::Duration;

/// The longest of the first wait.
const FIRST: Duration = Duration::from_secs(1);
/// The longest wait of all.
const CAP: Duration = Duration::from_secs(10);

/// Exponential backoff with full jitter: each wait is uniform between nothing and a bound that doubles.
#[derive(Debug)]
pub struct Backoff {
    bound: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { bound: FIRST }
    }
}

impl Backoff {
    /// The next wait; `random` is uniform in 0..1.
    pub fn next(&mut self, random: f64) -> Duration {
        let wait = self.bound.mul_f64(random);
        self.bound = CAP.min(self.bound * 2);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_from_within_a_second_to_the_cap() {
        let mut backoff = Backoff::default();
        let waits: Vec<u64> = (0..6).map(|_| backoff.next(1.0).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 10, 10]);
        assert_eq!(Backoff::default().next(0.0), Duration::ZERO);
    }
}
