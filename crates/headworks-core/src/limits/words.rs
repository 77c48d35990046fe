//! The words that limits files use for choices.

use super::fault::quoted;
use super::nearest::nearest;
use super::{Missing, Mode, SilencePolicy};

pub(super) type Words<T> = [(&'static str, T); 3];

pub(super) const MODES: Words<Mode> =
    [("enforce", Mode::Enforce), ("shadow", Mode::Shadow), ("off", Mode::Off)];
pub(super) const POLICIES: Words<SilencePolicy> =
    [("hold", SilencePolicy::Hold), ("open", SilencePolicy::Open), ("closed", SilencePolicy::Closed)];
pub(super) const MISSING: Words<Missing> =
    [("skip", Missing::Skip), ("empty", Missing::Empty), ("drop", Missing::Drop)];

/// The choice that a word stands for.
pub(super) fn choice<T: Copy>(text: &str, words: &Words<T>) -> Result<T, String> {
    if let Some((_, choice)) = words.iter().find(|(word, _)| *word == text) {
        return Ok(*choice);
    }
    let [a, b, c] = words.each_ref().map(|(word, _)| *word);
    Err(match nearest(text, [a, b, c]) {
        Some(meant) => format!("{} is not known; did you mean `{meant}`?", quoted(text)),
        None => format!("{} is not known: write `{a}`, `{b}` or `{c}`", quoted(text)),
    })
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
        assert_eq!(choice("off", &MODES), Ok(Mode::Off));
        assert!(choice("Shadow", &MODES).is_err_and(|m| m.contains("did you mean `shadow`")));
        assert!(choice("false", &MODES).is_err_and(|m| m.contains("write `enforce`, `shadow` or `off`")));
    }
}
