//! What came of a load: the summary that `headworks load --json` prints.

use std::iter::repeat_n;
use std::ops::Range;
use std::time::Duration;

use serde_json::Value;

/// What became of the requests of one second, or of all.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) attempts: u64,
    pub(crate) allowed: u64,
    pub(crate) denied: u64,
    pub(crate) errors: u64,
}

impl Counts {
    fn of(value: &Value) -> Self {
        let [attempts, allowed, denied, errors] = ["attempts", "allowed", "denied", "errors"]
            .map(|name| value[name].as_u64().unwrap_or_else(|| panic!("no {name} in {value}")));
        Self { attempts, allowed, denied, errors }
    }

    fn add(&mut self, other: Counts) {
        self.attempts += other.attempts;
        self.allowed += other.allowed;
        self.denied += other.denied;
        self.errors += other.errors;
    }
}

/// What became of all requests of a load, by the second in which they were due.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) total: Counts,
    /// What the slowest answers took: all but one in a hundred took less than the first. Of several loads together, the
    /// longest of each.
    pub(crate) p99: Duration,
    pub(crate) slowest: Duration,
    /// Why requests failed, of each load in which some did.
    causes: Vec<String>,
    seconds: Vec<Counts>,
}

impl Tally {
    pub(crate) fn parse(summary: &str) -> Result<Self, String> {
        let value: Value =
            serde_json::from_str(summary.trim()).map_err(|e| format!("no summary: {e}: {summary:?}"))?;
        let took = |name: &str| Duration::from_micros(value["latency_us"][name].as_u64().unwrap());
        let (p99, slowest) = (took("p99"), took("max"));
        let (total, target) = (Counts::of(&value), &value["target"]);
        let causes = (total.errors > 0).then(|| format!("{target}: {}", value["errors_by"]));
        let causes = causes.into_iter().collect();
        let mut tally = Tally { total, p99, slowest, causes, seconds: Vec::new() };
        for second in value["per_second"].as_array().into_iter().flatten() {
            let number = usize::try_from(second["second"].as_u64().unwrap_or(0)).unwrap();
            tally.add_second(number, Counts::of(second));
        }
        Ok(tally)
    }

    /// All of them together, second by second; they must have started together.
    pub(crate) fn sum<'a>(tallies: impl IntoIterator<Item = &'a Tally>) -> Self {
        let mut sum = Tally::default();
        for tally in tallies {
            sum.total.add(tally.total);
            sum.causes.extend_from_slice(&tally.causes);
            (sum.p99, sum.slowest) = (sum.p99.max(tally.p99), sum.slowest.max(tally.slowest));
            tally.seconds.iter().enumerate().for_each(|(number, counts)| sum.add_second(number, *counts));
        }
        sum
    }

    /// The same by the clock of a load that started so many seconds before.
    pub(crate) fn later(mut self, seconds: usize) -> Self {
        self.seconds.splice(0..0, repeat_n(Counts::default(), seconds));
        self
    }

    /// How many seconds it has.
    pub(crate) fn seconds(&self) -> usize {
        self.seconds.len()
    }

    fn add_second(&mut self, number: usize, counts: Counts) {
        if self.seconds.len() <= number {
            self.seconds.resize(number + 1, Counts::default());
        }
        self.seconds[number].add(counts);
    }

    /// What happened in these seconds, the end excluded.
    #[track_caller]
    pub(crate) fn during(&self, seconds: Range<usize>) -> Counts {
        let found = self.seconds.get(seconds.clone());
        let found = found.unwrap_or_else(|| panic!("the load ended before second {}\n{self}", seconds.end));
        found.iter().fold(Counts::default(), |mut sum, counts| {
            sum.add(*counts);
            sum
        })
    }

    /// Allowed a second, on average over these seconds.
    #[track_caller]
    pub(crate) fn rate(&self, seconds: Range<usize>) -> f64 {
        self.during(seconds.clone()).allowed as f64 / seconds.len() as f64
    }

    /// In none of these seconds is more or less admitted than a fifth beside the limit: what nobody would call a step.
    #[track_caller]
    pub(crate) fn has_no_step(&self, seconds: Range<usize>, limit: f64) {
        for second in seconds {
            let admitted = self.rate(second..second + 1);
            let fine = (0.8 * limit..=1.2 * limit).contains(&admitted);
            assert!(fine, "{admitted} admitted in second {second}\n{self}");
        }
    }

    /// No request failed, whatever was away.
    #[track_caller]
    pub(crate) fn has_no_errors(&self) {
        assert_eq!(self.total.errors, 0, "requests failed\n{self}");
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let allowed: Vec<u64> = self.seconds.iter().map(|counts| counts.allowed).collect();
        let errors: Vec<u64> = self.seconds.iter().map(|counts| counts.errors).collect();
        write!(
            f,
            "in all {:?}\nallowed by second {allowed:?}\nerrors by second {errors:?} {:?}",
            self.total, self.causes
        )
    }
}
