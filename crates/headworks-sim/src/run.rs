//! A run of a scenario, from its script to its transcript.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use crate::chart::Chart;
use crate::log::Log;
use crate::measure::{Figure, figures};
use crate::script::{Expectation, Kind, Measure, Script, Span};
use crate::world::World;

/// What a run showed.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// One line for each measure: its figures, and whether they are as expected.
    pub transcript: String,
    /// Whether all are.
    pub as_expected: bool,
    /// What to draw, if the script says so.
    pub picture: Option<Picture>,
}

/// The series of a chart.
#[derive(Clone, Debug)]
pub struct Picture {
    title: String,
    step: Duration,
    offered: Vec<f64>,
    admitted: Vec<f64>,
    limit: Vec<f64>,
    ratio: Vec<f64>,
}

impl Picture {
    /// The chart.
    pub fn chart(&self) -> Chart<'_> {
        Chart {
            title: &self.title,
            step: self.step,
            offered: &self.offered,
            admitted: &self.admitted,
            limit: &self.limit,
            ratio: &self.ratio,
            marks: &[],
        }
    }
}

/// Runs a scenario. `progress` hears how much of it is over, from 0 to 1.
pub fn run(script: &Arc<Script>, progress: impl FnMut(f64)) -> Outcome {
    let mut world = World::new(script);
    world.run(progress);
    let mut outcome = Outcome {
        transcript: format!("{}\n", script.title),
        as_expected: true,
        picture: picture(script, &world.log),
    };
    for measure in &script.measures {
        let figures = figures(measure, script, &world.log);
        let failures: Vec<String> =
            measure.expected.iter().filter_map(|expected| failure(expected, &figures)).collect();
        outcome.as_expected &= failures.is_empty();
        outcome.transcript.push_str(&line(measure, &figures, &failures));
    }
    outcome
}

fn line(measure: &Measure, figures: &[Figure], failures: &[String]) -> String {
    let mut line = format!("{:<28}", format!("{} {}", noun(measure.kind), measure.of));
    let _ = write!(line, "{:>7}..{:<7}", seconds(measure.span.from), seconds(measure.span.to));
    for (index, figure) in figures.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        let _ = write!(line, "{comma} {} {}", figure.name, value(figure));
    }
    for failure in failures {
        let _ = write!(line, "\n    NOT AS EXPECTED: {failure}");
    }
    line.push('\n');
    line
}

fn value(figure: &Figure) -> String {
    let value = figure.value;
    let digits = match value.abs() {
        v if v.fract() == 0.0 && v < 1e9 => 0,
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        v if v >= 0.01 => 3,
        _ => 5,
    };
    format!("{value:.digits$} {}", figure.unit).trim_end().to_owned()
}

fn seconds(time: Duration) -> String {
    format!("{}s", (time.as_secs_f64() * 1000.0).round() / 1000.0)
}

fn noun(kind: Kind) -> &'static str {
    match kind {
        Kind::Surge => "surge of",
        Kind::Held => "held",
        Kind::Dropped => "dropped of",
        Kind::Ratio => "ratio of",
        Kind::Estimate => "estimate of",
        Kind::Reports => "reports",
        Kind::Stream => "stream",
        Kind::Agents => "agents known",
        Kind::Attaching => "attaching",
        Kind::Counts => "counts of",
        Kind::Kept => "kept",
    }
}

fn failure(expected: &Expectation, figures: &[Figure]) -> Option<String> {
    let Some(figure) = figures.iter().find(|figure| figure.name == expected.figure) else {
        let known: Vec<&str> = figures.iter().map(|figure| figure.name).collect();
        return Some(format!("no figure `{}`: there are {}", expected.figure, known.join(", ")));
    };
    let holds =
        if expected.at_most { figure.value <= expected.bound } else { figure.value >= expected.bound };
    let sign = if expected.at_most { "<=" } else { ">=" };
    (!holds).then(|| format!("{} {sign} {}", expected.figure, expected.bound))
}

/// The chart's series, in steps that are no shorter than a tenth of a second.
fn picture(script: &Script, log: &Log) -> Option<Picture> {
    let (name, span) = script.chart.as_ref()?;
    let limit = log.limit(name)?;
    let rate = script.limits.get(name)?.rate.per_second();
    let in_one = bundled(*span, log.step);
    let step = log.step * u32::try_from(in_one).unwrap_or(1);
    let cells: Vec<_> = log.limits[limit][log.steps(*span)].chunks(in_one).collect();
    let sum = |of: fn(&crate::log::Cell) -> u32| -> Vec<f64> {
        let bundle = |cells: &&[crate::log::Cell]| cells.iter().map(|cell| f64::from(of(cell))).sum::<f64>();
        cells.iter().map(|cells| bundle(cells) / step.as_secs_f64()).collect()
    };
    let readings = log.readings[limit][log.steps(*span)].chunks(in_one);
    Some(Picture {
        title: script.title.clone(),
        step,
        offered: sum(|cell| cell.offered),
        admitted: sum(|cell| cell.admitted),
        limit: vec![rate; cells.len()],
        ratio: readings.map(|chunk| chunk.last().map_or(0.0, |reading| f64::from(reading.ratio))).collect(),
    })
}

/// Steps drawn as one: at least a tenth of a second, and no more than two thousand on the whole.
fn bundled(span: Span, step: Duration) -> usize {
    let shortest = Duration::from_millis(100).max(span.to.saturating_sub(span.from) / 2000);
    usize::try_from(shortest.as_nanos().div_ceil(step.as_nanos().max(1))).unwrap_or(1).max(1)
}
