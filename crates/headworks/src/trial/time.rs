//! Moments and spans as people read them.

/// The time of day of a moment in seconds since 1970, in UTC; nothing that is told is older than a day.
pub(super) fn clock(at: u64) -> String {
    let minutes = at / 60 % (24 * 60);
    format!("{:02}:{:02} UTC", minutes / 60, minutes % 60)
}

/// A span of seconds in its two largest units.
pub(super) fn span(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_and_spans_are_spelled() {
        assert_eq!(clock(1_700_000_000), "22:13 UTC");
        assert_eq!(clock(86_399), "23:59 UTC");
        assert_eq!([0, 75, 86_400].map(span), ["0 s", "1 min 15 s", "24 h 0 min"]);
    }
}
