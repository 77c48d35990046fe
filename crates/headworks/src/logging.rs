//! Logs: one line an event on standard error, without colour unless a person looks.
//!
//! Names, paths and errors come from outside. Whatever they hold, an event stays one line, no byte of it moves the cursor
//! of a terminal, and no value fills a disk.

use std::fmt::{self, Debug};
use std::io::IsTerminal;

use tracing::field::Field;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::format::{Writer, debug_fn};

/// Most bytes of a value that are shown.
const LONGEST_VALUE: usize = 256;
/// Most bytes of what an event says of itself: the faults of a limits file are told here.
const LONGEST_MESSAGE: usize = 1024;

/// Starts logging at `level` (`info`, or a filter such as `headworks=debug,warn`).
pub(crate) fn start(level: &str) -> Result<(), String> {
    let filter = EnvFilter::try_new(level)
        .map_err(|error| format!("--log {level:?}: {error}; give error, warn, info, debug or trace"))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .fmt_fields(debug_fn(write_field).delimited(" "))
        .init();
    Ok(())
}

fn write_field(writer: &mut Writer<'_>, field: &Field, value: &dyn Debug) -> fmt::Result {
    match field.name() {
        "message" => writer.write_str(&safe(&format!("{value:?}"), LONGEST_MESSAGE)),
        name => write!(writer, "{name}={}", safe(&format!("{value:?}"), LONGEST_VALUE)),
    }
}

/// A text in at most this many bytes, with escapes instead of control characters.
fn safe(text: &str, most: usize) -> String {
    let mut safe = String::with_capacity(text.len().min(most));
    for c in text.chars() {
        let written = safe.len();
        match c {
            c if is_dangerous(c) => safe.extend(c.escape_default()),
            c => safe.push(c),
        }
        if safe.len() > most - '…'.len_utf8() {
            safe.truncate(written);
            safe.push('…');
            break;
        }
    }
    safe
}

/// Control characters, and those that turn the direction of what follows or begin a line without being one of them.
fn is_dangerous(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_as_text() {
        let hostile = "x\"} 1\nevil_total{a=\"b\u{1b}]0;t\u{7}\r\nlevel=error msg=fake";
        let shown = safe(hostile, LONGEST_VALUE);
        assert!(!shown.chars().any(char::is_control), "{shown}");
        assert!(shown.contains("\\u{1b}]0;t\\u{7}\\r\\nlevel=error"), "{shown}");
        assert_eq!(safe("東京 – \u{202e}txt", LONGEST_VALUE), "東京 – \\u{202e}txt");
    }

    #[test]
    fn no_value_is_longer_than_its_bound() {
        for hostile in ["x".repeat(1_000_000), "\u{1b}".repeat(1000), "東".repeat(1000)] {
            let shown = safe(&hostile, LONGEST_VALUE);
            assert!(shown.len() <= LONGEST_VALUE && shown.ends_with('…'), "{}", shown.len());
        }
        let exact = "x".repeat(LONGEST_VALUE - '…'.len_utf8());
        assert_eq!(safe(&exact, LONGEST_VALUE), exact);
    }
}
