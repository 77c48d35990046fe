//! The present demand of the fleet, and what other limits would do to it.

use super::Fleet;
use crate::bucket::BucketKey;
use crate::limits::LimitSet;
use crate::what_if::{Effect, effects};

impl Fleet {
    /// What each bucket is offered at present, in units a second, with the noise averaged out.
    pub fn demand(&self) -> impl Iterator<Item = (&BucketKey, f64)> {
        let buckets = self.children.buckets();
        let steered = buckets.iter().filter(|(.., bucket)| bucket.headroom.is_some());
        steered.map(|(_, key, bucket)| (key, bucket.law.rate()))
    }

    /// What these limits would do to the present demand, for each of them in pipeline order.
    pub fn what_if(&self, limits: &LimitSet) -> Vec<Effect> {
        effects(&self.limits, limits, self.demand())
    }
}
