//! How single values are read from their text; an error says what is wrong and what to write.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::SurgeGuard;
use super::fault::quoted;
use super::words::{DURATION_UNITS, UNITS};
use crate::units::{Rate, Unit};

/// A thousand times what the largest fleet of today serves; sums of such rates stay exact.
pub(super) const MOST: i64 = 1_000_000_000_000_000;
pub(super) const MAX_NAME: usize = 128;
pub(super) const MAX_KEY: usize = 128;
pub(super) const MAX_VALUE: usize = 1024;
/// What names may hold besides letters and digits.
pub(super) const NAME_CHARACTERS: &str = "-_.:/";
pub(super) const UP_TO_A_MILLION: RangeInclusive<i64> = 1..=1_000_000;
pub(super) const ORDERS: RangeInclusive<i64> = i32::MIN as i64..=i32::MAX as i64;
/// Surge guards, in hundredths.
pub(super) const HUNDREDTHS: RangeInclusive<u32> = 100..=10_000;
const RATE_FORMS: &str = "write a rate like `400/second`, `0/second` to ban, or `unlimited`";
const UNIT_FORMS: &str = "write `second`, `minute`, `hour`, `day`, `month` or `year`";
const DURATION_FORM: &str = "write a duration like `60s`";

/// `400/second`, `6/minute` or `unlimited`.
pub(super) fn rate(text: &str) -> Result<Rate, String> {
    if text.eq_ignore_ascii_case("unlimited") {
        return Ok(Rate::Unlimited);
    }
    let Some((amount, unit)) = text.split_once('/') else { return Err(unitless(text)) };
    let amount = whole(amount, 0..=MOST).map_err(|reason| with_hint(reason, RATE_FORMS))?;
    Ok(Rate::Per { amount: amount.unsigned_abs(), unit: unit_of_time(unit)? })
}

/// A reason that says what to write is left alone.
fn with_hint(reason: String, hint: &str) -> String {
    if reason.contains(": ") { reason } else { format!("{reason}: {hint}") }
}

fn unitless(text: &str) -> String {
    match whole(text, 0..=MOST) {
        Ok(amount) => format!("{amount} has no unit of time: write `{amount}/second`"),
        Err(reason) => with_hint(reason, RATE_FORMS),
    }
}

fn unit_of_time(text: &str) -> Result<Unit, String> {
    let unit = UNITS.iter().find(|(word, _)| word.eq_ignore_ascii_case(text));
    unit.map(|(_, unit)| *unit).ok_or_else(|| format!("{} is not a unit of time: {UNIT_FORMS}", quoted(text)))
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
    if digits.len() < text.len() && *range.start() >= 0 {
        return Err(format!("{} is negative", quoted(text)));
    }
    match text.parse() {
        Ok(number) if range.contains(&number) => Ok(number),
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
    let number = whole(text, UP_TO_A_MILLION)?;
    u32::try_from(number).map_err(|_| format!("{number} is too large"))
}

/// A place among limits that are otherwise equal in rank.
pub(super) fn order(text: &str) -> Result<i32, String> {
    let number = whole(text, ORDERS)?;
    i32::try_from(number).map_err(|_| format!("{number} is too large"))
}

/// The most that a budget saves up, in cost units.
pub(super) fn burst(text: &str) -> Result<u64, String> {
    whole(text, 1..=MOST).map(i64::unsigned_abs)
}

/// `1.5` or `off`: a multiple of a node's share, from 1 to 100 in steps of a hundredth.
pub(super) fn surge_guard(text: &str) -> Result<SurgeGuard, String> {
    if text == "off" {
        return Ok(SurgeGuard::Off);
    }
    if ["off", "no", "none", "false", "disabled"].contains(&text.to_ascii_lowercase().as_str()) {
        return Err(format!("{} is not known: write `off`", quoted(text)));
    }
    let factor = hundredths(text).filter(|hundredths| HUNDREDTHS.contains(hundredths));
    factor.map(SurgeGuard::Hundredths).ok_or_else(|| {
        let wanted = "a number from 1 to 100 with at most two decimals";
        format!("{} is not {wanted}: write one like `1.5`, or `off`", quoted(text))
    })
}

/// A number from 1 on, in plain decimal digits with at most two after the point, in hundredths.
fn hundredths(text: &str) -> Option<u32> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !is_digits(whole) || !is_digits(decimals) || whole.starts_with('0') || decimals.len() > 2 {
        return None;
    }
    format!("{whole}{decimals:0<2}").parse().ok()
}

