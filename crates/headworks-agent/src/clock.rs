//! The one place where real time becomes a [`Moment`].

use std::time::Instant;

use headworks_core::units::Moment;

/// A monotonic clock with an origin of its own. Steps of the wall clock do not touch it.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// A clock whose origin is now.
    #[allow(clippy::new_without_default, reason = "a default that reads the time would surprise")]
    pub fn new() -> Self {
        Self(Instant::now())
    }

    /// Now.
    pub fn now(&self) -> Moment {
        Moment::after(self.0.elapsed())
    }
}
