//! The decision: which requests a drop ratio drops.
//!
//! Not independent coin flips but distances: the distance to the next event of the rarer outcome (drops while the
//! ratio is at most one half, admissions above) is redrawn at each such event. Ratio accumulates with every
//! request; event number k falls at `k + u`, `u` uniform in 0..1, on that scale. So the count of events is right to
//! within one at any time, yet no caller can stay in step with them: callers in strict rotation are dropped alike,
//! where a plain error-diffusion remainder would lock in phase, drop one of them always and another never.

use crate::units::DropRatio;

/// Bits of a fraction: distances up to two whole units, signed, fit in 32 bits, and a ratio is right to 2e-9.
const BITS: u32 = 29;
const ONE: i64 = 1 << BITS;

/// A drop ratio in the form that decisions take: how much of a unit one request adds to the scale of the rarer outcome, in 29
/// fractional bits, and in the lowest bit whether that outcome is to be admitted. So a decision has nothing to work out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Threshold(u32);

impl Threshold {
    /// The ratio to the nearest representable number; only 0 maps to "never" and only 1 to "always".
    pub fn of(ratio: DropRatio) -> Self {
        let exact = ratio.value() * ONE as f64;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 ≤ exact ≤ 2^29")]
        let nearest = exact.round() as u32;
        let one = 1 << BITS;
        let ratio = match ratio.value() {
            r if r <= 0.0 => 0,
            r if r >= 1.0 => one,
            _ => nearest.clamp(1, one - 1),
        };
        Self(if ratio > one / 2 { (one - ratio) << 1 | 1 } else { ratio << 1 })
    }

    /// The word that carries it, for storage in an atomic.
    #[inline]
    pub fn to_word(self) -> u32 {
        self.0
    }

    /// A threshold from its word. Words that no threshold has drop at some ratio, too.
    #[inline]
    pub fn from_word(word: u32) -> Self {
        Self(word & ((1 << (BITS + 1)) - 1))
    }

    /// Whether it drops nothing: then there is nothing to draw.
    #[inline]
    pub fn is_never(self) -> bool {
        self.0 == 0
    }

    #[inline]
    fn admissions_are_rarer(self) -> bool {
        self.0 & 1 == 1
    }

    #[inline]
    fn step(self) -> u32 {
        self.0 >> 1
    }
}

/// The state of the draw of one bucket, in one word: in its upper half the distance to the next event, signed, and in its lower half
/// the jitter of that event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw(u64);

impl Draw {
    /// A draw whose first event falls anywhere in its unit.
    pub fn new(random: u32) -> Self {
        let jitter = random >> (32 - BITS);
        Self::of(i64::from(jitter), jitter)
    }

    /// Decides one request: the next state, and whether it is dropped. `random` is asked only at an event.
    #[inline(always)]
    pub fn step(self, threshold: Threshold, random: impl FnOnce() -> u32) -> (Self, bool) {
        let step = threshold.step();
        // The upper half alone changes: its distance is less by a step.
        let next = Self(self.0.wrapping_sub(u64::from(step) << 32));
        let event = next.0.cast_signed() < 0 && step != 0;
        let next = if event { self.next_event(next.distance(), random()) } else { next };
        (next, event != threshold.admissions_are_rarer())
    }

    /// Decides `n` requests at once: the next state, and how many are dropped. As `step`, repeated, in the mean and
    /// to within one in the count; the cost does not grow with `n`.
    pub fn step_many(self, threshold: Threshold, n: u32, mut random: impl FnMut() -> u32) -> (Self, u32) {
        let distance = self.distance() - i64::from(threshold.step()) * i64::from(n);
        let whole_units = if distance < 0 { -distance / ONE } else { 0 };
        let distance = (distance + whole_units * ONE).clamp(-ONE, 2 * ONE);
        let mut next = Self::of(distance, self.jitter());
        let mut events = u32::try_from(whole_units).unwrap_or(n);
        while next.distance() < 0 && events < n {
            next = next.next_event(next.distance(), random());
            events += 1;
        }
        (next, if threshold.admissions_are_rarer() { n - events.min(n) } else { events.min(n) })
    }

