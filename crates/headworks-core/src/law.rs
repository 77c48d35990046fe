//! The law: from the offered rate of a bucket to its headroom.
//!
//! Demand is always *offered*, never admitted: fed with its own output the loop would see demand fall as it drops,
//! let everything in, see it rise, and never settle.

use crate::noise::Dispersion;
use crate::units::{Headroom, Rate};

/// Least weight of a new observation that chance explains. Smaller is smoother, and slower to follow a drift.
const WEIGHT: f64 = 0.25;
/// Intervals after a jump in which an observation replaces the mean: a jump is measured over a window that is short,
/// or that began before it, and averaged with what follows it would be felt for ten seconds.
const UNSETTLED: u8 = 3;
/// Deviations within which a change is taken for noise. Beyond, it is taken at once: an average would double the
/// time to settle.
const NOISE: f64 = 3.0;
/// Weight of one observation in the drift, and how far that goes before demand is taken to have moved: three of its own
/// deviations, `√(w / (2 − w))` each. Without it the mean trails a slow rise by four intervals.
const DRIFT_WEIGHT: f64 = 0.4;
const DRIFT: f64 = 1.5;

/// What the law remembers of a bucket: its demand with the noise averaged out, and how noisy it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Demand {
    /// Offered rate, in units a second.
    mean: f64,
    dispersion: Dispersion,
    /// Deviations of the last observations from the mean, averaged: chance brings both signs, a drift one.
    drift: f64,
    /// Intervals since the last jump, as far as they matter.
    settled: u8,
}

impl Demand {
    /// The offered rate with the noise averaged out, in units a second.
    pub fn rate(self) -> f64 {
        self.mean
    }

    /// The step of one interval: noise is averaged, more than noise is taken at once. `seconds` is the window over
    /// which the rate was observed.
    #[must_use]
    pub fn settle(self, observed: f64, seconds: f64) -> Self {
        if !self.is_noise(observed, seconds) {
            let dispersion = self.measured_dispersion(observed, seconds);
            return Self { mean: observed, dispersion, settled: 0, drift: 0.0 };
        }
        let settled = self.settled.saturating_add(1);
        if settled <= UNSETTLED {
            return Self { mean: observed, settled, ..self };
        }
        if self.is_drifting(observed, seconds) {
            let dispersion = self.measured_dispersion(observed, seconds);
            return Self { mean: observed, dispersion, settled, drift: 0.0 };
        }
        // The mean of all since the jump, until they are so many that a drift would be missed.
        let weight = WEIGHT.max(1.0 / f64::from(settled - UNSETTLED + 1));
        let mean = self.mean + weight * (observed - self.mean);
        let dispersion = self.measured_dispersion(observed, seconds);
        Self { mean, dispersion, settled, drift: self.drift_with(observed, seconds) }
    }

    /// The step between two intervals: takes a change that noise does not explain, and nothing else, so that
    /// hearing the same twice changes nothing.
    #[must_use]
    pub fn jump(self, observed: f64, seconds: f64) -> Self {
        match (self.is_noise(observed, seconds), self.settled) {
            (false, _) => Self { mean: observed, settled: 0, drift: 0.0, ..self },
            // What follows a jump at once belongs to it: nodes hear of it one after the other.
            (true, settled) if settled < UNSETTLED => Self { mean: observed, drift: 0.0, ..self },
            (true, _) => self,
        }
    }

    fn is_noise(self, observed: f64, seconds: f64) -> bool {
        let explained = NOISE * self.dispersion.deviation(self.mean * seconds);
        observed > 0.0 && ((observed - self.mean) * seconds).abs() <= explained
    }

    fn is_drifting(self, observed: f64, seconds: f64) -> bool {
        self.drift_with(observed, seconds).abs() > DRIFT
    }

    fn drift_with(self, observed: f64, seconds: f64) -> f64 {
        let deviations = (observed - self.mean) * seconds / self.dispersion.deviation(self.mean * seconds);
        self.drift + DRIFT_WEIGHT * (deviations - self.drift)
    }

    fn measured_dispersion(self, observed: f64, seconds: f64) -> Dispersion {
        self.dispersion.with(self.mean * seconds, observed * seconds)
    }
}

