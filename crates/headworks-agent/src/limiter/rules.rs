//! The snapshot of the rules that decisions read: limits in pipeline order, each with its buckets.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use headworks_core::attributes::Attributes;
use headworks_core::limits::{Limit, LimitSet, Mode};
use headworks_core::matching::Index;
use headworks_core::units::DropRatio;

use super::buckets::{Buckets, Opened};
use super::stage::Stage;
use super::stats::LimitStats;
use crate::exact::ExactLimit;

/// All limits in force together; swapped as one, so that no request sees half of a change.
#[derive(Debug, Default)]
pub(super) struct Rules {
    stages: Vec<Stage>,
    /// Which of the stages may concern a request.
    stage_index: Index,
    /// Behind all stages: what is dropped is not charged.
    exact: Vec<ExactLimit>,
    exact_index: Index,
    /// Places, counted through stages and then exact limits: there may be a hundred thousand.
    by_name: HashMap<Arc<str>, usize>,
}

static GENERATIONS: AtomicU64 = AtomicU64::new(1);

impl Rules {
    pub(super) fn stages(&self) -> &[Stage] {
        &self.stages
    }

    pub(super) fn exact(&self) -> &[ExactLimit] {
        &self.exact
    }

    /// The stages that may concern a request, in pipeline order, with their places.
    #[inline]
    pub(super) fn stages_for(&self, attributes: Attributes<'_>) -> impl Iterator<Item = (usize, &Stage)> {
        self.stage_index.candidates(attributes).map(|place| (place, &self.stages[place]))
    }

    /// The exact limits that may concern a request, in pipeline order, with their places behind all stages.
    #[inline]
    pub(super) fn exact_for(&self, attributes: Attributes<'_>) -> impl Iterator<Item = (usize, &ExactLimit)> {
        let stages = self.stages.len();
        self.exact_index.candidates(attributes).map(move |place| (stages + place, &self.exact[place]))
    }

    /// All exact limits, if they are so few that each may concern any request.
    #[inline]
    pub(super) fn few_exact(&self) -> Option<&[ExactLimit]> {
        self.exact_index.is_a_walk().then_some(&*self.exact)
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
        let generation = GENERATIONS.fetch_add(1, Relaxed);
        let stage = |limit| Stage::new(limit, limits, self.stage_of(limit), generation);
        let stages: Vec<Stage> = by_ratio.map(stage).collect();
        let exact: Vec<ExactLimit> =
            exact.map(|limit| ExactLimit::new(limit, self.exact_of(limit))).collect();
        let kept: HashSet<*const Buckets> = stages.iter().map(|stage| Arc::as_ptr(&stage.buckets)).collect();
        for gone in self.stages.iter().filter(|stage| !kept.contains(&Arc::as_ptr(&stage.buckets))) {
            gone.buckets.for_each(super::record::Record::retire);
        }
        let names = stages.iter().map(|stage| &stage.limit).chain(exact.iter().map(ExactLimit::limit));
        let by_name = names.enumerate().map(|(place, limit)| (limit.name.clone(), place)).collect();
        Self {
            by_name,
            stage_index: Index::new(stages.iter().map(|stage| &*stage.limit)),
            stages,
            exact_index: Index::new(exact.iter().map(|exact| &**exact.limit())),
            exact,
        }
    }

    /// The buckets of a limit.
    pub(super) fn buckets_of(&self, limit: &str) -> Option<&Buckets> {
        self.stages.get(*self.by_name.get(limit)?).map(|stage| &*stage.buckets)
    }

    /// The stage of the same name, if it told its buckets apart by the same keys.
    fn stage_of(&self, limit: &Limit) -> Option<&Stage> {
        let stage = self.stages.get(*self.by_name.get(&limit.name)?)?;
        stage.limit.counts_like(limit).then_some(stage)
    }

    /// The same of an exact limit.
    fn exact_of(&self, limit: &Limit) -> Option<&ExactLimit> {
        let exact = self.exact.get(self.by_name.get(&limit.name)?.checked_sub(self.stages.len())?)?;
        exact.limit().counts_like(limit).then_some(exact)
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
        untracked: 0,
    }
}
