//! Which bucket values were hit hardest: by the hour, and with few counters however many values there are.
//!
//! Within an hour by Space-Saving (Metwally, Agrawal, El Abbadi 2005): a value that finds no counter takes over the smallest
//! one, and what that had is kept as what may be wrong with it. So every value is found that has more than a 64th of all.

use std::collections::{HashMap, VecDeque};

use crate::bucket::Values;
use crate::message::BucketNumber;

/// Values kept of each hour, and told of all.
pub const MOST_HITS: usize = 20;
/// Counters of the hour under way.
const COUNTERS: usize = 64;
/// Bytes of a value that are kept: they are read by people.
const LONGEST: usize = 128;

/// One bucket value, and how much of what it was offered was over the limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The values that tell the bucket apart, each cut to 128 bytes.
    pub values: Values,
    /// Cost units over the limit, at least.
    pub over: f64,
}

/// The hardest hit of one limit.
#[derive(Debug, Default)]
pub(super) struct Hardest {
    hour: u32,
    counters: HashMap<BucketNumber, Counter>,
    /// The hours before, the oldest first.
    past: VecDeque<(u32, Vec<Hit>)>,
}

#[derive(Debug)]
struct Counter {
    values: Values,
    count: f64,
    /// How much of the count may be of others.
    doubtful: f64,
}

impl Hardest {
    pub(super) fn add(&mut self, hour: u32, bucket: BucketNumber, values: &Values, over: u64) {
        if hour != self.hour {
            self.close_hour(hour);
        }
        #[allow(clippy::cast_precision_loss, reason = "no second counts 2^53 units")]
        let over = over as f64;
        if let Some(counter) = self.counters.get_mut(&bucket) {
            counter.count += over;
            return;
        }
        let doubtful = if self.counters.len() < COUNTERS { 0.0 } else { self.take_smallest() };
        let counter = Counter { values: cut(values), count: doubtful + over, doubtful };
        self.counters.insert(bucket, counter);
    }

    fn take_smallest(&mut self) -> f64 {
        let smallest = self.counters.iter().min_by(|a, b| a.1.count.total_cmp(&b.1.count)).map(|(k, _)| *k);
        smallest.and_then(|bucket| self.counters.remove(&bucket)).map_or(0.0, |counter| counter.count)
    }

    fn close_hour(&mut self, next: u32) {
        let hits = self.of_this_hour();
        if !hits.is_empty() {
            self.past.push_back((self.hour, hits));
        }
        self.counters.clear();
        self.hour = next;
    }

    fn of_this_hour(&self) -> Vec<Hit> {
        let hit = |counter: &Counter| Hit {
            values: counter.values.clone(),
            over: counter.count - counter.doubtful,
        };
        hardest(self.counters.values().map(hit).collect())
    }

    pub(super) fn forget_before(&mut self, oldest: u32) {
        while self.past.front().is_some_and(|(hour, _)| *hour < oldest) {
            self.past.pop_front();
        }
        if self.hour < oldest {
            self.counters.clear();
        }
    }

    /// The hardest of all hours.
    pub(super) fn all(&self) -> Vec<Hit> {
        let mut sums: HashMap<Values, f64> = HashMap::new();
        let past = self.past.iter().flat_map(|(_, hits)| hits.iter().cloned());
        for hit in past.chain(self.of_this_hour()) {
            *sums.entry(hit.values).or_default() += hit.over;
        }
        hardest(sums.into_iter().map(|(values, over)| Hit { values, over }).collect())
    }
}

fn hardest(mut hits: Vec<Hit>) -> Vec<Hit> {
    hits.sort_by(|a, b| b.over.total_cmp(&a.over).then_with(|| a.values.cmp(&b.values)));
    hits.truncate(MOST_HITS);
    hits
}

fn cut(values: &Values) -> Values {
    match values {
        Values::Rest => Values::Rest,
        Values::Of(values) => Values::Of(values.iter().map(|value| beginning(value).to_owned()).collect()),
    }
}

/// As much of a text as is kept.
fn beginning(text: &str) -> &str {
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    let end = ends.take_while(|end| *end <= LONGEST).last().unwrap_or(0);
    &text[..end]
}
