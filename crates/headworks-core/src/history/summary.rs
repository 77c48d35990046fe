//! What a limit's past comes to.

use super::{MINUTES_AN_HOUR, Minute, Past};

/// Hours told, the last one being under way.
const HOURS: u32 = 24;
/// Minutes told as the worst.
const WORST: usize = 5;

/// A limit's past in a few figures. Rates are in units a second, amounts in cost units.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Offered in all.
    pub offered: f64,
    /// Dropped of it.
    pub dropped: f64,
    /// What would have been dropped of it, had the limit been enforced.
    pub would_drop: f64,
    /// The rate of the minute in the middle, of those with traffic.
    pub median: f64,
    /// The rate that 95 of 100 minutes with traffic do not exceed.
    pub p95: f64,
    /// The highest rate of any second.
    pub peak: f64,
    /// Minutes with traffic.
    pub minutes: usize,
    /// Minutes in which something was over the limit.
    pub minutes_over: usize,
    /// The minutes in which most was over the limit, the worst first.
    pub worst: Vec<Minute>,
    /// The last 24 hours, the oldest first.
    pub hours: Vec<Hour>,
}

/// One hour; amounts are in cost units.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Hour {
    /// Offered.
    pub offered: f64,
    /// What was over the limit, whether that was enforced or not.
    pub over: f64,
    /// The highest rate of any of its seconds, in units a second.
    pub peak: f64,
}

impl Summary {
    /// The part of the offered that was over the limit, from 0 to 1.
    pub fn part_over(&self) -> f64 {
        if self.offered > 0.0 { ((self.dropped + self.would_drop) / self.offered).min(1.0) } else { 0.0 }
    }
}

impl Past {
    /// What it comes to.
    pub fn summary(&self) -> Summary {
        let mut summary = Summary { hours: self.hours(), minutes: self.minutes.len(), ..Summary::default() };
        for minute in &self.minutes {
            summary.offered += f64::from(minute.offered);
            summary.dropped += f64::from(minute.dropped);
            summary.would_drop += f64::from(minute.would_drop);
            summary.peak = summary.peak.max(f64::from(minute.peak));
        }
        let mut rates: Vec<f64> = self.minutes.iter().map(Minute::rate).collect();
        rates.sort_by(f64::total_cmp);
        (summary.median, summary.p95) = (quantile(&rates, 50), quantile(&rates, 95));
        let mut over: Vec<Minute> =
            self.minutes.iter().filter(|minute| minute.over() > 0.0).copied().collect();
        summary.minutes_over = over.len();
        over.sort_by(|a, b| b.over().total_cmp(&a.over()).then(b.number.cmp(&a.number)));
        over.truncate(WORST);
        Summary { worst: over, ..summary }
    }

    /// By hours that end now, so that the last one is whole, too.
    fn hours(&self) -> Vec<Hour> {
        let mut hours = vec![Hour::default(); HOURS as usize];
        for minute in &self.minutes {
            let ago = self.minute.saturating_sub(minute.number) / MINUTES_AN_HOUR;
            let Some(hour) = (HOURS - 1).checked_sub(ago).and_then(|place| hours.get_mut(place as usize))
            else {
                continue;
            };
            hour.offered += f64::from(minute.offered);
            hour.over += minute.over();
            hour.peak = hour.peak.max(f64::from(minute.peak));
        }
        hours
    }
}

/// The value that so many of a hundred do not exceed, of values in order.
fn quantile(sorted: &[f64], hundredths: usize) -> f64 {
    let place = (sorted.len() * hundredths).div_ceil(100).saturating_sub(1);
    sorted.get(place).copied().unwrap_or_default()
}
