//! What each limit was asked in the last 24 hours, by the minute, and whom it hit hardest.
//!
//! Memory is bounded, whatever is limited: a minute without traffic takes none, a limit takes at most 50 KB for its minutes and
//! about as much for the values that it hit, and no more than [`MOST_LIMITS`] limits are followed.

mod hardest;
mod summary;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

pub use hardest::{Hit, MOST_HITS};
pub use summary::{Hour, Summary};

use crate::bucket::{Counts, Values};
use crate::limits::LimitSet;
use crate::message::BucketNumber;
use crate::units::Moment;
use hardest::Hardest;

/// How far back it goes.
pub const KEPT: Duration = Duration::from_secs(24 * 3600);
/// Most limits followed. A file may have a hundred times as many, of which few have traffic.
pub const MOST_LIMITS: usize = 1000;

const MINUTE: Duration = Duration::from_secs(60);
const KEPT_MINUTES: u32 = 24 * 60;
const MINUTES_AN_HOUR: u32 = 60;

/// One minute in which a limit had traffic; amounts are in cost units.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Minute {
    /// Its number, from the minute in which the history began.
    pub number: u32,
    /// Seconds in which there was traffic.
    pub seconds: u16,
    /// Offered.
    pub offered: f32,
    /// Dropped of it.
    pub dropped: f32,
    /// What would have been dropped of it, had the limit been enforced.
    pub would_drop: f32,
    /// The highest rate of any of its seconds, in units a second.
    pub peak: f32,
}

impl Minute {
    /// The rate while there was traffic, in units a second.
    pub fn rate(&self) -> f64 {
        f64::from(self.offered) / f64::from(self.seconds.max(1))
    }

    /// What was over the limit, whether that was enforced or not.
    pub fn over(&self) -> f64 {
        f64::from(self.dropped) + f64::from(self.would_drop)
    }

    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "good to 7 digits, which no reader needs"
    )]
    fn add(&mut self, second: &Second) {
        self.seconds = self.seconds.saturating_add(1);
        self.offered += second.counts.offered as f32;
        self.dropped += second.counts.dropped as f32;
        self.would_drop += second.counts.would_drop as f32;
        self.peak = self.peak.max(second.rate as f32);
    }
}

/// What one limit was asked in one second, over all its buckets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Second {
    /// What was counted since the second before.
    pub counts: Counts,
    /// The offered rate, in units a second. Counts come by the report, now two in one second and then none; the rate
    /// does not.
    pub rate: f64,
}

/// The last 24 hours of all limits that have traffic.
#[derive(Debug)]
pub struct History {
    began: Moment,
    tracks: HashMap<Arc<str>, Track>,
    minute: u32,
}

#[derive(Debug, Default)]
struct Track {
    /// The minutes with traffic, the oldest first.
    minutes: VecDeque<Minute>,
    hardest: Hardest,
    /// The minute in which the limit was changed.
    changed: Option<u32>,
}

/// What is known of one limit.
#[derive(Clone, Debug)]
pub struct Past {
    /// The minutes with traffic, the oldest first.
    pub minutes: Vec<Minute>,
    /// The minute under way.
    pub minute: u32,
    /// Time since it began.
    pub into_minute: Duration,
    /// How long the history goes back, with traffic or without.
    pub since: Duration,
    /// The values that were hit hardest, the hardest first.
    pub hits: Vec<Hit>,
    /// In which of the minutes the limit was changed last: what is older was held against another limit.
    pub changed: Option<u32>,
}

impl History {
    /// A history that begins now.
    pub fn new(now: Moment) -> Self {
        Self { began: now, tracks: HashMap::new(), minute: 0 }
    }

    /// Opens the second that ends now.
    pub fn turn(&mut self, now: Moment) {
        let minute = self.minute_of(now);
        if minute != self.minute {
            self.minute = minute;
            for track in self.tracks.values_mut() {
                track.forget_before((minute + 1).saturating_sub(KEPT_MINUTES));
            }
            self.tracks.retain(|_, track| !track.minutes.is_empty());
        }
    }

    /// Takes down what a limit was asked in the second that [`History::turn`] opened.
    pub fn note(&mut self, limit: &Arc<str>, second: &Second) {
        if second.counts.offered == 0 && second.rate <= 0.0 {
            return;
        }
        let minute = self.minute;
        if let Some(track) = self.track(limit) {
            track.add(minute, second);
        }
    }

    /// Takes down that so many units of one bucket were over the limit in that second.
    pub fn note_hit(&mut self, limit: &Arc<str>, bucket: BucketNumber, values: &Values, over: u64) {
        let hour = self.minute / MINUTES_AN_HOUR;
        if let Some(track) = self.tracks.get_mut(limit) {
            track.hardest.add(hour, bucket, values, over);
        }
    }

    fn track(&mut self, limit: &Arc<str>) -> Option<&mut Track> {
        if !self.tracks.contains_key(limit) {
            if self.tracks.len() >= MOST_LIMITS {
                return None;
            }
            self.tracks.insert(limit.clone(), Track::default());
        }
        self.tracks.get_mut(limit)
    }

    /// Other limits are in force: what is gone, or tells buckets apart by other keys, is forgotten.
    pub fn adopt(&mut self, old: &LimitSet, new: &LimitSet, now: Moment) {
        let minute = self.minute_of(now);
        self.tracks.retain(|name, track| {
            let Some(limit) = new.get(name).filter(|limit| limit.is_planned()) else { return false };
            let before = old.get(name);
            if before.is_some_and(|before| before != limit) {
                track.changed = Some(minute);
            }
            before.is_none_or(|before| before.counts_like(limit))
        });
    }

    /// What is known of a limit; `None` if it had no traffic, or found no place.
    pub fn of_limit(&self, name: &str, now: Moment) -> Option<Past> {
        let track = self.tracks.get(name)?;
        let minute = self.minute_of(now);
        let oldest = (minute + 1).saturating_sub(KEPT_MINUTES);
        Some(Past {
            minutes: track.minutes.iter().filter(|kept| kept.number >= oldest).copied().collect(),
            minute,
            into_minute: now.since(self.began + minute * MINUTE),
            since: self.since(now),
            hits: track.hardest.all(),
            changed: track.changed.filter(|changed| *changed >= oldest),
        })
    }

    /// How far back it goes.
    pub fn since(&self, now: Moment) -> Duration {
        now.since(self.began).min(KEPT)
    }

    /// Whether limits that get traffic now find no place.
    pub fn is_full(&self) -> bool {
        self.tracks.len() >= MOST_LIMITS
    }

    fn minute_of(&self, now: Moment) -> u32 {
        u32::try_from(now.since(self.began).as_secs() / MINUTE.as_secs()).unwrap_or(u32::MAX - 1)
    }
}

impl Track {
    fn add(&mut self, minute: u32, second: &Second) {
        if self.minutes.back().is_none_or(|last| last.number != minute) {
            self.minutes.push_back(Minute { number: minute, ..Minute::default() });
        }
        if let Some(last) = self.minutes.back_mut() {
            last.add(second);
        }
    }

    fn forget_before(&mut self, oldest: u32) {
        while self.minutes.front().is_some_and(|minute| minute.number < oldest) {
            self.minutes.pop_front();
        }
        self.hardest.forget_before(oldest / MINUTES_AN_HOUR);
    }
}

#[cfg(test)]
mod tests;
