//! How single values are read from their text; an error says what is wrong and what to write.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::fault::quoted;
use crate::units::{Rate, Unit};

/// A thousand times what the largest fleet of today serves; sums of such rates stay exact.
const MAX_RATE: i64 = 1_000_000_000_000_000;
const MAX_NAME: usize = 128;
const MAX_KEY: usize = 128;
const MAX_VALUE: usize = 1024;
const RATE_FORMS: &str = "write a rate like `400/second`, `0/second` to ban, or `unlimited`";
const DURATION_FORM: &str = "write a duration like `60s`";

/// `400/second` or `unlimited`.
pub(super) fn rate(text: &str) -> Result<Rate, String> {
    if text.eq_ignore_ascii_case("unlimited") {
        return Ok(Rate::Unlimited);
    }
    let Some((amount, unit)) = text.split_once('/') else { return Err(unitless(text)) };
    let amount = whole(amount, 0..=MAX_RATE).map_err(|reason| with_hint(reason, RATE_FORMS))?;
    Ok(Rate::Per { amount: amount.unsigned_abs(), unit: unit_of_time(unit)? })
}

/// A reason that says what to write is left alone.
fn with_hint(reason: String, hint: &str) -> String {
    if reason.contains(": ") { reason } else { format!("{reason}: {hint}") }
}

fn unitless(text: &str) -> String {
    match whole(text, 0..=MAX_RATE) {
        Ok(amount) => format!("{amount} has no unit of time: write `{amount}/second`"),
        Err(reason) => with_hint(reason, RATE_FORMS),
    }
}

fn unit_of_time(text: &str) -> Result<Unit, String> {
    match text.to_ascii_lowercase().as_str() {
        "second" => Ok(Unit::Second),
        "minute" | "hour" | "day" | "month" | "year" => Err(format!(
            "rates per {} are not supported by this version: write a rate per second",
            quoted(text)
        )),
        _ => Err(format!("{} is not a unit of time: {RATE_FORMS}", quoted(text))),
    }
}

/// A whole number in plain decimal digits. Every other notation is refused with its reason: what one reader of
/// YAML takes for 10 is 8 to another, and a limit must not depend on who reads it.
pub(super) fn whole(text: &str, range: RangeInclusive<i64>) -> Result<i64, String> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(not_whole(text));
    }
    if digits.len() > 1 && digits.starts_with('0') {
        return Err(format!("{} has a leading zero: remove it", quoted(text)));
    }
    match text.parse() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ if text.starts_with('-') && *range.start() >= 0 => Err(format!("{text} is negative")),
        _ => Err(format!("{} is not between {} and {}", quoted(text), range.start(), range.end())),
    }
}

fn not_whole(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let letters = lower.trim_start_matches(['-', '+', '.']);
    let starts_with_digit = letters.starts_with(|c: char| c.is_ascii_digit());
    let reason = match letters {
        "" => "is not a number",
        "nan" | "inf" | "infinity" => "is not a finite number",
        _ if !starts_with_digit => "is not a number",
        _ if letters.starts_with("0x") || letters.starts_with("0o") => "is not decimal: write decimal digits",
        _ if letters.contains(['_', ',']) => "has separators: write digits only",
        _ if letters.contains('e') => "has an exponent: write the digits out",
        _ if lower.contains('.') => "has a decimal point: write a whole number",
        _ if lower.starts_with('+') => "has a sign: remove it",
        _ => "is not a whole number: write digits only",
    };
    format!("{} {reason}", quoted(text))
}

/// A whole number from 1 to a million.
pub(super) fn up_to_a_million(text: &str) -> Result<u32, String> {
    let number = whole(text, 1..=1_000_000)?;
    u32::try_from(number).map_err(|_| format!("{number} is too large"))
}

/// A place among limits that are otherwise equal in rank.
pub(super) fn order(text: &str) -> Result<i32, String> {
    let number = whole(text, i64::from(i32::MIN)..=i64::from(i32::MAX))?;
    i32::try_from(number).map_err(|_| format!("{number} is too large"))
}

/// A hold such as `60s`: from a second to a day.
pub(super) fn hold(text: &str) -> Result<Duration, String> {
    let hold = duration(text)?;
    let range = Duration::from_secs(1)..=Duration::from_secs(24 * 3600);
    if range.contains(&hold) { Ok(hold) } else { Err(format!("{} is not between 1s and 24h", quoted(text))) }
}

fn duration(text: &str) -> Result<Duration, String> {
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let milliseconds = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "" => return Err(format!("{} has no unit: {DURATION_FORM}", quoted(text))),
        _ => {
            return Err(format!(
                "{} is not a duration: write one in ms, s, m or h, like `60s`",
                quoted(text)
            ));
        }
    };
    let number = whole(number, 0..=1_000_000_000).map_err(|reason| with_hint(reason, DURATION_FORM))?;
    Ok(Duration::from_millis(number.unsigned_abs() * milliseconds))
}

/// A hold as the file writes it, in the largest unit that it is a whole number of.
pub(super) fn spelled_duration(duration: Duration) -> String {
    let milliseconds = duration.as_millis();
    let (length, unit) = [(3_600_000, "h"), (60_000, "m"), (1000, "s")]
        .into_iter()
        .find(|(length, _)| milliseconds.is_multiple_of(*length))
        .unwrap_or((1, "ms"));
    format!("{}{unit}", milliseconds / length)
}

/// The name of a limit; narrow, since it goes into metric labels, URLs and logs.
pub(super) fn name(text: &str) -> Result<&str, String> {
    bounded(text, MAX_NAME)?;
    match text.chars().find(|c| !c.is_ascii_alphanumeric() && !"-_.:/".contains(*c)) {
        Some(c) => {
            Err(format!("a name must not hold {}: use letters, digits and - _ . : /", quoted(&c.to_string())))
        }
        None => Ok(text),
    }
}

/// The key of an attribute.
pub(super) fn attribute_key(text: &str) -> Result<&str, String> {
    bounded(text, MAX_KEY)
}

/// The value that an attribute must have.
pub(super) fn attribute_value(text: &str) -> Result<&str, String> {
    if text.contains('*') {
        return Err(
            "patterns (`*`) are not supported by this version: write one limit for each value".to_owned()
        );
    }
    bounded(text, MAX_VALUE)
}

fn bounded(text: &str, most: usize) -> Result<&str, String> {
    match text.len() {
        0 => Err("is empty: write a text".to_owned()),
        length if length > most => {
            Err(format!("has {length} bytes, more than the {most} allowed: shorten it"))
        }
        _ => Ok(text),
    }
}
