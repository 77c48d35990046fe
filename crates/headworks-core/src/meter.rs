//! Demand measured from counters that only rise: count up, divide later.

use std::time::Duration;

use crate::message::News;

/// Rates are averaged over at least this long, unless news says that demand has changed in between. A little under
/// the report interval, so that a timer that fires early does not double the window.
const WINDOW: Duration = Duration::from_millis(900);

/// A window that began with news is used when it is this long, or holds so many units.
const SHORT: Duration = Duration::from_millis(250);
const SOLID: f64 = 30.0;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Point {
    elapsed: Duration,
    offered: u64,
}

/// The offered rate of one bucket at one child, from its cumulative counter and its own elapsed time.
///
/// A report that is lost, repeated or late changes nothing in the end: each is a point on the same line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Meter {
    start: Point,
    rate: f64,
    /// The window began when demand changed: however short it is, what came before says less.
    begun: bool,
}

impl Meter {
    /// A meter that starts counting from here, at a rate that is known from elsewhere or zero.
    pub fn starting(elapsed: Duration, offered: u64, rate: f64) -> Self {
        Self { start: Point { elapsed, offered }, rate, begun: rate <= 0.0 }
    }

    /// Takes an ordinary reading: the rate since the window began.
    pub fn observe(&mut self, elapsed: Duration, offered: u64) {
        let now = Point { elapsed, offered };
        let window = self.window(elapsed);
        if window >= WINDOW || self.begun && self.is_enough(window, offered) {
            self.rate = rate_between(self.start, now).unwrap_or(self.rate);
        }
        if window >= WINDOW {
            self.start = now;
            self.begun = false;
        }
    }

    /// Takes news: a new window begins. News is told when its window has many, and so rather too many; what comes after is
    /// measured without it.
    pub fn begin(&mut self, elapsed: Duration, offered: u64, news: News) {
        let now = Point { elapsed, offered };
        let began = Point {
            elapsed: elapsed.saturating_sub(news.window),
            offered: offered.saturating_sub(news.units),
        };
        self.rate = rate_between(began, now).unwrap_or(self.rate);
        self.start = now;
        self.begun = true;
    }

    /// The bucket was at rest over the whole interval.
    pub fn rest(&mut self, elapsed: Duration, offered: u64) {
        *self = Self::starting(elapsed, offered, 0.0);
    }

    /// Whether nothing is known but rest.
    pub fn is_at_rest(&self, offered: u64) -> bool {
        self.rate <= 0.0 && offered == self.start.offered
    }

    /// The child fell silent: what it offers is not known, and counts as nothing. Its next reading is divided by
    /// the time since the window began.
    pub fn forget(&mut self) {
        self.rate = 0.0;
    }

    /// Bounds the rate; whether it was higher.
    pub fn clip(&mut self, most: f64) -> bool {
        let higher = self.rate > most;
        self.rate = self.rate.min(most);
        higher
    }

    /// Offered rate, in units a second.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// The rate so far, over at least an interval: what a parent can start from that hears of the bucket for the
    /// first time. A handful of requests in a few milliseconds is no rate.
    pub fn rate_so_far(&self, elapsed: Duration, offered: u64) -> f64 {
        let window = self.window(elapsed).max(Duration::from_secs(1));
        self.rate.max(units(offered.saturating_sub(self.start.offered)) / window.as_secs_f64())
    }

    /// Whether a short window says more than what is known: after rest nothing is, and anything is better.
    fn is_enough(&self, window: Duration, offered: u64) -> bool {
        let counted = units(offered.saturating_sub(self.start.offered));
        self.rate <= 0.0 || window >= SHORT || counted >= SOLID
    }

    fn window(&self, elapsed: Duration) -> Duration {
        elapsed.saturating_sub(self.start.elapsed)
    }
}

/// A count to reckon with.
#[allow(clippy::cast_precision_loss, reason = "no window counts 2^53 units")]
pub(crate) fn units(count: u64) -> f64 {
    count as f64
}

fn rate_between(from: Point, to: Point) -> Option<f64> {
    let window = to.elapsed.saturating_sub(from.elapsed);
    (!window.is_zero()).then(|| units(to.offered.saturating_sub(from.offered)) / window.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_steady_count_gives_its_rate() {
        let mut meter = Meter::default();
        for second in 1..5 {
            meter.observe(1000 * MS * second, u64::from(second) * 150);
            assert!((meter.rate() - 150.0).abs() < 1e-9);
        }
    }

    #[test]
    fn a_late_report_is_divided_by_the_time_that_passed() {
        let mut meter = Meter::default();
        meter.observe(1000 * MS, 100);
        meter.observe(121_000 * MS, 12_100);
        assert!((meter.rate() - 100.0).abs() < 1e-9);
    }

    #[test]
    fn what_follows_news_is_measured_without_what_came_before_and_without_the_news() {
        let mut meter = Meter::default();
        meter.observe(1000 * MS, 1000);
        meter.begin(1950 * MS, 1900 + 400, News { units: 400, window: 50 * MS, solid: true });
        assert!((meter.rate() - 8000.0).abs() < 1e-6, "{}", meter.rate());
        meter.observe(2000 * MS, 2300 + 300);
        assert!((meter.rate() - 6000.0).abs() < 1e-6, "{}", meter.rate());
    }

    #[test]
    fn a_short_window_without_news_says_nothing() {
        let mut meter = Meter::default();
        meter.observe(1000 * MS, 10);
        meter.observe(1050 * MS, 22);
        assert!((meter.rate() - 10.0).abs() < 1e-9, "{}", meter.rate());
    }

    #[test]
    fn what_follows_rest_is_measured_from_its_first_request() {
        let mut meter = Meter::default();
        assert!(meter.is_at_rest(0));
        meter.rest(900 * MS, 0);
        meter.observe(1000 * MS, 15);
        assert!((meter.rate() - 150.0).abs() < 1e-9, "{}", meter.rate());
    }

    #[test]
    fn few_requests_at_once_are_no_rate() {
        let meter = Meter::starting(1000 * MS, 0, 0.0);
        assert!((meter.rate_so_far(1010 * MS, 12) - 12.0).abs() < 1e-9);
        assert!((meter.rate_so_far(3000 * MS, 12) - 6.0).abs() < 1e-9);
    }
}
