//! What a limit has left, and when to ask again: the numbers that clients are told.

use headworks_core::limits::Limit;
use headworks_core::units::{Headroom, Rate, Unit};

/// The amount of a limit and what it means to a client; an unlimited one has none of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Allowance {
    /// Cost units that the whole fleet may pass in a unit of the limit's time.
    pub(super) limit: u64,
    /// The same, in a second.
    pub(super) rate: u64,
    unit: Unit,
}

impl Allowance {
    /// The allowance of `limit`, unless it is unlimited.
    pub(super) fn of(limit: &Limit) -> Option<Self> {
        match limit.rate {
            Rate::Unlimited => None,
            Rate::Per { amount, unit } => Some(Self { limit: amount, rate: per_second(amount, unit), unit }),
        }
    }

    /// What the limit has left this second, in the whole fleet, at the present demand: `limit · (1 − 1/h)`, rounded
    /// down; 0 for h ≤ 1.
    ///
    /// Demand is `limit / h`, so this is limit minus demand. It foretells nothing of one client: the drop ratio
    /// falls on all alike.
    #[allow(clippy::cast_possible_truncation, reason = "what is left is neither below 0 nor above the limit")]
    pub(super) fn remaining(self, headroom: Headroom) -> u64 {
        // Demand often is a whole number; a last bit lost on the way through h must not cost one.
        const ROUNDING: f64 = 1e-6;
        if headroom.value() <= 1.0 {
            return 0;
        }
        let limit = self.limit as f64;
        let left = limit - limit / headroom.value();
        ((left + ROUNDING) as u64).min(self.limit)
    }

    /// Milliseconds after which a refused client does well to ask again; nothing for a ban, which no wait ends.
    pub(super) fn retry_after_ms(self) -> Option<u64> {
        match (self.limit, self.unit) {
            (0, _) => None,
            (_, Unit::Second) => Some(1000),
            (_, Unit::Minute | Unit::Hour | Unit::Day) => Some(1000),
        }
    }
}

fn per_second(amount: u64, unit: Unit) -> u64 {
    match unit {
        Unit::Second => amount,
        Unit::Minute | Unit::Hour | Unit::Day => amount,
    }
}

/// Milliseconds as the whole seconds of a `Retry-After` (RFC 9110, delay-seconds): rounded up, since a client that
/// waits exactly that long must not come early; at least 1, since 0 invites a busy loop.
pub(super) fn retry_after_seconds(ms: u64) -> u64 {
    ms.div_ceil(1000).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn per_second(amount: u64) -> Allowance {
        Allowance { limit: amount, rate: amount, unit: Unit::Second }
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
    fn no_wait_ends_a_ban() {
        assert_eq!(per_second(0).retry_after_ms(), None);
        assert_eq!(per_second(1).retry_after_ms(), Some(1000));
    }

    #[test]
    fn seconds_to_wait_are_rounded_up_and_never_zero() {
        let waits = [0, 1, 200, 1000, 1001, 12_010, 59_990].map(retry_after_seconds);
        assert_eq!(waits, [1, 1, 1, 1, 2, 13, 60]);
    }
}
