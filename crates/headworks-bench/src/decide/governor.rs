//! The crate `governor`: cells of the generic cell rate algorithm in a `DashMap`.

use std::num::NonZeroU32;

use governor::{DefaultKeyedRateLimiter, Quota as Cells, RateLimiter};

use super::Competitor;
use super::workload::Quota;

pub(super) const NAME: &str = "governor keyed";

/// Its limiter for keys.
pub(super) struct Keyed(DefaultKeyedRateLimiter<String>);

impl Keyed {
    pub(super) fn new(quota: Quota) -> Self {
        Self(RateLimiter::dashmap(match quota {
            Quota::Ample => Cells::per_second(NonZeroU32::new(1_000_000_000).expect("it is not 0")),
            Quota::Spent => Cells::per_hour(NonZeroU32::MIN),
        }))
    }
}

impl Competitor for Keyed {
    fn decide(&self, keys: &[&String]) -> usize {
        keys.iter().filter(|key| self.0.check_key(key).is_ok()).count()
    }
}
