//! Patterns: texts in which `*` stands for any text, the empty one too.
//!
//! A `*` is always a star: nothing quotes it, so no pattern asks for a literal one alone.

use std::fmt;

/// A text in which `*` stands for any text. Made ready once, when limits are read; a request then costs one look for each
/// piece between two stars, each from where the last one ended, and so never more than the lengths of pattern and text.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pattern {
    text: Box<str>,
    /// Where the stars are, in bytes.
    stars: Box<[u32]>,
}

impl Pattern {
    /// The pattern that a text writes.
    pub fn new(text: &str) -> Self {
        let place = |(place, _)| u32::try_from(place).unwrap_or(u32::MAX);
        Self { text: text.into(), stars: text.match_indices('*').map(place).collect() }
    }

    /// The text that writes it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The one text that fits it; `None` if it has a star.
    #[inline]
    pub fn literal(&self) -> Option<&str> {
        self.stars.is_empty().then_some(&*self.text)
    }

    /// Whether it has a star.
    pub fn has_stars(&self) -> bool {
        !self.stars.is_empty()
    }

    /// What stands before the first star.
    pub fn head(&self) -> &str {
        self.stars.first().map_or(&self.text, |first| &self.text[..at(*first)])
    }

    /// What stands behind the last star.
    pub fn tail(&self) -> &str {
        self.stars.last().map_or(&self.text, |last| &self.text[at(*last) + 1..])
    }

    /// Bytes of it that are no stars: more of them are more specific.
    pub fn literal_len(&self) -> usize {
        self.text.len() - self.stars.len()
    }

    /// Whether a text fits.
    #[inline]
    pub fn fits(&self, text: &str) -> bool {
        if self.stars.is_empty() { *self.text == *text } else { self.fits_around_stars(text) }
    }

    fn fits_around_stars(&self, text: &str) -> bool {
        let (head, tail) = (self.head(), self.tail());
        if text.len() < head.len() + tail.len() || !text.starts_with(head) || !text.ends_with(tail) {
            return false;
        }
        let mut rest = &text[head.len()..text.len() - tail.len()];
        // The first place where a piece stands leaves most to those behind it, so there is nothing to try again.
        self.stars.windows(2).all(|pair| {
            let piece = &self.text[at(pair[0]) + 1..at(pair[1])];
            let found = rest.find(piece);
            rest = found.map_or("", |found| &rest[found + piece.len()..]);
            found.is_some()
        })
    }

    /// Whether some text fits both.
    pub fn overlaps(&self, other: &Pattern) -> bool {
        match (self.literal(), other.literal()) {
            (Some(text), _) => other.fits(text),
            (_, Some(text)) => self.fits(text),
            // Between a head and a tail that suit both there is room for the pieces of one and then those of the other.
            (None, None) => {
                let either = |a: bool, b: bool| a || b;
                either(self.head().starts_with(other.head()), other.head().starts_with(self.head()))
                    && either(self.tail().ends_with(other.tail()), other.tail().ends_with(self.tail()))
            }
        }
    }
}

fn at(place: u32) -> usize {
    place as usize
}

impl From<&str> for Pattern {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Pattern {
    fn from(text: String) -> Self {
        Self::new(&text)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// As its text: digests of limits rest on this.
impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.text, f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fits(pattern: &str, text: &str) -> bool {
        Pattern::new(pattern).fits(text)
    }

    fn overlap(a: &str, b: &str) -> bool {
        let (a, b) = (Pattern::new(a), Pattern::new(b));
        assert_eq!(a.overlaps(&b), b.overlaps(&a));
        a.overlaps(&b)
    }

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text) in [
            ("a*", "a"),
            ("a*", "ab"),
            ("*", ""),
            ("a*b*c", "aXbYbZc"),
            ("*b", "aab"),
            ("é*", "été"),
            ("*a*a*", "aa"),
            ("**", "x"),
            ("a", "a"),
        ] {
            assert!(fits(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in
            [("a*", "ba"), ("a", "aa"), ("a*b", "abc"), ("", "a"), ("ab*ba", "aba"), ("*a*a*", "a")]
        {
            assert!(!fits(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn patterns_overlap_where_one_text_fits_both() {
        for (a, b) in
            [("a*", "*b"), ("*", "x"), ("a*b*c", "ab*c"), ("abc", "a*c"), ("*x*", "*y*"), ("ab*", "abc*")]
        {
            assert!(overlap(a, b), "{a} {b}");
        }
        for (a, b) in
            [("batch-*", "trial-*"), ("*a", "*b"), ("abc", "ab*d"), ("a", "b"), ("a*b", "ab*c"), ("ab*", "a")]
        {
            assert!(!overlap(a, b), "{a} {b}");
        }
    }

    #[test]
    fn a_pattern_made_to_take_long_does_not() {
        let pattern = "a*".repeat(500) + "b";
        assert!(!fits(&pattern, &"a".repeat(1024)));
    }

    /// The same by trying everything.
    fn fits_slowly(pattern: &[u8], text: &[u8]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((b'*', rest)) => (0..=text.len()).any(|from| fits_slowly(rest, &text[from..])),
            Some((byte, rest)) => text.first() == Some(byte) && fits_slowly(rest, &text[1..]),
        }
    }

    proptest! {
        #[test]
        fn fits_what_trying_everything_fits(pattern in "[ab*]{0,7}", text in "[ab]{0,8}") {
            prop_assert_eq!(fits(&pattern, &text), fits_slowly(pattern.as_bytes(), text.as_bytes()));
        }

        #[test]
        fn patterns_that_fit_one_text_overlap(a in "[ab*]{0,6}", b in "[ab*]{0,6}", text in "[ab]{0,8}") {
            if fits(&a, &text) && fits(&b, &text) {
                prop_assert!(overlap(&a, &b), "{} {} {}", a, b, text);
            }
        }

        #[test]
        fn patterns_that_overlap_have_a_text_in_common(a in "[ab*]{0,4}", b in "[ab*]{0,4}") {
            let texts = (0..=8_u32).flat_map(|length| (0..1_u32 << length).map(move |bits| {
                (0..length).map(|i| if bits >> i & 1 == 1 { 'a' } else { 'b' }).collect::<String>()
            }));
            let common = texts.into_iter().any(|text| fits(&a, &text) && fits(&b, &text));
            prop_assert_eq!(overlap(&a, &b), common, "{} {}", a, b);
        }
    }
}
