//! Which of a limit's overrides holds for a bucket: the most specific one.
//!
//! An override without `*` is more specific than one with, then the one with more literal text; check refuses a tie of two
//! that may concern one bucket. They choose by the values of `per` keys alone, so a bucket has one rule, and it is looked up
//! once, when the bucket comes to be. Nothing here is particular to exact limits but the rule that comes out.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::Rule;
use crate::limits::{Limit, Mode, Override};
use crate::units::Rate;

/// What holds for a bucket, and the rate that it was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ruling {
    /// What holds.
    pub rule: Rule,
    /// How much passes, as the limits file has it.
    pub rate: Rate,
    /// Whether the verdict is enforced.
    pub mode: Mode,
    /// Which rules of the limit it belongs to: later ones have a higher number.
    pub generation: u64,
}

/// The rules of a limit: its own, and those of its overrides.
#[derive(Clone, Debug)]
pub struct Overrides {
    own: Arc<Ruling>,
    /// Those that name the value of each `per` key, by the values.
    whole: HashMap<Vec<String>, Arc<Ruling>>,
    /// The others, the most specific first.
    partial: Vec<(Chooser, Arc<Ruling>)>,
    /// Whether some bucket has another mode than the limit.
    has_modes: bool,
}

impl Overrides {
    /// The rules of an exact limit.
    pub fn of(limit: &Limit, generation: u64) -> Self {
        let ruling = |rate, burst, mode| {
            Arc::new(Ruling { rule: Rule::new(limit.algorithm(), rate, burst), rate, mode, generation })
        };
        let mut rules = Self {
            own: ruling(limit.rate, limit.burst, limit.mode),
            whole: HashMap::new(),
            partial: Vec::new(),
            has_modes: limit.overrides.iter().any(|other| other.mode.is_some_and(|mode| mode != limit.mode)),
        };
        for other in &limit.overrides {
            let ruling = ruling(other.rate, other.burst, other.mode.unwrap_or(limit.mode));
            let chooser = Chooser::of(other, &limit.per);
            match chooser.whole() {
                Some(values) => drop(rules.whole.insert(values, ruling)),
                None => rules.partial.push((chooser, ruling)),
            }
        }
        rules.partial.sort_by_key(|(chooser, _)| std::cmp::Reverse(chooser.rank()));
        rules
    }

    /// The rule of buckets that no override concerns.
    pub fn own(&self) -> &Arc<Ruling> {
        &self.own
    }

    /// Rises with every change of rules.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.own.generation
    }

    /// Whether the mode depends on the bucket.
    #[inline]
    pub fn has_modes(&self) -> bool {
        self.has_modes
    }

    /// The least that any bucket but a banned one passes at one moment, in cost units; one that is off has no say.
    pub fn least_that_passes_at_once(&self) -> Option<u64> {
        let others = self.whole.values().chain(self.partial.iter().map(|(_, ruling)| ruling));
        let counted = others.chain([&self.own]).filter(|ruling| ruling.mode != Mode::Off);
        counted.filter_map(|ruling| ruling.rule.most()).filter(|most| *most > 0).min()
    }

    /// The rule of the bucket of these values, and whether an override names exactly this bucket.
    pub fn rule_for(&self, values: &[&str]) -> (&Arc<Ruling>, bool) {
        if !self.whole.is_empty() {
            let owned: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
            if let Some(ruling) = self.whole.get(&owned) {
                return (ruling, true);
            }
        }
        let chosen = self.partial.iter().find(|(chooser, _)| chooser.chooses(values));
        (chosen.map_or(&self.own, |(_, ruling)| ruling), false)
    }

    /// Pairs of overrides, by their places, that are equally specific and may concern one bucket.
    pub fn ties(overrides: &[Override], per: &[String]) -> Vec<(usize, usize)> {
        let choosers: Vec<Chooser> = overrides.iter().map(|other| Chooser::of(other, per)).collect();
        let mut ties = Vec::new();
        let mut whole: HashMap<Vec<String>, usize> = HashMap::new();
        let mut by_rank: HashMap<(bool, usize), Vec<usize>> = HashMap::new();
        for (place, chooser) in choosers.iter().enumerate() {
            match chooser.whole() {
                // Nothing that names less ties with one that names all, since no value is empty.
                Some(values) => ties.extend(whole.insert(values, place).map(|first| (first, place))),
                None => {
                    let equals = by_rank.entry(chooser.rank()).or_default();
                    let first = equals.iter().find(|other| choosers[**other].overlaps(chooser));
                    ties.extend(first.map(|first| (*first, place)));
                    equals.push(place);
                }
            }
        }
        let mut told = HashSet::new();
        ties.retain(|(_, second)| told.insert(*second));
        ties
    }
}