    #[inline]
    fn next_event(self, distance: i64, random: u32) -> Self {
        let jitter = random >> (32 - BITS);
        Self::of(distance + ONE + i64::from(jitter) - i64::from(self.jitter()), jitter)
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "a distance lies within ±2 units, and a unit is 2^29")]
    fn of(distance: i64, jitter: u32) -> Self {
        Self(u64::from((distance as i32).cast_unsigned()) << 32 | u64::from(jitter))
    }

    #[inline]
    fn distance(self) -> i64 {
        self.0.cast_signed() >> 32
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "the lower half")]
    fn jitter(self) -> u32 {
        self.0 as u32 & ((1 << BITS) - 1)
    }

    /// The word itself, for storage in an atomic.
    #[inline]
    pub fn to_word(self) -> u64 {
        self.0
    }

    /// A draw from its word.
    #[inline]
    pub fn from_word(word: u64) -> Self {
        Self(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A small generator with a fixed seed: the same draws in every run.
    fn chance(mut seed: u64) -> impl FnMut() -> u32 {
        move || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 32) as u32
        }
    }

    fn ratio(value: f64) -> Threshold {
        Threshold::of(DropRatio::new(value).unwrap())
    }

    proptest! {
        #[test]
        fn the_count_is_right_to_within_one_at_any_time(r in 0.0..=1.0f64, seed: u64) {
            let mut random = chance(seed);
            let mut draw = Draw::new(random());
            let mut dropped = 0.0;
            for n in 1..2_000 {
                let (next, drop) = draw.step(ratio(r), &mut random);
                draw = next;
                dropped += f64::from(u8::from(drop));
                prop_assert!((dropped - r * f64::from(n)).abs() <= 1.001, "{dropped} of {n} at {r}");
            }
        }

        #[test]
        fn many_steps_at_once_drop_what_single_ones_would(r in 0.0..=1.0f64, n in 0u32..100_000, seed: u64) {
            let mut random = chance(seed);
            let draw = Draw::new(random());
            let (_, dropped) = draw.step_many(ratio(r), n, &mut random);
            prop_assert!((f64::from(dropped) - r * f64::from(n)).abs() <= 2.001, "{dropped} of {n} at {r}");
        }

        #[test]
        fn words_carry_the_state(random: u32, steps in 0u32..100, r in 0.0..=1.0f64) {
            let mut draw = Draw::new(random);
            for _ in 0..steps {
                draw = draw.step(ratio(r), || random).0;
            }
            prop_assert_eq!(Draw::from_word(draw.to_word()), draw);
        }
    }

    #[test]
    fn callers_in_strict_rotation_are_dropped_alike() {
        for (callers, r) in [(2, 0.5), (2, 0.25), (3, 1.0 / 3.0), (4, 0.75), (5, 0.8)] {
            let mut random = chance(7);
            let mut draw = Draw::new(random());
            let mut dropped = vec![0u32; callers];
            let rounds = 20_000;
            for _ in 0..rounds {
                for of_caller in &mut dropped {
                    let (next, drop) = draw.step(ratio(r), &mut random);
                    draw = next;
                    *of_caller += u32::from(drop);
                }
            }
            for count in dropped {
                let fraction = f64::from(count) / f64::from(rounds);
                assert!(
                    (fraction - r).abs() < 0.02,
                    "{fraction} of a caller's requests at {r}, {callers} callers"
                );
            }
        }
    }

    #[test]
    fn nothing_is_dropped_at_zero_and_everything_at_one() {
        let mut random = chance(1);
        let draw = Draw::new(random());
        assert_eq!(draw.step_many(ratio(0.0), 1_000_000, &mut random).1, 0);
        assert_eq!(draw.step_many(ratio(1.0), 1_000_000, &mut random).1, 1_000_000);
        assert!(!draw.step(ratio(0.0), || 0).1);
        assert!(draw.step(ratio(1.0), || 0).1);
    }

    #[test]
    fn a_ratio_a_millionth_short_of_one_still_admits() {
        let mut random = chance(3);
        let (_, dropped) = Draw::new(random()).step_many(ratio(1.0 - 1e-6), 10_000_000, &mut random);
        assert!((9..=11).contains(&(10_000_000 - dropped)), "{}", 10_000_000 - dropped);
    }
}
