//! One bucket, as an agent knows it.

use std::sync::Arc;
use std::time::Duration;

use super::{InForce, KeptBucket};
use crate::bucket::Counts;
use crate::guard::{Allowance, Own};
use crate::ladder::PlanState;
use crate::limits::Limit;
use crate::message::News;
use crate::meter::{Meter, units};
use crate::readings::{Beats, ByBeat, Readings};
use crate::significance::{AT_A_LEAF, deviations, is_news, least_units};
use crate::units::Headroom;

/// Units, seen or missed, from which news is worth believing by itself: the noise of so many is below a fifth.
const SOLID: f64 = 30.0;

#[derive(Debug, Default)]
pub(super) struct Bucket {
    /// Its limit, as it holds in the agent's zone.
    pub(super) limit: Option<Arc<Limit>>,
    /// How a headroom is to be multiplied here, which is told for the limit's own rate.
    pub(super) scale: f64,
    /// When in the ramp it opens, where its parents are away for too long.
    pub(super) spread: f64,
    pub(super) counts: Counts,
    /// What the last report told of them.
    told_counts: Counts,
    /// It counted something that no report has told.
    pub(super) moved: bool,
    /// No parent was told of it yet: one that knows the bucket may know a headroom for it.
    pub(super) untold: bool,
    /// Offered by the last full report.
    by_last_full: u64,
    meter: Meter,
    readings: Readings,
    beat: ByBeat,
    own: Own,
    /// Thin news was told since the last full report: more of it would say nothing new.
    told_thin: bool,
    /// A demand that the parent was told of, and in which report.
    told: Option<(u64, f64)>,
    pub(super) headroom: Option<Headroom>,
    pub(super) tokens: Option<f64>,
    /// When the tokens were last told, and when something was last counted.
    pub(super) tokens_at: Duration,
    pub(super) counted_at: Duration,
    pub(super) in_force: Option<InForce>,
}

impl Bucket {
    /// The stretch up to now in which demand was least what it is taken for, if it was so different that chance does not
    /// explain it. A shorter one would more often hold many by chance, a longer one more of what was before the change.
    pub(super) fn news(&self, beats: &Beats, elapsed: Duration) -> Option<News> {
        let least = least_units(self.limit.as_deref());
        if self.most_at_stake(elapsed) < least {
            return None;
        }
        let dispersion = self.own.dispersion().value();
        let expected = |news: &News| self.meter.rate() * news.window.as_secs_f64();
        let news = (self.readings.windows(beats, elapsed, self.counts.offered))
            .filter(|news| is_news(expected(news), units(news.units), AT_A_LEAF, dispersion, least))
            .max_by(|a, b| {
                let apart = |news: &News| deviations(expected(news), units(news.units));
                apart(a).total_cmp(&apart(b))
            })?;
        let solid = units(news.units).max(expected(&news)) >= SOLID * dispersion;
        (solid || !self.told_thin).then_some(News { solid, ..news })
    }

    /// No stretch can hold more than what was seen, or should have been, since the last report: most buckets are too quiet
    /// for any news.
    fn most_at_stake(&self, elapsed: Duration) -> f64 {
        let (seen, window) = self.readings.since_report(elapsed, self.counts.offered);
        units(seen).max(self.meter.rate() * window.as_secs_f64())
    }

    /// What has been told is what is expected from now on.
    pub(super) fn tell(
        &mut self,
        elapsed: Duration,
        counts: Counts,
        news: Option<News>,
        full: bool,
        sequence: u64,
    ) {
        let offered = self.counts.offered;
        self.told_thin = !full && news.is_some_and(|news| !news.solid);
        if let Some(news) = news.filter(|news| news.solid) {
            self.meter.begin(elapsed, offered, news);
        }
        if full {
            self.meter.observe(elapsed, offered);
        }
        let rate = news.map_or(self.meter.rate(), |news| units(news.units) / news.window.as_secs_f64());
        self.told = Some((sequence, rate));
        self.told_counts = counts;
        self.moved = counts != self.counts;
        self.untold = false;
        self.readings.reported(elapsed, offered);
    }

    /// What the next report says was counted: all of it, or to a parent that takes the place of another as much as that one was
    /// told, so that what came in between counts from there.
    pub(super) fn counts_for(&self, takes_over: bool) -> Counts {
        if takes_over { self.told_counts } else { self.counts }
    }

    /// Nothing was counted since the last full report.
    pub(super) fn rest(&mut self, elapsed: Duration) {
        self.meter.rest(elapsed, self.counts.offered);
        self.readings.reported(elapsed, self.counts.offered);
    }

    /// A full report is due: what was counted since the last one is the node's own demand. The highest rate that is
    /// expected of the bucket from now on, in units a second.
    pub(super) fn interval_passed(&mut self, beats: &Beats, interval: Duration) -> f64 {
        let before = std::mem::replace(&mut self.by_last_full, self.counts.offered);
        let counted = self.counts.offered.saturating_sub(before);
        let within = self.beat.variance(beats, units(counted));
        if interval.is_zero() {
            return self.meter.rate();
        }
        let rate = units(counted) / interval.as_secs_f64();
        self.own = self.own.after(rate, within);
        rate.max(self.meter.rate())
    }

    /// The parents know of what was told in a report up to this one.
    pub(super) fn answered(&mut self, sequence: u64) {
        if let Some((_, rate)) = self.told.take_if(|(told, _)| *told <= sequence) {
            self.own = self.own.acknowledged(rate);
        }
    }

    /// A bucket in which nothing was counted yet.
    pub(super) fn open(&mut self, beats: &Beats, elapsed: Duration) {
        self.meter = Meter::starting(elapsed, 0, 0.0);
        self.readings = Readings::starting(beats, elapsed, 0);
        self.counted_at = elapsed;
    }

    /// Goes on from what an earlier life of the agent kept.
    pub(super) fn resume(&mut self, kept: &KeptBucket) {
        self.headroom = Some(kept.headroom);
        self.own = Own::resuming(kept.demand);
    }

    /// What the node itself is offered, in units a second, over some ten seconds.
    pub(super) fn own_demand(&self) -> f64 {
        self.own.mean()
    }

    /// What it has counted by now.
    pub(super) fn count(&mut self, beats: &Beats, elapsed: Duration, counts: Counts) {
        let before = self.counts.offered;
        if self.meter.is_at_rest(before) {
            // What comes now is measured from the last beat without any, and not from a report up to an interval ago.
            let began = beats.before(elapsed);
            self.meter.rest(began, before);
            self.readings.reported(began, before);
        }
        self.beat.count(beats, counts.offered.saturating_sub(before));
        self.readings.read(beats, counts.offered);
        if counts != self.counts {
            self.moved = true;
            self.counted_at = elapsed;
        }
        self.counts = counts;
    }

    /// What may pass until the next plan.
    pub(super) fn allowance(
        &self,
        limit: &Limit,
        headroom: Headroom,
        agents: u32,
        state: PlanState,
    ) -> Option<Allowance> {
        self.own.allowance(limit, headroom, agents, state)
    }

    /// What a parent can start from that hears of it for the first time.
    pub(super) fn rate_so_far(&self, elapsed: Duration) -> f64 {
        self.meter.rate_so_far(elapsed, self.counts.offered)
    }
}
