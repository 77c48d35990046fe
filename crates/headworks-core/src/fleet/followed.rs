//! The history of each limit, fed once a second.

use std::collections::HashMap;
use std::sync::Arc;

use super::Fleet;
use crate::bucket::{BucketKey, Counts, Values};
use crate::history::{History, Second};
use crate::message::BucketNumber;
use crate::units::Moment;

/// Buckets of a limit that are taken down in one second, of those that were over it: the hardest hit. With a million of them
/// the second would be over before all were. What is missed of a bucket is less than a 256th of all.
const HITS: usize = 256;

impl Fleet {
    /// What each limit was asked in the last 24 hours, as far as this controller lives so long.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Takes down the second that ends now.
    pub(super) fn follow(&mut self, now: Moment) {
        let Self { children, history, .. } = self;
        history.turn(now);
        let mut gathered = Gathered::default();
        let mut moved = Vec::new();
        children.take_counted(|number, bucket| moved.push((number, bucket)));
        for (number, (counts, demand)) in moved {
            if let Some(key) = children.buckets().key(number) {
                gathered.add(number, key, counts, demand);
            }
        }
        for limit in gathered.limits {
            history.note(limit.name, &limit.second);
            for Hit { bucket, values, over } in limit.hits {
                history.note_hit(limit.name, bucket, values, over);
            }
        }
    }
}

/// One second, by limit.
#[derive(Default)]
struct Gathered<'a> {
    limits: Vec<OfLimit<'a>>,
    places: HashMap<&'a str, usize>,
    last: usize,
}

/// One second of one limit.
struct OfLimit<'a> {
    name: &'a Arc<str>,
    second: Second,
    hits: Vec<Hit<'a>>,
}

struct Hit<'a> {
    bucket: BucketNumber,
    values: &'a Values,
    over: u64,
}

impl<'a> Gathered<'a> {
    fn add(&mut self, number: BucketNumber, key: &'a BucketKey, counts: Counts, demand: f64) {
        if counts.offered == 0 && demand <= 0.0 {
            return;
        }
        let limit = self.limit(&key.limit);
        limit.second.counts += counts;
        limit.second.rate += demand;
        let over = counts.dropped.saturating_add(counts.would_drop);
        if over > 0 && !key.is_whole() {
            limit.hit(Hit { bucket: number, values: &key.values, over });
        }
    }

    /// Most buckets are of few limits, and often of the one that the bucket before was of.
    fn limit(&mut self, name: &'a Arc<str>) -> &mut OfLimit<'a> {
        if self.limits.get(self.last).is_none_or(|last| last.name != name) {
            let next = self.limits.len();
            self.last = *self.places.entry(name).or_insert(next);
            if self.last == next {
                self.limits.push(OfLimit { name, second: Second::default(), hits: Vec::new() });
            }
        }
        &mut self.limits[self.last]
    }
}

impl<'a> OfLimit<'a> {
    fn hit(&mut self, hit: Hit<'a>) {
        self.hits.push(hit);
        if self.hits.len() >= 2 * HITS {
            self.hits.select_nth_unstable_by(HITS, |a, b| b.over.cmp(&a.over));
            self.hits.truncate(HITS);
        }
    }
}
