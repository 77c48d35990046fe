//! What one set of limits leaves of the state kept under another.

use super::LimitSet;
use crate::bucket::BucketKey;

impl LimitSet {
    /// Whether a bucket counted under `old` goes on under this set: its limit still counts it, and tells its buckets
    /// apart by the same keys, in the same scope. A new rate, mode or match leaves the counting as it is.
    pub fn keeps_bucket(&self, old: &LimitSet, key: &BucketKey) -> bool {
        let Some(new) = self.of_bucket(key).filter(|limit| limit.is_planned()) else { return false };
        old.get(&key.limit).is_none_or(|old| old.counts_like(new))
    }
}
