//! The hot path: from the attributes of a request to a verdict.
//!
//! A decision reads the snapshot of the rules that its thread has, finds the record of each bucket it meets, and counts there:
//! in a cell of its own where the bucket is hot, else in the record. It takes no lock and allocates nothing, but for what is met
//! first: by a thread, in a form of request, in a bucket; or values that are too long for a record. Only a request that finds an
//! allowance spent reads the clock. Exact limits have locks and read the clock (`crate::exact`).

mod allowance;
mod bell;
mod buckets;
mod cells;
mod exact;
mod forms;
mod key;
mod keyed;
mod ledger;
mod local;
mod pipeline;
mod prepared;
mod record;
mod rehearsal;
mod rules;
#[cfg(feature = "redis")]
mod shared;
mod slab;
mod stage;
mod stats;
mod table;
mod tally;
#[cfg(test)]
mod tests;
mod verdict;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::Release};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use headworks_core::attributes::Attributes;
use headworks_core::bucket::Counts;
use headworks_core::limits::{Limit, LimitSet, Mode};
use headworks_core::matching::{Encounter, Fit};
use headworks_core::units::{Headroom, Moment};

use crate::Clock;
use crate::clock::WallClock;

pub use keyed::Keyed;
pub(crate) use ledger::{Handle, LINGERS, Reader};
pub use prepared::Prepared;
#[cfg(feature = "redis")]
pub use shared::SharedLimiter;
pub use stats::{LimitStats, LimiterStats, LinkStats};
pub use verdict::{Decisive, LimitRef, Standing, Unanswerable, Verdict};

use bell::Bell;
use exact::Decided;
use forms::Known;
use ledger::Ledger;
use local::{Hands, Local};
use pipeline::{Met, Paid, Pipeline, refund};
use rules::{Remembered, Rules};
use stage::{Place, Stage};
use verdict::{ByRatio, Which};

/// Sets of limits whose verdicts can still be told by which limit they were.
const REMEMBERED: usize = 8;

