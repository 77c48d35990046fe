//! The ladder: what a plan is worth by its age, when whoever made it is away.
//!
//! Enforcement never waits for the network. A young plan holds; an older one keeps its last ratio; in the end, unless
//! the limit chose otherwise, everything passes.

use std::time::Duration;

use crate::limits::{Limit, SilencePolicy};
use crate::units::Headroom;

/// How much a plan is worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PlanState {
    /// There never was one.
    #[default]
    None,
    /// Younger than its time to live.
    Fresh,
    /// Older, but the hold is not over: the last ratio stays.
    Alone,
    /// The hold is over.
    Open,
}

impl PlanState {
    /// Every state, for those who list them.
    pub const ALL: [PlanState; 4] = [PlanState::None, PlanState::Fresh, PlanState::Alone, PlanState::Open];

    /// The state of a plan of this age; `hold` counts from the controller's computation, as the age does.
    pub fn of(age: Option<Duration>, ttl: Duration, hold: Duration) -> Self {
        match age {
            None => PlanState::None,
            Some(age) if age < ttl => PlanState::Fresh,
            Some(age) if age < hold => PlanState::Alone,
            Some(_) => PlanState::Open,
        }
    }

    /// Time until a plan of this age is worth less; `None` if it never will be.
    pub fn lasts(age: Duration, ttl: Duration, hold: Duration) -> Option<Duration> {
        [ttl, hold].into_iter().filter(|end| *end > age).min().map(|end| end - age)
    }

    /// The state as metrics, logs and answers write it.
    pub fn name(self) -> &'static str {
        match self {
            PlanState::None => "none",
            PlanState::Fresh => "fresh",
            PlanState::Alone => "alone",
            PlanState::Open => "open",
        }
    }
}

/// The headroom that a limit's bucket goes by in this state, given the last one heard (`None`: none yet).
///
/// A ban holds whatever is away. A bucket whose headroom was never heard passes everything.
pub fn headroom_in_force(limit: &Limit, heard: Option<Headroom>, state: PlanState) -> Headroom {
    if limit.rate.is_ban() {
        return Headroom::SHUT;
    }
    let last = heard.unwrap_or(Headroom::OPEN);
    match (state, limit.on_silence.policy) {
        (PlanState::None, _) => Headroom::OPEN,
        (PlanState::Fresh, _) => last,
        (PlanState::Alone, SilencePolicy::Hold | SilencePolicy::Closed) => last,
        (PlanState::Alone, SilencePolicy::Open) => Headroom::OPEN,
        (PlanState::Open, SilencePolicy::Hold | SilencePolicy::Open) => Headroom::OPEN,
        (PlanState::Open, SilencePolicy::Closed) => Headroom::SHUT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::limit;
    use crate::units::{Rate, Unit};

    fn half() -> Option<Headroom> {
        Headroom::new(0.5)
    }

    #[test]
    fn age_alone_decides_the_state() {
        let of = |age| {
            PlanState::of(Some(Duration::from_secs(age)), Duration::from_secs(5), Duration::from_secs(60))
        };
        assert_eq!(
            [of(0), of(4), of(5), of(59), of(60)].map(PlanState::name),
            ["fresh", "fresh", "alone", "alone", "open"]
        );
        assert_eq!(PlanState::of(None, Duration::ZERO, Duration::ZERO), PlanState::None);
    }

    #[test]
    fn a_state_lasts_until_the_next_bound() {
        let lasts = |age| {
            PlanState::lasts(Duration::from_secs(age), Duration::from_secs(5), Duration::from_secs(60))
                .map(|lasts| lasts.as_secs())
        };
        assert_eq!(
            [lasts(0), lasts(4), lasts(5), lasts(59), lasts(60)],
            [Some(5), Some(1), Some(55), Some(1), None]
        );
    }

    #[test]
    fn the_last_ratio_stays_for_the_hold_and_then_everything_passes() {
        let limit = limit("checkout", 400);
        assert_eq!(headroom_in_force(&limit, half(), PlanState::Fresh).value(), 0.5);
        assert_eq!(headroom_in_force(&limit, half(), PlanState::Alone).value(), 0.5);
        assert_eq!(headroom_in_force(&limit, half(), PlanState::Open), Headroom::OPEN);
    }

    #[test]
    fn closed_limits_shut_and_open_ones_open_early() {
        let mut limit = limit("checkout", 400);
        limit.on_silence.policy = SilencePolicy::Closed;
        assert_eq!(headroom_in_force(&limit, half(), PlanState::Open), Headroom::SHUT);
        limit.on_silence.policy = SilencePolicy::Open;
        assert_eq!(headroom_in_force(&limit, half(), PlanState::Alone), Headroom::OPEN);
    }

    #[test]
    fn bans_never_open() {
        let mut limit = limit("banned", 0);
        limit.rate = Rate::Per { amount: 0, unit: Unit::Second };
        for state in PlanState::ALL {
            assert_eq!(headroom_in_force(&limit, None, state), Headroom::SHUT);
        }
    }
}
