//! What may pass of a bucket until the next plan: tokens that requests take and elapsed time brings back.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use headworks_core::guard;
use headworks_core::units::Moment;

/// Tokens are counted in millionths of a cost unit.
const UNIT: i64 = 1_000_000;
/// Less than this is not worth a refill: it would be rounded away, again and again in a flood.
const LEAST_REFILL: f64 = 1000.0;

/// All threads together hold this part of the depth in hand at most, unless a unit is more.
const IN_HAND: i64 = 8;
/// Shares into which that part is divided, however many there are who count alone: most of them rest.
const MOST_SHARES: i64 = 64;

/// The tokens of one bucket. A request takes them with one addition; only one that finds none reads the clock. What decides
/// and what is written lie on different cache lines of a record.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Allowance {
    /// Most that a thread has in hand; below 0 where everything passes.
    in_hand: AtomicI64,
    depth: AtomicI64,
    tokens: AtomicI64,
    /// Millionths that come in a nanosecond, as the bits of an `f64`.
    rate: AtomicU64,
    /// When they last came, in nanoseconds of the limiter's clock.
    refilled: AtomicU64,
}

/// Everything passes.
const UNGUARDED: i64 = -1;

impl Default for Allowance {
    fn default() -> Self {
        Self {
            in_hand: AtomicI64::new(UNGUARDED),
            depth: AtomicI64::default(),
            tokens: AtomicI64::default(),
            rate: AtomicU64::default(),
            refilled: AtomicU64::default(),
        }
    }
}

impl Allowance {
    /// Puts another allowance in force; `None` lets everything pass. What was saved up stays, up to the new depth.
    pub(super) fn set(&self, allowance: Option<guard::Allowance>, now: Moment) {
        let Some(allowance) = allowance else {
            self.clear();
            return;
        };
        let depth = millionths(allowance.depth);
        self.rate.store((allowance.rate * 1e-3).to_bits(), Relaxed);
        self.depth.store(depth, Relaxed);
        if self.is_guarded() {
            self.tokens.fetch_min(depth, Relaxed);
        } else {
            self.tokens.store(depth, Relaxed);
            self.refilled.store(nanos(now), Relaxed);
        }
        self.in_hand.store(depth / IN_HAND, Relaxed);
    }

    /// Takes what a request costs; false if there is not enough.
    #[inline]
    pub(super) fn take(&self, cost: u32, now: impl FnOnce() -> Moment) -> bool {
        !self.is_guarded() || self.take_or_refill(in_millionths(cost), now)
    }

    /// The same for a thread that counts alone: it takes several requests' worth at once, and has them in hand. `threads` is how
    /// many do.
    #[inline(always)]
    pub(super) fn take_in_hand(
        &self,
        hand: &AtomicI64,
        threads: &AtomicI64,
        cost: u32,
        now: impl FnOnce() -> Moment,
    ) -> bool {
        // What is in hand from a larger allowance is too much for a smaller one.
        let most = self.in_hand.load(Relaxed);
        if most < 0 {
            return true;
        }
        let (cost, left) = (in_millionths(cost), hand.load(Relaxed).min(most));
        if left >= cost {
            hand.store(left - cost, Relaxed);
            return true;
        }
        self.take_more(hand, left, threads, cost, now)
    }

    fn is_guarded(&self) -> bool {
        self.in_hand.load(Relaxed) >= 0
    }

    #[cold]
    #[inline(never)]
    fn take_more(
        &self,
        hand: &AtomicI64,
        left: i64,
        threads: &AtomicI64,
        cost: i64,
        now: impl FnOnce() -> Moment,
    ) -> bool {
        let share = self.depth.load(Relaxed) / (IN_HAND * threads.load(Relaxed).clamp(1, MOST_SHARES));
        let batch = share - share.checked_rem(cost).unwrap_or(0);
        if batch > cost && self.tokens.load(Relaxed) > batch && self.take_what_is_there(batch) {
            hand.store(left + batch - cost, Relaxed);
            return true;
        }
        self.take_or_refill(cost, now)
    }

    fn take_or_refill(&self, cost: i64, now: impl FnOnce() -> Moment) -> bool {
        if self.take_what_is_there(cost) {
            return true;
        }
        // Whoever refilled it, there may be enough now.
        self.refill(now());
        self.take_what_is_there(cost)
    }

    /// Takes back what somebody had in hand who counts alone no longer.
    pub(super) fn put_back(&self, hand: i64) {
        if self.is_guarded() && hand > 0 {
            self.tokens.fetch_add(hand, Relaxed);
            self.tokens.fetch_min(self.depth.load(Relaxed), Relaxed);
        }
    }

    /// Begins anew, for another bucket.
    pub(super) fn clear(&self) {
        self.in_hand.store(UNGUARDED, Relaxed);
    }

