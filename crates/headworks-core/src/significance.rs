//! Significance: whether demand has moved enough to be reported before its time.

use crate::limits::Limit;

/// An agent's demand that moved by less than this part of what was expected can wait for its next report.
pub const AT_A_LEAF: f64 = 0.2;
/// The same for a node that sums others: noise has cancelled out there, few such nodes report, and each second that
/// they wait is one more in which the whole zone drops by a wrong ratio.
pub const AT_A_SUM: f64 = 0.05;
/// Deviations that chance alone explains; with fewer, a steady fleet would report early all the time.
const DEVIATIONS: f64 = 4.0;
/// Units that have to be at stake, for most: below, a handful of requests would wake the whole tree.
const LEAST_UNITS: f64 = 10.0;

/// Units that have to be at stake on this limit. Of a budget of six a minute, five at once are nearly all there is.
#[allow(clippy::cast_precision_loss, reason = "a small number")]
pub fn least_units(limit: Option<&Limit>) -> f64 {
    let half = limit.and_then(Limit::budget).map(|burst| (burst / 2).max(1) as f64);
    half.map_or(LEAST_UNITS, |half| half.min(LEAST_UNITS))
}

/// Whether `seen` units where `expected` ones were due are news. `relative` is one of the two parts above;
/// `dispersion` is the variance of such counts over their mean, 1 for a Poisson stream; fewer than `least` units are never
/// news.
pub fn is_news(expected: f64, seen: f64, relative: f64, dispersion: f64, least: f64) -> bool {
    let moved = (seen - expected).abs();
    let chance = DEVIATIONS * dispersion.sqrt();
    moved >= least && moved > relative * expected && deviations(expected, seen) > chance
}

/// How far apart two Poisson counts are, in deviations.
///
/// Twice the square root of such a count has a deviation of 1 whatever its mean (Anscombe 1948). Counted in deviations of
/// the expected mean instead, small counts exceed four of them every few seconds on some host.
pub fn deviations(expected: f64, seen: f64) -> f64 {
    2.0 * (seen.sqrt() - expected.sqrt()).abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_no_news() {
        assert!(!is_news(100.0, 139.0, AT_A_LEAF, 1.0, LEAST_UNITS));
        assert!(!is_news(0.0, 9.0, AT_A_LEAF, 1.0, LEAST_UNITS));
        assert!(!is_news(7.5, 20.0, AT_A_LEAF, 1.0, LEAST_UNITS));
        assert!(!is_news(10_000.0, 11_900.0, AT_A_LEAF, 1.0, LEAST_UNITS));
    }

    #[test]
    fn surges_and_stops_are_news() {
        assert!(is_news(7.5, 30.0, AT_A_LEAF, 1.0, LEAST_UNITS));
        assert!(is_news(0.0, 10.0, AT_A_LEAF, 1.0, LEAST_UNITS));
        assert!(is_news(100.0, 0.0, AT_A_LEAF, 1.0, LEAST_UNITS));
    }

    #[test]
    fn a_sum_passes_on_what_a_leaf_would_keep() {
        assert!(
            is_news(1500.0, 1250.0, AT_A_SUM, 1.0, LEAST_UNITS)
                && !is_news(1500.0, 1250.0, AT_A_LEAF, 1.0, LEAST_UNITS)
        );
    }

    #[test]
    fn what_is_a_surge_in_steady_traffic_is_nothing_new_in_bursty_traffic() {
        assert!(
            is_news(1.0, 20.0, AT_A_LEAF, 1.0, LEAST_UNITS)
                && !is_news(1.0, 20.0, AT_A_LEAF, 7.0, LEAST_UNITS)
        );
    }
}
