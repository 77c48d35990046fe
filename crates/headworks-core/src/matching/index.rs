//! The index of a set of limits: from the attributes of a request to the few limits that may concern it.
//!
//! Each limit is listed under one condition that a request must meet, the one that fewest limits share: a literal value of
//! `match`, else how a pattern of `match` begins, else a key that must be there. A limit without any is listed for all requests. What
//! a decision costs so depends on the limits that share a condition with the request, and not on how many others there are.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::attributes::Attributes;
use crate::limits::{Limit, Missing};
use crate::pattern::Pattern;

/// Up to here, to look at all of them is faster than to look any up.
const FEW: usize = 8;
/// The beginnings of patterns for one key have at most so many lengths: each is one more to look up.
const MOST_LENGTHS: usize = 8;

/// Finds the limits that may concern a request. It is made for a list of limits, and knows them by their places there.
#[derive(Clone, Debug, Default)]
pub struct Index {
    keys: FxHashMap<Box<str>, OfKey>,
    /// Those that any request may meet.
    always: Box<[u32]>,
}

/// The limits that are listed under one key.
#[derive(Clone, Debug, Default)]
struct OfKey {
    /// By the whole value.
    values: FxHashMap<Box<str>, Box<[u32]>>,
    /// By how the value begins.
    beginnings: FxHashMap<Box<[u8]>, Box<[u32]>>,
    /// By nothing but the key.
    any: Box<[u32]>,
    /// The lengths of beginnings, in bytes.
    lengths: Box<[usize]>,
}

/// What a request must have for a limit to concern it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Condition<'l> {
    Value(&'l str, &'l str),
    Beginning(&'l str, &'l [u8]),
}

impl Index {
    /// The index of these limits.
    pub fn new<'l>(limits: impl ExactSizeIterator<Item = &'l Limit> + Clone) -> Self {
        Self::of(limits.map(Wanted::by))
    }

    /// The index of whatever wants this of a request.
    pub(crate) fn of<'l>(limits: impl ExactSizeIterator<Item = Wanted<'l>> + Clone) -> Self {
        if limits.len() <= FEW {
            return Self { always: (0..).take(limits.len()).collect(), ..Self::default() };
        }
        let lengths = Lengths::of(limits.clone());
        let mut shared: FxHashMap<Condition<'_>, u32> = FxHashMap::default();
        for condition in limits.clone().flat_map(|limit| limit.conditions(&lengths)) {
            *shared.entry(condition).or_default() += 1;
        }
        let mut lists: FxHashMap<Option<Condition<'_>>, Vec<u32>> = FxHashMap::default();
        for (place, limit) in (0..).zip(limits) {
            let fewest = limit.conditions(&lengths).min_by_key(|condition| (shared[condition], *condition));
            lists.entry(fewest).or_default().push(place);
        }
        Self::of_lists(lists)
    }

    fn of_lists(lists: FxHashMap<Option<Condition<'_>>, Vec<u32>>) -> Self {
        let mut index = Self::default();
        for (condition, list) in lists {
            match condition {
                None => index.always = list.into(),
                Some(Condition::Value(key, value)) => {
                    index.keys.entry(key.into()).or_default().values.insert(value.into(), list.into());
                }
                Some(Condition::Beginning(key, b"")) => {
                    index.keys.entry(key.into()).or_default().any = list.into();
                }
                Some(Condition::Beginning(key, text)) => {
                    index.keys.entry(key.into()).or_default().beginnings.insert(text.into(), list.into());
                }
            }
        }
        index.keys.values_mut().for_each(OfKey::find_lengths);
        index
    }

    /// The places of the limits that may concern a request, in order, each once. Allocates nothing, unless a request meets more
    /// than eight conditions by which limits are listed.
    #[inline]
    pub fn candidates(&self, attributes: Attributes<'_>) -> Candidates<'_> {
        let mut lists = SmallVec::new();
        if !self.always.is_empty() {
            lists.push(&*self.always);
        }
        if !self.keys.is_empty() {
            self.look_up(attributes, &mut lists);
        }
        Candidates { lists, last: None }
    }

    /// Whether every limit is a candidate for every request, so that a walk over the list of them finds the same.
    #[inline]
    pub fn is_a_walk(&self) -> bool {
        self.keys.is_empty()
    }

    fn look_up<'i>(&'i self, attributes: Attributes<'_>, lists: &mut Lists<'i>) {
        for (key, value) in attributes.iter() {
            let Some(of_key) = self.keys.get(key) else { continue };
            if let Some(list) = of_key.values.get(value) {
                lists.push(list);
            }
            if !of_key.any.is_empty() {
                lists.push(&of_key.any);
            }
            for length in &of_key.lengths {
                let beginning = value.as_bytes().get(..*length);
                if let Some(list) = beginning.and_then(|text| of_key.beginnings.get(text)) {
                    lists.push(list);
                }
            }
        }
    }
}

