//! The points of a limit, short enough to be sent each second.

use serde::Serialize;

use super::super::series::{Point, Series};

/// Points, the last one of now; null where the limit was not followed yet.
#[derive(Debug, Serialize)]
pub(super) struct Curves {
    offered: Vec<Option<f64>>,
    admitted: Vec<Option<f64>>,
    /// From 0 to 1.
    ratio: Vec<Option<f64>>,
    /// Of the bucket that is offered most; only where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    busiest: Vec<Option<f64>>,
}

impl Curves {
    /// The last `most` points of a limit.
    pub(super) fn of(series: &Series, name: &str, most: usize, with_busiest: bool) -> Self {
        let points = series.of(name, most);
        let curve =
            |figure: fn(&Point) -> f64| points.iter().map(|point| point.as_ref().map(figure)).collect();
        Self {
            offered: curve(|point| rate(point.offered)),
            admitted: curve(|point| rate(point.admitted)),
            ratio: curve(|point| (f64::from(point.ratio) * 1e4).round() / 1e4),
            busiest: if with_busiest { curve(|point| rate(point.busiest)) } else { Vec::new() },
        }
    }
}

/// The moments of these points, in seconds since 1970.
pub(super) fn times(series: &Series, most: usize) -> Vec<f64> {
    series.times(most).map(|time| (time * 10.0).round() / 10.0).collect()
}

/// To a tenth below 1000, and to one above: no chart shows more.
fn rate(rate: f32) -> f64 {
    let rate = f64::from(rate);
    if rate < 1000.0 { (rate * 10.0).round() / 10.0 } else { rate.round() }
}
