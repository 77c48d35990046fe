//! The words that limits files use for choices.

use super::fault::quoted;
use super::nearest::nearest;
use super::{Algorithm, Missing, Mode, Scope, SilencePolicy, StoreFailure};
use crate::units::Unit;

pub(super) type Words<T> = [(&'static str, T)];

pub(super) const MODES: &Words<Mode> =
    &[("enforce", Mode::Enforce), ("shadow", Mode::Shadow), ("off", Mode::Off)];
pub(super) const POLICIES: &Words<SilencePolicy> =
    &[("hold", SilencePolicy::Hold), ("open", SilencePolicy::Open), ("closed", SilencePolicy::Closed)];
pub(super) const MISSING: &Words<Missing> =
    &[("skip", Missing::Skip), ("empty", Missing::Empty), ("drop", Missing::Drop)];
/// Over what a limit may be held.
pub(super) const SCOPES: &Words<Scope> =
    &[("global", Scope::Global), ("region", Scope::Region), ("zone", Scope::Zone)];
/// Units of time of a rate, written in any case.
pub(super) const UNITS: &Words<Unit> = &[
    ("second", Unit::Second),
    ("minute", Unit::Minute),
    ("hour", Unit::Hour),
    ("day", Unit::Day),
    ("month", Unit::Month),
    ("year", Unit::Year),
];
/// Units of a duration, in milliseconds.
pub(super) const DURATION_UNITS: &Words<u64> = &[("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];
/// Whether something holds.
pub(super) const TRUTHS: &Words<bool> = &[("false", false), ("true", true)];
/// Whether a limit is exact.
pub(super) const ENFORCEMENTS: &Words<bool> = &[("drop_ratio", false), ("exact", true)];
pub(super) const ALGORITHMS: &Words<Algorithm> = &[
    ("token_bucket", Algorithm::TokenBucket),
    ("sliding_window", Algorithm::SlidingWindow),
    ("fixed_window", Algorithm::FixedWindow),
];
pub(super) const STORE_FAILURES: &Words<StoreFailure> =
    &[("open", StoreFailure::Open), ("closed", StoreFailure::Closed)];

/// The choice that a word stands for.
pub(super) fn choice<T: Copy>(text: &str, words: &Words<T>) -> Result<T, String> {
    if let Some((_, choice)) = words.iter().find(|(word, _)| *word == text) {
        return Ok(*choice);
    }
    Err(match nearest(text, words.iter().map(|(word, _)| *word)) {
        Some(meant) => format!("{} is not known; did you mean `{meant}`?", quoted(text)),
        None => format!("{} is not known: write {}", quoted(text), listed(words)),
    })
}

/// `a`, `b` or `c`.
fn listed<T>(words: &Words<T>) -> String {
    let quoted: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

/// The word that stands for a choice.
pub(super) fn word<T: Copy + PartialEq>(choice: T, words: &Words<T>) -> &'static str {
    // Each table holds every variant, so the fallback is never taken.
    words.iter().find(|(_, known)| *known == choice).map_or("", |(word, _)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_what_was_meant_or_what_there_is() {
        assert_eq!(choice("off", MODES), Ok(Mode::Off));
        assert!(choice("Shadow", MODES).is_err_and(|m| m.contains("did you mean `shadow`")));
        assert!(choice("false", MODES).is_err_and(|m| m.contains("write `enforce`, `shadow` or `off`")));
    }
}