impl OfKey {
    fn find_lengths(&mut self) {
        let lengths: BTreeSet<usize> = self.beginnings.keys().map(|text| text.len()).collect();
        self.lengths = lengths.into_iter().collect();
    }
}

/// How long the beginnings are by which patterns are listed, for each key.
struct Lengths<'l>(FxHashMap<&'l str, Vec<usize>>);

impl<'l> Lengths<'l> {
    fn of(limits: impl Iterator<Item = Wanted<'l>>) -> Self {
        let mut lengths: FxHashMap<&str, Vec<usize>> = FxHashMap::default();
        for (key, value) in limits.flat_map(|limit| limit.matches).filter(|(_, value)| value.has_stars()) {
            lengths.entry(key).or_default().push(value.head().len());
        }
        lengths.values_mut().for_each(thin_out);
        Self(lengths)
    }

    /// How a pattern begins, as far as it is listed.
    fn beginning(&self, key: &str, value: &'l Pattern) -> &'l [u8] {
        let head = value.head().as_bytes();
        let fitting =
            self.0.get(key).and_then(|lengths| lengths.iter().rfind(|length| **length <= head.len()));
        &head[..fitting.copied().unwrap_or(0)]
    }
}

/// Leaves few lengths, and the empty one: where there are more, those that have as many patterns between them.
fn thin_out(lengths: &mut Vec<usize>) {
    lengths.sort_unstable();
    let mut different = lengths.clone();
    different.dedup();
    if different.len() >= MOST_LENGTHS {
        let part = |place: usize| lengths[place * lengths.len() / MOST_LENGTHS];
        different = (0..MOST_LENGTHS).map(part).collect();
        different.dedup();
    }
    if different.first() != Some(&0) {
        different.insert(0, 0);
    }
    *lengths = different;
}

/// What a request must have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'l> {
    /// Attributes, and what their values must fit.
    pub(crate) matches: &'l [(String, Pattern)],
    /// Attributes, whatever their values.
    pub(crate) keys: &'l [String],
}

impl<'l> Wanted<'l> {
    fn by(limit: &'l Limit) -> Self {
        let needs_values = limit.exactly || limit.missing == Missing::Skip;
        Self { matches: &limit.matches, keys: if needs_values { &limit.per } else { &[] } }
    }

    /// Each of which must be met.
    fn conditions(self, lengths: &Lengths<'l>) -> impl Iterator<Item = Condition<'l>> {
        let matched = self.matches.iter().map(|(key, value)| match value.literal() {
            Some(text) => Condition::Value(key, text),
            None => Condition::Beginning(key, lengths.beginning(key, value)),
        });
        matched.chain(self.keys.iter().map(|key| Condition::Beginning(key, b"")))
    }
}

type Lists<'i> = SmallVec<[&'i [u32]; 8]>;

/// Places of limits, in order.
#[derive(Clone, Debug)]
pub struct Candidates<'i> {
    /// Each place is in one list; each list is in order.
    lists: Lists<'i>,
    /// A request that names a key twice may have one list twice.
    last: Option<u32>,
}

impl Iterator for Candidates<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        loop {
            let list = match &mut *self.lists {
                [] => return None,
                [only] => only,
                several => {
                    several.iter_mut().min_by_key(|list| list.first().map_or(u32::MAX, |place| *place))?
                }
            };
            let (first, rest) = list.split_first()?;
            *list = rest;
            if self.last.replace(*first) != Some(*first) {
                return Some(*first as usize);
            }
        }
    }
}
