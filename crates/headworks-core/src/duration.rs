//! Durations as flags and configurations give them: `500ms`, `30s`, `5m`, `1h`.

use std::time::Duration;

/// Nobody waits for more, and a slip of the finger may ask for it.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// A duration from a whole number and its unit; advice for whoever wrote anything else.
pub fn parse(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let milliseconds = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(advice()),
    };
    let total =
        number.parse::<u64>().ok().and_then(|n| n.checked_mul(milliseconds)).map(Duration::from_millis);
    total.filter(|d| !d.is_zero() && *d <= LONGEST).ok_or_else(advice)
}

fn advice() -> String {
    "write a whole number and its unit (ms, s, m, h), up to 24h, such as 30s".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_a_number_with_a_unit() {
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(parse("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(parse("24h"), Ok(LONGEST));
    }

    #[test]
    fn refuses_anything_else() {
        for text in ["", "30", "s", "-1s", "1.5s", "0s", "25h", "1d", "99999999999999999999s", "1 s"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
