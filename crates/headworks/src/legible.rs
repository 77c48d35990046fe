//! Text from outside, made legible: whatever it holds, it stays on its line and moves no cursor.

/// A text in at most this many bytes, with escapes instead of characters that a terminal or a log obeys.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let mut legible = String::with_capacity(text.len().min(most));
    for c in text.chars() {
        let written = legible.len();
        if is_obeyed(c) {
            legible.extend(c.escape_default());
        } else {
            legible.push(c);
        }
        if legible.len() > most.saturating_sub('…'.len_utf8()) {
            legible.truncate(written);
            legible.push('…');
            break;
        }
    }
    legible
}

/// Control characters, and those that begin a line or turn the direction of what follows without being one of them.
fn is_obeyed(c: char) -> bool {
    let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns || matches!(c, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_are_obeyed_are_shown_as_text() {
        let hostile = "x\"} 1\nevil_total{a=\"b\u{1b}]0;t\u{7}\r\nlevel=error msg=fake";
        let shown = cut(hostile, 256);
        assert!(!shown.chars().any(char::is_control), "{shown}");
        assert!(shown.contains("\\u{1b}]0;t\\u{7}\\r\\nlevel=error"), "{shown}");
        assert_eq!(cut("東京 – \u{202e}txt", 256), "東京 – \\u{202e}txt");
    }

    #[test]
    fn nothing_is_longer_than_its_bound() {
        for hostile in ["x".repeat(1_000_000), "\u{1b}".repeat(1000), "東".repeat(1000)] {
            let shown = cut(&hostile, 256);
            assert!(shown.len() <= 256 && shown.ends_with('…'), "{}", shown.len());
        }
        assert_eq!(cut(&"x".repeat(253), 256), "x".repeat(253));
    }
}