/// By which values an override chooses buckets: a pattern for each `per` key, or nothing where any value will do.
#[derive(Clone, Debug)]
struct Chooser(Vec<Option<String>>);

impl Chooser {
    fn of(other: &Override, per: &[String]) -> Self {
        let pattern = |key| other.matches.iter().find(|(k, _)| k == key).map(|(_, value)| value.clone());
        Self(per.iter().map(pattern).collect())
    }

    fn patterns(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flatten().map(String::as_str)
    }

    /// The values, if it names one for each key.
    fn whole(&self) -> Option<Vec<String>> {
        let literal = |pattern: &Option<String>| pattern.clone().filter(|text| !text.contains('*'));
        self.0.iter().map(literal).collect()
    }

    /// Higher is more specific.
    fn rank(&self) -> (bool, usize) {
        let is_literal = self.patterns().all(|pattern| !pattern.contains('*'));
        let text = self.patterns().map(|pattern| pattern.bytes().filter(|b| *b != b'*').count());
        (is_literal, text.sum())
    }

    fn chooses(&self, values: &[&str]) -> bool {
        self.0.iter().zip(values).all(|(pattern, value)| {
            pattern.as_ref().is_none_or(|pattern| matches(pattern.as_bytes(), value.as_bytes()))
        })
    }

    /// Whether one bucket may be chosen by both.
    fn overlaps(&self, other: &Chooser) -> bool {
        self.0.iter().zip(&other.0).all(|pair| match pair {
            (Some(a), Some(b)) => overlap(a.as_bytes(), b.as_bytes()),
            _ => true,
        })
    }
}

/// Whether a text fits a pattern, in which `*` stands for any text. Goes back to the last star only, so it never takes
/// more than the product of the lengths.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(byte) if *byte == text[t] => (p, t) = (p + 1, t + 1),
            _ => {
                let Some((at, from)) = star else { return false };
                star = Some((at, from + 1));
                (p, t) = (at + 1, from + 1);
            }
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// Whether some text fits both patterns.
fn overlap(a: &[u8], b: &[u8]) -> bool {
    let literal = |pattern: &[u8]| pattern.iter().position(|byte| *byte == b'*').unwrap_or(pattern.len());
    let common = literal(a).min(literal(b));
    if a[..common] != b[..common] {
        return false;
    }
    // `fits[j]`: whether what is left of `a` and what is left of `b` from `j` on have a text in common.
    let mut fits = vec![false; b.len() + 1];
    for i in (0..=a.len()).rev() {
        let below = fits.clone();
        for j in (0..=b.len()).rev() {
            fits[j] = match (a.get(i), b.get(j)) {
                (None, None) => true,
                (Some(b'*'), _) => below[j] || (j < b.len() && fits[j + 1]),
                (_, Some(b'*')) => fits[j + 1] || (i < a.len() && below[j]),
                (Some(x), Some(y)) => x == y && below[j + 1],
                _ => false,
            };
        }
    }
    fits[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text) in
            [("a*", "a"), ("a*", "ab"), ("*", ""), ("a*b*c", "aXbYbZc"), ("*b", "aab"), ("é*", "été")]
        {
            assert!(matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
        for (pattern, text) in [("a*", "ba"), ("a", "aa"), ("a*b", "abc"), ("", "a")] {
            assert!(!matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
    }

    #[test]
    fn patterns_overlap_where_one_text_fits_both() {
        for (a, b) in [("a*", "*b"), ("*", "x"), ("a*b*c", "ab*c"), ("abc", "a*c"), ("*x*", "*y*")] {
            assert!(overlap(a.as_bytes(), b.as_bytes()) && overlap(b.as_bytes(), a.as_bytes()), "{a} {b}");
        }
        for (a, b) in [("batch-*", "trial-*"), ("*a", "*b"), ("abc", "ab*d"), ("a", "b"), ("a*b", "ab*c")] {
            assert!(!overlap(a.as_bytes(), b.as_bytes()) && !overlap(b.as_bytes(), a.as_bytes()), "{a} {b}");
        }
    }
}
