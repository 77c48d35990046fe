//! Samples into columns: a drawing has a number of columns, a run has as many samples as it has.

use super::Chart;

/// Above this a figure is as good as infinite; it keeps sums and powers of ten in range.
const ENDLESS: f64 = 1e18;

/// Below this a figure is as good as zero, for the same reason.
const NOTHING: f64 = 1e-9;

/// Every series of a chart in the same number of columns; `None` where nothing is known.
pub(super) struct Columns {
    /// The mean: demand is a flow, and a column tells how much flowed.
    pub(super) offered: Vec<Option<f64>>,
    /// The peak, to tell whether any sample of a column is above the axis.
    pub(super) offered_peak: Vec<Option<f64>>,
    /// The peak: what a limit must prevent may not vanish in a mean.
    pub(super) admitted: Vec<Option<f64>>,
    /// The last: a limit is changed, it does not drift. Infinite where there is none.
    pub(super) limit: Vec<Option<f64>>,
    /// The mean.
    pub(super) ratio: Vec<Option<f64>>,
}

impl Columns {
    pub(super) fn of(chart: &Chart<'_>, columns: usize) -> Self {
        let spread = |series, of: fn(&[f64]) -> Option<f64>| {
            spread(series, chart.samples(), columns).map(of).collect()
        };
        Self {
            offered: spread(chart.offered, mean),
            offered_peak: spread(chart.offered, peak),
            admitted: spread(chart.admitted, peak),
            limit: spread(chart.limit, last),
            ratio: spread(chart.ratio, mean),
        }
    }
}

/// The samples of each column. With fewer samples than columns, neighbours share a sample.
fn spread(series: &[f64], samples: usize, columns: usize) -> impl Iterator<Item = &[f64]> {
    (0..columns).map(move |column| {
        let from = column * samples / columns;
        let to = ((column + 1) * samples / columns).max(from + 1);
        series.get(from..to.min(series.len())).unwrap_or(&[])
    })
}

/// The largest figure, which may be infinite.
pub(super) fn peak(series: &[f64]) -> Option<f64> {
    known(series).reduce(f64::max)
}

/// The largest figure below infinity.
pub(super) fn finite_peak(series: &[f64]) -> Option<f64> {
    known(series).filter(|figure| figure.is_finite()).reduce(f64::max)
}

/// The last figure.
pub(super) fn last(series: &[f64]) -> Option<f64> {
    known(series).last()
}

fn mean(series: &[f64]) -> Option<f64> {
    let (sum, count) = known(series).fold((0.0, 0_usize), |(sum, count), figure| (sum + figure, count + 1));
    (count > 0).then(|| sum / count as f64)
}

/// The figures that can be drawn.
fn known(series: &[f64]) -> impl Iterator<Item = f64> {
    series.iter().filter(|figure| !figure.is_nan()).map(|figure| match *figure {
        small if small < NOTHING => 0.0,
        huge if huge > ENDLESS => f64::INFINITY,
        figure => figure,
    })
}
