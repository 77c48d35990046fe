//! How fast a child may report.

use std::time::Duration;

use tokio::time::Instant;

/// Time between messages of one child, on average. Agents report every 50 ms at most and aggregators every 20 ms,
/// however their controller's spacing is set; what comes faster than twice that is somebody else's program, and would
/// take the owner's time from all the others.
const GAP: Duration = Duration::from_millis(10);
/// Time that each entry of a report counts besides: some ten times what it takes the owner, so that a child which fills its
/// reports with a hundred thousand of them has a tenth of the owner and no more. One that does so once a second is in time.
const ENTRY: Duration = Duration::from_micros(3);
/// Messages that may come at once: a link that was stuck brings what waited in it.
const BURST: u32 = 100;

/// One child's pace.
pub(crate) struct Pace {
    /// When its messages so far would all have come, at the pace allowed.
    due: Instant,
}

impl Pace {
    pub(crate) fn new(now: Instant) -> Self {
        Self { due: now }
    }

    /// Counts a message with so many entries; how long to leave the next one unread, if the pace was too fast.
    pub(crate) fn wait(&mut self, now: Instant, entries: usize) -> Option<Duration> {
        let entries = u32::try_from(entries).unwrap_or(u32::MAX);
        self.due = self.due.max(now) + GAP + ENTRY * entries;
        let ahead = self.due.duration_since(now);
        ahead.checked_sub(GAP * BURST).filter(|wait| !wait.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_reports_as_fast_as_it_may_is_never_slowed() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        for number in 0..10_000 {
            assert_eq!(pace.wait(start + Duration::from_millis(20) * number, 1000), None);
        }
    }

    #[test]
    fn a_burst_passes_and_a_flood_is_held_to_the_pace() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        let mut now = start;
        for _ in 0..BURST {
            assert_eq!(pace.wait(now, 0), None);
        }
        for _ in 0..1000 {
            now += pace.wait(now, 0).unwrap_or_default();
        }
        assert_eq!(now - start, GAP * 1000);
    }

    #[test]
    fn reports_full_of_entries_are_slowed_sooner() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        assert_eq!(pace.wait(start, 90_000), None, "a greeting with all that a child may hold");
        assert!((0..5).any(|_| pace.wait(start, 90_000).is_some()));
    }
}
