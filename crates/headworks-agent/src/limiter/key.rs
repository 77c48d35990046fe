//! The values of a bucket as the words that its record keeps: short ones inside the record, so that a look-up compares them
//! without a pointer to follow.

use std::hash::{BuildHasher, Hasher};

use foldhash::SharedSeed;
use foldhash::fast::SeedableRandomState;

/// Words that a record has room for.
pub(super) const WORDS: usize = 8;
const BYTES: usize = WORDS * 8;
/// What the first byte of a value says whose length does not fit into it.
const LONGEST: usize = 254;

/// The values of a request, written one behind the other, each after its length: `a_b` and `c` are not `a` and `b_c`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    words: [u64; WORDS],
    /// How many of them are in use.
    used: usize,
}

impl Key {
    /// `None` if they are too long to be kept in a record.
    #[inline]
    pub(super) fn of<'v>(values: impl Iterator<Item = &'v str>) -> Option<Self> {
        let mut bytes = [0; BYTES];
        let mut at = 0;
        for value in values {
            let room = bytes.get_mut(at..at + 1 + value.len())?;
            if value.len() > LONGEST {
                return None;
            }
            let (length, room) = room.split_first_mut()?;
            #[allow(clippy::cast_possible_truncation, reason = "not above 254")]
            let shortened = value.len() as u8;
            *length = shortened;
            put(room, value.as_bytes());
            at += 1 + value.len();
        }
        let mut words = [0; WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        Some(Self { words, used: at.div_ceil(8) })
    }

    /// The words in use.
    #[inline]
    pub(super) fn words(&self) -> &[u64] {
        &self.words[..self.used]
    }

    /// The values again, from words that a record kept.
    pub(super) fn values(words: &[u64]) -> Vec<String> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let (mut values, mut rest) = (Vec::new(), &*bytes);
        while let Some((length, others)) = rest.split_first() {
            // Behind the last value there are zeros up to the end of the word, and empty values before it are zeros too.
            let Some((value, others)) = others.split_at_checked(usize::from(*length)) else { break };
            values.push(String::from_utf8_lossy(value).into_owned());
            rest = others;
        }
        values
    }
}

/// Copies what is at most a few dozen bytes: as words, the last one overlapping, without a call.
#[inline]
fn put(to: &mut [u8], from: &[u8]) {
    let length = from.len();
    if length >= 8 {
        let mut at = 0;
        while at + 8 <= length {
            to[at..at + 8].copy_from_slice(&from[at..at + 8]);
            at += 8;
        }
        to[length - 8..length].copy_from_slice(&from[length - 8..]);
    } else if length >= 4 {
        to[..4].copy_from_slice(&from[..4]);
        to[length - 4..length].copy_from_slice(&from[length - 4..]);
    } else {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
    }
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
    #[inline]
    pub(super) fn of_words(&self, buckets: u32, words: &[u64]) -> u32 {
        let mut hasher = self.0.build_hasher();
        hasher.write_u64(buckets.into());
        words.iter().for_each(|word| hasher.write_u64(*word));
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
            let fits = one.iter().map(|value| 1 + value.len()).sum::<usize>() <= BYTES;
            prop_assert_eq!(key(&one).is_some(), fits);
            if let (Some(a), Some(b)) = (key(&one), key(&other)) {
                let mut back = Key::values(a.words());
                prop_assert!(back.split_off(one.len()).iter().all(String::is_empty));
                prop_assert_eq!(&back, &one);
                if one.len() == other.len() {
                    prop_assert_eq!(a.words() == b.words(), one == other);
                }
            }
        }
    }
}
