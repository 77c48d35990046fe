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
        if demand.is_empty() {
            return;
        }
        if self.0.len() >= MOST {
            // The oldest: it has the least of its hold left.
            self.0.remove(0);
        }
        let demand = demand
            .iter()
            .map(|(number, own)| (*number, Lost { own: *own, elsewhere: elsewhere(*number) }))
            .collect();
        let found_by = zone_lives.then(|| now + REATTACHED_WITHIN);
        self.0.push(Orphan { child, zone: zone.to_owned(), left: now, found_by, demand });
    }

    /// What has been heard again by now is no orphan any more; `heard` tells what was heard of a bucket until the death that is
    /// about to be added. In a release each aggregator dies with what it took over from the one before: with that one
    /// remembered in full, a third of the fleet's demand was counted twice until its time was over.
    pub(super) fn settle(&mut self, heard: &NumberMap<BucketNumber, f64>) {
        for (number, heard) in heard {
            let mut found = 0.0;
            for lost in self.0.iter_mut().filter_map(|orphan| orphan.demand.get_mut(number)) {
                let found_here = lost.found_in(heard - found);
                found += found_here;
                lost.own -= found_here;
                lost.elsewhere += found_here;
            }
        }
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
        let (mut found, mut left) = (0.0, 0.0);
        for lost in held.filter_map(|orphan| orphan.demand.get(&number)) {
            // What came back to one zone did not come back to another: two that died at once would each be taken for found.
            let found_here = lost.found_in(heard - found);
            found += found_here;
            left += lost.own - found_here;
        }
        left
    }

    /// Whether something of a bucket is orphaned, or was found again a moment ago.
    pub(super) fn hold(&self, number: BucketNumber) -> bool {
        self.0.iter().any(|orphan| orphan.demand.contains_key(&number))
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
    /// What of it is heard again, given what is heard.
    fn found_in(self, heard: f64) -> f64 {
        (heard - self.elsewhere).clamp(0.0, self.own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUCKET: BucketNumber = BucketNumber(0);
    const HOLD: Duration = Duration::from_secs(60);

    /// What is counted in all, when so much of it is heard, of zones that offered 300 each and died; `elsewhere` is what was
    /// heard when each of them did.
    fn counted(elsewhere: [f64; 2], heard: f64) -> f64 {
        let mut orphans = Orphans::default();
        for (zone, elsewhere) in ["a", "b"].into_iter().zip(elsewhere) {
            let demand = NumberMap::from_iter([(BUCKET, 300.0)]);
            orphans.add(ChildId(0), zone, false, &demand, Moment::default(), |_| elsewhere);
        }
        heard + orphans.demand(BUCKET, heard, HOLD, Moment::default())
    }

    #[test]
    fn what_an_aggregator_took_over_from_another_is_counted_once_when_it_dies_too() {
        let demand = NumberMap::from_iter([(BUCKET, 300.0)]);
        for back in [0.0, 100.0, 300.0] {
            let mut orphans = Orphans::default();
            orphans.add(ChildId(0), "a", true, &demand, Moment::default(), |_| 300.0);
            // So much of it has come back when the other one dies.
            orphans.settle(&NumberMap::from_iter([(BUCKET, 300.0 + back)]));
            orphans.add(ChildId(1), "a", true, &demand, Moment::default(), |_| back);
            for heard in [back, 300.0, 600.0] {
                let counted = heard + orphans.demand(BUCKET, heard, HOLD, Moment::default());
                assert_eq!(counted, 600.0, "{heard} heard, after {back}");
            }
        }
    }

    #[test]
    fn what_comes_back_is_counted_once_whichever_zone_died_first() {
        for elsewhere in [[0.0, 0.0], [300.0, 0.0]] {
            for heard in [0.0, 100.0, 300.0, 500.0, 600.0] {
                assert_eq!(counted(elsewhere, heard), 600.0, "{heard} heard, {elsewhere:?}");
            }
        }
    }
}
