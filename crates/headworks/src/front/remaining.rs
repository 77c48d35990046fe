//! What a limit has left, and when to ask again: the numbers that clients are told.

use std::time::Duration;

use headworks_core::limits::Limit;
use headworks_core::units::{Headroom, Rate, Unit};
use serde::Serialize;

/// The control plane hears of less demand once a second; who asks sooner only adds to what is refused.
const LEAST_WAIT: Duration = Duration::from_secs(1);
/// A slow budget may have room before its rate says so: others stop asking, or the limit is raised.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The amount of a limit and what it means to a client; an unlimited one has none of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Allowance {
    /// Cost units that the whole fleet may pass in a unit of the limit's time.
    pub(super) limit: u64,
    /// The same, in a second.
    pub(super) rate: PerSecond,
    unit: Unit,
    /// Most that the limit saves up, in cost units; nothing for limits per second.
    budget: Option<u64>,
}

/// Cost units a second: a fraction only where it is no whole number, so that limits per second stay whole.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum PerSecond {
    Whole(u64),
    Fraction(f64),
}

impl PerSecond {
    /// A rate by the second, unless it is unlimited.
    pub(super) fn of_rate(rate: Rate) -> Option<Self> {
        match rate {
            Rate::Unlimited => None,
            Rate::Per { amount, unit } => Some(Self::of(amount, unit)),
        }
    }

    fn of(amount: u64, unit: Unit) -> Self {
        let seconds = unit.duration().as_secs();
        if amount.is_multiple_of(seconds) {
            Self::Whole(amount / seconds)
        } else {
            Self::Fraction(Rate::Per { amount, unit }.per_second())
        }
    }
}

impl Allowance {
    /// The allowance of `limit`, unless it is unlimited.
    pub(super) fn of(limit: &Limit) -> Option<Self> {
        let Rate::Per { amount, unit } = limit.rate else { return None };
        Some(Self { limit: amount, rate: PerSecond::of(amount, unit), unit, budget: limit.budget() })
    }

    /// What the limit has left, in the whole fleet, at the present demand, in cost units; 0 for h ≤ 1.
    ///
    /// It foretells nothing of one client: the drop ratio falls on all alike.
    pub(super) fn remaining(self, headroom: Headroom) -> u64 {
        match self.budget {
            _ if headroom.value() <= 1.0 => 0,
            // The headroom of a budget is (saved + a minute's worth) / offered in the last minute, and one number
            // does not tell the two apart. What is saved is at most the budget, so this is an upper bound.
            Some(budget) => budget,
            None => self.left_this_second(headroom),
        }
    }

    /// `limit · (1 − 1/h)`, rounded down. Demand is `limit / h`, so this is limit minus demand.
    #[allow(clippy::cast_possible_truncation, reason = "what is left is neither below 0 nor above the limit")]
    fn left_this_second(self, headroom: Headroom) -> u64 {
        // Demand often is a whole number; a last bit lost on the way through h must not cost one.
        const ROUNDING: f64 = 1e-6;
        let limit = self.limit as f64;
        let left = limit - limit / headroom.value();
        ((left + ROUNDING) as u64).min(self.limit)
    }

    /// Milliseconds after which a refused client does well to ask again: the time in which the rate gives one cost
    /// unit, from a second to a minute. Nothing for a ban, which no wait ends.
    pub(super) fn retry_after_ms(self) -> Option<u64> {
        let nanoseconds = self.unit.duration().as_nanos().checked_div(u128::from(self.limit))?;
        let wait = Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX));
        u64::try_from(wait.clamp(LEAST_WAIT, LONGEST_WAIT).as_millis()).ok()
    }
}

