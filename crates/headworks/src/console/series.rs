//! The last minutes of each limit that has traffic, point by point.

use std::collections::{HashMap, VecDeque};

use crate::status::LimitView;

/// Points kept: five minutes, where each second brings one.
pub(super) const KEPT: usize = 300;
/// Most limits followed, 5 KB each. A file may have a hundred times as many, of which few have traffic.
const MOST_LIMITS: usize = 1000;

/// One limit at one moment; rates are in cost units a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Point {
    pub(super) offered: f32,
    pub(super) admitted: f32,
    pub(super) ratio: f32,
    /// Offered to the bucket that is offered most.
    pub(super) busiest: f32,
}

/// The points of one limit, the last one at the last moment.
#[derive(Debug, Default)]
pub(super) struct Track {
    points: VecDeque<Point>,
    /// The sample that spoke of it last.
    told: u64,
    /// Samples since it had traffic.
    quiet: usize,
}

/// All that is followed.
#[derive(Debug, Default)]
pub(super) struct Series {
    samples: u64,
    /// When the points were taken, in seconds since 1970.
    times: VecDeque<f64>,
    tracks: HashMap<String, Track>,
}

impl Point {
    #[allow(clippy::cast_possible_truncation, reason = "good to 7 digits, which no chart shows")]
    fn of(limit: &LimitView) -> Self {
        Self {
            offered: limit.offered as f32,
            admitted: limit.admitted as f32,
            ratio: limit.ratio as f32,
            busiest: limit.top.first().map_or(0.0, |top| top.offered as f32),
        }
    }
}

impl Series {
    /// Takes down all limits at one moment.
    pub(super) fn add(&mut self, at: f64, limits: &[LimitView]) {
        self.samples += 1;
        push(&mut self.times, at);
        for limit in limits {
            self.follow(limit);
        }
        // What is no longer in force, and what has had no traffic for as long as anything is kept.
        let samples = self.samples;
        self.tracks.retain(|_, track| track.told == samples && track.quiet < KEPT);
    }

    fn follow(&mut self, limit: &LimitView) {
        if limit.offered > 0.0 && self.tracks.len() < MOST_LIMITS && !self.tracks.contains_key(&limit.name) {
            self.tracks.insert(limit.name.clone(), Track::default());
        }
        let Some(track) = self.tracks.get_mut(&limit.name) else { return };
        track.told = self.samples;
        track.quiet = if limit.offered > 0.0 { 0 } else { track.quiet + 1 };
        push(&mut track.points, Point::of(limit));
    }

    /// The last `most` moments.
    pub(super) fn times(&self, most: usize) -> impl Iterator<Item = f64> {
        self.times.iter().skip(self.times.len().saturating_sub(most)).copied()
    }

    /// A limit at the same moments; nothing where it was not followed yet.
    pub(super) fn of(&self, name: &str, most: usize) -> Vec<Option<Point>> {
        let moments = self.times.len().min(most);
        let Some(Track { points, .. }) = self.tracks.get(name) else { return vec![None; moments] };
        let known = points.len().min(moments);
        let unknown = std::iter::repeat_n(None, moments - known);
        unknown.chain(points.iter().skip(points.len() - known).copied().map(Some)).collect()
    }

    /// What a limit was offered of late, on average: by what is offered now alone, rows of like limits would change places
    /// each second.
    pub(super) fn lately(&self, limit: &LimitView, figure: impl Fn(&Point) -> f32) -> f32 {
        const LATELY: usize = 10;
        let Some(Track { points, .. }) = self.tracks.get(&limit.name) else {
            return figure(&Point::of(limit));
        };
        let last = points.iter().rev().take(LATELY);
        let (sum, count) =
            last.fold((0.0, 0.0_f32), |(sum, count), point| (sum + figure(point), count + 1.0));
        sum / count.max(1.0)
    }
}

fn push<T>(kept: &mut VecDeque<T>, next: T) {
    if kept.len() >= KEPT {
        kept.pop_front();
    }
    kept.push_back(next);
}

#[cfg(test)]
mod tests {
    use super::super::view::fixture::limit;
    use super::*;

    #[test]
    fn a_limit_is_followed_from_its_first_traffic_to_five_minutes_after_its_last() {
        let mut series = Series::default();
        series.add(1.0, &[limit("a", 0.0), limit("b", 5.0)]);
        series.add(2.0, &[limit("a", 7.0), limit("b", 6.0)]);
        let offered = |series: &Series, name, most| {
            series.of(name, most).iter().map(|point| point.map(|point| point.offered)).collect::<Vec<_>>()
        };
        assert_eq!(offered(&series, "a", 10), [None, Some(7.0)]);
        assert_eq!(offered(&series, "b", 1), [Some(6.0)]);
        for second in 0..KEPT {
            series.add(3.0 + second as f64, &[limit("a", 0.0), limit("b", 6.0)]);
        }
        assert_eq!(series.of("a", KEPT), vec![None; KEPT]);
        assert_eq!((series.times(KEPT).count(), series.tracks.len()), (KEPT, 1));
    }

    #[test]
    fn what_is_no_longer_in_force_is_forgotten_at_once() {
        let mut series = Series::default();
        series.add(1.0, &[limit("a", 5.0)]);
        series.add(2.0, &[]);
        assert!(series.tracks.is_empty());
    }

    #[test]
    fn no_more_limits_are_followed_than_there_is_room_for() {
        let mut series = Series::default();
        let many: Vec<LimitView> =
            (0..2 * MOST_LIMITS).map(|number| limit(&format!("l{number}"), 1.0)).collect();
        series.add(1.0, &many);
        assert_eq!(series.tracks.len(), MOST_LIMITS);
    }

    #[test]
    fn what_was_of_late_is_an_average() {
        let mut series = Series::default();
        for second in 0..20 {
            series.add(f64::from(second), &[limit("a", if second % 2 == 0 { 10.0 } else { 20.0 })]);
        }
        assert_eq!(series.lately(&limit("a", 20.0), |point| point.offered), 15.0);
        assert_eq!(series.lately(&limit("unknown", 3.0), |point| point.offered), 3.0);
    }
}