/// The headroom of a bucket: its limit over its demand.
pub fn headroom(rate: Rate, demand: Demand) -> Headroom {
    Headroom::of(rate.per_second(), demand.rate())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invariant::{headroom_is_sound, is_repeatable, shares_add_up};
    use crate::units::Unit;
    use proptest::prelude::*;

    const LIMIT: Rate = Rate::Per { amount: 1000, unit: Unit::Second };

    fn settled(rate: f64) -> Demand {
        (0..200).fold(Demand::default(), |demand, _| demand.settle(rate, 1.0))
    }

    /// The loop in its smallest form: one host, whose demand is reported a second late.
    fn admitted_over_a_minute(report: impl Fn(f64, f64) -> f64) -> Vec<f64> {
        let offered = 3000.0;
        let mut demand = Demand::default();
        let mut ratio = 0.0;
        (0..60)
            .map(|_| {
                let admitted = offered * (1.0 - ratio);
                demand = demand.settle(report(offered, admitted), 1.0);
                ratio = headroom(LIMIT, demand).drop_ratio().value();
                admitted
            })
            .collect()
    }

    #[test]
    fn the_loop_settles_on_offered_demand_and_never_on_admitted() {
        let by_offered = admitted_over_a_minute(|offered, _| offered);
        assert!(by_offered[2..].iter().all(|a| (a - 1000.0).abs() < 1.0), "{by_offered:?}");
        // The same law fed with its own output: the fault that this test is here to keep out.
        let by_admitted = admitted_over_a_minute(|_, admitted| admitted);
        let mean = by_admitted[10..].iter().sum::<f64>() / 50.0;
        assert!(
            mean > 1500.0,
            "a loop fed with admitted traffic cannot hold the limit, yet it admitted {mean}"
        );
    }

    #[test]
    fn a_surge_is_taken_at_once() {
        let demand = settled(500.0).settle(3000.0, 1.0);
        assert!((headroom(LIMIT, demand).drop_ratio().value() - 2.0 / 3.0).abs() < 1e-9);
        assert!((settled(500.0).jump(3000.0, 1.0).rate() - 3000.0).abs() < 1e-9);
    }

    #[test]
    fn noise_is_averaged() {
        assert!((settled(1000.0).settle(1040.0, 1.0).rate() - 1010.0).abs() < 1.0);
        assert!((settled(1000.0).jump(1040.0, 1.0).rate() - 1000.0).abs() < 1.0);
    }

    #[test]
    fn traffic_that_ends_leaves_nothing_behind() {
        assert_eq!(headroom(LIMIT, settled(2.0).settle(0.0, 1.0)), Headroom::OPEN);
    }

    #[test]
    fn zero_bans_and_unlimited_never_drops() {
        let ban = Rate::Per { amount: 0, unit: Unit::Second };
        assert_eq!(headroom(ban, Demand::default()), Headroom::SHUT);
        assert_eq!(headroom(Rate::Unlimited, settled(1e9)).drop_ratio().value(), 0.0);
        assert_eq!(headroom(Rate::Unlimited, Demand::default()), Headroom::OPEN);
    }

    proptest! {
        #[test]
        fn headroom_is_never_nan_or_negative(amount: u64, offered in 0.0..1e18f64, seconds in 0.0..100.0f64) {
            let rate = Rate::Per { amount, unit: Unit::Second };
            let demand = Demand::default().settle(offered, seconds).jump(offered / 3.0, seconds);
            prop_assert!(headroom_is_sound(headroom(rate, demand)));
        }

        #[test]
        fn hearing_a_jump_twice_changes_nothing(before in 0.0..1e6f64, observed in 0.0..1e6f64) {
            prop_assert!(is_repeatable(settled(before), |demand| demand.jump(observed, 1.0)));
        }

        #[test]
        fn shares_add_up_to_the_limit(nodes in prop::collection::vec(0.1..1e5f64, 1..50)) {
            let offered: f64 = nodes.iter().sum();
            prop_assert!(shares_add_up(1000.0, nodes, Headroom::of(1000.0, offered)));
        }
    }
}
