//! The schedule of an open loop: when each request is due.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::args::Spacing;

/// Requests that may be due and not yet looked at; beyond, the schedule waits and catches up, and latency tells it.
const DUE: usize = 4096;

/// When requests are due. Each one's time follows from its number, so that delays never add up.
#[derive(Clone, Debug)]
pub(super) enum Schedule {
    /// Evenly spaced.
    Even {
        /// Requests a second.
        rps: f64,
        /// From the first request to the end.
        length: Duration,
    },
    /// Each at a random time within its slot of an even timetable, so that as many are due in any time as if they were even.
    Jittered {
        /// Requests a second.
        rps: f64,
        /// From the first slot to the end.
        length: Duration,
        /// What the times are drawn from. By number, since a request's time is asked for more than once.
        chance: RandomState,
    },
    /// At these times from the start, in their order.
    At(Arc<[Duration]>),
}

impl Schedule {
    /// So many requests a second until the end.
    pub(super) fn of(spacing: Spacing, rps: f64, length: Duration) -> Self {
        match spacing {
            Spacing::Even => Schedule::Even { rps, length },
            Spacing::Jittered => Schedule::Jittered { rps, length, chance: RandomState::new() },
        }
    }

    /// How many requests there are: those due before the end.
    #[allow(clippy::cast_possible_truncation, reason = "a million a second over a day, at most")]
    pub(super) fn requests(&self) -> u64 {
        // Without this, 0.1 s at 30/s gives a fourth request at 0.1 s for the rounding of 30 · 0.1.
        const ROUNDING: f64 = 1e-6;
        match self {
            Schedule::Even { rps, length } | Schedule::Jittered { rps, length, .. } => {
                (rps * length.as_secs_f64() - ROUNDING).ceil() as u64
            }
            Schedule::At(times) => times.len() as u64,
        }
    }

    /// When request `number` is due, from the start. Of a timetable, those beyond the last are due with it.
    pub(super) fn due(&self, number: u64) -> Duration {
        match self {
            Schedule::Even { rps, .. } => slot(number, *rps),
            Schedule::Jittered { rps, length, chance } => {
                let (start, end) = (slot(number, *rps), slot(number + 1, *rps).min(*length));
                start + end.saturating_sub(start).mul_f64(part(chance.hash_one(number)))
            }
            Schedule::At(times) => {
                let found = usize::try_from(number).ok().and_then(|number| times.get(number));
                found.or(times.last()).copied().unwrap_or_default()
            }
        }
    }

    /// Tells each request's number when it is due, until all are told or nobody listens any more.
    ///
    /// A thread of its own, since the runtime's timers are only good to a millisecond, which would show as latency.
    pub(super) fn play(&self, start: Instant) -> mpsc::Receiver<u64> {
        let (sender, due) = mpsc::channel(DUE);
        let schedule = self.clone();
        thread::spawn(move || {
            for number in 0..schedule.requests() {
                thread::sleep((start + schedule.due(number)).saturating_duration_since(Instant::now()));
                if sender.blocking_send(number).is_err() {
                    return;
                }
            }
        });
        due
    }
}

/// When the slot of a request begins.
fn slot(number: u64, rps: f64) -> Duration {
    Duration::from_secs_f64(number as f64 / rps)
}

/// A part of one, below one, from random bits: as many of them as the number holds exactly.
fn part(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(rps: f64, length_ms: u64) -> Schedule {
        Schedule::Even { rps, length: Duration::from_millis(length_ms) }
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
        let end = Duration::from_secs(3);
        for rps in [1.0, 7.0, 150.0, 333.3] {
            let schedule = schedule(rps, 3_000);
            assert!(schedule.due(schedule.requests() - 1) < end);
            assert!(schedule.due(schedule.requests()) >= end - Duration::from_micros(1));
        }
    }

    fn jittered(rps: f64, length: Duration) -> Schedule {
        Schedule::of(Spacing::Jittered, rps, length)
    }

    #[test]
    fn a_jittered_request_keeps_to_its_slot_and_no_two_loads_keep_step() {
        let length = Duration::from_secs(50);
        let [one, other] = [(); 2].map(|()| jittered(20.0, length));
        assert_eq!(one.requests(), 1000);
        for number in 0..1000 {
            let (start, end) = (slot(number, 20.0), slot(number + 1, 20.0));
            assert!((start..end).contains(&one.due(number)), "{number}: {:?}", one.due(number));
            assert_eq!(one.due(number), one.clone().due(number));
        }
        // Each is the earlier one in half of the slots, give or take five deviations.
        let earlier = (0..1000).filter(|number| one.due(*number) < other.due(*number)).count();
        assert!((420..=580).contains(&earlier), "{earlier} of 1000");
    }

    #[test]
    fn a_slot_that_the_end_cuts_off_has_its_request_before_the_end() {
        for _ in 0..100 {
            let schedule = jittered(0.1, Duration::from_millis(100));
            assert_eq!(schedule.requests(), 1);
            assert!(schedule.due(0) < Duration::from_millis(100));
        }
    }

    #[test]
    fn follows_a_timetable() {
        let times = [1, 1, 5].map(Duration::from_millis);
        let schedule = Schedule::At(times.into());
        assert_eq!((schedule.requests(), schedule.due(1), schedule.due(2)), (3, times[1], times[2]));
        assert_eq!(Schedule::At([].into()).requests(), 0);
    }

    #[test]
    fn tells_every_request_that_is_due() {
        let schedule = Schedule::At([1, 1, 5].map(Duration::from_millis).into());
        let start = Instant::now();
        let mut due = schedule.play(start);
        let told: Vec<_> = std::iter::from_fn(|| due.blocking_recv()).collect();
        assert_eq!(told, [0, 1, 2]);
        assert!(start.elapsed() >= Duration::from_millis(5));
    }
}
