//! The ladder: what a plan is worth by its age, when whoever made it is away.
//!
//! Enforcement never waits for the network. A young plan holds; an older one keeps its last ratio; in the end, unless
//! the limit chose otherwise, everything passes.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use rustc_hash::FxHasher;

use crate::limits::{Limit, SilencePolicy};
use crate::message::Incarnation;
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

/// Longest time that opening takes, and by which nodes and limits differ in when they begin: were all to open at once, what
/// they protect would meet the whole of the demand from one moment to the next.
const RAMP: Duration = Duration::from_secs(5);
/// A ramp is no longer than this part of the hold.
const RAMP_PART: u32 = 4;
/// Time between two steps of the ramp.
const RAMP_STEP: Duration = Duration::from_millis(100);

/// Where a limit stands at a node, by the age of the node's plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rung {
    /// What the plan is worth by the limit's own hold.
    pub state: PlanState,
    /// The part of its drop ratio that is given up: 0 while the last ratio stays, 1 when all passes.
    pub opened: f64,
    /// Time until it stands elsewhere; `None` if it never will.
    pub lasts: Option<Duration>,
}

impl Rung {
    /// The rung of a limit. `age` and `ttl` are those of the plan in hand, `hold` is the node's, for limits that have none of
    /// their own; `spread` is from 0 to 1, and differs between nodes and limits.
    pub fn of(limit: &Limit, age: Option<Duration>, ttl: Duration, hold: Duration, spread: f64) -> Self {
        let hold = limit.on_silence.hold.unwrap_or(hold);
        let state = PlanState::of(age, ttl, hold);
        let Some(age) = age else { return Self { state, opened: 0.0, lasts: None } };
        let ramp = RAMP.min(hold / RAMP_PART);
        let begins = match limit.on_silence.policy {
            SilencePolicy::Open => Some(ttl),
            SilencePolicy::Hold => Some(hold),
            SilencePolicy::Closed => None,
        }
        .map(|from| from + ramp.mul_f64(spread));
        let opened = begins.map_or(0.0, |begins| part_of(age, begins, ramp));
        let steps = (opened > 0.0 && opened < 1.0).then(|| age + RAMP_STEP);
        let bounds = [Some(ttl), Some(hold), begins, steps].into_iter().flatten();
        let lasts = bounds.filter(|bound| *bound > age).min().map(|bound| bound - age);
        Self { state, opened, lasts }
    }

    /// Whether the node knows nothing better than what it was told last, and holds itself to it.
    pub fn holds(self) -> bool {
        matches!(self.state, PlanState::Fresh | PlanState::Alone) && self.opened <= 0.0
    }

    /// The headroom that a bucket of the limit goes by, given the last one heard (`None`: none yet).
    ///
    /// A ban holds whatever is away. A bucket whose headroom was never heard passes everything.
    pub fn headroom(self, limit: &Limit, heard: Option<Headroom>) -> Headroom {
        if limit.rate.is_ban() {
            return Headroom::SHUT;
        }
        if self.state == PlanState::Open && limit.on_silence.policy == SilencePolicy::Closed {
            return Headroom::SHUT;
        }
        let last = heard.unwrap_or(Headroom::OPEN);
        let ratio = last.drop_ratio().value();
        if self.opened <= 0.0 || ratio <= 0.0 {
            return last;
        }
        Headroom::new(1.0 - ratio * (1.0 - self.opened)).unwrap_or(Headroom::OPEN)
    }
}

/// Where in the ramp a limit begins at a node, from 0 to 1: by chance, and the same for a life of the node.
pub fn spread(node: Incarnation, limit: &str) -> f64 {
    let mut hasher = FxHasher::default();
    (node.0, limit).hash(&mut hasher);
    let bits = u32::try_from(hasher.finish() >> 32).unwrap_or_default();
    f64::from(bits) / f64::from(u32::MAX)
}

