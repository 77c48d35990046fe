//! Matching: whether a limit concerns a request, and which of its buckets counts it.

use crate::attributes::Attributes;
use crate::limits::{Limit, Missing, Mode};

/// The most `per` keys a limit may have; bounds the stack space of a decision.
pub const MAX_PER_KEYS: usize = 16;

/// The values of a limit's `per` keys in one request, borrowed from it.
#[derive(Clone, Copy, Debug)]
pub struct BorrowedValues<'a> {
    values: [&'a str; MAX_PER_KEYS],
    len: usize,
}

impl<'a> BorrowedValues<'a> {
    /// The values in the order of the limit's `per` keys.
    pub fn as_slice(&self) -> &[&'a str] {
        &self.values[..self.len]
    }
}

/// What a limit has to do with a request.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::large_enum_variant, reason = "lives on the stack of one decision; a box would allocate")]
pub enum Encounter<'a> {
    /// Nothing.
    Unconcerned,
    /// It counts the request in the bucket of these values.
    Counted(BorrowedValues<'a>),
    /// It concerns the request, which lacks a `per` key, and drops such requests.
    DroppedForMissing,
}

impl Limit {
    /// What this limit has to do with a request of these attributes. Values compare byte by byte.
    pub fn encounter<'a>(&self, attributes: Attributes<'a>) -> Encounter<'a> {
        if self.mode == Mode::Off || !self.concerns(attributes) {
            return Encounter::Unconcerned;
        }
        let mut values = [""; MAX_PER_KEYS];
        for (slot, key) in values.iter_mut().zip(&self.per) {
            match (attributes.get(key), self.missing) {
                (Some(value), _) => *slot = value,
                (None, Missing::Empty) => {}
                (None, Missing::Skip) => return Encounter::Unconcerned,
                (None, Missing::Drop) => return Encounter::DroppedForMissing,
            }
        }
        Encounter::Counted(BorrowedValues { values, len: self.per.len().min(MAX_PER_KEYS) })
    }

    fn concerns(&self, attributes: Attributes<'_>) -> bool {
        self.matches.iter().all(|(key, value)| attributes.get(key) == Some(value))
    }
}
