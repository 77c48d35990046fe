//! `confirm`, beside `limits`: the digest of limits that are meant as they stand, whatever they drop.

use super::Digest;
use super::fault::FaultLog;
use super::fields::Field;
use super::text::{clean, decode};
use super::yaml::read;

/// The key.
pub(super) const KEY: &str = "confirm";
/// Hexadecimal digits of a digest; its beginning will do, as the status shows it.
const DIGITS: std::ops::RangeInclusive<usize> = 12..=32;

/// The digest that a file confirms, or its beginning, if it confirms one. The file is read anew: its limits do not depend on it.
pub fn confirmation(bytes: &[u8]) -> Option<String> {
    let mut log = FaultLog::default();
    let text = decode(bytes, &mut log).filter(|text| text.contains(KEY))?;
    let text = clean(text, &mut log)?;
    let tree = read(&text, &mut log)?;
    digest(&Field::top(&tree), &mut log)
}

/// The same, with what is wrong with it.
pub(super) fn digest(top: &Field<'_>, log: &mut FaultLog) -> Option<String> {
    let field = top.get(KEY)?;
    field.read(log, "the digest that `headworks limits check` prints", |text| {
        let is_digest = DIGITS.contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        let fault =
            "is no digest: write the one that `headworks limits check` prints, at least 12 digits of it";
        is_digest.then(|| text.to_owned()).ok_or_else(|| fault.to_owned())
    })
}

impl Digest {
    /// Reads a digest as it is shown, in full.
    pub fn parse(text: &str) -> Option<Self> {
        let mut digest = [0; 16];
        if text.len() != 2 * digest.len() || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        for (place, byte) in digest.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).ok()?;
        }
        Some(Self(digest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::parse;

    const LIMITS: &str = "limits:\n  - {name: a, rate: 5/second}\n";

    #[test]
    fn a_digest_is_read_as_it_is_written_and_changes_no_limits() {
        let digest = parse(LIMITS).unwrap().digest().to_string();
        for written in [&digest[..], &digest[..12], "000000000012", "123456789e12"] {
            let text = format!("{LIMITS}confirm: {written}\n");
            assert_eq!(confirmation(text.as_bytes()).as_deref(), Some(written));
            assert_eq!(parse(&text).unwrap().digest().to_string(), digest);
        }
        assert_eq!(confirmation(LIMITS.as_bytes()), None);
        assert_eq!(confirmation(b"confirm: [\xff"), None);
    }

    #[test]
    fn a_digest_is_read_as_it_is_shown() {
        let digest = parse(LIMITS).unwrap().digest();
        assert_eq!(Digest::parse(&digest.to_string()), Some(digest));
        for text in ["", "0123", &"g".repeat(32), &"é".repeat(16), &"0".repeat(33)] {
            assert_eq!(Digest::parse(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_no_digest_is_a_fault() {
        for written in ["yes", "12345678901", "ABCDEFABCDEF", "~", "[a]", &"0".repeat(33)] {
            let faults = parse(&format!("{LIMITS}confirm: {written}\n")).unwrap_err();
            assert_eq!(faults.listed()[0].path, "confirm", "{faults}");
        }
    }
}
