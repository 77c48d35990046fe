//! What each limit had of the requests that a proxy counted.
//!
//! A proxy has one bucket of tokens for all limits that a request meets, and tells how many passed and how many did not. The
//! limits form a pipeline all the same: each counts what the enforced ones before it let through.

use crate::meter::units;

/// A limit, as the requests met it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Step {
    /// Its headroom, not capped.
    pub(super) headroom: f64,
    pub(super) enforced: bool,
}

/// What one limit had of the requests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Part {
    pub(super) offered: u64,
    pub(super) dropped: u64,
    /// Of a limit in shadow; not yet in whole requests.
    pub(super) would_drop: f64,
    /// What a limit behind it dropped.
    pub(super) refused_later: u64,
}

impl Step {
    /// A limit that says nothing.
    pub(super) const PASSES: Self = Self { headroom: f64::INFINITY, enforced: false };

    /// The part that it lets pass.
    fn passes(self) -> f64 {
        self.headroom.min(1.0)
    }
}

/// Shares what was denied out among the limits, by what each was to drop of what reached it. What was denied though none drops
/// is laid to the limit with the least headroom: the tokens are those of a moment before.
pub(super) fn split(allowed: u64, denied: u64, steps: &[Step]) -> Vec<Part> {
    let weights = weights(steps);
    let (mut left, mut weight_left) = (denied, weights.iter().sum::<f64>());
    let mut reaches = allowed.saturating_add(denied);
    let mut parts = Vec::with_capacity(steps.len());
    for (step, weight) in steps.iter().zip(&weights) {
        let dropped = portion(left, *weight, weight_left);
        weight_left -= weight;
        left -= dropped;
        let would_drop = if step.enforced { 0.0 } else { units(reaches) * (1.0 - step.passes()) };
        let passed = reaches - dropped;
        parts.push(Part { offered: reaches, dropped, would_drop, refused_later: left });
        reaches = passed;
    }
    // What no limit that is enforced can have dropped was denied by nobody.
    if weights.iter().all(|weight| *weight <= 0.0) {
        parts.iter_mut().for_each(|part| part.refused_later = 0);
    }
    parts
}

/// What each was to drop, as a part of all requests.
fn weights(steps: &[Step]) -> Vec<f64> {
    let mut through = 1.0;
    let drops = steps.iter().map(|step| {
        let reached = through;
        if step.enforced {
            through *= step.passes();
            reached - through
        } else {
            0.0
        }
    });
    let mut weights: Vec<f64> = drops.collect();
    if weights.iter().all(|weight| *weight <= 0.0) {
        let enforced = steps.iter().enumerate().filter(|(_, step)| step.enforced);
        if let Some((tightest, _)) = enforced.min_by(|(_, a), (_, b)| a.headroom.total_cmp(&b.headroom)) {
            weights[tightest] = 1.0;
        }
    }
    weights
}

/// The part of `left` that this weight has among those that are left; all of it for the last.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of a count is a count")]
fn portion(left: u64, weight: f64, weight_left: f64) -> u64 {
    if weight <= 0.0 {
        return 0;
    }
    let part = weight / weight_left;
    if part > 1.0 - 1e-9 { left } else { ((units(left) * part).round() as u64).min(left) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enforced(headroom: f64) -> Step {
        Step { headroom, enforced: true }
    }

    fn shadow(headroom: f64) -> Step {
        Step { headroom, enforced: false }
    }

    fn dropped(allowed: u64, denied: u64, steps: &[Step]) -> Vec<u64> {
        split(allowed, denied, steps).iter().map(|part| part.dropped).collect()
    }

    #[test]
    fn one_limit_has_all_that_was_denied() {
        let parts = split(60, 40, &[enforced(0.6)]);
        assert_eq!(parts, [Part { offered: 100, dropped: 40, would_drop: 0.0, refused_later: 0 }]);
    }

    #[test]
    fn each_limit_counts_what_the_ones_before_it_let_through() {
        let parts = split(40, 60, &[enforced(0.8), shadow(0.5), enforced(0.5)]);
        assert_eq!(parts.iter().map(|part| part.offered).collect::<Vec<_>>(), [100, 80, 80]);
        assert_eq!(parts.iter().map(|part| part.dropped).collect::<Vec<_>>(), [20, 0, 40]);
        assert_eq!(parts.iter().map(|part| part.refused_later).collect::<Vec<_>>(), [40, 40, 0]);
        assert!((parts[1].would_drop - 40.0).abs() < 1e-9);
    }

    #[test]
    fn what_no_limit_was_to_drop_is_laid_to_the_tightest() {
        assert_eq!(dropped(90, 10, &[enforced(3.0), enforced(1.1), enforced(f64::INFINITY)]), [0, 10, 0]);
    }

    #[test]
    fn nothing_is_laid_to_limits_in_shadow() {
        let parts = split(90, 10, &[shadow(0.5)]);
        assert_eq!(parts, [Part { offered: 100, dropped: 0, would_drop: 50.0, refused_later: 0 }]);
        assert!(split(90, 10, &[]).is_empty());
    }

    #[test]
    fn parts_add_up_whatever_the_numbers() {
        let headrooms: [f64; 7] = [0.0, 1e-9, 0.3, 0.999, 1.0, 7.0, f64::INFINITY];
        for number in 0..343 {
            let [a, b, c] = [number % 7, number / 7 % 7, number / 49].map(|place| headrooms[place]);
            for (allowed, denied) in [(0, 0), (1, 0), (0, 1), (7, 3), (0, 1000), (123_456, 654_321)] {
                let parts = split(allowed, denied, &[enforced(a), enforced(b), enforced(c)]);
                assert_eq!(parts.iter().map(|part| part.dropped).sum::<u64>(), denied, "{a} {b} {c}");
                let passed = parts[2].offered - parts[2].dropped;
                assert_eq!(passed, allowed, "{a} {b} {c}");
                for part in parts {
                    assert_eq!(part.offered - part.dropped - part.refused_later, allowed);
                }
            }
        }
    }
}
