//! The figures: a table for people, or JSON.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::bench::usage::Usage;

/// What a fleet at rest costs.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) agents: usize,
    pub(super) duration_s: f64,
    pub(super) aggregator: Cost,
    pub(super) controller: Cost,
}

/// What it costs one process.
#[derive(Debug, Serialize)]
pub(super) struct Cost {
    /// Processor time, in hundredths of one core's.
    cpu_percent: f64,
    resident_bytes: u64,
}

impl Cost {
    /// By what was used before and after this time.
    pub(super) fn of(before: Usage, after: Usage, time: Duration) -> Self {
        let used = after.processor.saturating_sub(before.processor);
        Self { cpu_percent: 100.0 * used.as_secs_f64() / time.as_secs_f64(), resident_bytes: after.resident }
    }
}

impl Report {
    pub(super) fn to_json(&self) -> String {
        serde_json::to_string_pretty(self)
            .unwrap_or_else(|_| unreachable!("its keys are text, and no value is refused"))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { agents, duration_s, aggregator, controller } = self;
        writeln!(f, "{agents} agents at rest, for {duration_s:.0} s\n")?;
        writeln!(f, "{:<12} {:>15} {:>12}", "NODE", "OF ONE CORE", "MEMORY")?;
        writeln!(f, "{:<12} {aggregator}", "aggregator")?;
        write!(f, "{:<12} {controller}", "controller")
    }
}

impl fmt::Display for Cost {
    #[allow(clippy::cast_precision_loss, reason = "a tenth of a megabyte is shown")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu_percent, resident_bytes } = self;
        write!(f, "{cpu_percent:>13.2} % {:>8.1} MiB", *resident_bytes as f64 / f64::from(1 << 20))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(processor: u64, resident: u64) -> Usage {
        Usage { processor: Duration::from_millis(processor), resident }
    }

    #[test]
    fn a_share_is_of_one_core_and_memory_that_of_the_end() {
        let cost = Cost::of(usage(1000, 1 << 20), usage(1250, 3 << 19), Duration::from_secs(10));
        assert_eq!(cost.to_string().split_whitespace().collect::<Vec<_>>(), ["2.50", "%", "1.5", "MiB"]);
        assert_eq!(cost.resident_bytes, 3 << 19);
    }
}
