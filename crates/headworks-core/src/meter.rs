//! Demand measured from counters that only rise: count up, divide later.

use std::time::Duration;

/// Windows shorter than this are extended to the next report, unless they hold enough to be trusted. A little
/// under the report interval, so that a timer that fires early does not double the window.
const WINDOW: Duration = Duration::from_millis(900);

/// From this length on a window ends with a full report. Shorter ones go on for another interval, which keeps noise
/// low; longer ones must not, or what came before a change would be felt in it for three intervals.
const ENDED: Duration = Duration::from_millis(250);

/// Units from which a window shorter than that is trusted: Poisson noise is then below a fifth.
const SOLID: f64 = 30.0;

#[derive(Clone, Copy, Debug, Default)]
struct Point {
    elapsed: Duration,
    offered: u64,
}

/// The offered rate of one bucket at one child, from its cumulative counter and its own elapsed time.
///
/// A report that is lost, repeated or late changes nothing in the end: each is a point on the same line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Meter {
    /// Where the window before this one began: thin windows reach back to it.
    prior: Point,
    start: Point,
    last: Point,
    rate: f64,
}

impl Meter {
    /// A meter that starts counting from here, at a rate that is known from elsewhere or zero.
    pub fn starting(elapsed: Duration, offered: u64, rate: f64) -> Self {
        let here = Point { elapsed, offered };
        Self { prior: here, start: here, last: here, rate }
    }

    /// Takes a reading. `early` says that it came before its time because demand moved: what was counted before
    /// it then belongs to another demand, and is left out if the news is solid.
    pub fn observe(&mut self, elapsed: Duration, offered: u64, early: bool) {
        let now = Point { elapsed, offered };
        let units = units_between(self.last, now).max(self.expected(elapsed));
        if early && units >= SOLID {
            self.prior = self.last;
            self.start = self.last;
        }
        if !self.is_thin(self.start, now) {
            self.rate = rate_between(self.start, now).unwrap_or(self.rate);
        } else if !self.is_thin(self.prior, now) {
            self.rate = rate_between(self.prior, now).unwrap_or(self.rate);
        }
        self.last = now;
        if !early && elapsed.saturating_sub(self.start.elapsed) >= ENDED {
            self.prior = self.start;
            self.start = now;
        }
    }

    /// Whether a window is too short, and holds too little, to tell more than the rate that is known already. After
    /// rest nothing is known, and anything is better.
    fn is_thin(&self, from: Point, to: Point) -> bool {
        if self.rate <= 0.0 {
            return false;
        }
        let expected = self.rate * to.elapsed.saturating_sub(from.elapsed).as_secs_f64();
        to.elapsed.saturating_sub(from.elapsed) < WINDOW && units_between(from, to).max(expected) < SOLID
    }

    /// The bucket was at rest over the whole interval.
    pub fn rest(&mut self, elapsed: Duration) {
        *self = Self::starting(elapsed, self.last.offered, 0.0);
    }

    /// Nothing was counted up to now since the last reading of a bucket at rest: what comes next is measured from
    /// here, and not from a report up to an interval ago.
    pub fn still_at_rest(&mut self, elapsed: Duration, offered: u64) {
        if self.rate <= 0.0 && offered == self.last.offered {
            self.rest(elapsed);
        }
    }

    /// The child fell silent: what it offers is not known, and counts as nothing. Its next reading is divided by
    /// the time since its last one.
    pub fn forget(&mut self) {
        *self = Self { prior: self.last, start: self.last, last: self.last, rate: 0.0 };
    }

    /// Offered rate, in units a second.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Units that the rate leads one to expect between the last reading and `elapsed`.
    pub fn expected(&self, elapsed: Duration) -> f64 {
        self.rate * elapsed.saturating_sub(self.last.elapsed).as_secs_f64()
    }

    /// Units counted since the last reading.
    pub fn counted(&self, offered: u64) -> f64 {
        units_between(self.last, Point { offered, ..self.last })
    }
}

#[allow(clippy::cast_precision_loss, reason = "no window counts 2^53 units")]
fn units_between(from: Point, to: Point) -> f64 {
    to.offered.saturating_sub(from.offered) as f64
}

fn rate_between(from: Point, to: Point) -> Option<f64> {
    let window = to.elapsed.saturating_sub(from.elapsed);
    (!window.is_zero()).then(|| units_between(from, to) / window.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_steady_count_gives_its_rate() {
        let mut meter = Meter::default();
        for second in 1..5 {
            meter.observe(1000 * MS * second, u64::from(second) * 150, false);
            assert!((meter.rate() - 150.0).abs() < 1e-9);
        }
    }

    #[test]
    fn a_late_report_is_divided_by_the_time_that_passed() {
        let mut meter = Meter::default();
        meter.observe(1000 * MS, 100, false);
        meter.observe(121_000 * MS, 12_100, false);
        assert!((meter.rate() - 100.0).abs() < 1e-9);
    }

    #[test]
    fn solid_early_news_forgets_what_came_before_it() {
        let mut meter = Meter::default();
        meter.observe(1000 * MS, 1000, false);
        meter.observe(1950 * MS, 1950 + 300, true);
        meter.observe(2000 * MS, 2250 + 400, true);
        assert!((meter.rate() - 8000.0).abs() < 1e-6, "{}", meter.rate());
        meter.observe(2050 * MS, 2650 + 400, false);
        assert!((meter.rate() - 8000.0).abs() < 1e-6, "{}", meter.rate());
    }

    #[test]
    fn a_thin_early_window_is_extended() {
        let mut meter = Meter::default();
        meter.observe(1000 * MS, 10, false);
        meter.observe(1050 * MS, 22, true);
        assert!(meter.rate() < 25.0, "{}", meter.rate());
    }

    #[test]
    fn what_follows_rest_is_measured_from_its_first_request() {
        let mut meter = Meter::default();
        for beat in 1..=18 {
            meter.still_at_rest(50 * MS * beat, 0);
        }
        meter.observe(1000 * MS, 15, true);
        assert!((meter.rate() - 150.0).abs() < 1e-9, "{}", meter.rate());
    }

    #[test]
    fn a_sudden_stop_is_solid_news_too() {
        let mut meter = Meter::default();
        meter.observe(1000 * MS, 1000, false);
        meter.observe(1100 * MS, 1000, true);
        assert!(meter.rate() < 1e-9);
    }
}