    /// A request that costs more than is ever saved up passes when all is there, and leaves a debt.
    fn take_what_is_there(&self, cost: i64) -> bool {
        let needed = cost.min(self.depth.load(Relaxed));
        if self.tokens.fetch_sub(cost, Relaxed) >= needed {
            return true;
        }
        self.tokens.fetch_add(cost, Relaxed);
        false
    }

    /// Brings in what elapsed time gives, unless that is nothing or another thread does it.
    #[cold]
    fn refill(&self, now: Moment) {
        let (before, now) = (self.refilled.load(Relaxed), nanos(now));
        #[allow(clippy::cast_precision_loss, reason = "time between two refills")]
        let elapsed = now.saturating_sub(before) as f64;
        let refill = elapsed * f64::from_bits(self.rate.load(Relaxed));
        if refill < LEAST_REFILL || self.refilled.compare_exchange(before, now, Relaxed, Relaxed).is_err() {
            return;
        }
        let room = self.depth.load(Relaxed) - self.tokens.load(Relaxed);
        #[allow(clippy::cast_possible_truncation, reason = "saturates, and there is never more than room")]
        self.tokens.fetch_add((refill as i64).min(room), Relaxed);
        // Room that another thread's attempt made for a moment is none.
        self.tokens.fetch_min(self.depth.load(Relaxed), Relaxed);
    }
}

#[inline]
fn in_millionths(cost: u32) -> i64 {
    i64::from(cost) * UNIT
}

#[allow(clippy::cast_possible_truncation, reason = "saturates far above any rate")]
fn millionths(units: f64) -> i64 {
    ((units * UNIT as f64) as i64).min(i64::MAX / 4)
}

fn nanos(moment: Moment) -> u64 {
    u64::try_from(moment.since(Moment::default()).as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::after(Duration::from_millis(ms))
    }

    fn guarded(rate: f64, depth: f64) -> Allowance {
        let allowance = Allowance::default();
        allowance.set(Some(guard::Allowance { rate, depth }), at(0));
        allowance
    }

    fn taken(allowance: &Allowance, ms: u64) -> usize {
        (0..1000).filter(|_| allowance.take(1, || at(ms))).count()
    }

    #[test]
    fn passes_its_depth_at_once_and_then_its_rate() {
        let allowance = guarded(100.0, 10.0);
        assert_eq!(taken(&allowance, 0), 10);
        assert_eq!(taken(&allowance, 50), 5);
        assert_eq!(taken(&allowance, 50), 0);
        assert_eq!(taken(&allowance, 60_000), 10);
    }

    #[test]
    fn threads_with_tokens_in_hand_pass_as_much_and_ask_for_more_seldom() {
        let allowance = guarded(1e-3, 1000.0);
        let hands = [AtomicI64::new(0), AtomicI64::new(0)];
        let take = |hand: &AtomicI64| allowance.take_in_hand(hand, &AtomicI64::new(2), 1, || at(0));
        assert!(take(&hands[0]) && take(&hands[1]));
        let in_hand = || hands.iter().map(|hand| hand.load(Relaxed)).sum::<i64>() / UNIT;
        assert!((100..=125).contains(&in_hand()), "{}", in_hand());
        let passed = (0..2000).filter(|turn| take(&hands[turn % 2])).count();
        assert_eq!((passed, in_hand()), (998, 0));
    }

    #[test]
    fn a_request_that_costs_more_than_is_ever_saved_up_passes_now_and_then() {
        let allowance = guarded(100.0, 10.0);
        let passed = (0..=1000).filter(|ms| allowance.take(50, || at(*ms))).count();
        assert!((2..=3).contains(&passed), "{passed} of 50 units in a second at 100/s");
    }

    #[test]
    fn nothing_is_held_back_where_there_is_no_guard() {
        let allowance = guarded(1.0, 1.0);
        allowance.set(None, at(0));
        assert_eq!(taken(&allowance, 0), 1000);
    }

    #[test]
    fn a_clock_that_stands_still_is_not_asked_while_tokens_last() {
        let allowance = guarded(1.0, 5.0);
        assert!((0..5).all(|_| allowance.take(1, || panic!("the clock was read"))));
    }

    #[test]
    fn a_flood_of_asking_does_not_round_a_small_rate_away() {
        let allowance = guarded(0.1, 1.0);
        let passed = (0..300_000_u64)
            .filter(|i| allowance.take(1, || Moment::after(Duration::from_micros(i * 100))))
            .count();
        assert!((3..=4).contains(&passed), "{passed} in 30 s at 0.1/s");
    }

    #[test]
    fn threads_together_pass_no_more_than_it_allows() {
        let allowance = guarded(1e6, 1000.0);
        let passed: usize = thread::scope(|scope| {
            let take = |_| {
                scope.spawn(|| {
                    (0..200_000_u64)
                        .filter(|i| allowance.take(1, || Moment::after(Duration::from_nanos(i * 100))))
                        .count()
                })
            };
            (0..4).map(take).collect::<Vec<_>>().into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        // 20 ms at a million a second, and the depth.
        assert!((15_000..=21_100).contains(&passed), "{passed}");
    }
}
