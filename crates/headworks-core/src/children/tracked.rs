//! Which buckets of a limit are tracked: at most `max_buckets`, those that came first, as long as somebody holds them.
//!
//! What has a place keeps it while it has traffic, whatever comes after: whoever can make up values must not be able to push
//! out somebody else's bucket, nor have its own spent budget forgotten. What finds no place shares one bucket. What an override
//! names needs none: the file bounds how many there are.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{Child, ChildId, Children};
use crate::bucket::{BucketKey, Values};
use crate::limits::{Limit, LimitSet};
use crate::message::BucketNumber;

/// Most keys that one child waits to be told of; it asks again for others.
const MOST_WAITING: usize = 10_000;

/// The places of one limit.
#[derive(Debug)]
struct Room {
    taken: usize,
    most: usize,
    /// Values that overrides name.
    named: HashSet<Box<[String]>>,
}

impl Room {
    fn of(limit: &Limit, set: &LimitSet) -> Self {
        let named = set.overridden(&limit.name).into_iter().flat_map(|overridden| overridden.named());
        let most = usize::try_from(limit.max_buckets).unwrap_or(usize::MAX);
        Self { taken: 0, most, named: named.map(Into::into).collect() }
    }

    /// Whether this bucket is one of the many that compete for places.
    fn is_for(&self, key: &BucketKey) -> bool {
        matches!(&key.values, Values::Of(values) if !values.is_empty() && !self.named.contains(&**values))
    }
}

/// The places of all limits that have `per` keys.
#[derive(Debug, Default)]
pub(super) struct Places(HashMap<Arc<str>, Room>);

impl Places {
    /// Those of these limits, of which these buckets have some.
    pub(super) fn of<'a>(limits: &LimitSet, tracked: impl Iterator<Item = &'a BucketKey>) -> Self {
        let each = limits.limits().iter().filter(|limit| !limit.per.is_empty());
        let mut places = Self(each.map(|limit| (limit.name.clone(), Room::of(limit, limits))).collect());
        tracked.for_each(|key| places.take(key));
        places
    }

    fn has_none_for(&self, key: &BucketKey) -> bool {
        self.0.get(&key.limit).is_some_and(|room| room.taken >= room.most && room.is_for(key))
    }

    /// A new bucket takes its place.
    pub(super) fn take(&mut self, key: &BucketKey) {
        if let Some(room) = self.0.get_mut(&key.limit).filter(|room| room.is_for(key)) {
            room.taken += 1;
        }
    }

    /// A bucket is forgotten.
    pub(super) fn leave(&mut self, key: &BucketKey) {
        if let Some(room) = self.0.get_mut(&key.limit).filter(|room| room.is_for(key)) {
            room.taken = room.taken.saturating_sub(1);
        }
    }
}

impl Children {
    /// Whether a new bucket that a child names finds no place; then the child will be told.
    pub(super) fn turns_away(&self, child: &mut Child, key: &BucketKey) -> bool {
        let away = self.places.has_none_for(key);
        if away {
            child.turn_away(key);
        }
        away
    }

    /// A bucket has no place further up: it is forgotten here, and those who hold it are told.
    pub(crate) fn turn_away(&mut self, number: BucketNumber) {
        let Some(key) = self.buckets.key(number).cloned() else { return };
        let first = self.buckets.get(number).and_then(|bucket| bucket.first_holder);
        let others = self.children.keys().copied().filter(|id| Some(*id) != first);
        let others: Vec<ChildId> =
            if self.has_one_holder(number, first) { Vec::new() } else { others.collect() };
        first.into_iter().chain(others).for_each(|id| self.tell_turned_away(id, number, &key));
        self.places.leave(&key);
        // What it counted is counted once more, by the bucket that all share.
        self.buckets.forget(number);
    }

    fn has_one_holder(&self, number: BucketNumber, first: Option<ChildId>) -> bool {
        let holds = first.and_then(|first| self.children.get(&first)?.holds(number)).is_some();
        holds && self.buckets.get(number).is_some_and(|bucket| bucket.holders <= 1)
    }

    fn tell_turned_away(&mut self, id: ChildId, number: BucketNumber, key: &BucketKey) {
        let Some(mut child) = self.children.remove(&id) else { return };
        if child.holds(number).is_some() {
            self.release(&mut child, number, &mut Vec::new());
            child.turn_away(key);
        }
        self.children.insert(id, child);
    }
}

impl Child {
    fn turn_away(&mut self, key: &BucketKey) {
        if self.turned_away.len() < MOST_WAITING {
            self.turned_away.push(self.as_it_says(key));
        }
    }
}
