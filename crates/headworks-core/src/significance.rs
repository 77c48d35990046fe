//! Significance: whether demand has moved enough to be reported before its time.

/// Demand that moved by less than this part of what was expected can wait for the next report.
const RELATIVE: f64 = 0.2;
/// Poisson deviations that chance alone explains; with fewer, a steady fleet would report early all the time.
const DEVIATIONS: f64 = 4.0;
/// Units that have to be at stake: below, a handful of requests would wake the whole tree.
const LEAST_UNITS: f64 = 10.0;

/// Whether `seen` units where `expected` ones were due are news.
pub fn is_news(expected: f64, seen: f64) -> bool {
    let moved = (seen - expected).abs();
    moved >= LEAST_UNITS && moved > RELATIVE * expected && moved > DEVIATIONS * expected.max(1.0).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_no_news() {
        assert!(!is_news(100.0, 139.0));
        assert!(!is_news(0.0, 9.0));
        assert!(!is_news(10_000.0, 11_900.0));
    }

    #[test]
    fn surges_and_stops_are_news() {
        assert!(is_news(7.5, 30.0));
        assert!(is_news(0.0, 10.0));
        assert!(is_news(100.0, 0.0));
    }
}
