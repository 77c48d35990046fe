//! Other crates that limit in a process.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use limitador::limit::{Context, Expression, Limit, Namespace};
use throttlecrab::PeriodicStore;

use super::Competitor;
use super::workload::{Quota, Requests};

pub(super) const LIMITADOR: &str = "limitador";
pub(super) const THROTTLECRAB: &str = "throttlecrab";
pub(super) const LEAKY_BUCKET: &str = "leaky-bucket";

/// The crate `limitador`, its counters in memory: one for each tenant.
pub(super) struct Limitador {
    limiter: limitador::RateLimiter,
    namespace: Namespace,
}

impl Limitador {
    pub(super) fn new(quota: Quota) -> Self {
        let limiter = limitador::RateLimiter::new(1_000_000);
        let most = if quota == Quota::Ample { u64::from(u32::MAX) * 1000 } else { 1 };
        let by_tenant = Expression::parse("tenant").expect("it is an identifier");
        limiter.add_limit(Limit::new("bench", most, 3600, Vec::new(), vec![by_tenant]));
        Self { limiter, namespace: "bench".into() }
    }
}

impl Competitor for Limitador {
    fn decide(&self, requests: &Requests<'_>) -> usize {
        let allows = |key: &&super::workload::Key| {
            let context = Context::from(HashMap::from([("tenant".to_owned(), key.tenant().clone())]));
            let told = self.limiter.check_rate_limited_and_update(&self.namespace, &context, 1);
            told.is_ok_and(|told| !told.limited)
        };
        requests.iter().filter(allows).count()
    }
}

/// The crate `throttlecrab`. One thread at a time may use its limiter, so it is in a mutex, as in its own server.
pub(super) struct Throttlecrab {
    limiter: Mutex<throttlecrab::RateLimiter<PeriodicStore>>,
    burst: i64,
}

impl Throttlecrab {
    pub(super) fn new(quota: Quota, keys: usize) -> Self {
        let store = PeriodicStore::with_capacity(keys.max(1000));
        let burst = if quota == Quota::Ample { 1 << 30 } else { 1 };
        Self { limiter: Mutex::new(throttlecrab::RateLimiter::new(store)), burst }
    }
}

impl Competitor for Throttlecrab {
    fn decide(&self, requests: &Requests<'_>) -> usize {
        let allows = |key: &&super::workload::Key| {
            let mut limiter = self.limiter.lock().expect("no competitor panics");
            let period = if self.burst == 1 { 3600 } else { 60 };
            let told = limiter.rate_limit(key.tenant(), self.burst, self.burst, period, 1, SystemTime::now());
            told.is_ok_and(|(allowed, _)| allowed)
        };
        requests.iter().filter(allows).count()
    }
}

/// The crate `leaky-bucket`: one bucket, whoever asks.
pub(super) struct LeakyBucket(leaky_bucket::RateLimiter);

impl LeakyBucket {
    pub(super) fn new() -> Self {
        let most = usize::MAX / 4;
        let interval = Duration::from_millis(100);
        let builder = leaky_bucket::RateLimiter::builder()
            .max(most)
            .initial(most)
            .interval(interval)
            .refill(10)
            .build();
        Self(builder)
    }
}

impl Competitor for LeakyBucket {
    fn decide(&self, requests: &Requests<'_>) -> usize {
        requests.iter().filter(|_| self.0.try_acquire(1)).count()
    }
}
