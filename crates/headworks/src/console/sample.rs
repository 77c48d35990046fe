//! What the console reads of a fleet at one moment, on the thread that owns it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use headworks_core::bucket::{BucketKey, Values};
use headworks_core::children::{Bucket, Child};
use headworks_core::limits::LimitSet;
use headworks_core::node::Node;
use headworks_core::units::{Headroom, Moment};
use serde::Serialize;

use crate::status::{self, NodeStatus};
use crate::tree::FleetSeat;

/// Buckets gathered of one limit, those with most demand.
pub(super) const MOST_BUCKETS: usize = 1000;

/// A fleet at one moment.
pub(super) struct Sample {
    pub(super) status: NodeStatus,
    pub(super) limits: Arc<LimitSet>,
    /// More of the limits that somebody looks at.
    pub(super) watched: HashMap<String, Watched>,
    /// The owner's time that it took.
    pub(super) took: Duration,
}

/// Where the demand of a limit comes from.
#[derive(Clone, Debug, Default)]
pub(super) struct Watched {
    pub(super) zones: BTreeMap<String, Demand>,
    /// Those with most demand, the most first.
    pub(super) buckets: Vec<OfBucket>,
    /// How many there are.
    pub(super) known: usize,
}

/// Rates in cost units a second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Demand {
    pub(super) offered: f64,
    pub(super) dropped: f64,
    pub(super) would_drop: f64,
}

/// One bucket, as it is told.
#[derive(Clone, Debug, Serialize)]
pub(super) struct OfBucket {
    pub(super) scope: Vec<String>,
    /// The values that tell it apart; null for all that are not tracked.
    pub(super) values: Option<Vec<String>>,
    pub(super) offered: f64,
    pub(super) ratio: f64,
    pub(super) tokens: Option<f64>,
    /// What holds for it, as the limits file writes it.
    pub(super) rate: String,
}

impl Sample {
    /// Reads a fleet, and more of the limits of these names.
    pub(super) fn take(seat: &FleetSeat, now: Moment, names: &[String]) -> Self {
        let began = Instant::now();
        Self {
            status: status::of_fleet(seat, now),
            limits: seat.fleet.limits().clone(),
            watched: if names.is_empty() { HashMap::new() } else { watched(seat, names) },
            took: began.elapsed(),
        }
    }
}

fn watched(seat: &FleetSeat, names: &[String]) -> HashMap<String, Watched> {
    let children = seat.fleet.children();
    let limits = seat.fleet.limits();
    let mut buckets: HashMap<&str, Vec<(&BucketKey, &Bucket)>> = names
        .iter()
        .filter(|name| limits.get(name).is_some())
        .map(|name| (name.as_str(), Vec::new()))
        .collect();
    for (_, key, bucket) in children.buckets().iter() {
        if let Some(of_limit) = buckets.get_mut(&*key.limit) {
            of_limit.push((key, bucket));
        }
    }
    let mut watched: HashMap<String, Watched> =
        buckets.into_iter().map(|(name, buckets)| (name.to_owned(), Watched::of(buckets, limits))).collect();
    for (_, child) in children.iter().filter(|(_, child)| !child.silent) {
        add_zone(&mut watched, child, |number| children.buckets().key(number));
    }
    watched
}

fn add_zone<'a>(
    watched: &mut HashMap<String, Watched>,
    child: &Child,
    key: impl Fn(headworks_core::message::BucketNumber) -> Option<&'a BucketKey>,
) {
    for (number, held) in child.held() {
        let Some(of_limit) = key(number).and_then(|key| watched.get_mut(&*key.limit)) else { continue };
        let zone = of_limit.zones.entry(child.hello.zone.clone()).or_default();
        zone.offered += held.demand();
        zone.dropped += held.demand() * f64::from(held.dropped);
        zone.would_drop += held.demand() * f64::from(held.would_drop);
    }
}

impl Watched {
    fn of(mut buckets: Vec<(&BucketKey, &Bucket)>, limits: &LimitSet) -> Self {
        let known = buckets.len();
        let by_demand = |a: &(&BucketKey, &Bucket), b: &(&BucketKey, &Bucket)| {
            b.1.demand.total_cmp(&a.1.demand).then_with(|| a.0.cmp(b.0))
        };
        if known > MOST_BUCKETS {
            buckets.select_nth_unstable_by(MOST_BUCKETS, by_demand);
            buckets.truncate(MOST_BUCKETS);
        }
        buckets.sort_unstable_by(by_demand);
        let buckets = buckets.into_iter().map(|(key, bucket)| OfBucket::of(key, bucket, limits)).collect();
        Self { zones: BTreeMap::new(), buckets, known }
    }
}

impl OfBucket {
    fn of(key: &BucketKey, bucket: &Bucket, limits: &LimitSet) -> Self {
        Self {
            scope: key.scope.clone(),
            values: match &key.values {
                Values::Of(values) => Some(values.clone()),
                Values::Rest => None,
            },
            offered: bucket.demand,
            ratio: bucket.headroom.map_or(0.0, |headroom: Headroom| headroom.drop_ratio().value()),
            tokens: bucket.tokens,
            rate: limits.of_bucket(key).map_or_else(String::new, |limit| limit.rate.to_string()),
        }
    }
}
