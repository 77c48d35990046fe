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
            let context = Context::from(HashMap::from([("tenant".to_owned(), key.joined().clone())]));
            let told = self.limiter.check_rate_limited_and_update(&self.namespace, &context, 1);
            told.is_ok_and(|told| !told.limited)
        };
        requests.iter().filter(allows).count()
    }
}

/// The crate `throttlecrab`. One thread at a time may use its limiter, so it is in a mutex, as in its own server. It is not asked for
/// denials: a bucket that holds one request is forgotten at once by its release 0.4, and denies nothing.
pub(super) struct Throttlecrab(Mutex<throttlecrab::RateLimiter<PeriodicStore>>);

/// More than any turn asks for.
const BURST: i64 = 1 << 30;

impl Throttlecrab {
    pub(super) fn new(keys: usize) -> Self {
        let store = PeriodicStore::with_capacity(keys.max(1000));
        Self(Mutex::new(throttlecrab::RateLimiter::new(store)))
    }
}

impl Competitor for Throttlecrab {
    fn decide(&self, requests: &Requests<'_>) -> usize {
        let allows = |key: &&super::workload::Key| {
            let mut limiter = self.0.lock().expect("no competitor panics");
            let told = limiter.rate_limit(key.joined(), BURST, BURST, 60, 1, SystemTime::now());
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
