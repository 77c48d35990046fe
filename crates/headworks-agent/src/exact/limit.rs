//! An exact limit in force: its rules, and its buckets in this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use headworks_core::attributes::Attributes;
use headworks_core::bucket::Counts;
use headworks_core::exact::Overrides;
use headworks_core::limits::{Limit, Mode};
use headworks_core::units::Moment;

#[cfg(feature = "redis")]
use super::Effect;
use super::Values;
use super::memory::Buckets;

/// A limit, with its overrides made ready to be looked up.
#[derive(Clone, Debug)]
pub(crate) struct ExactLimit {
    pub(super) limit: Arc<Limit>,
    pub(crate) rules: Arc<Overrides>,
    pub(super) buckets: Arc<Buckets>,
}

/// Rises with every change of rules, so that a bucket knows whether its own are old.
static GENERATIONS: AtomicU64 = AtomicU64::new(1);

impl ExactLimit {
    /// A limit that comes into force, in the place of one that told its buckets apart alike.
    pub(crate) fn new(limit: &Arc<Limit>, before: Option<&ExactLimit>) -> Self {
        if let Some(same) = before.filter(|before| before.limit == *limit) {
            return same.clone();
        }
        let rules = Arc::new(Overrides::of(limit, GENERATIONS.fetch_add(1, Relaxed)));
        let buckets = before.map(|before| before.buckets.clone());
        let buckets = buckets.unwrap_or_else(|| Arc::new(Buckets::new(limit, rules.own())));
        Self { limit: limit.clone(), rules, buckets }
    }

    /// The limit.
    pub(crate) fn limit(&self) -> &Arc<Limit> {
        &self.limit
    }

    /// Whether its verdict on a request is enforced, which overrides may say for their buckets. They are looked up for this,
    /// and once more for the bucket: only limits whose overrides have modes pay for that.
    #[inline]
    pub(crate) fn mode(&self, attributes: Attributes<'_>) -> Mode {
        if !self.rules.has_modes() {
            return self.limit.mode;
        }
        let values: Values<'_> = self.limit.values(attributes).collect();
        self.rules.rule_for(&values).0.mode
    }

    /// What was counted over all buckets.
    pub(crate) fn counts(&self) -> Counts {
        self.buckets.counts()
    }

    /// Counts a request that was settled elsewhere.
    #[cfg(feature = "redis")]
    pub(crate) fn count(&self, effect: Effect, cost: u64) {
        self.buckets.count(effect, cost);
    }

    /// How many buckets there are at the moment.
    pub(crate) fn tracked(&self) -> usize {
        self.buckets.tracked()
    }

    /// Forgets buckets that are as good as new, in the next part of them.
    pub(crate) fn sweep(&self, now: Moment) {
        self.buckets.sweep(now);
    }
}
