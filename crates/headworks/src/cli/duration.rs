//! Durations as users write them: `500ms`, `60s`, `5m`.

use std::time::Duration;

/// Reads a duration; for clap.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let hint = || format!("{text:?} is no duration; write a number and a unit, such as 500ms, 60s or 5m");
    let digits = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(hint)?;
    let number: u64 = text[..digits].parse().map_err(|_| hint())?;
    let millis = match &text[digits..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(hint()),
    };
    number.checked_mul(millis).map(Duration::from_millis).ok_or_else(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_need_a_unit() {
        assert_eq!(parse("60s"), Ok(Duration::from_secs(60)));
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        for bad in ["", "60", "s", "-1s", "1.5s", "99999999999999999999s", "1 s"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
