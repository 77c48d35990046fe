//! An agent that leaves one parent for another while both live.

use std::time::Duration;

use super::Agent;
use crate::message::Report;
use crate::units::Moment;

/// Shortest interval that says something of a rate. An agent that moves greets its new parent with a full report, whenever
/// the last one to the old parent was.
const SHORTEST: Duration = Duration::from_millis(20);

impl Agent {
    /// What was counted since the last report, for a parent that is about to be left. In part, not in full: the full one is
    /// for the next parent.
    pub fn parting_report(&mut self, now: Moment) -> Report {
        self.moves = true;
        self.build_report(now, false, |bucket, _| bucket.moved)
    }

    /// The interval that a full report ends; none if it is so short only because the agent has moved.
    pub(super) fn interval_up_to(&mut self, elapsed: Duration) -> Duration {
        let interval = elapsed.saturating_sub(self.last_full);
        let moved = std::mem::take(&mut self.moves);
        if moved && interval < SHORTEST { Duration::ZERO } else { interval }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::{BucketKey, Counts};
    use crate::testing::identity;

    fn millis(millis: u64) -> Moment {
        Moment::after(Duration::from_millis(millis))
    }

    fn agent() -> Agent {
        let mut agent = Agent::new(identity("agent"), Duration::from_secs(60), millis(0));
        agent.attached("http://10.0.0.1:7100".into());
        agent
    }

    /// Attached from the start, at 100/s; then it moves `late` after a full report.
    fn moved(late: u64) -> (Report, f64) {
        let mut agent = agent();
        let number = agent.open(&BucketKey::whole("checkout".into()), millis(0)).unwrap();
        for second in 1..=20 {
            let counts = Counts { offered: second * 100, ..Counts::default() };
            agent.count(number, counts, millis(second * 1000));
            agent.full_report(millis(second * 1000));
        }
        let counts = Counts { offered: 2001, ..Counts::default() };
        agent.count(number, counts, millis(20_000 + late));
        let parting = agent.parting_report(millis(20_000 + late));
        agent.attached("http://10.0.0.2:7100".into());
        agent.full_report(millis(20_000 + late));
        (parting, agent.buckets.get(number).unwrap().own_demand())
    }

    #[test]
    fn the_parent_that_is_left_hears_what_was_counted_since_the_last_report() {
        let (parting, _) = moved(1);
        assert!(!parting.full);
        assert_eq!(parting.entries[0].counts.offered, 2001);
    }

    #[test]
    fn one_request_within_a_millisecond_of_moving_is_no_rate_of_a_thousand() {
        let (_, demand) = moved(1);
        assert!((demand - 100.0).abs() < 0.1, "{demand}");
        let (_, demand) = moved(100);
        assert!(demand < 100.0, "an interval that says something is taken in: {demand}");
    }
}
