//! The summary: what is printed in the end.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::args::{Fail, LoadArgs};
use super::tally::{Second, Tally};

/// All that is printed in the end, as text or as one JSON object.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    target: Vec<String>,
    attempts: u64,
    allowed: u64,
    denied: u64,
    errors: u64,
    /// What the client got done: what was allowed, and, if it fails open, what got no verdict.
    work_done: u64,
    elapsed_s: f64,
    latency_us: Latency,
    denied_by: BTreeMap<String, u64>,
    errors_by: BTreeMap<String, u64>,
    per_second: Vec<Second>,
}

/// Latencies of answered requests, in microseconds; zeros if there are none.
#[derive(Debug, Serialize)]
struct Latency {
    p50: u64,
    p90: u64,
    p99: u64,
    p999: u64,
    max: u64,
}

impl Summary {
    pub(super) fn new(args: &LoadArgs, tally: &Tally, elapsed: Duration) -> Self {
        let Second { attempts, allowed, denied, errors, .. } = tally.total();
        let errors_by =
            tally.errors_by.iter().map(|(failure, count)| (failure.to_string(), *count)).collect();
        Self {
            target: args.targets.iter().map(ToString::to_string).collect(),
            attempts,
            allowed,
            denied,
            errors,
            work_done: work_done(allowed, errors, args.fail),
            elapsed_s: elapsed.as_secs_f64(),
            latency_us: Latency::of(tally),
            denied_by: tally.denied_by.clone(),
            errors_by,
            per_second: tally.seconds().to_vec(),
        }
    }

    /// One JSON object on one line.
    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self)
            .unwrap_or_else(|_| unreachable!("its keys are text, and no value is refused"))
    }

    fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.elapsed_s.max(1e-9)
    }
}

fn work_done(allowed: u64, errors: u64, fail: Fail) -> u64 {
    match fail {
        Fail::Open => allowed + errors,
        Fail::Closed => allowed,
    }
}

impl Latency {
    fn of(tally: &Tally) -> Self {
        let at = |quantile| tally.latency.value_at_quantile(quantile);
        Self { p50: at(0.5), p90: at(0.9), p99: at(0.99), p999: at(0.999), max: tally.latency.max() }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "target     {}", self.target.join(", "))?;
        writeln!(f, "elapsed    {:.2} s", self.elapsed_s)?;
        writeln!(f, "attempts   {} ({:.1}/s)", self.attempts, self.per_second(self.attempts))?;
        writeln!(f, "allowed    {} ({:.1}/s)", self.allowed, self.per_second(self.allowed))?;
        writeln!(f, "denied     {}{}", self.denied, Causes(&self.denied_by))?;
        writeln!(f, "errors     {}{}", self.errors, Causes(&self.errors_by))?;
        writeln!(f, "work done  {} ({:.1}/s)", self.work_done, self.per_second(self.work_done))?;
        let Latency { p50, p90, p99, p999, max } = self.latency_us;
        let [p50, p90, p99, p999, max] = [p50, p90, p99, p999, max].map(Milliseconds);
        write!(f, "latency    p50 {p50}  p90 {p90}  p99 {p99}  p99.9 {p999}  max {max}")
    }
}

/// Counts by cause, in brackets after their sum. Names come from servers: escapes keep them from the terminal.
struct Causes<'a>(&'a BTreeMap<String, u64>);

impl fmt::Display for Causes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, count)) in self.0.iter().enumerate() {
            let before = if index == 0 { " (" } else { ", " };
            write!(f, "{before}{} {count}", name.escape_debug())?;
        }
        f.write_str(if self.0.is_empty() { "" } else { ")" })
    }
}

struct Milliseconds(u64);

impl fmt::Display for Milliseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03} ms", self.0 / 1000, self.0 % 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::super::outcome::{Failure, Outcome};
    use super::*;

    fn summary(outcomes: &[Outcome]) -> Summary {
        let mut tally = Tally::new();
        for outcome in outcomes {
            tally.record(Duration::ZERO, Duration::from_micros(1_250), outcome.clone());
        }
        let total = tally.total();
        Summary {
            target: vec!["http://127.0.0.1:8100".to_owned()],
            attempts: total.attempts,
            allowed: total.allowed,
            denied: total.denied,
            errors: total.errors,
            work_done: work_done(total.allowed, total.errors, Fail::Open),
            elapsed_s: 2.0,
            latency_us: Latency::of(&tally),
            denied_by: tally.denied_by.clone(),
            errors_by: tally.errors_by.iter().map(|(f, n)| (f.to_string(), *n)).collect(),
            per_second: tally.seconds().to_vec(),
        }
    }

    #[test]
    fn work_without_a_verdict_is_done_only_by_those_who_fail_open() {
        assert_eq!(work_done(75, 10, Fail::Open), 85);
        assert_eq!(work_done(75, 10, Fail::Closed), 75);
    }

    #[test]
    fn text_names_causes_and_keeps_escapes_from_the_terminal() {
        let hostile = Outcome::Denied(Some("x\u{1b}]0;t\u{7}".to_owned()));
        let text = summary(&[Outcome::Allowed, hostile, Outcome::Failed(Failure::Timeout)]).to_string();
        assert!(text.contains("denied     1 (x\\u{1b}]0;t\\u{7} 1)\n"), "{text}");
        assert!(text.contains("errors     1 (timeout 1)\n"), "{text}");
        assert!(text.contains("work done  2 (1.0/s)\n"), "{text}");
        assert!(text.ends_with("p99.9 1.250 ms  max 1.250 ms"), "{text}");
    }

    #[test]
    fn json_is_one_object_on_one_line() {
        let json = summary(&[Outcome::Allowed, Outcome::Denied(Some("a".to_owned()))]).to_json();
        assert_eq!(
            json,
            concat!(
                r#"{"target":["http://127.0.0.1:8100"],"attempts":2,"allowed":1,"denied":1,"errors":0,"#,
                r#""work_done":1,"elapsed_s":2.0,"#,
                r#""latency_us":{"p50":1250,"p90":1250,"p99":1250,"p999":1250,"max":1250},"#,
                r#""denied_by":{"a":1},"errors_by":{},"#,
                r#""per_second":[{"second":0,"attempts":2,"allowed":1,"denied":1,"errors":0}]}"#
            )
        );
    }
}
