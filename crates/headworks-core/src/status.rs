//! What a node can tell of itself and of what is below it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::bucket::{BucketKey, Counts, Values};
use crate::children::{Bucket, Children};
use crate::limits::{Limit, LimitSet};
use crate::units::{DropRatio, Headroom};

/// Bucket values listed for one limit.
const TOP: usize = 10;

/// One limit, as a node sees it.
#[derive(Clone, Debug)]
pub struct LimitStatus {
    /// The limit.
    pub limit: Arc<Limit>,
    /// Counted below this node since its incarnation began.
    pub counts: Counts,
    /// Offered at present, in units a second.
    pub offered: f64,
    /// Dropped at present, in units a second.
    pub dropped: f64,
    /// What would be dropped at present, were the limit enforced.
    pub would_drop: f64,
    /// The part of the offered that the plan says to drop: over several buckets, weighed by what each is offered.
    pub ratio: DropRatio,
    /// Buckets known.
    pub buckets: usize,
    /// Cost units of values that find no place among them, and share one.
    pub untracked: u64,
    /// The buckets that are offered most.
    pub top: Vec<TopBucket>,
}

/// One bucket among those that are offered most.
#[derive(Clone, Debug)]
pub struct TopBucket {
    /// The zone or region in which it counts; empty for a limit that holds globally.
    pub scope: Vec<String>,
    /// The values that tell it apart; `None` for all that are not tracked.
    pub values: Option<Vec<String>>,
    /// Offered at present, in units a second.
    pub offered: f64,
    /// Its drop ratio.
    pub ratio: DropRatio,
}

/// One zone, as a controller sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZoneStatus {
    /// Aggregators attached.
    pub aggregators: usize,
    /// Agents below them.
    pub agents: u32,
}

/// The zones below, by name. An agent that is attached directly counts as such.
pub fn zones(children: &Children) -> BTreeMap<String, ZoneStatus> {
    let mut zones: BTreeMap<String, ZoneStatus> = BTreeMap::new();
    for (_, child) in children.iter() {
        let zone = zones.entry(child.hello.zone.clone()).or_default();
        zone.aggregators += usize::from(child.hello.tier == crate::message::Tier::Aggregator);
        zone.agents = zone.agents.saturating_add(child.agents);
    }
    zones
}

/// All limits, as a parent sees them, in pipeline order.
pub fn limits(limits: &LimitSet, children: &Children) -> Vec<LimitStatus> {
    let mut by_limit: HashMap<&str, Sum<'_>> = HashMap::new();
    for (_, key, bucket) in children.buckets().iter() {
        by_limit.entry(&key.limit).or_default().add(key, bucket);
    }
    // By what each child holds: to ask every child for every bucket would take seconds in a large zone.
    for (number, held) in children.iter().flat_map(|(_, child)| child.held()) {
        let key = children.buckets().key(number);
        if let Some(sum) = key.and_then(|key| by_limit.get_mut(&*key.limit)) {
            sum.dropped += held.demand() * f64::from(held.dropped);
            sum.would_drop += held.demand() * f64::from(held.would_drop);
        }
    }
    let of = |limit: &Arc<Limit>| {
        let mut sum = by_limit.remove(&*limit.name).unwrap_or_default();
        sum.counts += children.counted_in_forgotten(&limit.name);
        sum.status(limit.clone())
    };
    limits.limits().iter().map(of).collect()
}

#[derive(Default)]
struct Sum<'a> {
    counts: Counts,
    untracked: u64,
    offered: f64,
    dropped: f64,
    would_drop: f64,
    to_drop: f64,
    highest: DropRatio,
    buckets: Vec<(&'a BucketKey, &'a Bucket)>,
}

impl<'a> Sum<'a> {
    fn add(&mut self, key: &'a BucketKey, bucket: &'a Bucket) {
        let ratio = ratio_of(bucket);
        self.counts += bucket.counts;
        if key.values == Values::Rest {
            self.untracked += bucket.counts.offered;
        }
        self.offered += bucket.demand;
        self.to_drop += bucket.demand * ratio.value();
        self.highest = if ratio > self.highest { ratio } else { self.highest };
        self.buckets.push((key, bucket));
    }

    fn status(mut self, limit: Arc<Limit>) -> LimitStatus {
        let weighed = DropRatio::new(self.to_drop / self.offered).unwrap_or(self.highest);
        self.buckets.sort_by(|a, b| b.1.demand.total_cmp(&a.1.demand).then_with(|| a.0.cmp(b.0)));
        LimitStatus {
            limit,
            counts: self.counts,
            offered: self.offered,
            dropped: self.dropped,
            would_drop: self.would_drop,
            ratio: weighed,
            buckets: self.buckets.len(),
            untracked: self.untracked,
            top: self.buckets.iter().take(TOP).map(|(key, bucket)| top(key, bucket)).collect(),
        }
    }
}

fn top(key: &BucketKey, bucket: &Bucket) -> TopBucket {
    let values = match &key.values {
        Values::Of(values) => Some(values.clone()),
        Values::Rest => None,
    };
    TopBucket { scope: key.scope.clone(), values, offered: bucket.demand, ratio: ratio_of(bucket) }
}

fn ratio_of(bucket: &Bucket) -> DropRatio {
    bucket.headroom.map_or(DropRatio::NONE, Headroom::drop_ratio)
}
