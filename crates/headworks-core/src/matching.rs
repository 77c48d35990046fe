//! Matching: whether a limit concerns a request, and which of its buckets counts it.

mod form;
mod index;

pub use form::{Fit, Form};
pub(crate) use index::Wanted;
pub use index::{Candidates, Index};

use crate::attributes::Attributes;
use crate::limits::{Limit, Missing, Mode};
use crate::pattern::Pattern;

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

/// What a limit has to do with a request, in few words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meeting<'a> {
    /// Nothing.
    Unconcerned,
    /// It counts the request in one of its buckets, whose first value this is: most limits have no more than one.
    Counted(&'a str),
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

    /// The same without the values but the first, which [`Limit::values`] tells: for whoever needs no list of them.
    #[inline(always)]
    pub fn meeting<'a>(&self, attributes: Attributes<'a>) -> Meeting<'a> {
        if self.mode == Mode::Off || !self.concerns(attributes) {
            return Meeting::Unconcerned;
        }
        let Some((first, others)) = self.per.split_first() else { return Meeting::Counted("") };
        match attributes.get(first) {
            Some(first) if others.is_empty() => Meeting::Counted(first),
            first => self.meeting_of_several(first, others, attributes),
        }
    }

    #[cold]
    fn meeting_of_several<'a>(
        &self,
        first: Option<&'a str>,
        others: &[String],
        attributes: Attributes<'a>,
    ) -> Meeting<'a> {
        match (first, self.missing) {
            (first, Missing::Empty) => Meeting::Counted(first.unwrap_or_default()),
            (Some(first), _) if others.iter().all(|key| attributes.get(key).is_some()) => {
                Meeting::Counted(first)
            }
            (_, Missing::Skip) => Meeting::Unconcerned,
            (_, Missing::Drop) => Meeting::DroppedForMissing,
        }
    }

    /// The values of the `per` keys in a request that this limit counts, in their order.
    #[inline]
    pub fn values<'a>(&self, attributes: Attributes<'a>) -> impl Iterator<Item = &'a str> + Clone {
        self.per.iter().map(move |key| attributes.get(key).unwrap_or_default())
    }

    #[inline]
    fn concerns(&self, attributes: Attributes<'_>) -> bool {
        let fits =
            |(key, value): &(String, Pattern)| attributes.get(key).is_some_and(|text| value.fits(text));
        self.matches.iter().all(fits) && (!self.exactly || self.names_all_of(attributes))
    }

    /// Whether a request has the keys that this limit names, in their order, and no others.
    pub(crate) fn names_all_of(&self, attributes: Attributes<'_>) -> bool {
        self.keys().eq(attributes.iter().map(|(key, _)| key))
    }

    /// The keys that it names: those of `match`, then those of `per` that are not among them.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        let matched = || self.matches.iter().map(|(key, _)| key.as_str());
        let others =
            self.per.iter().map(String::as_str).filter(move |key| matched().all(|other| other != *key));
        matched().chain(others)
    }
}
