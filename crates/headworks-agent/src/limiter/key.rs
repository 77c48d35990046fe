//! The values of a bucket as the words that its record keeps: short ones inside the record, so that a look-up compares them
//! without a pointer to follow.

use std::hash::{BuildHasher, Hasher};

use foldhash::SharedSeed;
use foldhash::fast::SeedableRandomState;

/// Words that a record has room for.
pub(super) const WORDS: usize = 8;
/// Values whose lengths have room in a word.
const MOST_VALUES: usize = 8;

/// The values of a request: their lengths in one word, and then each value in words of its own, the last one filled up with zeros. So
/// `a_b` and `c` are not `a` and `b_c`. Words are made from the texts in registers: what is written to memory byte by byte and
/// read again as words waits for each of the bytes.
///
/// All words are hashed and compared, in use or not: a loop whose length is known is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key(pub(super) [u64; WORDS]);

impl Key {
    /// The key of a record that is not found by one: none that values have, since so many of such lengths find no room.
    pub(super) const NONE: Self = Self([u64::MAX; WORDS]);

    /// `None` if they are too long to be kept in a record.
    #[inline(always)]
    pub(super) fn of<'v>(values: impl Iterator<Item = &'v str>) -> Option<Self> {
        let (mut words, mut used, mut lengths) = ([0; WORDS], 1, 0_u64);
        for (place, value) in values.enumerate() {
            let length = u8::try_from(value.len()).ok().filter(|_| place < MOST_VALUES)?;
            lengths |= u64::from(length) << (8 * place);
            let (whole, rest) = value.as_bytes().as_chunks::<8>();
            for chunk in whole {
                *words.get_mut(used)? = u64::from_le_bytes(*chunk);
                used += 1;
            }
            if !rest.is_empty() {
                *words.get_mut(used)? = word(rest);
                used += 1;
            }
        }
        words[0] = lengths;
        Some(Self(words))
    }

    /// The values again, which are so many.
    pub(super) fn values(self, count: usize) -> Vec<String> {
        let lengths = self.0[0].to_le_bytes();
        let mut words = self.0[1..].iter();
        let value = |length: &u8| {
            let length = usize::from(*length);
            let bytes = words.by_ref().take(length.div_ceil(8)).flat_map(|word| word.to_le_bytes());
            String::from_utf8_lossy(&bytes.take(length).collect::<Vec<u8>>()).into_owned()
        };
        lengths.iter().take(count).map(value).collect()
    }
}

/// Up to seven bytes as a word.
#[inline(always)]
fn word(bytes: &[u8]) -> u64 {
    let length = bytes.len();
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        return u64::from(first) | u64::from(last) << (8 * (length - 4));
    }
    // Of three bytes each, of fewer some twice.
    let at = |place: usize| u64::from(bytes[place]) << (8 * place);
    if length == 0 { 0 } else { at(0) | at(length / 2) | at(length - 1) }
}

/// Hashes identities of buckets. By a seed that nobody outside can know: whoever could make up values of one hash would make every
/// look-up a walk.
#[derive(Clone, Debug)]
pub(super) struct Hashing(SeedableRandomState);

impl Default for Hashing {
    fn default() -> Self {
        Self(SeedableRandomState::with_seed(fastrand::u64(..), SharedSeed::global_random()))
    }
}

impl Hashing {
    /// The hash of a short key of these buckets.
    #[inline(always)]
    pub(super) fn of_key(&self, buckets: u32, key: &Key) -> u32 {
        let mut hasher = self.0.build_hasher();
        hasher.write_u64(buckets.into());
        key.0.iter().for_each(|word| hasher.write_u64(*word));
        narrow(hasher.finish())
    }

    /// The hash of a long key.
    pub(super) fn of_values<'v>(&self, buckets: u32, values: impl Iterator<Item = &'v str>) -> u32 {
        let mut hasher = self.0.build_hasher();
        hasher.write_u64(buckets.into());
        for value in values {
            hasher.write_usize(value.len());
            hasher.write(value.as_bytes());
        }
        narrow(hasher.finish())
    }
}

#[allow(clippy::cast_possible_truncation, reason = "folds both halves")]
fn narrow(hash: u64) -> u32 {
    (hash >> 32) as u32 ^ hash as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn values_come_back_and_different_ones_have_different_words(
            one in prop::collection::vec("[a-c\0é]{0,20}", 1..4), other in prop::collection::vec("[a-c\0é]{0,20}", 1..4),
        ) {
            let key = |values: &[String]| Key::of(values.iter().map(String::as_str));
            let words = 1 + one.iter().map(|value| value.len().div_ceil(8)).sum::<usize>();
            prop_assert_eq!(key(&one).is_some(), words <= WORDS);
            if let (Some(a), Some(b)) = (key(&one), key(&other)) {
                prop_assert_eq!(&a.values(one.len()), &one);
                if one.len() == other.len() {
                    prop_assert_eq!(a == b, one == other);
                }
            }
        }
    }
}
