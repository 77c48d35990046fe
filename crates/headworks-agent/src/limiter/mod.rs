//! The hot path: from the attributes of a request to a verdict.
//!
//! A decision reads the snapshot of the rules, finds the record of each bucket it meets, and touches that record's
//! atomics. It takes no lock and makes no call; only the first request of a bucket allocates, and only one that finds an
//! allowance spent reads the clock.

mod allowance;
mod buckets;
mod record;
mod rules;
mod stats;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use arc_swap::ArcSwap;
use headworks_core::attributes::Attributes;
use headworks_core::limits::{Limit, LimitSet, Mode};
use headworks_core::matching::Encounter;
use headworks_core::units::Headroom;
use tokio::sync::Notify;

use crate::Clock;

pub(crate) use record::Record;
pub use stats::{LimitStats, LimiterStats, LinkStats};

use buckets::Opened;
use rules::{Rules, Stage};

/// Decides requests. Cheap to clone; all clones share their counts.
#[derive(Clone, Debug)]
pub struct Limiter {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    rules: ArcSwap<Rules>,
    /// Every limit counts what it would drop, and drops nothing.
    shadow_all: AtomicBool,
    opened: Opened,
    link: ArcSwap<LinkStats>,
    clock: Clock,
    spent: Notify,
    /// The uplink was woken already, and has not come round since.
    woken: AtomicBool,
}

/// What becomes of a request.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Whether it passes.
    pub allowed: bool,
    /// The limit that refused it; for one that passes, the enforced limit with the least headroom of those it met.
    pub decisive: Option<Decisive>,
}

/// The limit that a verdict rests on.
#[derive(Clone, Debug)]
pub struct Decisive {
    /// The limit.
    pub limit: Arc<Limit>,
    /// The headroom of the bucket that the request met: limit over offered, fleet-wide.
    pub headroom: Headroom,
}

impl Limiter {
    /// A limiter without limits: everything passes.
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            inner: Arc::new(Inner {
                rules: ArcSwap::from_pointee(Rules::default()),
                shadow_all: AtomicBool::new(false),
                opened: Opened::default(),
                link: ArcSwap::from_pointee(LinkStats::default()),
                clock,
                spent: Notify::new(),
                woken: AtomicBool::new(false),
            }),
        }
    }

    /// Decides a request. `asked` is its cost, in the units of the limits, and each limit's own where it is `None`.
    ///
    /// The limits that it meets form a pipeline: each counts and judges only what the enforced ones before it let
    /// through. A shadow limit judges the same, and lets pass.
    pub fn check(&self, attributes: Attributes<'_>, asked: Option<u32>) -> Verdict {
        let rules = self.inner.rules.load();
        let shadow_all = self.inner.shadow_all.load(Relaxed);
        let mut tightest: Option<(&Stage, Headroom)> = None;
        let mut paid = Paid::default();
        for stage in rules.stages() {
            let limit = &stage.limit;
            let cost = u64::from(asked.unwrap_or(limit.cost));
            let enforced = limit.mode == Mode::Enforce && !shadow_all;
            let (over, headroom) = match limit.encounter(attributes) {
                Encounter::Unconcerned => continue,
                Encounter::Counted(values) => {
                    stage.buckets.with(limit, values.as_slice(), &self.inner.opened, |record| {
                        let spent = || self.inner.wake();
                        let over = record.decide(cost, enforced, || self.inner.clock.now(), spent);
                        (over, record.headroom())
                    })
                }
                Encounter::DroppedForMissing => {
                    stage.buckets.with_rest(&limit.name, &self.inner.opened, |record| {
                        record.drop_anyway(cost, enforced);
                        (true, Headroom::SHUT)
                    })
                }
            };
            if over && enforced {
                self.refund(&rules, &paid, attributes, asked);
                return Verdict {
                    allowed: false,
                    decisive: Some(Decisive { limit: limit.clone(), headroom }),
                };
            }
            if stage.is_budget {
                paid.passed(!over);
            }
            if enforced && tightest.is_none_or(|(_, least)| headroom < least) {
                tightest = Some((stage, headroom));
            }
        }
        let decisive = tightest.map(|(stage, headroom)| Decisive { limit: stage.limit.clone(), headroom });
        Verdict { allowed: true, decisive }
    }

    /// A request was dropped: the budgets that it passed before are told that they need not pay for it.
    #[cold]
    fn refund(&self, rules: &Rules, paid: &Paid, attributes: Attributes<'_>, asked: Option<u32>) {
        let mut passed = paid.each();
        for stage in rules.stages().iter().filter(|stage| stage.is_budget) {
            let encounter = stage.limit.encounter(attributes);
            if matches!(encounter, Encounter::Unconcerned) {
                continue;
            }
            let Some(passed) = passed.next() else { return };
            if let (true, Encounter::Counted(values)) = (passed, encounter) {
                let cost = u64::from(asked.unwrap_or(stage.limit.cost));
                let refuse = |record: &Record| record.refuse_later(cost);
                stage.buckets.with(&stage.limit, values.as_slice(), &self.inner.opened, refuse);
            }
        }
    }

    /// Waits until an allowance is spent: demand has jumped, and the parents should hear of it.
    pub(crate) async fn spent(&self) {
        self.inner.spent.notified().await;
    }

    /// From now on the uplink may be woken again.
    pub(crate) fn rest(&self) {
        self.inner.woken.store(false, Relaxed);
    }

    /// Puts other limits in force. Buckets of limits that still tell them apart alike go on counting.
    pub(crate) fn install(&self, limits: &Arc<LimitSet>) {
        let rules = self.inner.rules.load().succeeded_by(limits);
        rules.open_whole(&self.inner.opened);
        self.inner.rules.store(Arc::new(rules));
    }

    /// From the next request on every limit is in shadow, or in its own mode again.
    pub(crate) fn set_shadow_all(&self, shadow_all: bool) {
        self.inner.shadow_all.store(shadow_all, Relaxed);
    }

    /// The records that came to be since the last call.
    pub(crate) fn take_opened(&self) -> Vec<Arc<Record>> {
        self.inner.opened.take()
    }

    /// What `/stats` and metrics show of the link to the control plane.
    pub(crate) fn set_link(&self, link: LinkStats) {
        self.inner.link.store(Arc::new(link));
    }

    /// What has been counted, by limit, and how the link to the control plane is.
    pub fn stats(&self) -> LimiterStats {
        LimiterStats {
            limits: self.inner.rules.load().stats(),
            shadow_all: self.inner.shadow_all.load(Relaxed),
            link: LinkStats::clone(&self.inner.link.load()),
        }
    }
}

impl Inner {
    /// Wakes the uplink, once until it comes round: a flood must not keep it busy.
    #[cold]
    fn wake(&self) {
        if !self.woken.swap(true, Relaxed) {
            self.spent.notify_one();
        }
    }
}

/// Which budgets a request passed on its way through the pipeline, in order. A request meets few; what is behind the
/// last that fits pays as if it had not been dropped.
#[derive(Debug, Default)]
struct Paid {
    passed: u64,
    met: u32,
}

impl Paid {
    fn passed(&mut self, passed: bool) {
        if self.met < u64::BITS {
            self.passed |= u64::from(passed) << self.met;
            self.met += 1;
        }
    }

    fn each(&self) -> impl Iterator<Item = bool> {
        let passed = self.passed;
        (0..self.met).map(move |index| passed >> index & 1 == 1)
    }
}
