//! Quantities with their units in the type: moments, rates, headrooms and drop ratios.

use std::fmt;
use std::time::Duration;

/// A point on its holder's monotonic clock, in nanoseconds since an origin of the holder's choice.
///
/// Two moments compare only when one process took both; between processes, durations travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

impl Moment {
    /// A moment `since_origin` after the origin of the clock; past 584 years it stands still.
    pub fn after(since_origin: Duration) -> Self {
        Self(u64::try_from(since_origin.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The same in nanoseconds.
    #[inline]
    pub fn after_nanos(since_origin: u64) -> Self {
        Self(since_origin)
    }

    /// Time gone by since `earlier`; zero if `earlier` is in the future.
    #[inline]
    pub fn since(self, earlier: Moment) -> Duration {
        Duration::from_nanos(self.nanos_since(earlier))
    }

    /// The same in nanoseconds.
    #[inline]
    pub fn nanos_since(self, earlier: Moment) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The last moment up to this one that is a whole number of `step`s after the origin; a step of 0 is none.
    #[must_use]
    #[inline]
    pub fn rounded_down(self, step: Duration) -> Self {
        let step = u64::try_from(step.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0 - self.0.checked_rem(step).unwrap_or(0))
    }
}

impl std::ops::Add<Duration> for Moment {
    type Output = Moment;

    fn add(self, later: Duration) -> Moment {
        Self::after(Duration::from_nanos(self.0).saturating_add(later))
    }
}

/// How much a limit lets through in a unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rate {
    /// Counted, never dropped.
    Unlimited,
    /// An amount of cost units for each unit of time; an amount of 0 bans.
    Per {
        /// Cost units for each `unit`.
        amount: u64,
        /// The unit of time.
        unit: Unit,
    },
}

impl Rate {
    /// Cost units a second; infinite when unlimited.
    pub fn per_second(self) -> f64 {
        match self {
            Rate::Unlimited => f64::INFINITY,
            #[allow(clippy::cast_precision_loss, reason = "a rate above 2^53 a second is beyond any fleet")]
            Rate::Per { amount, unit } => amount as f64 / unit.duration().as_secs_f64(),
        }
    }

    /// Cost units in its own unit of time; `None` when unlimited.
    pub fn per_unit(self) -> Option<u64> {
        match self {
            Rate::Unlimited => None,
            Rate::Per { amount, .. } => Some(amount),
        }
    }

    /// One that lets something through each second, and is held by parts of each second: no budget, no ban.
    pub fn is_by_the_second(self) -> bool {
        matches!(self, Rate::Per { amount: 1.., unit: Unit::Second })
    }

    /// Whether its unit is too long for a drop ratio: only exact limits count over months.
    pub fn is_for_exact_only(self) -> bool {
        matches!(self, Rate::Per { unit: Unit::Month | Unit::Year, .. })
    }

    /// A ban drops everything, with or without traffic, whatever is away.
    pub fn is_ban(self) -> bool {
        matches!(self, Rate::Per { amount: 0, .. })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rate::Unlimited => f.write_str("unlimited"),
            Rate::Per { amount, unit } => write!(f, "{amount}/{}", unit.name()),
        }
    }
}

/// A unit of time that a rate may be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// One second.
    Second,
    /// 60 seconds.
    Minute,
    /// 60 minutes.
    Hour,
    /// 24 hours.
    Day,
    /// 30 days, whatever the calendar says. For exact limits only.
    Month,
    /// 365 days, whatever the calendar says. For exact limits only.
    Year,
}

impl Unit {
    /// The length of one unit.
    pub fn duration(self) -> Duration {
        match self {
            Unit::Second => Duration::from_secs(1),
            Unit::Minute => Duration::from_secs(60),
            Unit::Hour => Duration::from_secs(3600),
            Unit::Day => Duration::from_secs(24 * 3600),
            Unit::Month => Duration::from_secs(30 * 24 * 3600),
            Unit::Year => Duration::from_secs(365 * 24 * 3600),
        }
    }

    /// The unit as limits files write it.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Second => "second",
            Unit::Minute => "minute",
            Unit::Hour => "hour",
            Unit::Day => "day",
            Unit::Month => "month",
            Unit::Year => "year",
        }
    }
}

