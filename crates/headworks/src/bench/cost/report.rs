//! The report: a table for people, or JSON.

use std::fmt;

use serde::Serialize;

use super::{Bench, Cost, Subject};
use crate::bench::measure::Spread;

/// The runs of all that was measured.
pub(super) struct Report {
    head: String,
    rows: Vec<Row>,
}

/// The runs of one subject, as JSON has them.
#[derive(Debug, Serialize)]
struct Row {
    measured: &'static str,
    children: u32,
    buckets: u32,
    resting: u32,
    threads: u32,
    runs: Vec<Cost>,
}

impl Report {
    /// A report without any run.
    pub(super) fn new(bench: &Bench) -> Self {
        let Bench { children, buckets, resting, threads, .. } = *bench;
        let row = |subject: Subject| Row {
            measured: subject.name(),
            children,
            buckets,
            resting,
            threads,
            runs: Vec::new(),
        };
        let rest = if resting > 0 { format!(" and {resting} at rest") } else { String::new() };
        let time = bench.duration;
        let who = if bench.subject == Subject::Controller { "zones" } else { "agents" };
        let head = format!(
            "{children} {who} of {buckets} buckets that change each second{rest}; \
             {threads} worker threads; {time:?} a run"
        );
        Self { head, rows: bench.subjects().into_iter().map(row).collect() }
    }

    pub(super) fn add(&mut self, subject: Subject, cost: Cost) {
        let row = self.rows.iter_mut().find(|row| row.measured == subject.name());
        row.unwrap_or_else(|| unreachable!("each subject has a row")).runs.push(cost);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.iter().all(|row| row.runs.is_empty())
    }

    /// An array of one object for each that was measured, with the figures of every run.
    pub(super) fn to_json(&self) -> String {
        serde_json::to_string_pretty(&self.rows)
            .unwrap_or_else(|_| unreachable!("its keys are text, and no value is refused"))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\nmedian (lowest–highest) of the runs\n", self.head)?;
        let [cores, owner, report] = ["CORES", "OWNER", "A REPORT"];
        let [bucket, memory, plans] = ["A BUCKET", "A CHILD", "PLANS"];
        write!(f, "{:<11} {:>4}  {cores:<20} {owner:<7} {report:<22} {bucket:<20} ", "MEASURED", "RUNS")?;
        write!(f, "{memory:<24} {plans:<8} REPORTS TAKEN IN")?;
        self.rows.iter().try_for_each(|row| write!(f, "\n{row}"))?;
        if let [ours, echo] = self.rows.as_slice()
            && let Some(ratio) = ours.median(|cost| cost.cores).zip(echo.median(|cost| cost.cores))
        {
            write!(f, "\n\n{} / echo: {:.2} × the processor time", ours.measured, ratio.0 / ratio.1)?;
        }
        self.rows.iter().try_for_each(|row| row.write_faults(f))
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, runs) = (self.measured, self.runs.len());
        let cores = self.cell(3, "", |cost| cost.cores);
        let owner = self.median(|cost| cost.owner_cores.unwrap_or(0.0)).filter(|cores| *cores > 0.0);
        let owner = owner.map_or("–".to_owned(), |cores| format!("{cores:.3}"));
        let report = self.cell(1, " µs", |cost| cost.report_us);
        let bucket = self.cell(0, " ns", |cost| cost.bucket_ns);
        let memory = self.cell(1, " KB", |cost| cost.resident_bytes_per_child / 1000.0);
        let plans = self.median(|cost| cost.plans_per_second).unwrap_or_default();
        let (taken, sent) = self.reports();
        write!(f, "{name:<11} {runs:>4}  {cores:<20} {owner:<7} {report:<22} {bucket:<20} ")?;
        write!(f, "{memory:<24} {:<8} {taken} of {sent}", format!("{plans:.0}/s"))
    }
}

impl Row {
    fn median(&self, figure: impl Fn(&Cost) -> f64) -> Option<f64> {
        Spread::of(self.runs.iter().map(figure)).map(|spread| spread.median)
    }

    /// One figure over all runs.
    fn cell(&self, digits: usize, unit: &str, figure: impl Fn(&Cost) -> f64) -> String {
        let Some(Spread { low, median, high }) = Spread::of(self.runs.iter().map(figure)) else {
            return "–".to_owned();
        };
        format!("{median:.digits$}{unit} ({low:.digits$}–{high:.digits$})")
    }

    /// Taken in and sent, in all runs.
    fn reports(&self) -> (u64, u64) {
        let sum = |of: fn(&Cost) -> u64| self.runs.iter().map(of).sum();
        (sum(|cost| cost.reports_taken), sum(|cost| cost.reports_sent))
    }

    /// What makes its figures doubtful.
    fn write_faults(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, run) in (1..).zip(&self.runs) {
            let wanted = f64::from(self.children);
            if run.reports_per_second < 0.95 * wanted {
                let said = run.reports_per_second;
                write!(
                    f,
                    "\n\nrun {number} of {:?}: only {said:.0} reports a second of {wanted:.0}",
                    self.measured
                )?;
            }
            if run.without_headroom > 0 {
                let missing = run.without_headroom;
                write!(f, "\n\nrun {number} of {:?}: {missing} buckets got no headroom", self.measured)?;
            }
        }
        Ok(())
    }
}

/// One run in a line.
pub(super) fn line(cost: &Cost) -> String {
    let Cost { cores, report_us, bucket_ns, reports_sent, reports_taken, .. } = cost;
    let memory = cost.resident_bytes_per_child / 1000.0;
    format!(
        "{cores:.3} cores, {report_us:.1} µs a report, {bucket_ns:.0} ns a bucket, {memory:.1} KB a child, \
         {reports_taken} of {reports_sent} reports taken in"
    )
}

#[cfg(test)]
mod tests {
    use super::super::tests::bench;
    use super::*;

    fn cost(cores: f64) -> Cost {
        Cost {
            cores,
            owner_cores: Some(0.1),
            report_us: 50.0,
            bucket_ns: 500.0,
            resident_bytes: 60_000_000,
            resident_bytes_per_child: 60_000.0,
            reports_per_second: 1000.0,
            plans_per_second: 2000.0,
            headrooms_per_second: 20_000.0,
            without_headroom: 0,
            reports_sent: 10_000,
            reports_taken: 10_000,
        }
    }

    #[test]
    fn tells_medians_bounds_and_the_ratio() {
        let mut report = Report::new(&bench());
        [0.3, 0.4, 0.9].into_iter().for_each(|cores| report.add(Subject::Aggregator, cost(cores)));
        report.add(Subject::Echo, cost(0.2));
        let text = report.to_string();
        assert!(text.contains("0.400 (0.300–0.900)") && text.contains("30000 of 30000"), "{text}");
        assert!(text.contains("aggregator / echo: 2.00 ×"), "{text}");
    }

    #[test]
    fn what_makes_figures_doubtful_is_told() {
        let mut report = Report::new(&bench());
        report.add(Subject::Aggregator, Cost { reports_per_second: 800.0, without_headroom: 3, ..cost(0.3) });
        let text = report.to_string();
        assert!(text.contains("only 800 reports a second of 1000"), "{text}");
        assert!(text.contains("3 buckets got no headroom"), "{text}");
    }
}
