//! Buckets that nobody in the fleet holds any more.

use super::Fleet;
use crate::bucket::{BucketKey, Values};
use crate::budget::Budget;
use crate::message::BucketNumber;
use crate::units::Moment;

impl Fleet {
    /// What is left of a budget for values that find no place of their own, for one that is about to have one.
    pub(super) fn tokens_of_rest(&self, number: BucketNumber) -> Option<f64> {
        if self.budgets.contains_key(&number) {
            return None;
        }
        let buckets = self.children.buckets();
        let key = buckets.key(number)?;
        let rest = BucketKey { values: Values::Rest, ..key.clone() };
        self.budgets.get(&buckets.number(&rest)?).map(Budget::tokens)
    }

    /// Forgets those of which nothing is left to remember: a budget has to be full, or whoever spent it could go away and find a
    /// fresh one, and agents whose aggregator died will speak of what they hold again.
    pub(super) fn forget_idle(&mut self, now: Moment) {
        for number in self.children.idle(now) {
            let is_full = self.budgets.get(&number).is_none_or(Budget::is_full);
            if is_full && !self.orphans.hold(number) {
                self.budgets.remove(&number);
                self.children.forget(number);
            }
        }
    }
}
