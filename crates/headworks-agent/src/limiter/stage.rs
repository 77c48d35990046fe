//! One limit of the pipeline, with its buckets and what overrides make of it for each.

use std::sync::Arc;

use headworks_core::bucket::{Counts, Values};
use headworks_core::limits::{Limit, LimitSet, Mode, Overridden};
use headworks_core::units::DropRatio;

use super::buckets::{Buckets, Opened};
use super::record::{Record, Ruling};
use super::stats::LimitStats;

/// One limit of the pipeline.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    pub(super) limit: Arc<Limit>,
    /// Some bucket of it pays for what the whole pipeline admits.
    pub(super) is_budget: bool,
    pub(super) buckets: Arc<Buckets>,
    overridden: Option<Arc<Overridden>>,
    /// Rises with every change of the limit, so that a bucket knows whether what it goes by is old.
    generation: u64,
}

impl Stage {
    /// A limit that comes into force, in the place of one that told its buckets apart alike.
    pub(super) fn new(limit: &Arc<Limit>, set: &LimitSet, before: Option<&Stage>, generation: u64) -> Self {
        if let Some(same) = before.filter(|before| before.limit == *limit) {
            return same.clone();
        }
        let overridden = set.overridden(&limit.name).cloned();
        let buckets: Arc<Buckets> = before.map(|stage| stage.buckets.clone()).unwrap_or_default();
        let others = overridden.iter().flat_map(|overridden| overridden.others());
        let is_budget = others.chain([limit]).any(|limit| limit.budget().is_some());
        let turns_off =
            |overridden: &&Arc<Overridden>| overridden.others().any(|other| other.mode == Mode::Off);
        if let Some(overridden) = overridden.as_ref().filter(turns_off) {
            buckets.close(|values| overridden.of_values(values).0.mode == Mode::Off);
        }
        Self { limit: limit.clone(), is_budget, buckets, overridden, generation }
    }

    /// Whether its buckets go by different rates.
    pub(super) fn has_overrides(&self) -> bool {
        self.overridden.is_some()
    }

    /// The bucket of these values, made on first sight, and the limit as it holds for it. `None` if an override turns it off
    /// there: then the limit does not concern the request.
    #[inline]
    pub(super) fn with<R>(
        &self,
        values: &[&str],
        opened: &Opened,
        use_it: impl FnOnce(&Record, &Arc<Limit>) -> R,
    ) -> Option<R> {
        let Some(overridden) = &self.overridden else {
            let own = || Some(Ruling::own(&self.limit));
            return self.buckets.with(&self.limit, values, opened, own, |record| use_it(record, &self.limit));
        };
        let rule = || {
            let (limit, named) = overridden.of_values(values);
            Some(Ruling { limit: limit.clone(), named, generation: self.generation })
                .filter(|ruling| ruling.limit.mode != Mode::Off)
        };
        let by_ruling = |record: &Record| {
            if record.key.values == Values::Rest {
                return Some(use_it(record, &self.limit));
            }
            record.ruled(self.generation, rule, use_it)
        };
        self.buckets.with(&self.limit, values, opened, rule, by_ruling).flatten()
    }

    pub(super) fn stats(&self) -> LimitStats {
        let mut stats = LimitStats {
            limit: self.limit.clone(),
            counts: Counts::default(),
            drop_ratio: DropRatio::NONE,
            buckets: 0,
            untracked: self.buckets.counted_in_rest().offered,
        };
        stats.counts = self.buckets.counted(|record| {
            stats.buckets += 1;
            let ratio = record.headroom().drop_ratio();
            if ratio > stats.drop_ratio {
                stats.drop_ratio = ratio;
            }
        });
        stats
    }
}
