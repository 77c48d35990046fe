//! Significance: whether demand has moved enough to be reported before its time.

/// An agent's demand that moved by less than this part of what was expected can wait for its next report.
pub const AT_A_LEAF: f64 = 0.2;
/// The same for a node that sums others: noise has cancelled out there, few such nodes report, and each second that
/// they wait is one more in which the whole zone drops by a wrong ratio.
pub const AT_A_SUM: f64 = 0.05;
/// Poisson deviations that chance alone explains; with fewer, a steady fleet would report early all the time.
const DEVIATIONS: f64 = 4.0;
/// Units that have to be at stake: below, a handful of requests would wake the whole tree.
const LEAST_UNITS: f64 = 10.0;

/// Whether `seen` units where `expected` ones were due are news; `relative` is one of the two parts above.
pub fn is_news(expected: f64, seen: f64, relative: f64) -> bool {
    let moved = (seen - expected).abs();
    moved >= LEAST_UNITS && moved > relative * expected && moved > DEVIATIONS * expected.max(1.0).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_no_news() {
        assert!(!is_news(100.0, 139.0, AT_A_LEAF));
        assert!(!is_news(0.0, 9.0, AT_A_LEAF));
        assert!(!is_news(10_000.0, 11_900.0, AT_A_LEAF));
    }

    #[test]
    fn surges_and_stops_are_news() {
        assert!(is_news(7.5, 30.0, AT_A_LEAF));
        assert!(is_news(0.0, 10.0, AT_A_LEAF));
        assert!(is_news(100.0, 0.0, AT_A_LEAF));
    }

    #[test]
    fn a_sum_passes_on_what_a_leaf_would_keep() {
        assert!(is_news(1500.0, 1250.0, AT_A_SUM) && !is_news(1500.0, 1250.0, AT_A_LEAF));
    }
}
