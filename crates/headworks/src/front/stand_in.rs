//! What stands for a value that is none to count by: longer than is kept, no text, or with characters that no line of a log should have.
//!
//! Clients choose such values, by a header or a query. An error would let their requests pass where a proxy fails open; to refuse them
//! would drop what limits in shadow let pass; and as absent they would escape. So the limits decide, by a hash of it.

use sha2::{Digest, Sha256};

use super::query::MAX_VALUE_BYTES;

/// The value itself, if it is one to count by.
pub(super) fn sound(value: &[u8]) -> Option<&str> {
    let text = str::from_utf8(value).ok().filter(|_| value.len() <= MAX_VALUE_BYTES)?;
    let has_control = text.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t');
    (!has_control).then_some(text)
}

/// What stands for one that is not: half of its SHA-256, so that nobody finds another with the same.
pub(super) fn of(value: &[u8]) -> String {
    hash(value).iter().fold(String::from("sha256:"), |all, byte| all + &format!("{byte:02x}"))
}

/// Half of the SHA-256 of these bytes.
pub(super) fn hash(bytes: &[u8]) -> [u8; 16] {
    let digest: [u8; 32] = Sha256::digest(bytes).into();
    std::array::from_fn(|place| digest[place])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_value_to_count_by_has_one_of_its_own() {
        for unsound in [&b"\xff"[..], b"a\n", b"a\0", &[b'x'; MAX_VALUE_BYTES + 1]] {
            assert_eq!(sound(unsound), None);
            assert!(sound(of(unsound).as_bytes()).is_some() && of(unsound).len() == 39);
        }
        assert_ne!(of(b"a\n"), of(b"b\n"));
        assert_eq!(sound("a\té".as_bytes()), Some("a\té"));
    }
}
