//! Orphaned demand: what agents offer whose aggregator died.
//!
//! They hold their last ratio and go on admitting. Were their demand forgotten at once, a limit of 400 over two zones
//! that offer 300 each would admit 500: 200 in the orphaned zone, and all 300 of the other. So it stays counted for
//! the hold, less whatever rise is seen elsewhere: a rise that matches is the same load, come back or moved.

use std::time::Duration;

use crate::children::ChildId;
use crate::message::BucketNumber;
use crate::numbers::NumberMap;
use crate::units::Moment;

/// Time in which agents find another aggregator of their zone, or the same one again: the cap of their backoff,
/// and two intervals to report.
const REATTACHED_WITHIN: Duration = Duration::from_secs(12);
/// No hold of a limit is longer.
const LONGEST_HOLD: Duration = Duration::from_secs(24 * 3600);
/// Deaths remembered at once; an aggregator that dies again and again is one flapping link, not more demand.
const MOST: usize = 64;

#[derive(Debug)]
struct Orphan {
    child: ChildId,
    zone: String,
    left: Moment,
    /// When the zone has another aggregator: by when its agents will have found it.
    found_by: Option<Moment>,
    demand: NumberMap<BucketNumber, Lost>,
}

#[derive(Clone, Copy, Debug)]
struct Lost {
    /// What was offered there, in units a second.
    own: f64,
    /// What was offered everywhere else.
    elsewhere: f64,
}

/// The demand of all zones that lost an aggregator.
#[derive(Debug, Default)]
pub(super) struct Orphans(Vec<Orphan>);

impl Orphans {
    /// An aggregator died that heard this demand. `elsewhere` tells what the others hear of a bucket.
    pub(super) fn add(
        &mut self,
        child: ChildId,
        zone: &str,
        zone_lives: bool,
        demand: &NumberMap<BucketNumber, f64>,
        now: Moment,
        elsewhere: impl Fn(BucketNumber) -> f64,
    ) {
        if self.0.len() >= MOST || demand.is_empty() {
            return;
        }
        let demand = demand
            .iter()
            .map(|(number, own)| (*number, Lost { own: *own, elsewhere: elsewhere(*number) }))
            .collect();
        let found_by = zone_lives.then(|| now + REATTACHED_WITHIN);
        self.0.push(Orphan { child, zone: zone.to_owned(), left: now, found_by, demand });
    }

    /// This aggregator was only silent: its demand is heard, and no longer an orphan.
    pub(super) fn are_heard_again(&mut self, child: ChildId) {
        self.0.retain(|orphan| orphan.child != child);
    }

    /// An aggregator of this zone is there (again): its orphans will be heard through it soon.
    pub(super) fn zone_is_back(&mut self, zone: &str, now: Moment) {
        for orphan in self.0.iter_mut().filter(|orphan| orphan.zone == zone) {
            orphan.found_by.get_or_insert(now + REATTACHED_WITHIN);
        }
    }

    /// What is still orphaned of a bucket, given what is heard of it and how long its agents hold their last ratio.
    pub(super) fn demand(&self, number: BucketNumber, heard: f64, hold: Duration, now: Moment) -> f64 {
        let held = self.0.iter().filter(|orphan| !orphan.is_over(hold, now));
        held.filter_map(|orphan| orphan.demand.get(&number)).map(|lost| lost.left_of(heard)).sum()
    }

    /// How many are remembered.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Forgets those whose agents have been found, or have opened.
    pub(super) fn forget_old(&mut self, now: Moment) {
        self.0.retain(|orphan| !orphan.is_over(LONGEST_HOLD, now));
    }
}

impl Orphan {
    fn is_over(&self, hold: Duration, now: Moment) -> bool {
        now.since(self.left) >= hold || self.found_by.is_some_and(|found_by| now >= found_by)
    }
}

impl Lost {
    fn left_of(self, heard: f64) -> f64 {
        let rise = (heard - self.elsewhere).max(0.0);
        (self.own - rise).max(0.0)
    }
}
