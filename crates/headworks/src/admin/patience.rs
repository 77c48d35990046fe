//! How many requests without the right token are answered and logged one by one.

use std::time::Instant;

/// Refusals at once: a script that was not told of a new token fails in every line.
const AT_ONCE: f64 = 20.0;
/// And each second after that.
const PER_SECOND: f64 = 1.0;

/// A token bucket of refusals. It bounds what guessing writes to the log, never who is let in.
#[derive(Debug)]
pub(super) struct Patience {
    left: f64,
    at: Instant,
    unsaid: u64,
}

/// What to do about a refusal.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reaction {
    /// Say so, and that so many before it were not said.
    Say { unsaid: u64 },
    /// Only count.
    Count,
}

impl Patience {
    pub(super) fn new(now: Instant) -> Self {
        Self { left: AT_ONCE, at: now, unsaid: 0 }
    }

    /// Another refusal.
    pub(super) fn refuse(&mut self, now: Instant) -> Reaction {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        (self.left, self.at) = ((self.left + PER_SECOND * passed).min(AT_ONCE), now);
        if self.left < 1.0 {
            self.unsaid += 1;
            return Reaction::Count;
        }
        self.left -= 1.0;
        Reaction::Say { unsaid: std::mem::take(&mut self.unsaid) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_thousand_guesses_are_said_twenty_times_and_then_once_a_second() {
        let start = Instant::now();
        let mut patience = Patience::new(start);
        let said = (0..1000).filter(|_| patience.refuse(start) != Reaction::Count).count();
        assert_eq!(said, 20);
        assert_eq!(patience.refuse(start + Duration::from_secs(1)), Reaction::Say { unsaid: 980 });
        assert_eq!(patience.refuse(start + Duration::from_secs(1)), Reaction::Count);
    }
}
