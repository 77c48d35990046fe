//! The values of a bucket in one piece, each but the last behind its length, so that `a_b`+`c` is not `a`+`b_c`.

use std::hash::{BuildHasher, Hasher as _, RandomState};
use std::sync::LazyLock;

use foldhash::SharedSeed;
use foldhash::quality::SeedableRandomState;

/// Bytes of a length.
const HEAD: usize = size_of::<u32>();
/// Bytes of a key that need no memory elsewhere.
const SHORT: usize = 22;

/// Values in one piece.
#[derive(Debug)]
pub(super) enum Key {
    /// What is looked at first is then in the bucket itself.
    Short(u8, [u8; SHORT]),
    Long(Box<[u8]>),
}

/// Says where values fall. Whoever chooses the values must not be able to choose that, or all of them would fall on one place.
///
/// The hash is several times faster than the one of [`RandomState`], and not a cryptographic one: whoever saw what it gives could
/// work out its seeds. Nobody sees that. Its seeds are 128 bits of the system's chance, others in each process; no answer tells what
/// it gave, nor in which order buckets lie; and two values that fall together differ by a few nanoseconds.
static HASHER: LazyLock<SeedableRandomState> =
    LazyLock::new(|| SeedableRandomState::with_seed(chance(), &SHARED));

static SHARED: LazyLock<SharedSeed> = LazyLock::new(|| SharedSeed::from_u64(chance()));

/// From the keys of a [`RandomState`], which come from the system.
fn chance() -> u64 {
    RandomState::new().hash_one(())
}

/// Where a value falls that is alone.
#[inline(always)]
pub(super) fn hash_one(value: &str) -> u64 {
    let mut hasher = HASHER.build_hasher();
    hasher.write(value.as_bytes());
    hasher.finish()
}

/// Where values fall.
pub(super) fn hash(values: &[&str]) -> u64 {
    let mut hasher = HASHER.build_hasher();
    if let Some((last, firsts)) = values.split_last() {
        for value in firsts {
            hasher.write(value.as_bytes());
            hasher.write_u8(0xff);
        }
        hasher.write(last.as_bytes());
    }
    hasher.finish()
}

impl Key {
    pub(super) fn of(values: &[&str]) -> Self {
        let mut packed = Vec::with_capacity(values.iter().map(|value| HEAD + value.len()).sum());
        if let Some((last, firsts)) = values.split_last() {
            for value in firsts {
                packed.extend(head(value));
                packed.extend(value.as_bytes());
            }
            packed.extend(last.as_bytes());
        }
        let mut short = [0; SHORT];
        match (short.get_mut(..packed.len()), u8::try_from(packed.len())) {
            (Some(bytes), Ok(len)) => {
                bytes.copy_from_slice(&packed);
                Self::Short(len, short)
            }
            _ => Self::Long(packed.into_boxed_slice()),
        }
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Short(len, bytes) => &bytes[..usize::from(*len).min(SHORT)],
            Self::Long(bytes) => bytes,
        }
    }

    /// Whether it was made of this value alone.
    #[inline(always)]
    pub(super) fn is_one(&self, value: &str) -> bool {
        *self.bytes() == *value.as_bytes()
    }

    /// Whether these are the values that it was made of.
    pub(super) fn is(&self, values: &[&str]) -> bool {
        is(self.bytes(), values)
    }
}

fn is(mut packed: &[u8], values: &[&str]) -> bool {
    let Some((last, firsts)) = values.split_last() else { return packed.is_empty() };
    for value in firsts {
        let Some((first, rest)) = packed.split_at_checked(HEAD + value.len()) else { return false };
        if first[..HEAD] != head(value) || first[HEAD..] != *value.as_bytes() {
            return false;
        }
        packed = rest;
    }
    *packed == *last.as_bytes()
}

/// No front takes a value of 4 GiB; two that long would differ in their bytes all the same.
fn head(value: &str) -> [u8; HEAD] {
    u32::try_from(value.len()).unwrap_or(u32::MAX).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_told_apart_by_where_they_end() {
        assert!(Key::of(&["a_b", "c"]).is(&["a_b", "c"]) && Key::of(&[]).is(&[]));
        for other in [&["a", "b_c"][..], &["a_bc"], &["a_b", "c", ""], &["a_b"], &["a_b", "cc"], &[]] {
            assert!(!Key::of(&["a_b", "c"]).is(other), "{other:?}");
        }
    }

    #[test]
    fn values_of_any_length_are_found_again() {
        let long = "x".repeat(100);
        for len in 0..100 {
            assert!(Key::of(&[&long[..len]]).is(&[&long[..len]]), "{len}");
            assert!(Key::of(&[&long[len..], &long[..len]]).is(&[&long[len..], &long[..len]]), "{len}");
            assert!(!Key::of(&[&long[..len]]).is(&[&long[..=len]]), "{len}");
        }
    }
}
