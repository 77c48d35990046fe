//! The tally: outcomes by second and by cause, and latencies.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::outcome::{Failure, Outcome};

/// Limits named one by one; a server that makes up a name for each refusal can't fill the memory.
const MAX_LIMITS: usize = 1000;

/// What has become of the requests so far.
#[derive(Clone)]
pub(super) struct Tally {
    seconds: Vec<Second>,
    /// Of answered requests, in microseconds.
    pub(super) latency: Histogram<u64>,
    /// Refusals by the limit that refused.
    pub(super) denied_by: BTreeMap<String, u64>,
    /// Errors by cause.
    pub(super) errors_by: BTreeMap<Failure, u64>,
}

/// The requests that were due in one second, or in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Second {
    /// Its number, from 0; of no meaning in a sum.
    pub(super) second: u64,
    pub(super) attempts: u64,
    pub(super) allowed: u64,
    pub(super) denied: u64,
    pub(super) errors: u64,
}

impl Second {
    fn add(&mut self, other: &Second) {
        self.attempts += other.attempts;
        self.allowed += other.allowed;
        self.denied += other.denied;
        self.errors += other.errors;
    }
}

impl Tally {
    pub(super) fn new() -> Self {
        // Three digits; from 1 µs up to an hour without growing.
        let latency = Histogram::new_with_bounds(1, 3_600_000_000, 3);
        let latency = latency.unwrap_or_else(|_| unreachable!("these bounds are in order"));
        Self { seconds: Vec::new(), latency, denied_by: BTreeMap::new(), errors_by: BTreeMap::new() }
    }

    /// Takes in a request that was due at `due`, from the start, and ended `took` later.
    pub(super) fn record(&mut self, due: Duration, took: Duration, outcome: Outcome) {
        let second = self.second_mut(due.as_secs());
        second.attempts += 1;
        match outcome {
            Outcome::Allowed => second.allowed += 1,
            Outcome::Denied(limit) => {
                second.denied += 1;
                self.name(limit);
            }
            Outcome::Failed(failure) => {
                second.errors += 1;
                *self.errors_by.entry(failure).or_default() += 1;
                return;
            }
        }
        self.latency.saturating_record(u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1));
    }

    fn name(&mut self, limit: Option<String>) {
        let limit = limit.unwrap_or_else(|| "unnamed".to_owned());
        let known = self.denied_by.len() < MAX_LIMITS || self.denied_by.contains_key(&limit);
        *self.denied_by.entry(if known { limit } else { "others".to_owned() }).or_default() += 1;
    }

    fn second_mut(&mut self, number: u64) -> &mut Second {
        let index = usize::try_from(number).unwrap_or(usize::MAX - 1);
        while self.seconds.len() <= index {
            self.seconds.push(Second { second: self.seconds.len() as u64, ..Second::default() });
        }
        &mut self.seconds[index]
    }

    /// Adds what another tally holds.
    pub(super) fn merge(&mut self, other: &Tally) {
        for second in &other.seconds {
            self.second_mut(second.second).add(second);
        }
        // Fails only between histograms of different bounds.
        let _ = self.latency.add(&other.latency);
        for (limit, count) in &other.denied_by {
            *self.denied_by.entry(limit.clone()).or_default() += count;
        }
        for (failure, count) in &other.errors_by {
            *self.errors_by.entry(*failure).or_default() += count;
        }
    }

    /// Each second, from the first, without gaps.
    pub(super) fn seconds(&self) -> &[Second] {
        &self.seconds
    }

    /// All seconds together.
    pub(super) fn total(&self) -> Second {
        self.seconds.iter().fold(Second::default(), |mut total, second| {
            total.add(second);
            total
        })
    }

    /// Requests that got an answer of any kind.
    pub(super) fn answers(&self) -> u64 {
        let odd =
            |(failure, count): (&Failure, &u64)| matches!(failure, Failure::Status(_)).then_some(*count);
        self.latency.len() + self.errors_by.iter().filter_map(odd).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(outcomes: &[(u64, u64, Outcome)]) -> Tally {
        let mut tally = Tally::new();
        for (due_ms, took_us, outcome) in outcomes {
            tally.record(Duration::from_millis(*due_ms), Duration::from_micros(*took_us), outcome.clone());
        }
        tally
    }

    #[test]
    fn a_request_counts_in_the_second_in_which_it_was_due() {
        let tally = recorded(&[
            (999, 5_000, Outcome::Allowed),
            (2_000, 100, Outcome::Denied(None)),
            (2_001, 0, Outcome::Failed(Failure::Overrun)),
        ]);
        let seconds: Vec<_> =
            tally.seconds().iter().map(|s| (s.second, s.attempts, s.allowed, s.denied, s.errors)).collect();
        assert_eq!(seconds, [(0, 1, 1, 0, 0), (1, 0, 0, 0, 0), (2, 2, 0, 1, 1)]);
        assert_eq!(tally.total().attempts, 3);
    }

    #[test]
    fn refusals_count_for_the_limit_that_refused() {
        let denied = |name: &str| (0, 1, Outcome::Denied(Some(name.to_owned())));
        let tally = recorded(&[denied("a"), denied("b"), denied("a"), (0, 1, Outcome::Denied(None))]);
        let named: Vec<_> = tally.denied_by.iter().map(|(name, count)| (name.as_str(), *count)).collect();
        assert_eq!(named, [("a", 2), ("b", 1), ("unnamed", 1)]);
    }

    #[test]
    fn only_answers_have_a_latency() {
        let tally = recorded(&[
            (0, 700, Outcome::Allowed),
            (0, 1_000_000, Outcome::Failed(Failure::Timeout)),
            (0, 90, Outcome::Failed(Failure::Status(503))),
        ]);
        assert_eq!(tally.latency.len(), 1);
        assert_eq!(tally.latency.max(), 700);
        assert_eq!(tally.answers(), 2);
    }

    #[test]
    fn made_up_names_cannot_fill_the_memory() {
        let mut tally = Tally::new();
        for i in 0..MAX_LIMITS * 2 {
            tally.record(Duration::ZERO, Duration::ZERO, Outcome::Denied(Some(i.to_string())));
        }
        assert_eq!(tally.denied_by.len(), MAX_LIMITS + 1);
        assert_eq!(tally.denied_by["others"], 1000);
    }

    #[test]
    fn merging_adds_up() {
        let one =
            recorded(&[(0, 100, Outcome::Allowed), (1_000, 200, Outcome::Denied(Some("a".to_owned())))]);
        let mut both = recorded(&[(1_500, 300, Outcome::Failed(Failure::Connect))]);
        both.merge(&one);
        let total = Second { second: 0, attempts: 3, allowed: 1, denied: 1, errors: 1 };
        assert_eq!(both.total(), total);
        assert_eq!((both.latency.len(), both.denied_by["a"], both.errors_by[&Failure::Connect]), (2, 1, 1));
    }
}