/// Decides requests. Cheap to clone; all clones share their counts.
#[derive(Clone, Debug)]
pub struct Limiter {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    rules: ArcSwap<Rules>,
    /// That of the rules; known before they are in force, so that no thread goes on by older ones.
    generation: AtomicU64,
    /// The limits of those that were in force before, the latest last.
    before: Mutex<VecDeque<Remembered>>,
    /// Every limit counts what it would drop, and drops nothing.
    shadow_all: AtomicBool,
    ledger: Arc<Ledger>,
    /// Exact limits are counted in a store that other agents share.
    shares: AtomicBool,
    link: ArcSwap<LinkStats>,
    /// What exact limits go by.
    wall: WallClock,
    bell: Bell,
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
                generation: AtomicU64::new(0),
                before: Mutex::default(),
                shadow_all: AtomicBool::new(false),
                ledger: Arc::default(),
                shares: AtomicBool::new(false),
                link: ArcSwap::from_pointee(LinkStats::default()),
                wall: WallClock::new(&clock),
                bell: Bell::new(clock),
            }),
        }
    }

    /// Decides a request. `asked` is its cost, in the units of the limits, and each limit's own where it is `None`; 0 only
    /// looks at exact limits, for what a request that does not say would get.
    ///
    /// The limits that it meets form a pipeline: each counts and judges only what the enforced ones before it let
    /// through. A shadow limit judges the same, and lets pass. Exact limits come last, and are charged together.
    #[inline]
    pub fn check(&self, attributes: Attributes<'_>, asked: Option<u32>) -> Verdict {
        local::with(&self.inner, |local| self.inner.check(local, attributes, asked))
    }

    /// Gives back what [`Self::check`] has charged to exact limits for a request that came to nothing after all, as far as it still
    /// counts. Limits in shadow and those by ratio have nothing to give back, nor have buckets in a store, nor one that values without a bucket of their own
    /// share.
    pub fn give_back(&self, attributes: Attributes<'_>, asked: Option<u32>) {
        local::with(&self.inner, |local| {
            let rules = local::current(&mut local.rules, &self.inner);
            let request = Request { attributes, asked, shadow_all: self.is_shadow_all() };
            exact::give_back(rules, request, self.inner.wall.now());
        });
    }

    /// A request of these attributes, made ready to be decided again and again: nothing is looked up any more. Each thread should
    /// have one of its own: clone it.
    pub fn prepare(&self, attributes: &[(&str, &str)]) -> Prepared {
        Prepared::new(self.inner.clone(), attributes)
    }

    /// Requests that have these keys, in this order: what the limits look for is worked out once, and each decision takes the values
    /// alone. Each thread needs one of its own: clone it.
    pub fn keyed<const N: usize>(&self, keys: [&str; N]) -> Keyed<N> {
        Keyed::new(&self.inner, keys.map(Into::into))
    }

    /// The limit that a verdict rests on. The thread that decided last knows it in any case; others do unless more than eight
    /// sets of limits have come since.
    pub fn limit(&self, limit: LimitRef) -> Option<Arc<Limit>> {
        let of = |rules: &Rules| {
            let is_it = rules.generation == limit.generation;
            is_it.then(|| rules.limit(limit.which).cloned()).flatten()
        };
        if let Some(limit) = local::peek(&self.inner, |local| of(&local.rules)) {
            return Some(limit);
        }
        // Held before the rules are read, so that none are in neither place.
        let before = self.inner.before.lock().unwrap_or_else(PoisonError::into_inner);
        of(&self.inner.rules.load()).or_else(|| {
            let rules = before.iter().find(|rules| rules.generation == limit.generation)?;
            rules.limit(limit.which).cloned()
        })
    }

    /// Waits until an allowance is spent: demand has jumped, and the parents should hear of it.
    pub(crate) async fn spent(&self) {
        self.inner.bell.rung().await;
    }

    /// From now on the uplink may be woken again.
    pub(crate) fn rest(&self) {
        self.inner.bell.rest();
    }

    /// Puts other limits in force. Buckets of limits that still tell them apart alike go on counting.
    pub(crate) fn install(&self, limits: &Arc<LimitSet>) {
        let (inner, old) = (&*self.inner, self.inner.rules.load_full());
        let rules = Arc::new(old.succeeded_by(limits, &inner.ledger));
        rules.open_whole(&inner.ledger);
        {
            let mut before = inner.before.lock().unwrap_or_else(PoisonError::into_inner);
            before.push_back(old.remembered());
            if before.len() > REMEMBERED {
                before.pop_front();
            }
            inner.generation.store(rules.generation, Release);
            inner.rules.store(rules.clone());
        }
        inner.ledger.begin_epoch();
        rules.forget_gone(&old, &inner.ledger, inner.bell.now());
    }

    /// Sets the clock of exact limits, and forgets their idle buckets, a part of them each time.
    pub(crate) fn sweep(&self) {
        self.inner.wall.follow(self.inner.bell.clock());
        let now = self.inner.wall.now();
        self.inner.rules.load().exact().iter().for_each(|exact| exact.sweep(now));
    }

    /// Records that nobody reads any more may be used again.
    pub(crate) fn tend(&self, now: Moment) {
        self.inner.ledger.tend(now);
    }

    /// Whether the fleet's switch has turned every limit to shadow.
    pub fn is_shadow_all(&self) -> bool {
        self.inner.shadow_all.load(Relaxed)
    }

    /// From the next request on every limit is in shadow, or in its own mode again.
    pub(crate) fn set_shadow_all(&self, shadow_all: bool) {
        self.inner.shadow_all.store(shadow_all, Relaxed);
    }

    /// Forgets the bucket of this record; what it has counted by now.
    pub(crate) fn forget(&self, handle: &Handle, now: Moment) -> Counts {
        let rules = self.inner.rules.load();
        match rules.buckets_of(handle.owner()) {
            Some(buckets) => buckets.forget(&self.inner.ledger, handle.number(), now),
            None => self.reader().of(handle),
        }
    }

    /// Whether the parents track no more buckets of the limit that this one is of.
    pub(crate) fn set_full(&self, handle: &Handle, full: bool) {
        if let Some(buckets) = self.inner.rules.load().buckets_of(handle.owner()) {
            buckets.set_full(full, &self.inner.ledger);
        }
    }

    /// What was counted in a record after its bucket was forgotten.
    pub(crate) fn count_late(&self, owner: u32, counts: Counts) {
        if let Some(buckets) = self.inner.rules.load().buckets_of(owner) {
            buckets.count_late(counts);
        }
    }

    /// The records that came to be since the last call.
    pub(crate) fn take_opened(&self) -> Vec<Handle> {
        self.inner.ledger.take_opened(self.inner.bell.now())
    }

    /// Reads what records have counted.
    pub(crate) fn reader(&self) -> Reader<'_> {
        self.inner.ledger.reader()
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
            limits: self.inner.rules.load().stats(&self.inner.ledger),
            shadow_all: self.inner.shadow_all.load(Relaxed),
            link: LinkStats::clone(&self.inner.link.load()),
        }
    }
}

