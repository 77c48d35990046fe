//! What a limit has to do with requests of one form: of the same keys in the same order. Most requests of a process have one of few
//! forms, so that keys are compared once for each form, and not for each request.

use smallvec::SmallVec;

use crate::limits::{Limit, Missing, Mode};
use crate::pattern::Pattern;

/// What a limit has to do with a request, as far as its form does not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// Nothing.
    Unconcerned,
    /// It counts the request in the bucket of [`Form::values`].
    Counted,
    /// It concerns the request, which lacks a `per` key, and drops such requests.
    DroppedForMissing,
}

/// A limit, by the places of the keys that it looks for.
#[derive(Clone, Debug)]
pub struct Form {
    /// Places, and what their values must fit.
    matches: Box<[(usize, Pattern)]>,
    /// Places of the `per` keys; `NOWHERE` for one that is missing, and counts as empty.
    per: SmallVec<[usize; 4]>,
    lacks: bool,
}

/// No request has so many attributes.
const NOWHERE: usize = usize::MAX;

impl Limit {
    /// What it has to do with requests of these keys; `None` if nothing, whatever their values.
    pub fn form(&self, keys: &[&str]) -> Option<Form> {
        let place = |key: &String| keys.iter().position(|k| k == key);
        let find = |(key, value): &(String, Pattern)| Some((place(key)?, value.clone()));
        let matches = self.matches.iter().map(find).collect::<Option<_>>()?;
        if self.mode == Mode::Off || (self.exactly && !self.keys().eq(keys.iter().copied())) {
            return None;
        }
        let per: SmallVec<[usize; 4]> = self.per.iter().map(|key| place(key).unwrap_or(NOWHERE)).collect();
        let is_missing = per.contains(&NOWHERE);
        if is_missing && self.missing == Missing::Skip {
            return None;
        }
        Some(Form { matches, per, lacks: is_missing && self.missing == Missing::Drop })
    }
}

impl Form {
    /// What the limit has to do with a request of this form, which has these values at its places.
    #[inline]
    pub fn fit<'a>(&self, at: impl Fn(usize) -> Option<&'a str>) -> Fit {
        let fits = |(place, value): &(usize, Pattern)| at(*place).is_some_and(|text| value.fits(text));
        if !self.matches.iter().all(fits) {
            return Fit::Unconcerned;
        }
        if self.lacks { Fit::DroppedForMissing } else { Fit::Counted }
    }

    /// The values of the `per` keys, in their order.
    #[inline]
    pub fn values<'a>(
        &self,
        at: impl Fn(usize) -> Option<&'a str> + Clone,
    ) -> impl Iterator<Item = &'a str> + Clone {
        self.per.iter().map(move |place| at(*place).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attributes::Attributes;
    use crate::limits::parse;
    use crate::matching::Encounter;
    use proptest::prelude::*;
    use proptest::sample::select;

    proptest! {
        #[test]
        fn a_form_says_what_the_limit_says(
            missing in select(vec!["skip", "empty", "drop"]), exactly: bool,
            matched in select(vec!["", "match: {a: x}, ", "match: {a: \"x*\", b: y}, "]),
            per in select(vec!["", "per: [c], ", "per: [c, a], "]),
            request in prop::collection::vec((select(vec!["a", "b", "c", "d"]), select(vec!["x", "xy", "y", ""])), 0..5),
        ) {
            let missing = if per.is_empty() || exactly { String::new() } else { format!("missing: {missing}, ") };
            let exactly = if exactly && !matched.is_empty() { "exactly: true, " } else { "" };
            let set = parse(&format!("limits: [{{name: l, {matched}{exactly}{per}{missing}rate: 1/second}}]"));
            let Ok(set) = set else { return Ok(()) };
            let limit = &set.limits()[0];
            let (keys, attributes): (Vec<&str>, _) = (request.iter().map(|(key, _)| *key).collect(), Attributes::new(&request));
            let form = limit.form(&keys);
            let at = |place| attributes.at(place);
            match (limit.encounter(attributes), form.as_ref().map(|form| form.fit(at))) {
                (Encounter::Unconcerned, None | Some(Fit::Unconcerned)) => {}
                (Encounter::DroppedForMissing, Some(Fit::DroppedForMissing)) => {}
                (Encounter::Counted(values), Some(Fit::Counted)) => {
                    let found: Vec<&str> = form.iter().flat_map(|form| form.values(at)).collect();
                    prop_assert_eq!(values.as_slice(), &*found);
                }
                (said, fit) => prop_assert!(false, "{said:?} {fit:?}"),
            }
        }
    }
}
