//! Buckets that none of the zone's agents holds any more.

use super::Zone;
use crate::bucket::BucketKey;
use crate::limits::Limit;
use crate::message::BucketNumber;
use crate::units::Moment;

impl Zone {
    /// Forgets them, and has every controller hear of it.
    pub(super) fn forget_idle(&mut self, now: Moment) {
        for number in self.children.idle(now) {
            if self.may_forget(number, now) {
                self.forget(number);
            }
        }
    }

    /// Every controller that is attached has to know its number. And a budget is full again: as long as no controller is heard,
    /// what is known here is all that says how much of it is spent.
    fn may_forget(&self, number: BucketNumber, now: Moment) -> bool {
        let buckets = self.children.buckets();
        let (Some(key), Some(bucket)) = (buckets.key(number), buckets.get(number)) else { return false };
        let known_above = self.parents.iter().all(|parent| parent.link.lets_go_of(number));
        let limit = self.limits.of_bucket(key).map(|limit| &**limit);
        let burst = limit.and_then(Limit::budget);
        known_above
            && burst.is_none_or(|burst| {
                let left = self.wanted(number).and_then(|wanted| wanted.tokens(bucket.counts, limit, now));
                left.is_some_and(|left| left >= crate::meter::units(burst))
            })
    }

    /// The controller that is obeyed does not track these buckets: neither does the zone.
    pub(super) fn turn_away(&mut self, untracked: Vec<BucketKey>) {
        for key in untracked {
            if let Some(number) = self.children.buckets().number(&key) {
                self.forget_at_parents(number);
                self.children.turn_away(number);
            }
        }
    }

    fn forget(&mut self, number: BucketNumber) {
        self.forget_at_parents(number);
        self.children.forget(number);
    }

    fn forget_at_parents(&mut self, number: BucketNumber) {
        let life = self.children.buckets().lives().of(number);
        for parent in &mut self.parents {
            parent.link.forget(number, life);
            parent.wanted.remove(&number);
            parent.said.remove(&number);
            parent.unlooked.remove(&number);
            parent.untold.remove(&number);
        }
        self.past.remove(&number);
    }
}