/// A wait in milliseconds, rounded up: who comes a part of one too early is refused again.
pub(super) fn whole_milliseconds(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// Milliseconds as the whole seconds of a `Retry-After` (RFC 9110, delay-seconds): rounded up, since a client that
/// waits exactly that long must not come early; at least 1, since 0 invites a busy loop.
pub(super) fn retry_after_seconds(ms: u64) -> u64 {
    ms.div_ceil(1000).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowance(amount: u64, unit: Unit, budget: Option<u64>) -> Allowance {
        Allowance { limit: amount, rate: PerSecond::of(amount, unit), unit, budget }
    }

    fn per_second(amount: u64) -> Allowance {
        allowance(amount, Unit::Second, None)
    }

    #[test]
    fn what_remains_is_limit_minus_demand() {
        for demand in 1..=10_u32 {
            let left = per_second(10).remaining(Headroom::of(10.0, f64::from(demand)));
            assert_eq!(left, u64::from(10 - demand), "at a demand of {demand}");
        }
    }

    #[test]
    fn a_part_of_a_unit_does_not_remain() {
        assert_eq!(per_second(10).remaining(Headroom::of(10.0, 0.5)), 9);
    }

    #[test]
    fn nothing_remains_at_or_over_the_limit() {
        assert_eq!(per_second(400).remaining(Headroom::of(400.0, 400.0)), 0);
        assert_eq!(per_second(400).remaining(Headroom::of(400.0, 4000.0)), 0);
        assert_eq!(per_second(0).remaining(Headroom::SHUT), 0);
    }

    #[test]
    fn all_remains_without_traffic() {
        assert_eq!(per_second(400).remaining(Headroom::OPEN), 400);
        assert_eq!(per_second(u64::MAX).remaining(Headroom::OPEN), u64::MAX);
    }

    #[test]
    fn a_budget_tells_at_most_what_it_saves_up_and_nothing_when_it_is_used_up() {
        let hourly = allowance(1000, Unit::Hour, Some(17));
        assert_eq!(hourly.remaining(Headroom::OPEN), 17);
        assert_eq!(hourly.remaining(Headroom::of(3.0, 2.0)), 17);
        assert_eq!(hourly.remaining(Headroom::of(2.0, 2.0)), 0);
        assert_eq!(hourly.remaining(Headroom::SHUT), 0);
    }

    #[test]
    fn a_wait_gives_the_rate_time_for_one_unit_from_a_second_to_a_minute() {
        let wait = |amount, unit| allowance(amount, unit, Some(1)).retry_after_ms();
        assert_eq!(wait(6, Unit::Minute), Some(10_000));
        assert_eq!(wait(50_000, Unit::Day), Some(1728));
        assert_eq!(wait(1000, Unit::Minute), Some(1000));
        assert_eq!(wait(1, Unit::Day), Some(60_000));
        assert_eq!(wait(0, Unit::Day), None);
        assert_eq!(per_second(400).retry_after_ms(), Some(1000));
    }

    #[test]
    fn a_rate_by_the_second_is_a_fraction_only_where_it_must_be() {
        assert_eq!(PerSecond::of(400, Unit::Second), PerSecond::Whole(400));
        assert_eq!(PerSecond::of(6000, Unit::Minute), PerSecond::Whole(100));
        assert_eq!(PerSecond::of(6, Unit::Minute), PerSecond::Fraction(0.1));
        assert_eq!(PerSecond::of(0, Unit::Day), PerSecond::Whole(0));
    }

    #[test]
    fn no_wait_ends_a_ban() {
        assert_eq!(per_second(0).retry_after_ms(), None);
        assert_eq!(per_second(1).retry_after_ms(), Some(1000));
    }

    #[test]
    fn a_wait_is_rounded_up_to_milliseconds() {
        let waits = [0, 1, 1_000_000, 1_000_001].map(|nanos| whole_milliseconds(Duration::from_nanos(nanos)));
        assert_eq!(waits, [0, 1, 1, 2]);
    }

    #[test]
    fn seconds_to_wait_are_rounded_up_and_never_zero() {
        let waits = [0, 1, 200, 1000, 1001, 12_010, 59_990].map(retry_after_seconds);
        assert_eq!(waits, [1, 1, 1, 1, 2, 13, 60]);
    }
}
