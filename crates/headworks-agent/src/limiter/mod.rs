//! The hot path: from the attributes of a request to a verdict.
//!
//! A decision reads the snapshot of the rules, finds the record of each bucket it meets, and touches that record's
//! atomics. It takes no lock and makes no call; only the first request of a bucket allocates, and only one that finds an
//! allowance spent reads the clock. Exact limits have locks and read the clock (`crate::exact`).

mod allowance;
mod buckets;
mod exact;
mod limit_ref;
mod record;
mod rules;
#[cfg(feature = "redis")]
mod shared;
mod stage;
mod stats;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use arc_swap::{ArcSwap, Guard};
use headworks_core::attributes::Attributes;
use headworks_core::bucket::Counts;
use headworks_core::limits::{Limit, LimitSet, Mode};
use headworks_core::matching::Encounter;
use headworks_core::units::Headroom;
use tokio::sync::Notify;

use crate::Clock;
use crate::clock::WallClock;
use crate::exact::Remaining;

pub use limit_ref::LimitRef;
pub(crate) use record::Record;
#[cfg(feature = "redis")]
pub use shared::SharedLimiter;
pub use stats::{LimitStats, LimiterStats, LinkStats};

use buckets::Opened;
use exact::Decided;
use rules::Rules;
use stage::Stage;

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
    /// Exact limits are counted in a store that other agents share.
    shares: AtomicBool,
    link: ArcSwap<LinkStats>,
    clock: Clock,
    /// What exact limits go by.
    wall: WallClock,
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
    /// For one that met enforced exact limits, the one of these that has least left.
    pub decisive: Option<Decisive>,
    /// The request can have no verdict: it is not allowed, and nothing was charged to exact limits.
    pub unanswerable: Option<Unanswerable>,
}

/// The limit that a verdict rests on.
#[derive(Clone, Debug)]
pub struct Decisive {
    /// The limit; of one that drops by ratio, as it holds for the bucket that the request met.
    pub limit: LimitRef,
    /// How its bucket stands that the request met.
    pub standing: Standing,
}

/// How a bucket stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Standing {
    /// The headroom of the fleet: limit over offered.
    Headroom(Headroom),
    /// What an exact count has left.
    Exact(Remaining),
    /// The store that counts did not answer, and the limit says what that means: nothing remains that could be told.
    Uncounted(Remaining),
}

/// Why a request has no verdict: a mistake of whoever asks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unanswerable {
    /// No wait would let it pass.
    #[error(
        "the cost of {cost} is above {most}, the most that the limit {limit} ever passes at once: ask for at most {most}"
    )]
    NeverPasses {
        /// The name of the limit.
        limit: Arc<str>,
        /// What the request costs.
        cost: u64,
        /// Most that passes at one moment.
        most: u64,
    },
    /// A cost of 0 looks at exact limits, and it meets none.
    #[error("a cost of 0 only looks at exact limits, and the request meets none: ask for 1 or more")]
    NothingToSee,
}

/// What a limit that drops by ratio makes of a request.
#[derive(Debug)]
struct Judged {
    over: bool,
    enforced: bool,
    headroom: Headroom,
    /// The limit as it holds for the bucket, where that is not the limit itself.
    own: Option<Arc<Limit>>,
}

impl Judged {
    /// The limit at this place of the rules, or what it is for the bucket.
    fn decisive(self, rules: Guard<Arc<Rules>>, place: usize) -> Decisive {
        let limit = self.own.map_or_else(|| LimitRef::new(rules, place), LimitRef::from);
        Decisive { limit, standing: Standing::Headroom(self.headroom) }
    }
}

/// What the limits that drop by ratio make of a request: whether all of them let it pass, and the one to be named, by its place.
type ByRatio = (bool, Option<(usize, Judged)>);

impl Verdict {
    const NOTHING_TO_SEE: Verdict =
        Verdict { allowed: false, decisive: None, unanswerable: Some(Unanswerable::NothingToSee) };

    #[inline]
    fn of(allowed: bool, decisive: Option<Decisive>) -> Self {
        Self { allowed, decisive, unanswerable: None }
    }

