//! The snapshot of the rules that decisions read: limits in pipeline order, each with its buckets.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use headworks_core::attributes::Attributes;
use headworks_core::limits::{Limit, LimitSet, Mode};
use headworks_core::matching::Index;
use headworks_core::units::{DropRatio, Moment};

use super::buckets::Buckets;
use super::ledger::Ledger;
use super::stage::Stage;
use super::stats::LimitStats;
use super::verdict::Which;
use crate::exact::ExactLimit;

/// All limits in force together; swapped as one, so that no request sees half of a change.
#[derive(Debug, Default)]
pub(super) struct Rules {
    /// Which they are: verdicts name limits by it, and what was worked out under others is old.
    pub(super) generation: u64,
    stages: Vec<Stage>,
    /// Which of the stages may concern a request.
    stage_index: Index,
    /// Behind all stages: what is dropped is not charged.
    exact: Vec<ExactLimit>,
    exact_index: Index,
    /// Places, counted through stages and then exact limits: there may be a hundred thousand.
    by_name: HashMap<Arc<str>, usize>,
    /// Places of stages by whose records are theirs.
    by_owner: HashMap<u32, usize>,
}

/// The limits of rules that are no longer in force, by their places, each with what its overrides made of it.
#[derive(Debug)]
pub(super) struct Remembered {
    pub(super) generation: u64,
    limits: Vec<Vec<Arc<Limit>>>,
}

impl Remembered {
    pub(super) fn limit(&self, which: Which) -> Option<&Arc<Limit>> {
        let (place, rule) = which.parts();
        let ruled = self.limits.get(place)?;
        ruled.get(rule).or(ruled.first())
    }
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
    pub(super) fn stages_for(&self, attributes: Attributes<'_>) -> impl Iterator<Item = (u32, &Stage)> {
        self.stage_index.candidates(attributes).map(|place| (as_place(place), &self.stages[place]))
    }

    /// The exact limits that may concern a request, in pipeline order, with their places behind all stages.
    #[inline]
    pub(super) fn exact_for(&self, attributes: Attributes<'_>) -> impl Iterator<Item = (u32, &ExactLimit)> {
        let first = self.first_exact();
        self.exact_index
            .candidates(attributes)
            .map(move |place| (first + as_place(place), &self.exact[place]))
    }

    /// The place of the first exact limit.
    #[inline]
    pub(super) fn first_exact(&self) -> u32 {
        as_place(self.stages.len())
    }

    /// All exact limits, if they are so few that each may concern any request.
    #[inline]
    pub(super) fn few_exact(&self) -> Option<&[ExactLimit]> {
        self.exact_index.is_a_walk().then_some(&*self.exact)
    }

    /// The limit at a place, counted through stages and then exact limits, as this of its overrides makes it.
    pub(super) fn limit(&self, which: Which) -> Option<&Arc<Limit>> {
        let (place, rule) = which.parts();
        match self.stages.get(place) {
            Some(stage) => Some(stage.ruled(rule)),
            None => self.exact.get(place - self.stages.len()).map(ExactLimit::limit),
        }
    }

    /// What verdicts may still ask of these rules when they are no longer in force: nothing of their buckets.
    pub(super) fn remembered(&self) -> Remembered {
        let stages = self.stages.iter().map(Stage::all_ruled);
        let exact = self.exact.iter().map(|exact| vec![exact.limit().clone()]);
        Remembered { generation: self.generation, limits: stages.chain(exact).collect() }
    }

    /// The snapshot for other limits. Those that tell buckets apart as before keep them, counts and all.
    pub(super) fn succeeded_by(&self, limits: &LimitSet, ledger: &Ledger) -> Self {
        let counted = || limits.limits().iter().filter(|limit| limit.mode != Mode::Off);
        let (exact, by_ratio) = (
            counted().filter(|limit| limit.exact().is_some()),
            counted().filter(|limit| limit.exact().is_none()),
        );
        let generation = GENERATIONS.fetch_add(1, Relaxed);
        let stage = |limit| Stage::new(limit, limits, self.stage_of(limit), generation, ledger);
        let stages: Vec<Stage> = by_ratio.map(stage).collect();
        let exact: Vec<ExactLimit> =
            exact.map(|limit| ExactLimit::new(limit, self.exact_of(limit))).collect();
        let names = stages.iter().map(|stage| &stage.limit).chain(exact.iter().map(ExactLimit::limit));
        let by_name = names.enumerate().map(|(place, limit)| (limit.name.clone(), place)).collect();
        let by_owner = stages.iter().enumerate().map(|(place, stage)| (stage.buckets.owner, place)).collect();
        Self {
            generation,
            by_name,
            by_owner,
            stage_index: Index::new(stages.iter().map(|stage| &*stage.limit)),
            stages,
            exact_index: Index::new(exact.iter().map(|exact| &**exact.limit())),
            exact,
        }
    }

    /// What was counted under the rules before and is not any more is forgotten: the buckets of limits that are gone, and those
    /// that an override turns off. To be called once these are in force, so that hardly anybody makes such buckets anew.
    pub(super) fn forget_gone(&self, before: &Rules, ledger: &Ledger, now: Moment) {
        let gone = before.stages.iter().map(|stage| stage.buckets.owner);
        let gone: HashSet<u32> = gone.filter(|owner| !self.by_owner.contains_key(owner)).collect();
        ledger.retire(&gone, now);
        if !self.stages.iter().any(Stage::turns_some_off) {
            return;
        }
        let mut off = Vec::new();
        ledger.for_each(|number, record| {
            let stage = self.by_owner.get(&record.owner()).map(|place| &self.stages[*place]);
            off.extend(stage.filter(|stage| stage.turns_off(record)).map(|stage| (stage, number)));
        });
        for (stage, number) in off {
            stage.buckets.forget(ledger, number, now);
        }
    }

    /// The buckets that these records are of.
    pub(super) fn buckets_of(&self, owner: u32) -> Option<&Buckets> {
        self.stages.get(*self.by_owner.get(&owner)?).map(|stage| &*stage.buckets)
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
    pub(super) fn open_whole(&self, ledger: &Ledger) {
        for stage in self.stages.iter().filter(|stage| stage.limit.per.is_empty()) {
            stage.buckets.whole(&stage.limit, ledger);
        }
    }

    /// What each limit has counted: one pass over all records, in which none is forgotten.
    pub(super) fn stats(&self, ledger: &Ledger) -> Vec<LimitStats> {
        let forgotten: Vec<_> = self.stages.iter().map(|stage| stage.buckets.forgotten()).collect();
        let mut stats: Vec<LimitStats> = self.stages.iter().map(Stage::stats).collect();
        stats.iter_mut().zip(&forgotten).for_each(|(stats, forgotten)| stats.counts = **forgotten);
        let reader = ledger.reader();
        ledger.for_each(|number, record| {
            let Some(place) = self.by_owner.get(&record.owner()).copied() else { return };
            let counts = reader.counts(number, record);
            stats[place].add(counts, record.headroom().drop_ratio(), record.is_rest());
        });
        drop(reader);
        stats.extend(self.exact.iter().map(exact_stats));
        stats
    }
}

#[allow(clippy::cast_possible_truncation, reason = "a file has a hundred thousand limits at most")]
fn as_place(place: usize) -> u32 {
    place as u32
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
