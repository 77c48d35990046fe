//! Token buckets.
//!
//! What is kept is what was spent and has not come back. It is counted in parts so small that a nanosecond brings back
//! a whole number of them: with a rate of `a` cost units in `u` nanoseconds, reduced by their common divisor, a cost
//! unit has `u` parts and a nanosecond gives `a`. So nothing is ever rounded, however slow or odd the rate.

use std::time::Duration;

use super::{Look, State};
use crate::units::{Moment, Unit};

/// The numbers of a token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tokens {
    burst: u64,
    /// Parts of a cost unit.
    per_unit: u64,
    /// Parts that come back in a nanosecond.
    per_nano: u64,
    /// Parts of the burst, if one word holds them.
    all: Option<u64>,
}

impl Tokens {
    pub(super) fn new(amount: u64, unit: Unit, burst: u64) -> Self {
        let nanos = u64::try_from(unit.duration().as_nanos()).unwrap_or(u64::MAX);
        let common = common_divisor(amount, nanos).max(1);
        let per_unit = nanos / common;
        Self { burst, per_unit, per_nano: amount / common, all: burst.checked_mul(per_unit) }
    }

    #[inline]
    pub(super) fn burst(&self) -> u64 {
        self.burst
    }

    /// Parts that come back in a microsecond, and parts of a cost unit, without their common divisor: for who cannot count
    /// in nanoseconds.
    pub(super) fn by_the_microsecond(&self) -> (u64, u64) {
        let per_micro = self.per_nano.saturating_mul(1000);
        let common = common_divisor(per_micro, self.per_unit).max(1);
        (per_micro / common, self.per_unit / common)
    }

    /// No product here comes near 2¹²⁸: units stay below 2⁶⁴, and parts of one below 2⁵⁵, the nanoseconds of a year.
    #[inline]
    fn parts(&self, units: u64) -> u128 {
        u128::from(units) * u128::from(self.per_unit)
    }

    fn spent(&self, state: &State, now: Moment) -> u128 {
        let State::Spent { low, high, at } = state else { return 0 };
        let back = u128::from(now.nanos_since(*at)) * u128::from(self.per_nano);
        joined(*low, *high).saturating_sub(back)
    }

    /// The same, and all there is, where one word holds each: nearly always, and words are several times faster.
    #[inline(always)]
    fn spent_of(&self, state: &State, now: Moment) -> Option<(u64, u64)> {
        let all = self.all?;
        let spent = match state {
            State::Spent { low, high: [0, 0, 0, 0, 0, 0, 0], at } => {
                low.saturating_sub(now.nanos_since(*at).saturating_mul(self.per_nano))
            }
            State::Spent { .. } => return None,
            _ => 0,
        };
        Some((spent, all))
    }

    /// Whole cost units in parts, and whether some are left over.
    fn units(&self, parts: u128) -> (u64, bool) {
        if let Ok(parts) = u64::try_from(parts) {
            return (parts / self.per_unit, !parts.is_multiple_of(self.per_unit));
        }
        let per_unit = u128::from(self.per_unit);
        (u64::try_from(parts / per_unit).unwrap_or(u64::MAX), !parts.is_multiple_of(per_unit))
    }

    /// What [`Self::look`] says, with the charge taken if the request passes: the same in fewer steps where words suffice.
    #[inline(always)]
    pub(super) fn decide(&self, state: &mut State, cost: u64, charge: u64, now: Moment) -> Look {
        if let Some((spent, all)) = self.spent_of(state, now) {
            let room = all.saturating_sub(spent);
            // By products, so that nobody waits for the division: it only says what is told.
            if cost.checked_mul(self.per_unit).is_none_or(|wanted| wanted > room) {
                return self.refusal(spent, all, cost);
            }
            let after = charge.checked_mul(self.per_unit).and_then(|taken| spent.checked_add(taken));
            if let Some(after) = after {
                set(state, after, [0; 7], now);
                return Look::passes(room / self.per_unit);
            }
        }
        self.decide_closer(state, cost, charge, now)
    }

    #[cold]
    fn decide_closer(&self, state: &mut State, cost: u64, charge: u64, now: Moment) -> Look {
        let look = self.look(state, cost, now);
        if look.passes {
            self.charge(state, charge, now);
        }
        look
    }

