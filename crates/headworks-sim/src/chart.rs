//! Drawings of a run: text for a terminal, SVG for a page.
//!
//! Pure: figures in, a `String` out, and the same figures always give the same drawing, so two drawings can be
//! compared as text. Both show the rates above and the drop ratio below, over one time axis.

mod axis;
mod columns;
mod svg;
mod text;

#[cfg(test)]
mod tests;

use std::time::Duration;

use self::axis::Axis;

/// How often the limit an axis shows when offered is cut off: enough to see an overshoot, and the limit stays visible.
const CLIP_AT_LIMITS: f64 = 4.0;

/// Offered is cut off only when it goes this far beyond the cut; cutting off a little would cost more than it shows.
const CLIP_FROM: f64 = 1.25;

/// What a run looked like, in equal steps of time.
///
/// Sample `i` of each series tells of the time from `i × step` to `(i + 1) × step`. Series may be of different lengths
/// and may have gaps (NaN). Figures below zero count as zero; infinity is above every axis.
#[derive(Clone, Copy, Debug)]
pub struct Chart<'a> {
    /// What was run, in a line.
    pub title: &'a str,
    /// The time that one sample tells of.
    pub step: Duration,
    /// What callers asked for, in units/s.
    pub offered: &'a [f64],
    /// What was let through, in units/s.
    pub admitted: &'a [f64],
    /// The limit in force, in units/s; infinite where there is none, empty when there never was one.
    pub limit: &'a [f64],
    /// The share that was dropped, 0 to 1.
    pub ratio: &'a [f64],
    /// Events to mark on the time axis, by their time since the start of the run.
    pub marks: &'a [(Duration, String)],
}

impl Chart<'_> {
    /// The run as text, without colours or escapes. Lines have at most `width` characters, but never fewer than 20 are
    /// used; `height` counts the rows of both panels together, to which title, key, axis and marks add theirs.
    pub fn to_text(&self, width: usize, height: usize) -> String {
        text::draw(self, width, height)
    }

    /// The run as an SVG document of 960 × 420, which needs nothing else, and follows the reader's light or dark theme.
    pub fn to_svg(&self) -> String {
        svg::draw(self)
    }

    /// How many steps the run had: as many as its longest series has.
    fn samples(&self) -> usize {
        [self.offered, self.admitted, self.limit, self.ratio].map(<[f64]>::len).into_iter().max().unwrap_or(0)
    }

    /// How long the run was, in seconds; never 0, because everything is placed as a share of it.
    fn seconds(&self) -> f64 {
        let seconds = self.step.as_secs_f64() * self.samples() as f64;
        if seconds > 0.0 { seconds } else { 1.0 }
    }

    /// The axis of the rates, with about this many ticks.
    fn rates(&self, ticks: usize) -> Rates {
        let peak = |series| columns::finite_peak(series).unwrap_or(0.0);
        let (offered, admitted, limit) = (peak(self.offered), peak(self.admitted), peak(self.limit));
        let cut = admitted.max(CLIP_AT_LIMITS * limit);
        let far_above = limit > 0.0 && offered > CLIP_FROM * cut;
        let axis = Axis::up_to(if far_above { cut } else { offered.max(admitted).max(limit) }, ticks);
        let above = columns::peak(self.offered).filter(|peak| *peak > axis.top);
        Rates { axis, above }
    }
}

/// The axis of the rates.
struct Rates {
    axis: Axis,
    /// The peak of offered, if it is above the axis.
    above: Option<f64>,
}

impl Rates {
    /// Says that offered does not fit, and how high it went.
    fn note(&self) -> Option<String> {
        self.above.map(|peak| format!("offered up to {}", axis::rate(peak)))
    }
}
