//! What holds at every moment of every fleet. Written once; asserted where debug assertions are on, by property tests,
//! and by the simulator on each controller's tick.

use crate::units::Headroom;

/// Rounding of sums of a million floats.
const ROUNDING: f64 = 1e-6;

/// A headroom is a number from 0 to infinity: never NaN, never negative.
pub fn headroom_is_sound(headroom: Headroom) -> bool {
    headroom.value() >= 0.0
}

/// The shares of all nodes, each its own demand times the headroom, add up to the limit (units a second).
pub fn shares_add_up(limit: f64, demands: impl IntoIterator<Item = f64>, headroom: Headroom) -> bool {
    if !headroom.value().is_finite() || !limit.is_finite() {
        return true;
    }
    let shares: f64 = demands.into_iter().map(|own| own * headroom.value()).sum();
    (shares - limit).abs() <= ROUNDING * limit.max(1.0)
}

/// Doing the same again changes nothing.
pub fn is_repeatable<S: PartialEq + Copy>(state: S, step: impl Fn(S) -> S) -> bool {
    let once = step(state);
    step(once) == once
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_can_fail() {
        let half = Headroom::new(0.5).unwrap();
        assert!(headroom_is_sound(half) && headroom_is_sound(Headroom::OPEN));
        assert!(shares_add_up(100.0, [150.0, 50.0], half) && !shares_add_up(100.0, [150.0, 51.0], half));
        assert!(shares_add_up(100.0, [], Headroom::OPEN));
        assert!(is_repeatable(3, |x: i32| x.min(2)) && !is_repeatable(3, |x| x + 1));
    }
}
