//! The last few readings of a counter: where to look for the moment at which demand changed.

use std::time::Duration;

use crate::message::News;

/// Readings kept: a change that a single beat cannot tell from chance shows over four.
const KEPT: u32 = 5;
/// A new reading is kept when the last one is this old, a little under a beat.
const APART: Duration = Duration::from_millis(40);
/// Shorter stretches tell nothing, whatever was counted in them.
const SHORTEST: Duration = Duration::from_millis(25);

/// The times of the last readings; all counters of a node are read together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Beats {
    times: [Duration; KEPT as usize],
    /// The number of the newest.
    newest: u32,
}

/// What one counter said at these times.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Readings {
    offered: [u64; KEPT as usize],
    /// The beat of the last reading. At later ones the counter said the same as now.
    last: u32,
    /// What it said by then.
    value: u64,
    reported: Reading,
}

#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    elapsed: Duration,
    offered: u64,
}

impl Beats {
    /// The node reads its counters.
    pub(crate) fn read(&mut self, elapsed: Duration) {
        if elapsed.saturating_sub(self.time(self.newest)) >= APART {
            self.newest = self.newest.wrapping_add(1);
            self.times[slot(self.newest)] = elapsed;
        }
    }

    /// The last time before `elapsed`.
    pub(crate) fn before(&self, elapsed: Duration) -> Duration {
        let newest = self.time(self.newest);
        if newest < elapsed { newest } else { self.time(self.newest.wrapping_sub(1)) }
    }

    fn time(&self, beat: u32) -> Duration {
        self.times[slot(beat)]
    }
}

impl Readings {
    /// A counter that said this up to now.
    pub(crate) fn starting(beats: &Beats, elapsed: Duration, offered: u64) -> Self {
        let reported = Reading { elapsed, offered };
        Self { offered: [offered; KEPT as usize], last: beats.newest, value: offered, reported }
    }

    /// The counter was read. It need not be while it does not move.
    pub(crate) fn read(&mut self, beats: &Beats, offered: u64) {
        let missed = beats.newest.wrapping_sub(self.last).min(KEPT);
        for back in (0..missed).rev() {
            // Of the beats since the last reading all but this one saw the old value.
            let seen = if back == 0 { offered } else { self.value };
            self.offered[slot(beats.newest.wrapping_sub(back))] = seen;
        }
        (self.last, self.value) = (beats.newest, offered);
    }

    /// A report told of it.
    pub(crate) fn reported(&mut self, elapsed: Duration, offered: u64) {
        self.reported = Reading { elapsed, offered };
    }

    /// Units since the last report.
    pub(crate) fn since_report(&self, elapsed: Duration, offered: u64) -> (u64, Duration) {
        let (units, window) =
            (offered.saturating_sub(self.reported.offered), elapsed.saturating_sub(self.reported.elapsed));
        (units, window)
    }

    /// The stretches up to now that may hold a change, the shortest first. None reaches back behind the last report:
    /// what was before is told already.
    pub(crate) fn windows(
        &self,
        beats: &Beats,
        elapsed: Duration,
        offered: u64,
    ) -> impl Iterator<Item = News> {
        let since = self.reported;
        let readings = (0..KEPT).map(move |back| {
            let beat = beats.newest.wrapping_sub(back);
            let not_read = beat.wrapping_sub(self.last).cast_signed() > 0;
            let seen = if not_read { offered } else { self.offered[slot(beat)] };
            Reading { elapsed: beats.time(beat), offered: seen }
        });
        let after_report = readings.filter(move |reading| reading.elapsed > since.elapsed);
        let stretch = move |from: Reading| News {
            units: offered.saturating_sub(from.offered),
            window: elapsed.saturating_sub(from.elapsed),
            solid: false,
        };
        after_report.chain([since]).map(stretch).filter(|news| news.window >= SHORTEST)
    }
}

