//! The report: a table for people, or JSON.

use std::fmt;

use serde::Serialize;

use super::args::SurgeArgs;
use super::configuration::CONFIGURATIONS;
use super::measure::{Figures, Spread};

/// Below this part of what was wanted, or with requests this many milliseconds late, the generator did not keep up.
const KEPT_UP: f64 = 0.97;
const LATE_MS: f64 = 20.0;

/// The runs of all configurations.
pub(super) struct Report {
    limit: u32,
    agents: u32,
    before: f64,
    after: f64,
    rows: Vec<Row>,
}

/// The runs of one configuration, as JSON has them.
#[derive(Debug, Serialize)]
struct Row {
    configuration: &'static str,
    /// Requests a second that the fleet may admit.
    limit: u32,
    agents: u32,
    runs: Vec<Figures>,
}

impl Report {
    /// A report without any run.
    pub(super) fn new(args: &SurgeArgs) -> Self {
        let SurgeArgs { limit, agents, before, after, .. } = *args;
        let row = |configuration: &super::Configuration| Row {
            configuration: configuration.name,
            limit,
            agents,
            runs: Vec::new(),
        };
        Self { limit, agents, before, after, rows: CONFIGURATIONS.iter().map(row).collect() }
    }

    /// Adds a run of the configuration at this place.
    pub(super) fn add(&mut self, place: usize, figures: Figures) {
        self.rows[place].runs.push(figures);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.iter().all(|row| row.runs.is_empty())
    }

    /// An array of one object for each configuration, with the figures of every run.
    pub(super) fn to_json(&self) -> String {
        serde_json::to_string_pretty(&self.rows)
            .unwrap_or_else(|_| unreachable!("its keys are text, and no value is refused"))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, agents, before, after, .. } = self;
        writeln!(
            f,
            "{agents} agents, limit {limit}/s, demand from {before} to {after} times the limit in one step"
        )?;
        writeln!(f, "median (lowest–highest) of the runs\n")?;
        let [settles, excess, peak] = ["SETTLES", "EXCESS", "PEAK"];
        write!(f, "{:<24} {:>4}  {settles:<24} {excess:<24} {peak:<22} OFFERED", "CONFIGURATION", "RUNS")?;
        for row in &self.rows {
            write!(f, "\n{row}")?;
        }
        self.rows.iter().try_for_each(|row| row.write_faults(f))
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settles = self.cell(2, " s", |run| run.settle_s.unwrap_or(f64::INFINITY));
        let excess = self.cell(2, " s", |run| run.excess_s);
        let peak = self.cell(2, "×", |run| run.peak);
        let offered = self.cell(0, "/s", |run| run.offered_after);
        let wanted = self.runs.first().map_or(0.0, |run| run.wanted_after);
        let (name, runs) = (self.configuration, self.runs.len());
        write!(f, "{name:<24} {runs:>4}  {settles:<24} {excess:<24} {peak:<22} {offered} of {wanted:.0}/s")
    }
}

impl Row {
    /// One figure over all runs. What is infinite never came.
    fn cell(&self, digits: usize, unit: &str, figure: impl Fn(&Figures) -> f64) -> String {
        let Some(spread) = Spread::of(self.runs.iter().map(figure)) else { return "–".to_owned() };
        let text =
            |value: f64| if value.is_finite() { format!("{value:.digits$}") } else { "never".to_owned() };
        let unit = if spread.median.is_finite() { unit } else { "" };
        format!("{}{unit} ({}–{})", text(spread.median), text(spread.low), text(spread.high))
    }

    /// What makes its figures doubtful.
    fn write_faults(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, run) in (1..).zip(&self.runs) {
            if let Some(fault) = fault(run) {
                write!(f, "\n\nrun {number} of {:?}: {fault}", self.configuration)?;
            }
        }
        Ok(())
    }
}

/// One run in a line.
pub(super) fn line(run: &Figures) -> String {
    let settles =
        run.settle_s.map_or("never settles".to_owned(), |settle| format!("settles in {settle:.2} s"));
    let (excess, peak, offered) = (run.excess_s, run.peak, run.offered_after);
    format!("{settles}, excess {excess:.2} s, peak {peak:.2}×, offered {offered:.0}/s")
}

/// What makes the figures of a run doubtful, and what to do about it.
fn fault(run: &Figures) -> Option<String> {
    let Figures { offered_after, wanted_after, late_p99_ms, unanswered, .. } = *run;
    let kept_up = run.offered_before >= run.wanted_before * KEPT_UP
        && offered_after >= wanted_after * KEPT_UP
        && late_p99_ms <= LATE_MS;
    let mut faults = Vec::new();
    if !kept_up {
        faults.push(format!(
            "the generator could not keep up: offered {offered_after:.0}/s of {wanted_after:.0}/s, \
             one request in 100 more than {late_p99_ms:.0} ms late; give a lower --limit, or a machine that is idle"
        ));
    }
    if unanswered > 0 {
        faults.push(format!("{unanswered} requests got no verdict"));
    }
    (!faults.is_empty()).then(|| faults.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(settle_s: Option<f64>) -> Figures {
        Figures {
            settle_s,
            excess_s: 0.25,
            peak: 2.5,
            admitted_before: 900.0,
            admitted_after: 1000.0,
            wanted_before: 900.0,
            offered_before: 900.0,
            wanted_after: 4000.0,
            offered_after: 3990.0,
            unanswered: 0,
            late_p99_ms: 1.0,
            late_max_ms: 2.0,
        }
    }

    fn row(runs: Vec<Figures>) -> Row {
        Row { configuration: "neither", limit: 1000, agents: 8, runs }
    }

    fn words(text: &str) -> String {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_row_has_medians_and_bounds() {
        let text = row([0.3, 0.4, 0.9].map(|settle| figures(Some(settle))).into()).to_string();
        let wanted =
            "neither 3 0.40 s (0.30–0.90) 0.25 s (0.25–0.25) 2.50× (2.50–2.50) 3990/s (3990–3990) of 4000/s";
        assert_eq!(words(&text), wanted);
    }

    #[test]
    fn what_never_settles_is_said_so() {
        let text = row([Some(0.3), None, None].map(figures).into()).to_string();
        assert!(words(&text).starts_with("neither 3 never (0.30–never) "), "{text}");
    }

    #[test]
    fn a_generator_that_could_not_keep_up_is_told() {
        assert_eq!(fault(&figures(None)), None);
        let slow = Figures { offered_after: 3000.0, ..figures(None) };
        let late = Figures { late_p99_ms: 50.0, ..figures(None) };
        for run in [slow, late] {
            assert!(fault(&run).is_some_and(|fault| fault.contains("could not keep up")), "{run:?}");
        }
        let unanswered = Figures { unanswered: 3, ..figures(None) };
        assert_eq!(fault(&unanswered).as_deref(), Some("3 requests got no verdict"));
    }

    #[test]
    fn json_has_every_run() {
        let json = serde_json::to_value(row(vec![figures(None)])).unwrap();
        assert_eq!(json["configuration"], "neither");
        assert_eq!(json["runs"][0]["settle_s"], serde_json::Value::Null);
        assert_eq!(json["runs"][0]["wanted_after"], 4000.0);
    }
}