/// A guard as the file writes it.
pub(super) fn spelled_guard(guard: SurgeGuard) -> String {
    let SurgeGuard::Hundredths(hundredths) = guard else { return "off".to_owned() };
    match (hundredths / 100, hundredths % 100) {
        (whole, 0) => whole.to_string(),
        (whole, rest) if rest % 10 == 0 => format!("{whole}.{}", rest / 10),
        (whole, rest) => format!("{whole}.{rest:02}"),
    }
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
    if unit.is_empty() {
        return Err(format!("{} has no unit: {DURATION_FORM}", quoted(text)));
    }
    let Some((_, milliseconds)) = DURATION_UNITS.iter().find(|(word, _)| *word == unit) else {
        return Err(format!("{} is not a duration: write one in ms, s, m or h, like `60s`", quoted(text)));
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
    match text.chars().find(|c| !c.is_ascii_alphanumeric() && !NAME_CHARACTERS.contains(*c)) {
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

/// The value that an attribute must have; `*` stands for any text.
pub(super) fn pattern(text: &str) -> Result<&str, String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn per_second(amount: u64) -> Result<Rate, String> {
        Ok(Rate::Per { amount, unit: Unit::Second })
    }

    #[test]
    fn a_rate_is_an_amount_for_each_second_in_any_case() {
        assert_eq!(rate("400/second"), per_second(400));
        assert_eq!(rate("4294967296/Second"), per_second(4_294_967_296));
        assert_eq!(rate("1000000000000000/SECOND"), per_second(1_000_000_000_000_000));
    }

    #[test]
    fn a_rate_may_be_per_minute_hour_or_day() {
        for (text, amount, unit) in
            [("6/minute", 6, Unit::Minute), ("1000/Hour", 1000, Unit::Hour), ("50000/DAY", 50_000, Unit::Day)]
        {
            assert_eq!(rate(text), Ok(Rate::Per { amount, unit }));
        }
        assert_eq!(rate("9/Month"), Ok(Rate::Per { amount: 9, unit: Unit::Month }));
        assert_eq!(rate("9/year"), Ok(Rate::Per { amount: 9, unit: Unit::Year }));
        for text in ["1/week", "1/minutes", "1/sec", "1/fortnight", "1/", "1/3"] {
            assert!(rate(text).is_err_and(|m| m.contains("`month` or `year`")), "{text}");
        }
    }

    #[test]
    fn a_surge_guard_is_printed_as_short_as_it_can_be_written() {
        for (text, printed) in [
            ("1", "1"),
            ("1.0", "1"),
            ("1.50", "1.5"),
            ("1.05", "1.05"),
            ("20.25", "20.25"),
            ("100.00", "100"),
        ] {
            assert_eq!(surge_guard(text).map(spelled_guard).as_deref(), Ok(printed));
        }
        assert_eq!(surge_guard("off").map(spelled_guard).as_deref(), Ok("off"));
    }

    #[test]
    fn no_other_notation_of_a_surge_guard_is_taken_for_one() {
        for text in [
            "", ".5", "1.", "01.5", "0", "0.99", "100.01", "1.505", "1,5", "+1.5", "1.5.1", "1e1", "nan", "٣",
        ] {
            assert!(surge_guard(text).is_err_and(|m| m.contains("from 1 to 100")), "{text}");
        }
        assert!(surge_guard("99999999999999999999.99").is_err());
    }

    #[test]
    fn a_ban_and_no_limit_are_different_things() {
        assert!(rate("0/second").is_ok_and(Rate::is_ban));
        assert_eq!(rate("unlimited"), Ok(Rate::Unlimited));
    }

    #[test]
    fn no_other_notation_of_a_number_is_taken_for_one() {
        for text in
            ["1e3", "1000.0", "0x10", "0o17", "010", "1_000", "1,000", "+1", "-0", "--1", "", " 1", "1 ", "٣"]
        {
            assert!(rate(&format!("{text}/second")).is_err(), "{text}");
            assert!(up_to_a_million(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_beyond_64_bits_are_refused_not_wrapped() {
        assert!(rate("18446744073709551616/second").is_err_and(|m| m.contains("is not between")));
        assert!(order("-99999999999999999999").is_err_and(|m| m.contains("is not between")));
    }

    #[test]
    fn a_number_without_unit_is_told_its_unit() {
        assert_eq!(rate("400"), Err("400 has no unit of time: write `400/second`".to_owned()));
    }

    #[test]
    fn an_order_may_be_negative() {
        assert_eq!(order("-2147483648"), Ok(i32::MIN));
    }

    #[test]
    fn a_hold_is_printed_in_its_largest_whole_unit() {
        for text in ["1001ms", "90s", "5m", "24h"] {
            assert_eq!(hold(text).map(spelled_duration).as_deref(), Ok(text));
        }
        assert_eq!(hold("3600s").map(spelled_duration).as_deref(), Ok("1h"));
    }

    #[test]
    fn a_hold_outside_a_second_and_a_day_is_refused() {
        for text in
            ["0s", "999ms", "25h", "1000000000h", "99999999999999999999s", "s", "-1s", "1.5s", "60", "1d"]
        {
            assert!(hold(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_name_is_fit_for_labels_and_urls() {
        assert_eq!(name("a-b_c.d:e/F9"), Ok("a-b_c.d:e/F9"));
        for text in ["", "a b", "é", "a\n", "{}"] {
            assert!(name(text).is_err(), "{text:?}");
        }
    }
}