/// How the counts of an interval fall on its beats.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ByBeat {
    /// The beat that is being counted, and what came in it so far.
    beat: u32,
    units: u64,
    /// The squares of what came in those before it, added up.
    squares: f64,
    began: u32,
}

impl ByBeat {
    /// More was counted.
    pub(crate) fn count(&mut self, beats: &Beats, more: u64) {
        if self.beat != beats.newest {
            self.close();
            self.beat = beats.newest;
        }
        self.units += more;
    }

    /// The interval is over, in which `total` units came: the variance of its beats over their mean. `None` if it had too
    /// few beats or units to tell.
    pub(crate) fn variance(&mut self, beats: &Beats, total: f64) -> Option<f64> {
        const FEWEST: u32 = 10;
        self.close();
        let squares = std::mem::take(&mut self.squares);
        let passed = beats.newest.wrapping_sub(std::mem::replace(&mut self.began, beats.newest));
        let enough = (FEWEST..1000).contains(&passed) && total >= 1.0;
        enough.then(|| (squares / total - total / f64::from(passed)).max(0.0))
    }

    #[allow(clippy::cast_precision_loss, reason = "no beat counts 2^53 units")]
    fn close(&mut self) {
        let units = std::mem::take(&mut self.units) as f64;
        self.squares += units * units;
    }
}

fn slot(beat: u32) -> usize {
    (beat % KEPT) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn windows(readings: &Readings, beats: &Beats, ms: u32, offered: u64) -> Vec<(u64, u128)> {
        let windows = readings.windows(beats, ms * MS, offered);
        windows.map(|news| (news.units, news.window.as_millis())).collect()
    }

    #[test]
    fn looks_back_over_four_beats_and_to_the_last_report() {
        let mut beats = Beats::default();
        let mut readings = Readings::starting(&beats, Duration::ZERO, 0);
        for beat in 1..=6_u32 {
            beats.read(beat * 50 * MS);
            readings.read(&beats, u64::from(beat) * 10);
        }
        let wanted = [(10, 50), (20, 100), (30, 150), (40, 200), (60, 300)];
        assert_eq!(windows(&readings, &beats, 300, 60), wanted);
        readings.reported(250 * MS, 50);
        assert_eq!(windows(&readings, &beats, 300, 60), [(10, 50)]);
    }

    #[test]
    fn a_counter_that_does_not_move_need_not_be_read() {
        let mut beats = Beats::default();
        let mut read = Readings::starting(&beats, Duration::ZERO, 0);
        let mut skipped = read;
        for (beat, offered) in [(1_u32, 7), (2, 7), (3, 7), (4, 9)] {
            beats.read(beat * 50 * MS);
            read.read(&beats, offered);
            if beat == 1 || beat == 4 {
                skipped.read(&beats, offered);
            }
            let seen = windows(&read, &beats, beat * 50, offered);
            assert_eq!(windows(&skipped, &beats, beat * 50, offered), seen);
        }
    }

    #[test]
    fn tells_batches_from_an_even_stream() {
        let variance = |in_beat: fn(u32) -> u64| {
            let (mut beats, mut by_beat) = (Beats::default(), ByBeat::default());
            for beat in 1..=20_u32 {
                beats.read(beat * 50 * MS);
                by_beat.count(&beats, in_beat(beat));
            }
            by_beat.variance(&beats, 100.0).unwrap()
        };
        assert!(variance(|_| 5) < 0.1);
        assert!((variance(|beat| if beat % 4 == 0 { 20 } else { 0 }) - 15.0).abs() < 0.1);
    }

    #[test]
    fn rounds_that_follow_at_once_are_no_beats_of_their_own() {
        let mut beats = Beats::default();
        beats.read(50 * MS);
        beats.read(60 * MS);
        assert_eq!(beats.before(70 * MS), 50 * MS);
        assert_eq!(beats.before(50 * MS), Duration::ZERO);
    }
}
