//! Headworks: drop ratios, prepared and by key, and an exact limit.

use headworks_agent::{Attributes, Limiter, Prepared};
use headworks_core::guard::Allowance;

use super::Competitor;
use super::workload::{Key, Quota, Requests};
use crate::limiter::{BY_KEY, HEADROOM, KEYS, headroom, limiter};

pub(super) const KEYED: &str = "headworks keyed";
pub(super) const CHECK: &str = "headworks check";
pub(super) const EXACT: &str = "headworks exact";

/// More than any turn asks for, so that the guard is asked and holds nothing back.
const GUARD: Allowance = Allowance { rate: 1e9, depth: 1e9 };

fn pairs(key: &Key) -> [(&'static str, &str); 3] {
    let [service, tenant, route] = key.values();
    [("service", service), ("tenant", tenant), ("route", route)]
}

/// A prepared request, under so many limits; with the surge guard or without.
pub(super) struct Ready {
    prepared: Prepared,
    limits: i32,
}

impl Ready {
    pub(super) fn new(key: &Key, limits: i32, guarded: bool) -> Self {
        let each: Vec<_> = (0..limits).map(|n| format!("{{name: l{n}, rate: 1000/second}}")).collect();
        let limiter = limiter(&each.join(", "));
        let mut prepared = limiter.prepare(&pairs(key));
        prepared.check(None);
        limiter.rehearse(headroom(), guarded.then_some(GUARD), true);
        Self { prepared, limits }
    }
}

impl Competitor for Ready {
    fn decide(&self, requests: &Requests<'_>) -> usize {
        // Each thread has one of its own.
        let mut prepared = self.prepared.clone();
        requests.iter().filter(|_| prepared.check(None).allowed).count()
    }

    fn share(&self) -> f64 {
        HEADROOM.powi(self.limits)
    }
}

/// A limiter with a bucket for each of these keys, which are all that come; few of them are hot.
fn by_key(keys: &Requests<'_>, hot: bool) -> Limiter {
    let limiter = limiter(BY_KEY);
    for key in keys.iter() {
        limiter.check(Attributes::new(&pairs(key)), None);
    }
    limiter.rehearse(headroom(), None, hot);
    limiter
}

/// Requests by three values, whose keys are known beforehand.
pub(super) struct Keyed(Limiter);

impl Keyed {
    pub(super) fn new(keys: &Requests<'_>, hot: bool) -> Self {
        Self(by_key(keys, hot))
    }
}

impl Competitor for Keyed {
    fn decide(&self, requests: &Requests<'_>) -> usize {
        let mut keyed = self.0.keyed(KEYS);
        requests.iter().filter(|key| keyed.check(key.values(), None).allowed).count()
    }

    fn share(&self) -> f64 {
        HEADROOM
    }
}

/// The same for who comes with keys and values.
pub(super) struct Check(Limiter);

impl Check {
    pub(super) fn new(keys: &Requests<'_>, hot: bool) -> Self {
        Self(by_key(keys, hot))
    }
}

impl Competitor for Check {
    fn decide(&self, requests: &Requests<'_>) -> usize {
        requests.iter().filter(|key| self.0.check(Attributes::new(&pairs(key)), None).allowed).count()
    }

    fn share(&self) -> f64 {
        HEADROOM
    }
}

/// A limiter with one exact limit.
pub(super) struct Exact(Limiter);

impl Exact {
    pub(super) fn new(quota: Quota) -> Self {
        let rate = match quota {
            Quota::Ample => "1000000000/second",
            Quota::Spent => "1/hour",
        };
        Self(limiter(&format!(
            "{{name: each, per: [service, tenant, route], rate: {rate}, enforcement: exact, max_buckets: 1000000}}"
        )))
    }
}

impl Competitor for Exact {
    fn decide(&self, requests: &Requests<'_>) -> usize {
        let allows = |key: &&Key| self.0.check(Attributes::new(&pairs(key)), None).allowed;
        requests.iter().filter(allows).count()
    }
}