/// How much of `length` has passed since `begins`.
fn part_of(age: Duration, begins: Duration, length: Duration) -> f64 {
    if age < begins {
        0.0
    } else if length.is_zero() {
        1.0
    } else {
        ((age - begins).as_secs_f64() / length.as_secs_f64()).min(1.0)
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

    /// The rung at this age of a plan, with a TTL of 5 s and a hold of 60 s.
    fn rung(limit: &Limit, age: u64, spread: f64) -> Rung {
        let seconds = Duration::from_secs;
        Rung::of(limit, Some(seconds(age)), seconds(5), seconds(60), spread)
    }

    fn in_force(limit: &Limit, age: u64) -> f64 {
        rung(limit, age, 0.0).headroom(limit, half()).value()
    }

    #[test]
    fn a_rung_lasts_until_the_next_bound() {
        let limit = limit("checkout", 400);
        let lasts = |age| rung(&limit, age, 0.5).lasts.map(|lasts| lasts.as_millis());
        assert_eq!(
            [lasts(0), lasts(4), lasts(5), lasts(59), lasts(60), lasts(64), lasts(70)],
            [Some(5000), Some(1000), Some(55_000), Some(1000), Some(2500), Some(100), None]
        );
    }

    #[test]
    fn the_last_ratio_stays_for_the_hold_and_is_then_given_up_over_seconds() {
        let limit = limit("checkout", 400);
        assert_eq!([in_force(&limit, 0), in_force(&limit, 5), in_force(&limit, 60)], [0.5; 3]);
        assert_eq!([61, 62, 63, 64].map(|age| in_force(&limit, age)), [0.6, 0.7, 0.8, 0.9]);
        assert_eq!(in_force(&limit, 65), 1.0);
        assert!(rung(&limit, 60, 0.0).headroom(&limit, Headroom::new(2.0)).value() > 1.0);
    }

    #[test]
    fn nodes_and_limits_do_not_open_at_the_same_time() {
        let limit = limit("checkout", 400);
        let opened = |age, spread| rung(&limit, age, spread).opened;
        assert_eq!([opened(62, 0.0), opened(62, 0.2), opened(62, 0.9)], [0.4, 0.2, 0.0]);
        assert_eq!(opened(70, 0.999), 1.0);
    }

    #[test]
    fn the_ramps_of_a_fleet_begin_at_all_times() {
        let spreads = (1..=1000).map(|node| spread(Incarnation(node), "checkout"));
        let spreads: Vec<f64> = spreads.collect();
        for tenth in (0..10).map(|tenth| f64::from(tenth) / 10.0) {
            let nodes = spreads.iter().filter(|spread| (tenth..tenth + 0.1).contains(*spread)).count();
            assert!((60..140).contains(&nodes), "{nodes} of 1000 from {tenth}");
        }
    }

    #[test]
    fn a_short_hold_has_a_short_ramp() {
        let limit = limit("checkout", 400);
        let ms = Duration::from_millis;
        let opened = |age| Rung::of(&limit, Some(ms(age)), ms(1000), ms(2000), 0.0).opened;
        assert_eq!([opened(2000), opened(2250), opened(2500)], [0.0, 0.5, 1.0]);
        assert_eq!(Rung::of(&limit, Some(ms(0)), ms(0), ms(0), 0.5).opened, 1.0);
    }

    #[test]
    fn closed_limits_shut_and_open_ones_open_early() {
        let mut limit = limit("checkout", 400);
        limit.on_silence.policy = SilencePolicy::Closed;
        assert_eq!([in_force(&limit, 59), in_force(&limit, 60)], [0.5, 0.0]);
        assert!(rung(&limit, 59, 0.0).holds());
        limit.on_silence.policy = SilencePolicy::Open;
        assert_eq!([in_force(&limit, 5), in_force(&limit, 10)], [0.5, 1.0]);
        assert!(!rung(&limit, 6, 0.0).holds());
    }

    #[test]
    fn bans_never_open() {
        let mut limit = limit("banned", 0);
        limit.rate = Rate::Per { amount: 0, unit: Unit::Second };
        for age in [0, 5, 60, 90, 100_000] {
            assert_eq!(rung(&limit, age, 0.0).headroom(&limit, None), Headroom::SHUT);
        }
        let without = Rung::of(&limit, None, Duration::ZERO, Duration::ZERO, 0.0);
        assert_eq!(without.headroom(&limit, None), Headroom::SHUT);
    }
}
