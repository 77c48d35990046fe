//! The values of a bucket as the words that its record keeps: short ones inside the record, so that a look-up compares them
//! without a pointer to follow.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Words that a record has room for beside what decisions read, which is enough for most.
pub(super) const NEAR: usize = 5;
/// Words that it has room for elsewhere.
pub(super) const FAR: usize = 3;
/// Where the last word of a value has its length: no value that finds room is so long that it needs more than the uppermost byte.
const LENGTH_AT: u32 = 56;

/// The values of a bucket: each in words of its own, of which the last one has room for seven bytes, and in its uppermost the length of
/// the value plus one. So they can be told apart from the end, and `a_b` and `c` are not `a` and `b_c`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key<'r> {
    pub(super) near: &'r [AtomicU64; NEAR],
    pub(super) far: &'r [AtomicU64; FAR],
}

/// A value by its words. They are made from the text in registers, for the hash and once more to compare: what is written to memory and
/// read again at once waits, and a decision waits for it.
enum Words {
    One(u64),
    Two(u64, u64),
    /// Sixteen bytes or more.
    More,
}

impl Words {
    #[inline(always)]
    fn of(value: &[u8]) -> Self {
        let length = value.len();
        let ends = (length as u64 + 1) << LENGTH_AT;
        match (value.first_chunk(), value.last_chunk()) {
            (Some(first), Some(last)) if length < 16 => {
                // What is not in the first one. In two steps, of which none is as wide as a word.
                let rest = u64::from_le_bytes(*last) >> 8 >> (120 - 8 * length);
                Self::Two(u64::from_le_bytes(*first), rest | ends)
            }
            (None, _) => Self::One(word(value) | ends),
            _ => Self::More,
        }
    }
}

/// The words of any value.
fn all_words(value: &[u8]) -> impl Iterator<Item = u64> {
    let (whole, rest) = value.as_chunks();
    let last = word(rest) | (value.len() as u64 + 1) << LENGTH_AT;
    whole.iter().map(|chunk| u64::from_le_bytes(*chunk)).chain([last])
}

impl Key<'_> {
    /// Keeps these values; how many words they take. `None` if they are too long, and nothing is kept.
    pub(super) fn keep(&self, values: &[&str]) -> Option<u32> {
        let words: Vec<u64> = values.iter().flat_map(|value| all_words(value.as_bytes())).collect();
        if words.len() > NEAR + FAR {
            return None;
        }
        self.near.iter().chain(self.far).zip(&words).for_each(|(kept, word)| kept.store(*word, Relaxed));
        u32::try_from(words.len()).ok()
    }

    /// How many words these values take, if its first words are theirs.
    #[inline(always)]
    pub(super) fn begins_with<'v>(&self, values: impl Iterator<Item = &'v str>) -> Option<usize> {
        let mut at = 0;
        for value in values {
            let value = value.as_bytes();
            match Words::of(value) {
                Words::One(word) if self.has(at, word) => at += 1,
                Words::Two(first, last) if self.has(at, first) && self.has(at + 1, last) => at += 2,
                Words::More => at = self.goes_on_with(at, value)?,
                _ => return None,
            }
        }
        Some(at)
    }

    #[inline(never)]
    fn goes_on_with(&self, at: usize, value: &[u8]) -> Option<usize> {
        let ends = at + value.len() / 8 + 1;
        (at..ends).zip(all_words(value)).all(|(at, word)| self.has(at, word)).then_some(ends)
    }

    #[inline(always)]
    fn has(&self, at: usize, word: u64) -> bool {
        match self.near.get(at) {
            Some(kept) => kept.load(Relaxed) == word,
            None => self.has_far(at - NEAR, word),
        }
    }

    #[cold]
    #[inline(never)]
    fn has_far(&self, at: usize, word: u64) -> bool {
        self.far.get(at).is_some_and(|kept| kept.load(Relaxed) == word)
    }

    /// The values again, which take so many words.
    pub(super) fn values(&self, words: u32) -> Vec<String> {
        let kept = self
            .near
            .iter()
            .chain(self.far)
            .take(words as usize)
            .map(|word| word.load(Relaxed))
            .collect::<Vec<_>>();
        let mut left = &*kept;
        let mut values: Vec<String> = std::iter::from_fn(|| take_last(&mut left)).collect();
        values.reverse();
        values
    }
}

