//! What nothing takes, and the least that any limiter can: a load, a random number, and a counter of the thread's own.

use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::Competitor;
use super::workload::{Quota, Requests};

pub(super) const EMPTY: &str = "empty loop";

/// Admits whatever comes, or nothing.
pub(super) struct Empty(pub(super) Quota);

impl Competitor for Empty {
    fn decide(&self, requests: &Requests<'_>) -> usize {
        let admits = self.0 == Quota::Ample;
        requests.iter().filter(|key| !black_box(key).joined().is_empty() && black_box(admits)).count()
    }
}

/// Draws by a ratio, and counts.
pub(super) struct Floor(AtomicU64);

thread_local! {
    static RANDOM: Cell<u64> = const { Cell::new(1) };
    static COUNTED: Cell<u64> = const { Cell::new(0) };
}

impl Floor {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(u64::MAX / 10))
    }
}

impl Competitor for Floor {
    fn decide(&self, requests: &Requests<'_>) -> usize {
        let passes = |key: &&super::workload::Key| {
            black_box(key);
            COUNTED.set(COUNTED.get() + 1);
            // Marsaglia's xorshift, of 64 bits.
            let mut x = RANDOM.get();
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            RANDOM.set(x);
            x > black_box(&self.0).load(Relaxed)
        };
        requests.iter().filter(passes).count()
    }

    fn share(&self) -> f64 {
        0.9
    }
}