/// Limit divided by offered rate, not capped: above 1 there is room, at 0 all is dropped.
///
/// Kept as such, never as `1 − h` and never rounded: a limit of 1 a minute over busy hosts needs a drop ratio
/// that is right to a millionth, and only `h` itself has that precision near 0.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Headroom(f64);

impl Headroom {
    /// No traffic, or no limit: everything passes.
    pub const OPEN: Headroom = Headroom(f64::INFINITY);
    /// Nothing passes.
    pub const SHUT: Headroom = Headroom(0.0);

    /// A headroom from its number; `None` for NaN and for numbers below 0, which no law gives.
    pub fn new(value: f64) -> Option<Self> {
        (value >= 0.0).then_some(Self(value))
    }

    /// The headroom of a bucket: `limit / offered`, both in cost units a second.
    ///
    /// A limit of 0 is shut with or without traffic; otherwise no traffic leaves it open. Never NaN.
    pub fn of(limit_per_second: f64, offered_per_second: f64) -> Self {
        if limit_per_second <= 0.0 {
            Self::SHUT
        } else if offered_per_second > 0.0 {
            Self(limit_per_second / offered_per_second)
        } else {
            Self::OPEN
        }
    }

    /// The headroom of a limit that is so many times as high.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self::new(self.0 * factor).unwrap_or(self)
    }

    /// The number itself, from 0 to infinity.
    pub fn value(self) -> f64 {
        self.0
    }

    /// The bits of the number: ordered as the numbers are, so that decisions compare them as integers.
    #[inline]
    pub fn to_bits(self) -> u64 {
        // Not −0, whose bits are above all others.
        (self.0 + 0.0).to_bits()
    }

    /// A headroom from its bits; those that none has leave it open.
    #[inline]
    pub fn from_bits(bits: u64) -> Self {
        if bits <= Self::OPEN.0.to_bits() { Self(f64::from_bits(bits)) } else { Self::OPEN }
    }

    /// Whether it differs from `told` by too little to be worth telling again: by a thousandth where requests are dropped,
    /// and by a fiftieth where there is room, since no decision depends on it there.
    pub fn is_near(self, told: Self) -> bool {
        let tolerance = if self.0 > 1.0 && told.0 > 1.0 { 0.02 } else { 0.001 };
        self.0 == told.0 || told.0.is_finite() && (self.0 - told.0).abs() <= tolerance * told.0
    }

    /// The fraction of offered requests to drop: `max(0, 1 − h)`.
    pub fn drop_ratio(self) -> DropRatio {
        DropRatio((1.0 - self.0).clamp(0.0, 1.0))
    }
}

/// The fraction of offered requests to drop, from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct DropRatio(f64);

impl DropRatio {
    /// Drops nothing.
    pub const NONE: DropRatio = DropRatio(0.0);
    /// Drops everything.
    pub const ALL: DropRatio = DropRatio(1.0);

    /// A drop ratio from its number; `None` outside 0..=1.
    pub fn new(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Self(value))
    }

    /// The number itself, from 0 to 1.
    pub fn value(self) -> f64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headrooms_are_near_where_no_decision_depends_on_the_difference() {
        let near = |new, told| Headroom::new(new).unwrap().is_near(Headroom::new(told).unwrap());
        assert!(near(1.31, 1.30) && near(0.500_1, 0.5) && near(f64::INFINITY, f64::INFINITY));
        assert!(!near(1.0, 1.01) && !near(0.51, 0.5) && !near(0.0, 0.001));
        assert!(!near(1.1, f64::INFINITY) && !near(f64::INFINITY, 1.1));
    }

    #[test]
    fn bits_are_ordered_as_headrooms_are_and_none_are_taken_for_what_they_are_not() {
        let headrooms = [-0.0, f64::MIN_POSITIVE, 1e-6, 0.5, 1.0, 1e9, f64::INFINITY].map(Headroom);
        assert!(headrooms.is_sorted_by_key(|headroom| headroom.to_bits()));
        assert!(headrooms.iter().all(|headroom| Headroom::from_bits(headroom.to_bits()) == *headroom));
        for none in [f64::NAN.to_bits(), (-1.0f64).to_bits(), u64::MAX] {
            assert_eq!(Headroom::from_bits(none), Headroom::OPEN);
        }
    }
}