    fn by_ratio(rules: Guard<Arc<Rules>>, (allowed, named): ByRatio) -> Self {
        Self::of(allowed, named.map(|(place, judged)| judged.decisive(rules, place)))
    }
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
struct Request<'a> {
    attributes: Attributes<'a>,
    asked: Option<u32>,
    shadow_all: bool,
}

impl Request<'_> {
    fn only_looks(self) -> bool {
        self.asked == Some(0)
    }

    fn cost(self, limit: &Limit) -> u64 {
        u64::from(self.asked.unwrap_or(limit.cost))
    }

    fn enforces(self, mode: Mode) -> bool {
        mode == Mode::Enforce && !self.shadow_all
    }
}

impl Limiter {
    /// A limiter without limits: everything passes.
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            inner: Arc::new(Inner {
                rules: ArcSwap::from_pointee(Rules::default()),
                shadow_all: AtomicBool::new(false),
                opened: Opened::default(),
                shares: AtomicBool::new(false),
                link: ArcSwap::from_pointee(LinkStats::default()),
                clock,
                wall: WallClock::new(&clock),
                spent: Notify::new(),
                woken: AtomicBool::new(false),
            }),
        }
    }

    /// Decides a request. `asked` is its cost, in the units of the limits, and each limit's own where it is `None`; 0 only
    /// looks at exact limits, for what a request that does not say would get.
    ///
    /// The limits that it meets form a pipeline: each counts and judges only what the enforced ones before it let
    /// through. A shadow limit judges the same, and lets pass. Exact limits come last, and are charged together.
    pub fn check(&self, attributes: Attributes<'_>, asked: Option<u32>) -> Verdict {
        let rules = self.inner.rules.load();
        let request = self.request(attributes, asked);
        if request.only_looks() || rules.stages().is_empty() {
            return exact::check(rules, request, || self.inner.wall.now());
        }
        self.check_both(rules, request)
    }

    #[inline]
    fn request<'a>(&self, attributes: Attributes<'a>, asked: Option<u32>) -> Request<'a> {
        Request { attributes, asked, shadow_all: self.inner.shadow_all.load(Relaxed) }
    }

    #[inline(never)]
    fn check_both(&self, rules: Guard<Arc<Rules>>, request: Request<'_>) -> Verdict {
        let mut paid = Paid::default();
        let by_ratio = self.check_ratios(&rules, request, &mut paid);
        let exact = if by_ratio.0 { exact::decide(&rules, request, || self.inner.wall.now()) } else { None };
        self.conclude(rules, request, &paid, by_ratio, exact)
    }

    /// The verdict, by what the limits of both kinds say; of exact ones nothing, if the request meets none.
    #[inline]
    fn conclude(
        &self,
        rules: Guard<Arc<Rules>>,
        request: Request<'_>,
        paid: &Paid,
        by_ratio: ByRatio,
        exact: Option<Decided>,
    ) -> Verdict {
        match exact {
            // What is counted one by one says more of the next request than a ratio does.
            None | Some(Decided::By(true, None)) => Verdict::by_ratio(rules, by_ratio),
            Some(decided) => {
                if !decided.allows() {
                    self.refund(&rules, paid, request);
                }
                decided.verdict(rules)
            }
        }
    }

    /// The limits that drop by ratio.
    fn check_ratios(&self, rules: &Rules, request: Request<'_>, paid: &mut Paid) -> ByRatio {
        let mut tightest: Option<(usize, Judged)> = None;
        for (place, stage) in rules.stages_for(request.attributes) {
            let Some(judged) = self.judge(stage, request) else { continue };
            if judged.over && judged.enforced {
                self.refund(rules, paid, request);
                return (false, Some((place, judged)));
            }
            if stage.is_budget {
                paid.passed(!judged.over);
            }
            let is_tighter = |(_, least): &(_, Judged)| judged.headroom < least.headroom;
            if judged.enforced && tightest.as_ref().is_none_or(is_tighter) {
                tightest = Some((place, judged));
            }
        }
        (true, tightest)
    }

    /// What a limit makes of a request that it concerns.
    #[inline]
    fn judge(&self, stage: &Stage, request: Request<'_>) -> Option<Judged> {
        let cost = request.cost(&stage.limit);
        match stage.limit.encounter(request.attributes) {
            Encounter::Unconcerned => None,
            Encounter::Counted(values) => {
                stage.with(values.as_slice(), &self.inner.opened, |record, limit| {
                    let enforced = request.enforces(limit.mode);
                    let over = record.decide(cost, enforced, || self.inner.clock.now(), || self.inner.wake());
                    let own = (enforced && stage.has_overrides()).then(|| limit.clone());
                    Judged { over, enforced, headroom: record.headroom(), own }
                })
            }
            Encounter::DroppedForMissing => {
                // It has no bucket that an override might be for.
                let enforced = request.enforces(stage.limit.mode);
                stage.buckets.with_rest(&stage.limit.name, &self.inner.opened, |record| {
                    record.drop_anyway(cost, enforced);
                });
                Some(Judged { over: true, enforced, headroom: Headroom::SHUT, own: None })
            }
        }
    }

    /// A request was dropped: the budgets that it passed before are told that they need not pay for it.
    #[cold]
    fn refund(&self, rules: &Rules, paid: &Paid, request: Request<'_>) {
        let mut passed = paid.each().peekable();
        let budgets =
            rules.stages_for(request.attributes).map(|(_, stage)| stage).filter(|stage| stage.is_budget);
        for stage in budgets {
            // Those behind the one that dropped it have not met it.
            if passed.peek().is_none() {
                return;
            }
            match stage.limit.encounter(request.attributes) {
                Encounter::Unconcerned => {}
                Encounter::DroppedForMissing => drop(passed.next()),
                Encounter::Counted(values) => {
                    let cost = request.cost(&stage.limit);
                    stage.with(values.as_slice(), &self.inner.opened, |record, _| {
                        if passed.next() == Some(true) {
                            record.refuse_later(cost);
                        }
                    });
                }
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

    /// Sets the clock of exact limits, and forgets their idle buckets, a part of them each time.
    pub(crate) fn sweep(&self) {
        self.inner.wall.follow(&self.inner.clock);
        let now = self.inner.wall.now();
        self.inner.rules.load().exact().iter().for_each(|exact| exact.sweep(now));
    }

    /// From the next request on every limit is in shadow, or in its own mode again.
    pub(crate) fn set_shadow_all(&self, shadow_all: bool) {
        self.inner.shadow_all.store(shadow_all, Relaxed);
    }

    /// Forgets the buckets of these records, all of one limit; what each has counted by now.
    pub(crate) fn forget(&self, limit: &str, records: &[Arc<Record>]) -> Vec<Counts> {
        let rules = self.inner.rules.load();
        let Some(buckets) = rules.buckets_of(limit) else { return vec![Counts::default(); records.len()] };
        let counts = records.iter().map(|record| buckets.forget(record)).collect();
        buckets.flush();
        counts
    }

    /// Whether the parents track no more buckets of a limit.
    pub(crate) fn set_full(&self, limit: &Arc<str>, full: bool) {
        if let Some(buckets) = self.inner.rules.load().buckets_of(limit) {
            buckets.set_full(limit, full, &self.inner.opened);
        }
    }

    /// What was counted in a record after its bucket was forgotten.
    pub(crate) fn count_late(&self, limit: &str, counts: Counts) {
        if let Some(buckets) = self.inner.rules.load().buckets_of(limit) {
            buckets.count_late(counts);
        }
    }

    /// The records that came to be since the last call.
    pub(crate) fn take_opened(&self) -> Vec<Arc<Record>> {
        self.inner.opened.take()
    }

    /// What `/stats` and metrics show of the link to the control plane.
    pub(crate) fn set_link(&self, link: LinkStats) {
        self.inner.link.store(Arc::new(link));
    }

    /// Whether exact limits are counted by this process alone.
    pub(crate) fn counts_alone(&self) -> bool {
        !self.inner.shares.load(Relaxed)
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
