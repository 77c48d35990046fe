//! The crate `governor`: cells of the generic cell rate algorithm, one or in a `DashMap`.

use std::num::NonZeroU32;

use governor::{DefaultDirectRateLimiter, DefaultKeyedRateLimiter, Quota as Cells, RateLimiter};

use super::Competitor;
use super::workload::{Quota, Requests};

pub(super) const KEYED: &str = "governor keyed";
pub(super) const DIRECT: &str = "governor direct";

fn cells(quota: Quota) -> Cells {
    match quota {
        Quota::Ample => Cells::per_second(NonZeroU32::new(1_000_000_000).expect("it is not 0")),
        Quota::Spent => Cells::per_hour(NonZeroU32::MIN),
    }
}

/// Its limiter for keys, by all three values.
pub(super) struct Keyed(DefaultKeyedRateLimiter<[String; 3]>);

impl Keyed {
    pub(super) fn new(quota: Quota) -> Self {
        Self(RateLimiter::dashmap(cells(quota)))
    }
}

impl Competitor for Keyed {
    fn decide(&self, requests: &Requests<'_>) -> usize {
        requests.iter().filter(|key| self.0.check_key(key.owned()).is_ok()).count()
    }
}

/// Its limiter for one key.
pub(super) struct Direct(DefaultDirectRateLimiter);

impl Direct {
    pub(super) fn new(quota: Quota) -> Self {
        Self(RateLimiter::direct(cells(quota)))
    }
}

impl Competitor for Direct {
    fn decide(&self, requests: &Requests<'_>) -> usize {
        requests.iter().filter(|_| self.0.check().is_ok()).count()
    }
}
