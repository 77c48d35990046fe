//! The record of one bucket: its numbers, as atomics that requests count up and the uplink writes in place.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use headworks_core::agent::InForce;
use headworks_core::bucket::{BucketKey, Counts};
use headworks_core::decision::{Draw, Threshold};
use headworks_core::limits::Limit;
use headworks_core::units::{Headroom, Moment};

use super::allowance::Allowance;

/// By what a bucket of a limit with overrides goes.
#[derive(Clone, Debug)]
pub(super) struct Ruling {
    /// The limit as it holds for the bucket.
    pub(super) limit: Arc<Limit>,
    /// An override names exactly this bucket.
    pub(super) named: bool,
    /// The snapshot of the rules that it was looked up in.
    pub(super) generation: u64,
}

impl Ruling {
    /// Of a limit without overrides, which nobody looks up.
    pub(super) fn own(limit: &Arc<Limit>) -> Self {
        Self { limit: limit.clone(), named: false, generation: 0 }
    }
}

/// One bucket. Counters only rise; each is right by itself, and a reader that sees one a moment before another is
/// corrected by its next reading, so nothing here needs more than relaxed order.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) key: BucketKey,
    threshold: AtomicU32,
    draw: AtomicU64,
    headroom: AtomicU64,
    allowance: Allowance,
    offered: AtomicU64,
    dropped: AtomicU64,
    would_drop: AtomicU64,
    refused_later: AtomicU64,
    retired: AtomicBool,
    /// Only where its limit has overrides.
    ruling: ArcSwapOption<Ruling>,
    /// Its values are not tracked: requests count in the bucket that all such values share.
    away: AtomicBool,
    /// A request asked for it since the last look.
    wanted: AtomicBool,
}

impl Record {
    /// A bucket that nothing was counted in.
    pub(crate) fn new(key: BucketKey, headroom: Headroom) -> Self {
        let record = Self {
            key,
            threshold: AtomicU32::default(),
            draw: AtomicU64::new(Draw::new(fastrand::u32(..)).to_word()),
            headroom: AtomicU64::default(),
            allowance: Allowance::default(),
            offered: AtomicU64::default(),
            dropped: AtomicU64::default(),
            would_drop: AtomicU64::default(),
            refused_later: AtomicU64::default(),
            retired: AtomicBool::new(false),
            ruling: ArcSwapOption::empty(),
            away: AtomicBool::new(false),
            wanted: AtomicBool::new(false),
        };
        record.set_headroom(headroom);
        record
    }

    /// Uses the bucket by the limit as it holds for it: as it was looked up before, or by `rule` if that was in an older snapshot
    /// than this generation. A request that is decided by older rules goes by the newer too.
    #[inline]
    pub(super) fn ruled<R>(
        &self,
        generation: u64,
        rule: impl FnOnce() -> Option<Ruling>,
        use_it: impl FnOnce(&Record, &Arc<Limit>) -> R,
    ) -> Option<R> {
        if let Some(ruling) = &*self.ruling.load()
            && ruling.generation >= generation
        {
            return Some(use_it(self, &ruling.limit));
        }
        let ruling = Arc::new(rule()?);
        self.ruling.store(Some(ruling.clone()));
        Some(use_it(self, &ruling.limit))
    }

    /// Counts a request and decides it: whether it is over the limit. The verdict is the same whether it is enforced.
    /// `now` is asked only when the allowance is spent, and `spent` is told when it holds the request back.
    pub(crate) fn decide(
        &self,
        cost: u64,
        enforced: bool,
        now: impl FnOnce() -> Moment,
        spent: impl FnOnce(),
    ) -> bool {
        self.offered.fetch_add(cost, Relaxed);
        let threshold = Threshold::from_word(self.threshold.load(Relaxed));
        let mut over = threshold != Threshold::default() && self.draw(threshold);
        if !over && !self.allowance.take(cost, now) {
            over = true;
            spent();
        }
        if over {
            self.count_drop(cost, enforced);
        }
        over
    }

    /// A request that passed here was dropped by a later limit: a budget does not pay for it.
    pub(crate) fn refuse_later(&self, cost: u64) {
        self.refused_later.fetch_add(cost, Relaxed);
    }

    /// Counts a request that is dropped whatever the ratio.
    pub(crate) fn drop_anyway(&self, cost: u64, enforced: bool) {
        self.offered.fetch_add(cost, Relaxed);
        self.count_drop(cost, enforced);
    }

    fn count_drop(&self, cost: u64, enforced: bool) {
        let counter = if enforced { &self.dropped } else { &self.would_drop };
        counter.fetch_add(cost, Relaxed);
    }

    fn draw(&self, threshold: Threshold) -> bool {
        let mut word = self.draw.load(Relaxed);
        loop {
            let (next, dropped) = Draw::from_word(word).step(threshold, || fastrand::u32(..));
            match self.draw.compare_exchange_weak(word, next.to_word(), Relaxed, Relaxed) {
                Ok(_) => return dropped,
                Err(seen) => word = seen,
            }
        }
    }

    /// Writes the headroom that decisions go by from now on.
    fn set_headroom(&self, headroom: Headroom) {
        self.headroom.store(headroom.value().to_bits(), Relaxed);
        self.threshold.store(Threshold::of(headroom.drop_ratio()).to_word(), Relaxed);
    }

    /// Writes all that decisions go by from now on.
    pub(crate) fn set(&self, in_force: InForce, now: Moment) {
        self.set_headroom(in_force.headroom);
        self.allowance.set(in_force.allowance, now);
    }

    /// The headroom that decisions go by.
    pub(crate) fn headroom(&self) -> Headroom {
        Headroom::new(f64::from_bits(self.headroom.load(Relaxed))).unwrap_or(Headroom::OPEN)
    }

    /// What was counted so far.
    pub(crate) fn counts(&self) -> Counts {
        // Drops first: a request that is counted in between is then offered and not yet dropped, never the reverse.
        let (dropped, would_drop) = (self.dropped.load(Relaxed), self.would_drop.load(Relaxed));
        let refused_later = self.refused_later.load(Relaxed);
        Counts { offered: self.offered.load(Relaxed), dropped, would_drop, refused_later }
    }

    /// Whether requests with its values count in the bucket that all share which are not tracked; notes that there was one.
    #[inline]
    pub(crate) fn sends_away(&self) -> bool {
        let away = self.is_away();
        if away && !self.wanted.load(Relaxed) {
            self.wanted.store(true, Relaxed);
        }
        away
    }

    /// Whether its values are not tracked.
    pub(crate) fn is_away(&self) -> bool {
        self.away.load(Relaxed)
    }

    /// From now on its values are tracked, or not.
    pub(crate) fn set_away(&self, away: bool) {
        self.away.store(away, Relaxed);
    }

    /// Whether a request asked for it since the last call.
    pub(crate) fn was_wanted(&self) -> bool {
        self.wanted.swap(false, Relaxed)
    }

    /// Its limit is gone; the uplink need not read it any more.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Relaxed);
    }

    /// Whether its limit is gone.
    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Relaxed)
    }
}
