//! What is counted of a bucket.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use headworks_core::bucket::Counts;

/// Counters that only rise. Each is right by itself, and a reader that sees one a moment before another is corrected by its
/// next reading, so nothing here needs more than relaxed order.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Tally {
    offered: AtomicU64,
    dropped: AtomicU64,
    would_drop: AtomicU64,
    refused_later: AtomicU64,
}

/// Who counts.
pub(super) trait Count {
    /// Raises a counter.
    fn raise(counter: &AtomicU64, by: u64);
}

/// Several threads may count in the same tally.
pub(super) struct Shared;

/// One thread counts there and no other does: no locked operation is needed.
pub(super) struct Alone;

impl Count for Shared {
    #[inline]
    fn raise(counter: &AtomicU64, by: u64) {
        counter.fetch_add(by, Relaxed);
    }
}

impl Count for Alone {
    #[inline]
    fn raise(counter: &AtomicU64, by: u64) {
        counter.store(counter.load(Relaxed).wrapping_add(by), Relaxed);
    }
}

impl Tally {
    #[inline]
    pub(super) fn offer<C: Count>(&self, cost: u32) {
        C::raise(&self.offered, cost.into());
    }

    #[inline]
    pub(super) fn drop<C: Count>(&self, cost: u32, enforced: bool) {
        C::raise(if enforced { &self.dropped } else { &self.would_drop }, cost.into());
    }

    /// A request that passed here was dropped by a later limit: a budget does not pay for it.
    pub(super) fn refuse_later<C: Count>(&self, cost: u32) {
        C::raise(&self.refused_later, cost.into());
    }

    /// What was counted so far.
    pub(super) fn counts(&self) -> Counts {
        // Drops first: a request that is counted in between is then offered and not yet dropped, never the reverse.
        let (dropped, would_drop) = (self.dropped.load(Relaxed), self.would_drop.load(Relaxed));
        let refused_later = self.refused_later.load(Relaxed);
        Counts { offered: self.offered.load(Relaxed), dropped, would_drop, refused_later }
    }

    /// Adds what was counted elsewhere.
    pub(super) fn add(&self, counts: Counts) {
        self.offered.fetch_add(counts.offered, Relaxed);
        self.dropped.fetch_add(counts.dropped, Relaxed);
        self.would_drop.fetch_add(counts.would_drop, Relaxed);
        self.refused_later.fetch_add(counts.refused_later, Relaxed);
    }

    /// Begins anew, for another bucket.
    pub(super) fn clear(&self) {
        for counter in [&self.offered, &self.dropped, &self.would_drop, &self.refused_later] {
            counter.store(0, Relaxed);
        }
    }
}
