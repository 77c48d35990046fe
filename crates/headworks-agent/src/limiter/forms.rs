//! The forms of requests that a thread met of late: for each the limits that may concern such a request, with the places of the
//! keys that they look for.

use headworks_core::attributes::Attributes;
use headworks_core::matching::Form;

use super::rules::Rules;

/// Forms that a thread remembers.
const MOST_FORMS: usize = 8;
/// Requests of forms that it does not know, of which one is learnt when it remembers so many: to learn one takes longer than to
/// decide a few, and whoever makes them up would have it learn for ever.
const LEARNS_ONE_IN: usize = 64;
/// With more limits than this, to look up by the index which of them concern a request is faster than to look at each; and
/// whoever makes up forms must not have all limits looked through for each.
const MOST_LIMITS: usize = 64;

/// The forms that a thread knows, by the rules of one generation.
#[derive(Debug, Default)]
pub(super) struct Forms {
    generation: u64,
    known: Vec<Known>,
    /// Requests of other forms since one was learnt.
    missed: usize,
    /// Which of them is forgotten next.
    oldest: usize,
}

/// One form.
#[derive(Debug, Default)]
pub(super) struct Known {
    keys: Box<[Box<str>]>,
    /// With their places in the pipeline.
    limits: Box<[(u32, Form)]>,
}

impl Known {
    /// What the limits in force have to do with requests of these keys.
    pub(super) fn of<'k>(rules: &Rules, keys: impl IntoIterator<Item = &'k str>) -> Self {
        let keys: Vec<&str> = keys.into_iter().collect();
        let forms =
            (0..).zip(rules.stages()).filter_map(|(place, stage)| Some((place, stage.limit.form(&keys)?)));
        let limits = forms.collect();
        Self { keys: keys.into_iter().map(Into::into).collect(), limits }
    }

    /// Whether so many limits may concern such a request that it is faster to look them up.
    pub(super) fn has_too_many(&self) -> bool {
        self.limits.len() > MOST_LIMITS
    }

    /// The limits that may concern such a request, in pipeline order, with their places.
    #[inline]
    pub(super) fn limits(&self) -> &[(u32, Form)] {
        &self.limits
    }

    #[inline]
    fn is_of(&self, attributes: Attributes<'_>) -> bool {
        let keys = attributes.iter();
        self.keys.len() == keys.len() && self.keys.iter().zip(keys).all(|(known, (key, _))| same(known, key))
    }
}

impl Forms {
    /// The form of a request; `None` if its limits are to be looked up.
    #[inline]
    pub(super) fn of(&mut self, rules: &Rules, attributes: Attributes<'_>) -> Option<&Known> {
        if rules.stages().len() > MOST_LIMITS {
            return None;
        }
        let known = (self.generation == rules.generation)
            .then(|| self.known.iter().position(|known| known.is_of(attributes)));
        let place = match known.flatten() {
            Some(place) => place,
            None => self.learn(rules, attributes)?,
        };
        self.known.get(place)
    }

    #[cold]
    #[inline(never)]
    fn learn(&mut self, rules: &Rules, attributes: Attributes<'_>) -> Option<usize> {
        if self.generation != rules.generation {
            *self = Self { generation: rules.generation, ..Self::default() };
        }
        self.missed += 1;
        if self.known.len() == MOST_FORMS && !self.missed.is_multiple_of(LEARNS_ONE_IN) {
            return None;
        }
        let known = Known::of(rules, attributes.iter().map(|(key, _)| key));
        if self.known.len() < MOST_FORMS {
            self.known.push(known);
            return Some(self.known.len() - 1);
        }
        let place = self.oldest;
        self.oldest = (place + 1) % MOST_FORMS;
        self.known[place] = known;
        Some(place)
    }
}

/// Whether two short texts are the same, without a call.
#[inline(always)]
fn same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let length = one.len();
    if length != other.len() {
        return false;
    }
    if length > 16 {
        return one == other;
    }
    if let (Some(a), Some(b), Some(c), Some(d)) = ends::<8>(one, other) {
        u64::from_le_bytes(*a) == u64::from_le_bytes(*b) && u64::from_le_bytes(*c) == u64::from_le_bytes(*d)
    } else if let (Some(a), Some(b), Some(c), Some(d)) = ends::<4>(one, other) {
        u32::from_le_bytes(*a) == u32::from_le_bytes(*b) && u32::from_le_bytes(*c) == u32::from_le_bytes(*d)
    } else {
        one.iter().zip(other).all(|(a, b)| a == b)
    }
}

type Ends<'a, const N: usize> =
    (Option<&'a [u8; N]>, Option<&'a [u8; N]>, Option<&'a [u8; N]>, Option<&'a [u8; N]>);

/// How both begin, and how both end.
#[inline(always)]
fn ends<'a, const N: usize>(one: &'a [u8], other: &'a [u8]) -> Ends<'a, N> {
    (one.first_chunk(), other.first_chunk(), one.last_chunk(), other.last_chunk())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn texts_are_the_same_if_all_of_them_is(one in "[ab]{0,20}", other in "[ab]{0,20}") {
            prop_assert_eq!(same(&one, &other), one == other);
            prop_assert!(same(&one, &one.clone()));
        }
    }
}
