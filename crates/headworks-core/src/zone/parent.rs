//! One controller, as an aggregator knows it: what it wants, and what it was told.

use std::sync::Arc;
use std::time::Duration;

use super::choice::Candidate;
use crate::bucket::Counts;
use crate::children::{Bucket, Children};
use crate::ladder::PlanState;
use crate::limits::{Limit, LimitSet};
use crate::link::Link;
use crate::message::{BucketNumber, Plan, PlanEntry};
use crate::numbers::{NumberMap, NumberSet};
use crate::switch::Exchanged;
use crate::units::{Headroom, Moment};

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Said {
    pub(super) counts: Counts,
    pub(super) demand: f64,
}

/// What a controller wants of a bucket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) headroom: Headroom,
    pub(super) tokens: Option<f64>,
    /// What the children had been charged by then.
    pub(super) charged: u64,
    /// What they were offered then, in units a second.
    pub(super) demand: f64,
    pub(super) at: Moment,
}

impl Wanted {
    fn of(entry: PlanEntry, bucket: Option<&Bucket>, at: Moment) -> Self {
        let charged = bucket.map_or(0, |bucket| bucket.counts.charged());
        let demand = bucket.map_or(0.0, |bucket| bucket.demand);
        Self { headroom: entry.headroom, tokens: entry.tokens, charged, demand, at }
    }

    /// The tokens of a budget by now: those of the plan, with what came since, less what was admitted since.
    #[allow(clippy::cast_precision_loss, reason = "no budget is above 2^53 units")]
    pub(super) fn tokens(self, counts: Counts, limit: Option<&Limit>, now: Moment) -> Option<f64> {
        let (limit, tokens) = (limit?, self.tokens?);
        let refill = limit.rate.per_second() * now.since(self.at).as_secs_f64();
        let spent = counts.charged().saturating_sub(self.charged) as f64;
        Some((tokens + refill - spent).min(limit.budget()? as f64))
    }
}

/// One controller, as the aggregator knows it.
#[derive(Debug, Default)]
pub(super) struct Parent {
    pub(super) link: Link,
    pub(super) limits: Option<Arc<LimitSet>>,
    pub(super) wanted: NumberMap<BucketNumber, Wanted>,
    pub(super) said: NumberMap<BucketNumber, Said>,
    /// Buckets that changed since they were last looked at for news, and since the last full report.
    pub(super) unlooked: NumberSet<BucketNumber>,
    pub(super) untold: NumberSet<BucketNumber>,
    pub(super) was_attached: bool,
    pub(super) switch: Exchanged,
}

impl Parent {
    pub(super) fn candidate(&self, now: Moment, hold: Duration) -> Candidate {
        let plan = self.link.plan();
        Candidate {
            view: plan.map(|plan| plan.view),
            is_attached: self.link.is_attached(),
            is_fresh: plan.is_some_and(|plan| plan.state(now, hold) == PlanState::Fresh),
        }
    }
    /// Takes in what a plan says of limits and buckets; the buckets, by the zone's own numbers, that it speaks of.
    pub(super) fn take(&mut self, plan: Plan, children: &mut Children, now: Moment) -> Vec<BucketNumber> {
        if let Some(limits) = plan.limits {
            self.limits = Some(limits);
        }
        // Names first: the buckets of limits without `per` become known here before any agent speaks of them.
        for (number, key) in &plan.names {
            let local = if children.is_for_all(key) {
                children.intern_whole(key)
            } else {
                children.buckets().number(key)
            };
            if let Some(local) = local {
                self.link.learn(local, *number);
            }
        }
        let mut changed = Vec::new();
        for entry in plan.shared.iter().chain(&*plan.private) {
            if let Some(local) = self.link.local(entry.bucket) {
                self.wanted.insert(local, Wanted::of(*entry, children.buckets().get(local), now));
                changed.push(local);
            }
        }
        changed
    }
}
