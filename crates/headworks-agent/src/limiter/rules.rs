//! The snapshot of the rules that decisions read: limits in pipeline order, each with its buckets.

use std::sync::Arc;

use headworks_core::bucket::Counts;
use headworks_core::limits::{Limit, LimitSet, Mode};
use headworks_core::units::DropRatio;

use super::buckets::{Buckets, Opened};
use super::stats::LimitStats;
use crate::exact::ExactLimit;

/// One limit of the pipeline.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    pub(super) limit: Arc<Limit>,
    /// It pays for what the whole pipeline admits.
    pub(super) is_budget: bool,
    pub(super) buckets: Arc<Buckets>,
}

/// All limits in force together; swapped as one, so that no request sees half of a change.
#[derive(Debug, Default)]
pub(super) struct Rules {
    stages: Vec<Stage>,
    /// Behind all stages: what is dropped is not charged.
    exact: Vec<ExactLimit>,
}

impl Rules {
    pub(super) fn stages(&self) -> &[Stage] {
        &self.stages
    }

    pub(super) fn exact(&self) -> &[ExactLimit] {
        &self.exact
    }

    /// The limit at a place, counted through stages and then exact limits.
    pub(super) fn limit(&self, place: usize) -> &Arc<Limit> {
        match self.stages.get(place) {
            Some(stage) => &stage.limit,
            None => self.exact[place - self.stages.len()].limit(),
        }
    }

    /// The snapshot for other limits. Those that tell buckets apart as before keep them, counts and all.
    pub(super) fn succeeded_by(&self, limits: &LimitSet) -> Self {
        let counted = || limits.limits().iter().filter(|limit| limit.mode != Mode::Off);
        let (exact, by_ratio) = (
            counted().filter(|limit| limit.exact().is_some()),
            counted().filter(|limit| limit.exact().is_none()),
        );
        let next = Self {
            stages: by_ratio.map(|limit| self.stage_for(limit)).collect(),
            exact: exact.map(|limit| self.exact_for(limit)).collect(),
        };
        for gone in self.stages.iter().filter(|stage| !next.has(&stage.buckets)) {
            gone.buckets.for_each(super::record::Record::retire);
        }
        next
    }

    fn stage_for(&self, limit: &Arc<Limit>) -> Stage {
        let before =
            self.stages.iter().find(|stage| stage.limit.name == limit.name && stage.limit.per == limit.per);
        let buckets = before.map(|stage| stage.buckets.clone()).unwrap_or_default();
        Stage { limit: limit.clone(), is_budget: limit.budget().is_some(), buckets }
    }

    fn exact_for(&self, limit: &Arc<Limit>) -> ExactLimit {
        let is_the_same = |old: &Limit| old.name == limit.name && old.per == limit.per;
        ExactLimit::new(limit, self.exact.iter().find(|exact| is_the_same(exact.limit())))
    }

    fn has(&self, buckets: &Arc<Buckets>) -> bool {
        self.stages.iter().any(|stage| Arc::ptr_eq(&stage.buckets, buckets))
    }

    /// Opens the buckets of limits without `per`, so that they have their headroom before their first request.
    pub(super) fn open_whole(&self, opened: &Opened) {
        for stage in self.stages.iter().filter(|stage| stage.limit.per.is_empty()) {
            stage.buckets.whole(&stage.limit, opened);
        }
    }

    pub(super) fn stats(&self) -> Vec<LimitStats> {
        self.stages.iter().map(Stage::stats).chain(self.exact.iter().map(exact_stats)).collect()
    }
}

fn exact_stats(exact: &ExactLimit) -> LimitStats {
    LimitStats {
        limit: exact.limit().clone(),
        counts: exact.counts(),
        drop_ratio: DropRatio::NONE,
        buckets: exact.tracked(),
    }
}

impl Stage {
    fn stats(&self) -> LimitStats {
        let mut stats = LimitStats {
            limit: self.limit.clone(),
            counts: Counts::default(),
            drop_ratio: DropRatio::NONE,
            buckets: 0,
        };
        self.buckets.for_each(|record| {
            stats.counts += record.counts();
            stats.buckets += 1;
            let ratio = record.headroom().drop_ratio();
            if ratio > stats.drop_ratio {
                stats.drop_ratio = ratio;
            }
        });
        stats
    }
}
