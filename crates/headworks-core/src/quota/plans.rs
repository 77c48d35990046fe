//! What a proxy's parent wants: limits, headrooms, and which values share a bucket.

use std::sync::Arc;

use super::bucket::Meet;
use super::{Proxy, index};
use crate::bucket::{BucketKey, Values};
use crate::limits::LimitSet;
use crate::message::{Plan, PlanEntry};
use crate::units::Moment;

impl Proxy {
    /// A plan arrived; how many of its entries make no sense.
    pub fn plan(&mut self, plan: Plan, now: Moment) -> u32 {
        if !self.link.accept(&plan, now) {
            return 0;
        }
        self.switch = plan.switch;
        if let Some(limits) = plan.limits.filter(|limits| limits.digest() != self.limits.digest()) {
            self.adopt(limits);
        }
        for (number, key) in plan.names {
            let local = if key.is_whole() { self.counted_in(&key) } else { self.counted.number(&key) };
            if let Some(local) = local {
                self.link.learn(local, number);
            }
        }
        let entries = plan.shared.iter().chain(plan.private.iter());
        let unknown = entries.filter(|entry| !self.take(**entry)).count();
        plan.untracked.iter().for_each(|key| self.turn_away(key));
        u32::try_from(unknown).unwrap_or(u32::MAX)
    }

    /// Whether the entry is for a bucket that is known, or was.
    fn take(&mut self, entry: PlanEntry) -> bool {
        let counted = self.link.local(entry.bucket).and_then(|local| self.counted.get_mut(local));
        let Some(counted) = counted else { return self.link.has_forgotten(entry.bucket) };
        (counted.headroom, counted.tokens) = (Some(entry.headroom), entry.tokens);
        true
    }

    /// Other limits: every bucket of the proxy meets others now.
    fn adopt(&mut self, limits: Arc<LimitSet>) {
        let old = std::mem::replace(&mut self.here, limits.in_zone(&self.identity.zone));
        self.limits = limits;
        self.index = index(&self.here);
        let new = self.here.clone();
        self.counted.retain(|key, _| new.keeps_bucket(&old, key));
        let kept: Vec<BucketKey> = self.counted.iter().map(|(_, key, _)| key.clone()).collect();
        for key in kept {
            // It may go by another rate.
            self.counted_in(&key);
        }
        let ids: Vec<_> = self.buckets.keys().cloned().collect();
        for id in ids {
            let meets = self.meets(&id);
            if let Some(bucket) = self.buckets.get_mut(&id) {
                bucket.meet(meets);
            }
        }
        self.has_news = true;
    }

    /// Values that are not tracked count in the bucket that all such values share.
    fn turn_away(&mut self, key: &BucketKey) {
        let Some(number) = self.counted.number(key).filter(|_| key.is_forgettable()) else {
            return;
        };
        let rest = BucketKey { values: Values::Rest, ..key.clone() };
        let Some(rest) = self.counted_in(&rest) else { return };
        // A parent that gave it a number has taken in what it had counted.
        let was_counted = self.link.is_numbered(number);
        let counts = self.counted.get(number).map(|counted| counted.counts).filter(|_| !was_counted);
        if let (Some(counts), Some(shared)) = (counts, self.counted.get_mut(rest)) {
            shared.counts += counts;
        }
        let meets = self.buckets.values_mut().flat_map(|bucket| &mut bucket.meets);
        meets.filter(|meet| meet.number == number).for_each(|meet: &mut Meet| meet.number = rest);
        self.let_go(number);
        self.has_news = true;
    }
}
