//! Decisions whose exact limits are counted in a store that other agents share.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use headworks_core::attributes::Attributes;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::exact::{self, Decided, MetAll};
use super::local;
use super::pipeline::Paid;
use super::rules::Rules;
use super::verdict::{ByRatio, Verdict};
use super::{Inner, Limiter, Request};
use crate::exact::{Asks, Outcomes, Settled};
use crate::store::{Store, StoreStats};

/// How often what is known of buckets is looked through for what is old.
const SWEEP: Duration = Duration::from_secs(1);

/// Decides requests like a [`Limiter`], but for exact limits, which a [`Store`] counts for all agents together. Cheap to
/// clone.
#[derive(Clone, Debug)]
pub struct SharedLimiter {
    limiter: Limiter,
    store: Arc<Store>,
}

impl SharedLimiter {
    /// Limits by ratio are decided here; those that are exact, in the store.
    pub fn new(limiter: Limiter, store: Store) -> Self {
        limiter.inner.shares.store(true, Relaxed);
        Self { limiter, store: Arc::new(store) }
    }

    /// The limiter that decides by ratio, and counts. Its own `check` would count exact limits in this process.
    pub fn limiter(&self) -> &Limiter {
        &self.limiter
    }

    /// How the store is, and what was asked of it.
    pub fn store_stats(&self) -> StoreStats {
        self.store.stats()
    }

    /// Decides a request, as [`Limiter::check`] does. Waits for the store, for its deadline at most, if the request meets
    /// an exact limit whose answer is not known here.
    pub async fn check(&self, attributes: Attributes<'_>, asked: Option<u32>) -> Verdict {
        let rules = self.limiter.inner.rules.load_full();
        let request = self.request(attributes, asked);
        let (by_ratio, paid) = if request.only_looks() {
            (ByRatio { allowed: true, named: None }, Paid::new())
        } else {
            self.limiter.inner.check_ratios(&rules, request)
        };
        let exact = if by_ratio.allowed { self.decide(&rules, request).await } else { None };
        if exact.is_none() && request.only_looks() {
            return Verdict::NOTHING_TO_SEE;
        }
        self.limiter.inner.conclude(rules.generation, &paid, by_ratio, exact)
    }

    fn request<'a>(&self, attributes: Attributes<'a>, asked: Option<u32>) -> Request<'a> {
        Request { attributes, asked, shadow_all: self.limiter.inner.shadow_all.load(Relaxed) }
    }

    /// What the exact limits say to a request, unless it meets none.
    async fn decide(&self, rules: &Rules, request: Request<'_>) -> Option<Decided> {
        let met: MetAll<'_> = exact::all(rules, &request).collect();
        if met.is_empty() {
            return None;
        }
        let asks: Asks<'_> = met.iter().map(|met| met.ask(request)).collect();
        let (settled, outcomes) = self.store.settle(&asks, || self.limiter.inner.wall.now()).await;
        count(settled, &asks, &outcomes);
        Some(exact::decided(settled, &met, &asks, &outcomes))
    }

    /// Keeps connected to the store until `shutdown`. Before that, and whenever the store is away, exact limits answer by
    /// their `on_store_failure`.
    pub async fn run(&self, shutdown: CancellationToken) {
        let sweep = async {
            loop {
                sleep(SWEEP).await;
                self.store.sweep(self.limiter.inner.wall.now());
            }
        };
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = self.store.keep() => {}
            () = sweep => {}
        }
    }

    /// Waits until the store answers, for so long at most; says whether it does.
    pub async fn is_connected_within(&self, most: Duration) -> bool {
        timeout(most, self.store.reached()).await.is_ok()
    }
}

impl Inner {
    /// What the limits that drop by ratio say, and the budgets that it passed.
    fn check_ratios(self: &Arc<Self>, rules: &Rules, request: Request<'_>) -> (ByRatio, Paid) {
        let mut paid = Paid::new();
        let by_ratio = local::with(self, |local| self.run(rules, &mut paid, &mut local.hands, request));
        (by_ratio, paid)
    }
}

fn count(settled: Settled, asks: &Asks<'_>, outcomes: &Outcomes) {
    for (place, (ask, outcome)) in asks.iter().zip(outcomes).enumerate() {
        ask.limit.count(settled.for_place(place, ask, outcome), ask.charge);
    }
}
