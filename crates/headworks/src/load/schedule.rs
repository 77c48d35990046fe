//! The schedule of an open loop: when each request is due.

use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

/// Evenly spaced requests. Each one's time follows from its number, so that delays never add up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    /// Requests a second.
    pub(super) rps: f64,
    /// From the first request to the end.
    pub(super) length: Duration,
}

impl Schedule {
    /// How many requests there are: those due before the end.
    #[allow(clippy::cast_possible_truncation, reason = "a million a second over a day, at most")]
    pub(super) fn requests(self) -> u64 {
        // Without this, 0.1 s at 30/s gives a fourth request at 0.1 s for the rounding of 30 · 0.1.
        const ROUNDING: f64 = 1e-6;
        (self.rps * self.length.as_secs_f64() - ROUNDING).ceil() as u64
    }

    /// When request `number` is due, from the start.
    pub(super) fn due(self, number: u64) -> Duration {
        Duration::from_secs_f64(number as f64 / self.rps)
    }

    /// Sends each request's number when it is due, until all are sent or nobody listens any more.
    ///
    /// A thread of its own, since the runtime's timers are only good to a millisecond, which would show as latency.
    pub(super) fn play(self, start: Instant, due: mpsc::Sender<u64>) {
        thread::spawn(move || {
            for number in 0..self.requests() {
                thread::sleep((start + self.due(number)).saturating_duration_since(Instant::now()));
                if due.blocking_send(number).is_err() {
                    return;
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(rps: f64, length_ms: u64) -> Schedule {
        Schedule { rps, length: Duration::from_millis(length_ms) }
    }

    #[test]
    fn has_as_many_requests_as_the_rate_says() {
        assert_eq!(schedule(150.0, 30_000).requests(), 4500);
        assert_eq!(schedule(30.0, 100).requests(), 3);
        assert_eq!(schedule(0.5, 4_000).requests(), 2);
        assert_eq!(schedule(1.0, 1_500).requests(), 2);
    }

    #[test]
    fn has_one_request_at_least() {
        assert_eq!(schedule(0.1, 100).requests(), 1);
    }

    #[test]
    fn spaces_requests_evenly_from_the_start() {
        assert_eq!(schedule(150.0, 1_000).due(0), Duration::ZERO);
        assert_eq!(schedule(4.0, 1_000).due(3), Duration::from_millis(750));
        assert_eq!(schedule(1000.0, 1_000_000).due(999_999), Duration::from_millis(999_999));
    }

    #[test]
    fn the_last_request_is_due_before_the_end() {
        for rps in [1.0, 7.0, 150.0, 333.3] {
            let schedule = schedule(rps, 3_000);
            assert!(schedule.due(schedule.requests() - 1) < schedule.length);
            assert!(schedule.due(schedule.requests()) >= schedule.length - Duration::from_micros(1));
        }
    }
}
