//! Overrides that are equally specific and may concern one bucket: which of them holds, nobody could say.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use super::Chooser;
use crate::limits::Override;

/// Pairs of overrides, by their places, that are equally specific, may concern one bucket, and mean different things for it: each
/// that comes second in such a pair once, with the first of those before it. The same values twice are a pair in any case.
pub fn ties(overrides: &[Override], per: &[String]) -> Vec<(usize, usize)> {
    let choosers: Vec<Chooser> = overrides.iter().map(|other| Chooser::of(other, per)).collect();
    let mut firsts = Firsts { first_of: vec![None; choosers.len()], compared: 0 };
    find(overrides, &choosers, &mut firsts);
    firsts.pairs()
}

fn find(overrides: &[Override], choosers: &[Chooser], firsts: &mut Firsts) {
    let mut whole: HashMap<Box<[String]>, usize> = HashMap::new();
    let mut by_rank: HashMap<(bool, usize), Vec<usize>> = HashMap::new();
    for (place, chooser) in choosers.iter().enumerate() {
        match chooser.whole() {
            // Nothing that names less ties with one that names all, since no value is empty.
            Some(values) => match whole.entry(values) {
                Entry::Occupied(first) => firsts.tell(*first.get(), place, || true),
                Entry::Vacant(new) => drop(new.insert(place)),
            },
            None => by_rank.entry(chooser.rank()).or_default().push(place),
        }
    }
    by_rank.values().for_each(|equals| ties_among(equals, overrides, choosers, firsts));
}

/// For each override the first of those before it that it ties with.
struct Firsts {
    first_of: Vec<Option<usize>>,
    /// Pairs that were compared: what the search costs.
    compared: usize,
}

impl Firsts {
    fn tell(&mut self, one: usize, other: usize, is_tie: impl FnOnce() -> bool) {
        let (first, second) = (one.min(other), one.max(other));
        if first >= second || self.first_of[second].is_some_and(|known| known <= first) {
            return;
        }
        self.compared += 1;
        if is_tie() {
            self.first_of[second] = Some(first);
        }
    }

    fn pairs(self) -> Vec<(usize, usize)> {
        self.first_of.into_iter().enumerate().filter_map(|(second, first)| Some((first?, second))).collect()
    }
}

/// Two of one rank overlap only where one's text at an end of its pattern begins the other's, so each looks only at those whose text
/// begins its own: ten thousand compared in pairs would take seconds.
fn ties_among(equals: &[usize], overrides: &[Override], choosers: &[Chooser], firsts: &mut Firsts) {
    let meaning = |place: usize| (overrides[place].rate, overrides[place].burst, overrides[place].mode);
    let Some(end) = most_telling(equals, choosers) else { return };
    let mut by_text: HashMap<String, Vec<usize>> = HashMap::new();
    for place in equals {
        by_text.entry(end.of(&choosers[*place])).or_default().push(*place);
    }
    for place in equals {
        let text = end.of(&choosers[*place]);
        let beginnings = (0..=text.len()).filter_map(|length| by_text.get(text.get(..length)?));
        for other in beginnings.flatten() {
            firsts.tell(*place, *other, || {
                meaning(*place) != meaning(*other) && choosers[*place].overlaps(&choosers[*other])
            });
        }
    }
}

/// An end of the patterns for one key.
#[derive(Clone, Copy)]
struct End {
    key: usize,
    is_tail: bool,
}

impl End {
    /// The text at this end, read from there.
    fn of(self, chooser: &Chooser) -> String {
        match &chooser.0[self.key] {
            None => String::new(),
            Some(pattern) if self.is_tail => pattern.tail().chars().rev().collect(),
            Some(pattern) => pattern.head().to_owned(),
        }
    }
}

/// The end by which most of them differ.
fn most_telling(equals: &[usize], choosers: &[Chooser]) -> Option<End> {
    let keys = equals.first().map_or(0, |place| choosers[*place].0.len());
    let ends = (0..keys).flat_map(|key| [false, true].map(|is_tail| End { key, is_tail }));
    let different = |end: &End| {
        let texts: HashSet<String> = equals.iter().map(|place| end.of(&choosers[*place])).collect();
        texts.len()
    };
    ends.max_by_key(different)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Mode;
    use crate::units::{Rate, Unit};

    fn compared(patterns: impl Iterator<Item = String>) -> (usize, usize) {
        let per = ["a".to_owned(), "b".to_owned()];
        let of = |(amount, pattern): (u64, String)| Override {
            matches: vec![("a".to_owned(), "all*".into()), ("b".to_owned(), pattern.into())],
            rate: Rate::Per { amount, unit: Unit::Second },
            burst: None,
            mode: None,
        };
        let overrides: Vec<Override> = (0..).zip(patterns).map(of).collect();
        let choosers: Vec<Chooser> = overrides.iter().map(|other| Chooser::of(other, &per)).collect();
        let mut firsts = Firsts { first_of: vec![None; choosers.len()], compared: 0 };
        find(&overrides, &choosers, &mut firsts);
        (firsts.compared, firsts.pairs().len())
    }

    #[test]
    fn those_that_mean_the_same_are_no_tie() {
        let per = ["a".to_owned(), "b".to_owned()];
        let of = |key: &str, mode| Override {
            matches: vec![(key.to_owned(), "x".into())],
            rate: Rate::Unlimited,
            burst: None,
            mode: Some(mode),
        };
        assert_eq!(ties(&[of("a", Mode::Off), of("b", Mode::Off)], &per), []);
        assert_eq!(ties(&[of("a", Mode::Off), of("b", Mode::Shadow)], &per), [(0, 1)]);
        let whole = |mode| {
            let matches = per.iter().map(|key| (key.clone(), "x".into())).collect();
            Override { matches, ..of("a", mode) }
        };
        assert_eq!(ties(&[whole(Mode::Off), whole(Mode::Off)], &per), [(0, 1)], "written twice");
    }

    #[test]
    fn ten_thousand_overrides_are_not_compared_in_pairs() {
        for (pattern, ties) in [("batch-{}-*", 0), ("*-batch-{}", 0), ("*{}*", 9_999)] {
            let (compared, found) = compared((0..10_000).map(|n| pattern.replace("{}", &format!("{n:05}"))));
            assert_eq!(found, ties, "{pattern}");
            assert!(compared <= 20_000, "{pattern}: {compared}");
        }
    }
}
