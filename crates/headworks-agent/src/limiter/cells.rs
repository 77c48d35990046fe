//! What one thread counts by itself: cells for the buckets that are asked for most, which no other thread writes to.
//!
//! A bucket that is hot has a cell of the same number at every thread. What it counted is the sum of them, and of what is
//! counted in its record by all threads together while it is not hot.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use headworks_core::decision::{Draw, Threshold};

use super::tally::Tally;

/// Buckets that may be hot at once.
pub(super) const MOST_HOT: u32 = 4096;
/// Cells that a thread makes at once.
const CHUNK: usize = 256;

/// One thread's part of one bucket.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Cell {
    pub(super) tally: Tally,
    draw: AtomicU64,
    /// Tokens of the allowance that the thread has in hand.
    pub(super) hand: AtomicI64,
}

impl Default for Cell {
    fn default() -> Self {
        let draw = AtomicU64::new(Draw::new(fastrand::u32(..)).to_word());
        Self { tally: Tally::default(), draw, hand: AtomicI64::new(0) }
    }
}

impl Cell {
    /// Whether the ratio drops the next request.
    #[inline(always)]
    pub(super) fn draws(&self, threshold: Threshold, random: impl FnOnce() -> u32) -> bool {
        if threshold.is_never() {
            return false;
        }
        let (next, dropped) = Draw::from_word(self.draw.load(Relaxed)).step(threshold, random);
        self.draw.store(next.to_word(), Relaxed);
        dropped
    }

    /// Begins anew, for another bucket. Nobody counts in it.
    pub(super) fn clear(&self) {
        self.tally.clear();
        self.hand.store(0, Relaxed);
    }
}

/// The cells of one thread.
#[derive(Debug)]
pub(super) struct Stripe {
    chunks: [OnceLock<Box<[Cell; CHUNK]>>; MOST_HOT as usize / CHUNK],
}

impl Default for Stripe {
    fn default() -> Self {
        Self { chunks: [const { OnceLock::new() }; MOST_HOT as usize / CHUNK] }
    }
}

impl Stripe {
    /// The cell of this number, for the thread whose stripe it is; `None` for no number that a bucket has.
    #[inline(always)]
    pub(super) fn cell(&self, number: u32) -> Option<&Cell> {
        let chunk = self.chunks.get(number as usize / CHUNK)?;
        let cells = match chunk.get() {
            Some(cells) => cells,
            None => chunk.get_or_init(|| Box::new(std::array::from_fn(|_| Cell::default()))),
        };
        Some(&cells[number as usize % CHUNK])
    }

    /// The same for who only reads: `None` too if the thread has not made it yet.
    pub(super) fn peek(&self, number: u32) -> Option<&Cell> {
        Some(&self.chunks.get(number as usize / CHUNK)?.get()?[number as usize % CHUNK])
    }
}
