//! Axes: round ticks, and how figures are written.

/// An axis from 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    /// The figure at its end.
    pub(super) top: f64,
    /// The distance of its ticks.
    pub(super) tick: f64,
}

impl Axis {
    /// An axis that ends with the first tick at or above `max`, with about `ticks` ticks; to 1 if there is nothing.
    pub(super) fn up_to(max: f64, ticks: usize) -> Self {
        let max = if max > 0.0 { max } else { 1.0 };
        let tick = round_tick(max, ticks);
        // The small part less keeps 3 × 0.1 from asking for a fourth tick.
        Self { top: tick * (max / tick - 1e-9).ceil().max(1.0), tick }
    }

    /// An axis that ends exactly at `end`, be there a tick or not.
    pub(super) fn ending_at(end: f64, ticks: usize) -> Self {
        Self { top: end, tick: round_tick(end, ticks) }
    }

    /// The figures at its ticks, 0 first.
    pub(super) fn ticks(self) -> impl Iterator<Item = f64> {
        (0..=floor(self.top / self.tick + 1e-9)).map(move |n| n as f64 * self.tick)
    }

    /// Where on the axis a figure lies, 0 to 1; what is above the axis lies at its end.
    pub(super) fn share(self, figure: f64) -> f64 {
        (figure / self.top).clamp(0.0, 1.0)
    }
}

/// The smallest of 1, 2, 2.5 and 5 × a power of ten that takes at most `ticks` steps to `max`.
fn round_tick(max: f64, ticks: usize) -> f64 {
    let least = max / ticks.max(1) as f64;
    let power = 10f64.powf(least.log10().floor());
    let fits = |tick: &f64| *tick >= least * (1.0 - 1e-9);
    [1.0, 2.0, 2.5, 5.0].map(|digit| digit * power).into_iter().find(fits).unwrap_or(10.0 * power)
}

/// A rate, short: 250, 12.5k, 1.2M.
pub(super) fn rate(figure: f64) -> String {
    if figure.is_infinite() {
        return "∞".to_owned();
    }
    let rounded = three_digits(figure);
    match rounded {
        0.0 => "0".to_owned(),
        small if small < 0.01 => format!("{small:.0e}"),
        huge if huge >= 1e15 => format!("{huge:.0e}"),
        _ => {
            let scales = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
            let (scale, suffix) =
                scales.into_iter().find(|(scale, _)| rounded >= *scale).unwrap_or((1.0, ""));
            format!("{}{suffix}", decimal(rounded / scale))
        }
    }
}

/// A time: 0 s, 2.5 s.
pub(super) fn seconds(figure: f64) -> String {
    format!("{} s", decimal(figure))
}

/// A share: 50 %.
pub(super) fn percent(share: f64) -> String {
    format!("{} %", decimal((share * 1000.0).round() / 10.0))
}

/// A figure with at most two decimals and no trailing zeros.
pub(super) fn decimal(figure: f64) -> String {
    let text = format!("{figure:.2}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    if short == "-0" { "0".to_owned() } else { short.to_owned() }
}

/// Rounds to three digits before the unit is chosen, so that 999 950 is 1M and not 1000k.
fn three_digits(figure: f64) -> f64 {
    if figure <= 0.0 {
        return 0.0;
    }
    let power = 10f64.powf(figure.log10().floor() - 2.0);
    (figure / power).round() * power
}

/// The whole part of a figure that is not below 0, as a place to count with.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and NaN becomes 0"
)]
pub(super) fn floor(figure: f64) -> usize {
    figure as usize
}
