//! The one place where real time becomes a [`Moment`].

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

use headworks_core::units::Moment;

/// A monotonic clock with an origin of its own. Steps of the wall clock do not touch it.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
    /// What the wall clock showed at the origin.
    wall: Duration,
}

impl Clock {
    /// A clock whose origin is now.
    #[allow(clippy::new_without_default, reason = "a default that reads the time would surprise")]
    pub fn new() -> Self {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { origin: Instant::now(), wall }
    }

    /// Now.
    pub fn now(&self) -> Moment {
        Moment::after(self.origin.elapsed())
    }

    /// Now, as time since 1970 UTC: the wall clock as it was when this clock was made, and monotonic since.
    pub fn since_1970(&self) -> Moment {
        Moment::after(self.wall + self.origin.elapsed())
    }
}

/// Time since 1970 UTC, read in a fraction of what a call of the system's clock takes: from the processor's counter, which
/// runs by a rate of its own, and is set to a [`Clock`] time and again. It may step back by the little that it ran ahead.
#[derive(Debug)]
pub(crate) struct WallClock {
    counter: quanta::Clock,
    /// What to add to the counter, in nanoseconds; wraps.
    offset: AtomicU64,
}

impl WallClock {
    pub(crate) fn new(clock: &Clock) -> Self {
        let wall = Self { counter: quanta::Clock::new(), offset: AtomicU64::new(0) };
        wall.follow(clock);
        wall
    }

    /// Now.
    #[inline]
    pub(crate) fn now(&self) -> Moment {
        Moment::after_nanos(self.counted().wrapping_add(self.offset.load(Relaxed)))
    }

    /// Sets it to what `clock` shows.
    pub(crate) fn follow(&self, clock: &Clock) {
        let shown = clock.since_1970().nanos_since(Moment::default());
        self.offset.store(shown.wrapping_sub(self.counted()), Relaxed);
    }

    #[inline]
    fn counted(&self) -> u64 {
        self.counter.delta_as_nanos(0, self.counter.raw())
    }
}
