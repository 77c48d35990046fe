//! The records that the uplink reads, by the numbers of their buckets, and how they are forgotten.
//!
//! A bucket that rests is taken from the limiter first, and gives up its place there. Requests may have found its record a
//! moment before; so the record is read on until nobody can hold it any more, and only then the bucket is forgotten. If its
//! values come again in between, a new record counts on for the same number, and goes by the same headroom.

mod away;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{Ordering::Acquire, fence};
use std::time::Duration;

use headworks_core::agent::{Agent as State, InForce};
use headworks_core::bucket::Counts;
use headworks_core::message::BucketNumber;
use headworks_core::units::Moment;

use crate::limiter::{Limiter, Record};
use away::Away;

/// Buckets forgotten at once: so many take the uplink a few milliseconds.
const AT_ONCE: usize = 10_000;
/// Nobody holds a record for so long. Only for when the limiter's map keeps the last few removed ones to itself.
const LINGERS: Duration = Duration::from_secs(60);

/// One bucket's records.
#[derive(Debug, Default)]
struct Tracked {
    /// Where requests are counted now; `None` if the limiter has forgotten the bucket.
    live: Option<Arc<Record>>,
    leaving: Option<Leaving>,
    /// What was counted in records that are gone.
    before: Counts,
    /// What the live record had counted for others before it was tracked here.
    elsewhere: Counts,
}

/// A record that no new request finds.
#[derive(Debug)]
struct Leaving {
    record: Arc<Record>,
    since: Moment,
    /// What it had counted when it was taken away.
    counted: Counts,
    /// What of it was counted for others before.
    before: Counts,
}

/// All records that the uplink reads.
#[derive(Debug, Default)]
pub(crate) struct Records {
    tracked: HashMap<BucketNumber, Tracked>,
    leaving: usize,
    away: Vec<Away>,
    looked: Moment,
}

impl Records {
    /// A record that requests are counted in from now on.
    pub(crate) fn insert(&mut self, number: BucketNumber, record: Arc<Record>) {
        let tracked = self.tracked.entry(number).or_default();
        if tracked.live.replace(record).is_some() {
            tracked.before = Counts::default();
        }
        tracked.elsewhere = Counts::default();
    }

    /// Drops those whose limits are gone.
    pub(crate) fn drop_retired(&mut self) {
        self.tracked.retain(|_, tracked| !tracked.live.as_ref().is_some_and(|live| live.is_retired()));
    }

    /// What each bucket has counted by now.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (BucketNumber, Counts)> {
        self.tracked.iter().map(|(number, tracked)| (*number, tracked.counts()))
    }

    /// Puts in force what decisions on a bucket go by.
    pub(crate) fn set(&self, number: BucketNumber, in_force: InForce, now: Moment) {
        let tracked = self.tracked.get(&number);
        if let Some(live) = tracked.and_then(|tracked| tracked.live.as_ref()) {
            live.set(in_force, now);
        }
    }

    /// Once a second: forgets buckets that rest.
    pub(crate) fn forget_idle(&mut self, state: &mut State, limiter: &Limiter, now: Moment) {
        if now.since(self.looked) < Duration::from_secs(1) {
            return;
        }
        self.looked = now;
        self.let_go(limiter, now);
        self.tend_away(state, limiter, now);
        // The limits of some may be gone by now.
        self.tracked.retain(|number, tracked| {
            tracked.live.is_some() || tracked.leaving.is_some() || state.holds(*number)
        });
        let mut leave: HashMap<Arc<str>, Vec<(BucketNumber, Arc<Record>)>> = HashMap::new();
        for number in state.idle(now, AT_ONCE) {
            match self.tracked.get(&number) {
                Some(Tracked { leaving: Some(_), .. }) => {}
                Some(Tracked { live: Some(live), .. }) => {
                    leave.entry(live.key.limit.clone()).or_default().push((number, live.clone()));
                }
                Some(Tracked { live: None, .. }) | None => {
                    state.forget(number, now);
                    self.tracked.remove(&number);
                }
            }
        }
        leave.into_iter().for_each(|(limit, records)| self.take_away(&limit, records, limiter, now));
    }

    /// Takes every record away from the limiter, in use or not.
    #[cfg(test)]
    pub(crate) fn take_away_all(&mut self, limit: &str, limiter: &Limiter, now: Moment) {
        let live = self.tracked.iter().filter(|(_, tracked)| tracked.leaving.is_none());
        let live = live.filter_map(|(number, tracked)| Some((*number, tracked.live.clone()?))).collect();
        self.take_away(limit, live, limiter, now);
    }

    fn take_away(
        &mut self,
        limit: &str,
        leave: Vec<(BucketNumber, Arc<Record>)>,
        limiter: &Limiter,
        now: Moment,
    ) {
        let (numbers, records): (Vec<_>, Vec<_>) = leave.into_iter().unzip();
        let counts = limiter.forget(limit, &records);
        for ((number, record), counted) in numbers.into_iter().zip(records).zip(counts) {
            if let Some(tracked) = self.tracked.get_mut(&number) {
                tracked.live = None;
                let before = std::mem::take(&mut tracked.elsewhere);
                tracked.leaving = Some(Leaving { record, since: now, counted, before });
                self.leaving += 1;
            }
        }
    }

    /// Closes records that nobody can count in any more.
    pub(crate) fn let_go(&mut self, limiter: &Limiter, now: Moment) {
        if std::mem::take(&mut self.leaving) == 0 {
            return;
        }
        for tracked in self.tracked.values_mut() {
            let Some(gone) = tracked.leaving.take_if(|leaving| leaving.is_over(now)) else {
                self.leaving += usize::from(tracked.leaving.is_some());
                continue;
            };
            let counts = gone.record.counts();
            tracked.before += counts.since(gone.before);
            if counts != gone.counted {
                limiter.count_late(&gone.record.key.limit, counts.since(gone.counted));
            }
        }
    }
}

impl Tracked {
    fn counts(&self) -> Counts {
        let mut counts = self.before;
        self.live.iter().for_each(|live| counts += live.counts().since(self.elsewhere));
        self.leaving.iter().for_each(|leaving| counts += leaving.record.counts().since(leaving.before));
        counts
    }
}

impl Leaving {
    /// The limiter's map holds the other reference until no request looks at it any more.
    fn is_over(&self, now: Moment) -> bool {
        let alone = Arc::strong_count(&self.record) == 1;
        // What others counted before they let go is seen here.
        fence(Acquire);
        alone || now.since(self.since) >= LINGERS
    }
}
