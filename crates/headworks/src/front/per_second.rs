//! Rates by the second, as JSON tells them.

use headworks_core::units::Rate;
use serde::Serialize;

/// Cost units a second: a fraction only where it is no whole number, so that limits per second stay whole.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum PerSecond {
    Whole(u64),
    Fraction(f64),
}

impl PerSecond {
    /// A rate by the second, unless it is unlimited.
    pub(super) fn of(rate: Rate) -> Option<Self> {
        let Rate::Per { amount, unit } = rate else { return None };
        let seconds = unit.duration().as_secs();
        Some(if amount.is_multiple_of(seconds) {
            Self::Whole(amount / seconds)
        } else {
            Self::Fraction(rate.per_second())
        })
    }
}

#[cfg(test)]
mod tests {
    use headworks_core::units::Unit;

    use super::*;

    #[test]
    fn a_rate_by_the_second_is_a_fraction_only_where_it_must_be() {
        let of = |amount, unit| PerSecond::of(Rate::Per { amount, unit });
        assert_eq!(of(400, Unit::Second), Some(PerSecond::Whole(400)));
        assert_eq!(of(6000, Unit::Minute), Some(PerSecond::Whole(100)));
        assert_eq!(of(6, Unit::Minute), Some(PerSecond::Fraction(0.1)));
        assert_eq!(of(0, Unit::Day), Some(PerSecond::Whole(0)));
        assert_eq!(PerSecond::of(Rate::Unlimited), None);
    }
}
