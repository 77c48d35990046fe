//! From the bytes of a file to text that the parser may see: UTF-8, no mark, one kind of line end, bounded.

use std::borrow::Cow;

use super::fault::{FaultLog, Place};

/// Room for the most limits allowed. The parser may need fifty times the size of a file made to that end.
const MAX_BYTES: usize = 16 << 20;

/// The text of a file, or nothing if it is not UTF-8.
pub(super) fn decode<'b>(bytes: &'b [u8], log: &mut FaultLog) -> Option<&'b str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) => {
            let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            log.push(Place::after(&valid), String::new(), "not UTF-8: save the file as UTF-8");
            None
        }
    }
}

/// The same text for every way that editors may have saved it.
pub(super) fn clean<'t>(text: &'t str, log: &mut FaultLog) -> Option<Cow<'t, str>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.len() > MAX_BYTES {
        let message =
            format!("the file has {} bytes, more than the {MAX_BYTES} allowed: split it", text.len());
        log.push(Place::START, String::new(), message);
        return None;
    }
    if let Some(index) = text.find(is_forbidden) {
        log.push(Place::after(&text[..index]), String::new(), forbidden_message(&text[index..]));
        return None;
    }
    Some(with_plain_line_ends(text))
}

/// Characters that YAML forbids. The parser takes a NUL for the end of the text, and would drop what follows.
fn is_forbidden(c: char) -> bool {
    c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{85}')
}

fn forbidden_message(from: &str) -> String {
    match from.chars().next() {
        None | Some('\0') => {
            "not UTF-8, or a damaged file: holds a NUL character; save it as UTF-8".to_owned()
        }
        Some(c) => {
            format!("control character U+{:04X}: write it as an escape in double quotes", u32::from(c))
        }
    }
}

fn with_plain_line_ends(text: &str) -> Cow<'_, str> {
    if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(text)
    }
}