/// Takes the last value off.
fn take_last(words: &mut &[u64]) -> Option<String> {
    let length = usize::try_from(words.last()? >> LENGTH_AT).ok()?.checked_sub(1)?;
    let (before, its) = words.split_at_checked(words.len().checked_sub(length / 8 + 1)?)?;
    *words = before;
    let bytes: Vec<u8> = its.iter().flat_map(|word| word.to_le_bytes()).take(length).collect();
    Some(String::from_utf8_lossy(&bytes).into_owned())
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

/// Hashes identities of buckets. By seeds that nobody outside can know: whoever could make up values of one hash would make every
/// look-up a walk.
#[derive(Clone, Debug)]
pub(super) struct Hashing {
    begins: u64,
    one: u64,
    two: u64,
    more: u64,
}

impl Default for Hashing {
    fn default() -> Self {
        let [begins, one, two, more] = std::array::from_fn(|_| fastrand::u64(..));
        Self { begins, one, two, more }
    }
}

impl Hashing {
    /// The hash of the values of one of these buckets: each word is folded into what is before it by a product with a seed, as the hash
    /// functions of the family of wyhash do.
    #[inline(always)]
    pub(super) fn of<'v>(&self, buckets: u32, values: impl Iterator<Item = &'v str>) -> u32 {
        let mut hash = self.begins ^ u64::from(buckets);
        for value in values {
            let value = value.as_bytes();
            hash = match Words::of(value) {
                Words::One(word) => folded(hash ^ word, self.one),
                Words::Two(first, last) => folded(hash ^ last, self.two ^ first),
                Words::More => self.of_more(hash, value),
            };
        }
        narrow(hash)
    }

    #[inline(never)]
    fn of_more(&self, hash: u64, value: &[u8]) -> u64 {
        all_words(value).fold(hash, |hash, word| folded(hash ^ word, self.more))
    }
}

/// Both halves of a product in one word.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "folds both halves")]
fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "folds both halves")]
fn narrow(hash: u64) -> u32 {
    (hash >> 32) as u32 ^ hash as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bytes of lengths that are taken for text, among them.
    const TEXT: &str = "[a-c\0\u{1}-\u{9}\u{11}é]{0,20}";

    fn texts(values: &[String]) -> impl Iterator<Item = &str> {
        values.iter().map(String::as_str)
    }

    proptest! {
        #[test]
        fn values_come_back_and_only_the_same_are_found(
            one in prop::collection::vec(TEXT, 1..4), other in prop::collection::vec(TEXT, 1..4),
        ) {
            let (near, far) = Default::default();
            let key = Key { near: &near, far: &far };
            let words: usize = one.iter().map(|value| value.len() / 8 + 1).sum();
            let kept = key.keep(&texts(&one).collect::<Vec<_>>());
            prop_assert_eq!(kept.is_some(), words <= NEAR + FAR);
            let Some(kept) = kept else { return Ok(()) };
            prop_assert_eq!(&key.values(kept), &one);
            prop_assert_eq!(key.begins_with(texts(&one)), Some(words));
            let found = key.begins_with(texts(&other)) == Some(kept as usize);
            prop_assert_eq!(found, one == other);
            let hashing = Hashing::default();
            prop_assert_eq!(hashing.of(1, texts(&one)), hashing.of(1, texts(&key.values(kept))));
        }
    }

    #[test]
    fn a_value_that_looks_like_two_is_none_of_them() {
        // The first eight bytes read as the last word of a value of three bytes, and so on.
        let tricky = ["abc\0\0\0\0\u{4}xyz", "abc\0\0\0\0\u{4}\0\0\0\0\0\0\0\0abc"];
        for value in tricky {
            let (near, far) = Default::default();
            let key = Key { near: &near, far: &far };
            let kept = key.keep(&[value]).unwrap() as usize;
            assert_ne!(key.begins_with(["abc"].into_iter()), Some(kept), "{value:?}");
            assert_ne!(key.begins_with(["abc", "xyz"].into_iter()), Some(kept), "{value:?}");
            assert_eq!(key.begins_with([value].into_iter()), Some(kept));
        }
    }

    #[test]
    fn hashes_of_like_values_are_spread() {
        let hashing = Hashing::default();
        let of = |value: String| hashing.of(1, ["checkout", &value, "/v1/Pay"].into_iter());
        let slots: std::collections::HashSet<u32> =
            (0..65_536).map(|tenant| of(format!("tenant-{tenant:07}")) & 0xffff).collect();
        // As many of 65536 slots as chance alone leaves in use: 63 %.
        assert!((40_000..43_000).contains(&slots.len()), "{}", slots.len());
    }
}
