//! How many of the same are told one by one. It bounds what a log takes in, and nothing else.

use std::time::Instant;

/// A token bucket of lines.
#[derive(Debug)]
pub(crate) struct Patience {
    at_once: f64,
    per_second: f64,
    left: f64,
    at: Instant,
    unsaid: u64,
}

/// What to do about one more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reaction {
    /// Say so, and that so many before it were not said.
    Say { unsaid: u64 },
    /// Only count.
    Count,
}

impl Patience {
    /// So many at once, and so many each second after that.
    pub(crate) fn new(at_once: u32, per_second: f64, now: Instant) -> Self {
        let at_once = f64::from(at_once);
        Self { at_once, per_second, left: at_once, at: now, unsaid: 0 }
    }

    /// One more.
    pub(crate) fn meet(&mut self, now: Instant) -> Reaction {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        (self.left, self.at) = ((self.left + self.per_second * passed).min(self.at_once), now);
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
        let mut patience = Patience::new(20, 1.0, start);
        let said = (0..1000).filter(|_| patience.meet(start) != Reaction::Count).count();
        assert_eq!(said, 20);
        assert_eq!(patience.meet(start + Duration::from_secs(1)), Reaction::Say { unsaid: 980 });
        assert_eq!(patience.meet(start + Duration::from_secs(1)), Reaction::Count);
    }
}