    pub(super) fn look(&self, state: &State, cost: u64, now: Moment) -> Look {
        if let Some((spent, all)) = self.spent_of(state, now) {
            let remaining = all.saturating_sub(spent) / self.per_unit;
            if cost <= remaining {
                return Look::passes(remaining);
            }
            return self.refusal(spent, all, cost);
        }
        self.look_closer(state, cost, now)
    }

    /// For a cost of more than remains.
    #[inline(never)]
    fn refusal(&self, spent: u64, all: u64, cost: u64) -> Look {
        let remaining = all.saturating_sub(spent) / self.per_unit;
        if cost > self.burst {
            return Look::refused(remaining, None);
        }
        // The cost is within the burst, and so are its parts within a word; beside what is spent they may not be.
        let missing = u128::from(cost * self.per_unit) + u128::from(spent) - u128::from(all);
        let wait = match u64::try_from(missing) {
            Ok(missing) => Duration::from_nanos(missing.div_ceil(self.per_nano.max(1))),
            Err(_) => self.time_of(missing),
        };
        Look::refused(remaining, Some(wait))
    }

    #[cold]
    fn look_closer(&self, state: &State, cost: u64, now: Moment) -> Look {
        let spent = self.spent(state, now);
        let all = self.parts(self.burst);
        let (remaining, _) = self.units(all.saturating_sub(spent));
        if cost <= remaining {
            return Look::passes(remaining);
        }
        let missing = (spent + self.parts(cost)).saturating_sub(all);
        let wait = (cost <= self.burst).then(|| self.time_of(missing));
        Look::refused(remaining, wait)
    }

    fn time_of(&self, parts: u128) -> Duration {
        let nanos = parts.div_ceil(u128::from(self.per_nano.max(1)));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    pub(super) fn charge(&self, state: &mut State, cost: u64, now: Moment) {
        let parts = self.spent_of(state, now).and_then(|(spent, _)| {
            let taken = cost.checked_mul(self.per_unit)?;
            spent.checked_add(taken)
        });
        match parts {
            Some(low) => set(state, low, [0; 7], now),
            None => {
                let parts = self.spent(state, now).saturating_add(self.parts(cost));
                set_wide(state, parts, now);
            }
        }
    }

    pub(super) fn give_back(&self, state: &mut State, cost: u64, now: Moment) -> u64 {
        let back = cost.min(self.used(state, now));
        if back > 0 {
            let parts = self.spent(state, now).saturating_sub(self.parts(back));
            set_wide(state, parts, now);
        }
        back
    }

    pub(super) fn used(&self, state: &State, now: Moment) -> u64 {
        let (whole, more) = self.units(self.spent(state, now));
        whole.saturating_add(u64::from(more))
    }

    pub(super) fn adopt(&self, old: &Tokens, state: &mut State, now: Moment) {
        let spent = old.spent(state, now);
        if spent == 0 {
            *state = State::New;
            return;
        }
        let (whole, _) = old.units(spent);
        let rest = spent.saturating_sub(old.parts(whole));
        let rest = rest.saturating_mul(self.per_unit.into()).div_ceil(u128::from(old.per_unit));
        let parts = self.parts(whole).saturating_add(rest).min(self.parts(self.burst));
        set_wide(state, parts, now);
    }
}

#[inline]
fn set(state: &mut State, low: u64, high: [u8; 7], now: Moment) {
    let at = if let State::Spent { at, .. } = state { now.max(*at) } else { now };
    *state = State::Spent { low, high, at };
}

/// More than 2¹²⁰ parts are those: no bucket comes to owe them, since units stay below 2⁶⁴ and parts of one below 2⁵⁵.
#[cold]
fn set_wide(state: &mut State, parts: u128, now: Moment) {
    let [a, b, c, d, e, f, g, h, high @ .., _] = parts.min((1 << 120) - 1).to_le_bytes();
    set(state, u64::from_le_bytes([a, b, c, d, e, f, g, h]), high, now);
}

fn joined(low: u64, high: [u8; 7]) -> u128 {
    let [a, b, c, d, e, f, g] = high;
    u128::from(low) | u128::from(u64::from_le_bytes([a, b, c, d, e, f, g, 0])) << 64
}

fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