impl Inner {
    /// A function of its own, and no part of its caller's closure, whose arguments would be handed on by memory.
    #[inline(never)]
    fn check(&self, local: &mut Local, attributes: Attributes<'_>, asked: Option<u32>) -> Verdict {
        let Local { rules, forms, hands, .. } = local;
        let rules = local::current(rules, self);
        let shadow_all = self.shadow_all.load(Relaxed);
        if asked == Some(0) || rules.stages().is_empty() {
            let request = Request { attributes, asked, shadow_all };
            return exact::check(rules, request, || self.wall.now());
        }
        let request = Request { attributes, asked, shadow_all };
        let mut paid = Paid::new();
        let by_ratio = match forms.of(rules, attributes) {
            Some(form) => {
                let at = |place| attributes.at(place);
                self.run_form(rules, form, &mut paid, hands, Pipeline::new(asked, shadow_all), at)
            }
            None => self.run(rules, &mut paid, hands, request),
        };
        if rules.exact().is_empty() {
            Verdict::by_ratio(rules.generation, by_ratio)
        } else {
            self.go_on(rules, request, by_ratio, &paid)
        }
    }

    /// What passed the limits that drop by ratio goes on to the exact ones.
    #[inline(never)]
    fn go_on(&self, rules: &Rules, request: Request<'_>, by_ratio: ByRatio, paid: &Paid) -> Verdict {
        let exact = if by_ratio.allowed { exact::decide(rules, request, || self.wall.now()) } else { None };
        self.conclude(rules.generation, paid, by_ratio, exact)
    }

    /// The verdict, by what the limits of both kinds say; of exact ones nothing, if the request meets none.
    #[inline]
    fn conclude(&self, generation: u64, paid: &Paid, by_ratio: ByRatio, exact: Option<Decided>) -> Verdict {
        match exact {
            // What is counted one by one says more of the next request than a ratio does.
            None | Some(Decided::By(true, None)) => Verdict::by_ratio(generation, by_ratio),
            Some(decided) => {
                if !decided.allows() {
                    refund(&self.ledger, paid);
                }
                decided.verdict(generation)
            }
        }
    }

    /// Sends a request of a form that the thread knows, with these values at its places, through the pipeline.
    #[inline(always)]
    fn run_form<'v>(
        &self,
        rules: &Rules,
        form: &Known,
        paid: &mut Paid,
        hands: &mut Hands,
        mut pipeline: Pipeline,
        at: impl Fn(usize) -> Option<&'v str> + Copy,
    ) -> ByRatio {
        for (place, form) in form.limits() {
            let Some(stage) = rules.stages().get(*place as usize) else { continue };
            let goes_on = match form.fit(at) {
                Fit::Unconcerned => true,
                Fit::Counted => self.count(&mut pipeline, paid, hands, *place, stage, form.values(at)),
                Fit::DroppedForMissing => self.lack(&mut pipeline, *place, stage),
            };
            if !goes_on {
                refund(&self.ledger, paid);
                return pipeline.ended(false);
            }
        }
        pipeline.ended(true)
    }

    /// The same for any request.
    #[inline(never)]
    fn run(&self, rules: &Rules, paid: &mut Paid, hands: &mut Hands, request: Request<'_>) -> ByRatio {
        let Request { attributes, asked, shadow_all } = request;
        let mut pipeline = Pipeline::new(asked, shadow_all);
        for (place, stage) in rules.stages_for(attributes) {
            let goes_on = match stage.limit.encounter(attributes) {
                Encounter::Unconcerned => true,
                Encounter::Counted(values) => {
                    let values = values.as_slice().iter().copied();
                    self.count(&mut pipeline, paid, hands, place, stage, values)
                }
                Encounter::DroppedForMissing => self.lack(&mut pipeline, place, stage),
            };
            if !goes_on {
                refund(&self.ledger, paid);
                return pipeline.ended(false);
            }
        }
        pipeline.ended(true)
    }

    /// A limit counts the request in the bucket of these values; whether it goes on.
    #[inline(always)]
    fn count<'v>(
        &self,
        pipeline: &mut Pipeline,
        paid: &mut Paid,
        hands: &mut Hands,
        place: u32,
        stage: &Stage,
        values: impl Iterator<Item = &'v str> + Clone,
    ) -> bool {
        // None where an override turns it off.
        let Some(found) = stage.bucket(values, &self.ledger, hands) else { return true };
        let Place { found: (number, record), rule, limit } = found;
        let met = Met::new(Which::new(place, rule), limit, stage.is_budget);
        let (cost, enforced) = pipeline.terms(met);
        let over = record.decide(cost, enforced, hands, &self.bell);
        if met.is_budget && !over {
            paid.push((number, cost));
        }
        pipeline.weigh(met, over, record.headroom_bits())
    }

    /// A limit drops the request, which lacks a value; whether it goes on. It has no bucket that an override might be for.
    #[inline(always)]
    fn lack(&self, pipeline: &mut Pipeline, place: u32, stage: &Stage) -> bool {
        let Some((_, rest)) = stage.buckets.rest(&self.ledger) else { return true };
        let met = Met::new(Which::new(place, 0), &stage.limit, false);
        let (cost, enforced) = pipeline.terms(met);
        rest.drop_anyway(cost, enforced);
        pipeline.weigh(met, true, Headroom::SHUT.to_bits())
    }
}
