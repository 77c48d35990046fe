//! Which of a limit's overrides holds for a bucket: the most specific one.
//!
//! An override without `*` is more specific than one with, then the one with more literal text; check refuses a tie of two
//! that may concern one bucket. They choose by the values of `per` keys alone, so a bucket has one rule, and it is looked up
//! once, when the bucket comes to be.

use std::hash::{Hash, Hasher};

use hashbrown::HashTable;
use rustc_hash::FxHasher;
use smallvec::SmallVec;

use crate::attributes::Attributes;
use crate::limits::Override;
use crate::matching::{Index, MAX_PER_KEYS, Wanted};
use crate::pattern::Pattern;

mod ties;

pub use ties::ties;

/// What holds for the buckets of a limit: its own, and what its overrides say instead.
#[derive(Clone, Debug)]
pub struct Overrides<R> {
    own: R,
    /// Those that name the value of each `per` key, by the values.
    whole: HashTable<(Box<[String]>, R)>,
    /// The others, the most specific first.
    partial: Vec<(Chooser, R)>,
    /// Which of these may concern a bucket: patterns may be thousands.
    index: Index,
    per: Box<[String]>,
}

impl<R> Overrides<R> {
    /// What holds for a limit of these `per` keys: `own`, and what `make` makes of each override, in their order.
    pub fn new(own: R, overrides: &[Override], per: &[String], mut make: impl FnMut(&Override) -> R) -> Self {
        let (whole, index) = (HashTable::new(), Index::default());
        let mut all = Self { own, whole, partial: Vec::new(), index, per: per.into() };
        let mut partial = Vec::new();
        for other in overrides {
            let chooser = Chooser::of(other, per);
            match chooser.whole() {
                Some(values) => all.name(values, make(other)),
                None => partial.push((&*other.matches, chooser, make(other))),
            }
        }
        partial.sort_by_key(|(_, chooser, _)| std::cmp::Reverse(chooser.rank()));
        all.index = Index::of(partial.iter().map(|(matches, ..)| Wanted { matches, keys: &[] }));
        all.partial = partial.into_iter().map(|(_, chooser, rule)| (chooser, rule)).collect();
        all
    }

    fn name(&mut self, values: Box<[String]>, rule: R) {
        let hash = hash(values.iter().map(String::as_str));
        match self.whole.find_mut(hash, |(known, _)| *known == values) {
            Some((_, known)) => *known = rule,
            None => {
                let rehash = |(values, _): &(Box<[String]>, R)| self::hash(values.iter().map(String::as_str));
                self.whole.insert_unique(hash, (values, rule), rehash);
            }
        }
    }

    /// What holds for buckets that no override concerns.
    #[inline]
    pub fn own(&self) -> &R {
        &self.own
    }

    /// What overrides say, in no order.
    pub fn others(&self) -> impl Iterator<Item = &R> {
        let whole = self.whole.iter().map(|(_, rule)| rule);
        whole.chain(self.partial.iter().map(|(_, rule)| rule))
    }

    /// The values of buckets that overrides name.
    pub fn named(&self) -> impl Iterator<Item = &[String]> {
        self.whole.iter().map(|(values, _)| &**values)
    }

    /// What holds for the bucket of these values, and whether an override names exactly this bucket.
    pub fn of_values<V: AsRef<str>>(&self, values: &[V]) -> (&R, bool) {
        if !self.whole.is_empty() {
            let is_it = |(known, _): &(Box<[String]>, R)| {
                known.len() == values.len() && known.iter().zip(values).all(|(a, b)| a == b.as_ref())
            };
            let hash = hash(values.iter().map(AsRef::as_ref));
            if let Some((_, rule)) = self.whole.find(hash, is_it) {
                return (rule, true);
            }
        }
        (self.partial_of(values).unwrap_or(&self.own), false)
    }

    fn partial_of<V: AsRef<str>>(&self, values: &[V]) -> Option<&R> {
        if self.partial.is_empty() {
            return None;
        }
        let pairs = self.per.iter().zip(values).map(|(key, value)| (key.as_str(), value.as_ref()));
        let pairs: SmallVec<[(&str, &str); MAX_PER_KEYS]> = pairs.collect();
        let mut candidates = self.index.candidates(Attributes::new(&pairs)).map(|place| &self.partial[place]);
        candidates.find(|(chooser, _)| chooser.chooses(values)).map(|(_, rule)| rule)
    }
}

/// Only names that the limits file gives are in the table, so nobody can fill it with values of one hash.
fn hash<'v>(values: impl Iterator<Item = &'v str>) -> u64 {
    let mut hasher = FxHasher::default();
    values.for_each(|value| value.hash(&mut hasher));
    hasher.finish()
}

/// By which values an override chooses buckets: a pattern for each `per` key, or nothing where any value will do.
#[derive(Clone, Debug)]
struct Chooser(Box<[Option<Pattern>]>);

impl Chooser {
    fn of(other: &Override, per: &[String]) -> Self {
        let pattern = |key| other.matches.iter().find(|(k, _)| k == key).map(|(_, value)| value.clone());
        Self(per.iter().map(pattern).collect())
    }

    fn patterns(&self) -> impl Iterator<Item = &Pattern> {
        self.0.iter().flatten()
    }

    /// The values, if it names one for each key.
    fn whole(&self) -> Option<Box<[String]>> {
        self.0.iter().map(|pattern| Some(pattern.as_ref()?.literal()?.to_owned())).collect()
    }

    /// Higher is more specific.
    fn rank(&self) -> (bool, usize) {
        (!self.patterns().any(Pattern::has_stars), self.patterns().map(Pattern::literal_len).sum())
    }

    fn chooses<V: AsRef<str>>(&self, values: &[V]) -> bool {
        let fits = |(pattern, value): (&Option<Pattern>, &V)| {
            pattern.as_ref().is_none_or(|pattern| pattern.fits(value.as_ref()))
        };
        self.0.iter().zip(values).all(fits)
    }

    /// Whether one bucket may be chosen by both.
    fn overlaps(&self, other: &Chooser) -> bool {
        self.0.iter().zip(&other.0).all(|pair| match pair {
            (Some(a), Some(b)) => a.overlaps(b),
            _ => true,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::units::Rate;

    fn other(matches: Vec<(&str, &str)>) -> Override {
        let matches = matches.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect();
        Override { matches, rate: Rate::Unlimited, burst: None, mode: None }
    }

    /// What holds, found by looking at each.
    fn walked(overrides: &[Override], per: &[String], values: &[&str]) -> Option<usize> {
        let choosers: Vec<Chooser> = overrides.iter().map(|other| Chooser::of(other, per)).collect();
        let whole = (0..choosers.len()).rfind(|place| {
            choosers[*place].whole().is_some_and(|whole| whole.iter().eq(values.iter().copied()))
        });
        whole.or_else(|| {
            let fitting = (0..choosers.len()).filter(|place| choosers[*place].chooses(values));
            // Of several that are equally specific the first.
            fitting.rev().max_by_key(|place| choosers[*place].rank())
        })
    }

    proptest! {
        #[test]
        fn the_override_that_holds_is_what_a_walk_over_all_finds(
            patterns in vec((select(vec!["", "a", "b", "ab", "a*", "ab*", "*b", "*", "abc*"]), "[ab]{1,2}[*]?"), 1..40),
            values in vec("[abc]{0,4}", 2),
        ) {
            let per = ["x".to_owned(), "y".to_owned()];
            let of = |(x, y): &(&str, String)| {
                let x = (!x.is_empty()).then_some(("x", *x));
                other(x.into_iter().chain([("y", y.as_str())]).collect())
            };
            let overrides: Vec<Override> = patterns.iter().map(of).collect();
            let values: Vec<&str> = values.iter().map(String::as_str).collect();
            let mut places = 0..;
            let found = Overrides::new(None, &overrides, &per, |_| places.next());
            prop_assert_eq!(*found.of_values(&values).0, walked(&overrides, &per, &values));
        }
    }
}
