//! The records that the uplink reads, by the numbers of their buckets, and how they are forgotten.
//!
//! A bucket that rests is taken from the limiter first, and gives up its place there. Requests may have found its record a
//! moment before; so the record is read on for longer than any decision takes, and only then the bucket is forgotten. If its
//! values come again in between, a new record counts on for the same number, and goes by the same headroom.

mod away;

use std::collections::HashMap;
use std::time::Duration;

use headworks_core::agent::{Agent as State, InForce};
use headworks_core::bucket::Counts;
use headworks_core::message::BucketNumber;
use headworks_core::units::Moment;

use crate::limiter::{Handle, LINGERS, Limiter, Reader};
use away::Away;

/// Buckets forgotten at once: so many take the uplink a few milliseconds.
const AT_ONCE: usize = 10_000;
/// Cost units from one beat to the next from which threads count a bucket for themselves: a thousand and more a second.
const HOT: u64 = 50;
/// Beats with less than a tenth of it after which they do so no longer.
const COLD_AFTER: u32 = 200;

/// One bucket's records.
#[derive(Debug, Default)]
struct Tracked {
    /// Where requests are counted now; `None` if the limiter has forgotten the bucket.
    live: Option<Handle>,
    leaving: Option<Leaving>,
    /// What was counted in records that are gone.
    before: Counts,
    /// What the live record had counted for others before it was tracked here.
    elsewhere: Counts,
    heat: Heat,
}

/// How much was asked of a bucket of late.
#[derive(Clone, Copy, Debug, Default)]
struct Heat {
    offered: u64,
    /// Beats since it was asked for more than now and then.
    cold: u32,
}

/// A record that no new request finds.
#[derive(Debug)]
struct Leaving {
    record: Handle,
    /// Whose bucket it was.
    owner: u32,
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
    pub(crate) fn insert(&mut self, number: BucketNumber, record: Handle) {
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

    /// Tells what each bucket has counted by now, and lets threads count for themselves those that are asked for most.
    pub(crate) fn read(
        &mut self,
        limiter: &Limiter,
        now: Moment,
        mut tell: impl FnMut(BucketNumber, Counts),
    ) {
        let mut turns = Vec::new();
        let reader = limiter.reader();
        for (number, tracked) in &mut self.tracked {
            let counts = tracked.counts(&reader);
            if let Some(live) = &tracked.live
                && let Some(hot) = tracked.heat.turns(counts.offered, live)
            {
                turns.push((live.clone(), hot));
            }
            tell(*number, counts);
        }
        drop(reader);
        turns.into_iter().for_each(|(live, hot)| live.set_hot(hot, now));
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
        // Not before what was counted in them late is taken over.
        limiter.tend(now);
        // The limits of some may be gone by now.
        self.tracked.retain(|number, tracked| {
            tracked.live.is_some() || tracked.leaving.is_some() || state.holds(*number)
        });
        let stays = |number: &BucketNumber| match self.tracked.get(number) {
            Some(Tracked { leaving: Some(_), .. }) => true,
            Some(Tracked { live: Some(live), .. }) => live.is_pinned(),
            Some(Tracked { live: None, .. }) | None => false,
        };
        let idle: Vec<_> = state.idle(now).filter(|number| !stays(number)).take(AT_ONCE).collect();
        for number in idle {
            match self.tracked.get(&number) {
                Some(Tracked { live: Some(_), .. }) => self.take_away(number, limiter, now),
                Some(Tracked { live: None, .. }) | None => {
                    state.forget(number, now);
                    self.tracked.remove(&number);
                }
            }
        }
    }

    /// Takes every record away from the limiter, in use or not.
    #[cfg(test)]
    pub(crate) fn take_away_all(&mut self, limiter: &Limiter, now: Moment) {
        let live = self.tracked.iter().filter(|(_, tracked)| tracked.leaving.is_none());
        let live: Vec<_> = live.map(|(number, _)| *number).collect();
        live.into_iter().for_each(|number| self.take_away(number, limiter, now));
    }

    fn take_away(&mut self, number: BucketNumber, limiter: &Limiter, now: Moment) {
        let Some(tracked) = self.tracked.get_mut(&number) else { return };
        let Some(record) = tracked.live.take() else { return };
        let owner = record.owner();
        let counted = limiter.forget(&record, now);
        let before = std::mem::take(&mut tracked.elsewhere);
        tracked.leaving = Some(Leaving { record, owner, since: now, counted, before });
        self.leaving += 1;
    }

    /// Closes records that nobody can count in any more.
    pub(crate) fn let_go(&mut self, limiter: &Limiter, now: Moment) {
        if std::mem::take(&mut self.leaving) == 0 {
            return;
        }
        let (reader, mut late) = (limiter.reader(), Vec::new());
        for tracked in self.tracked.values_mut() {
            let Some(gone) = tracked.leaving.take_if(|leaving| leaving.is_over(now)) else {
                self.leaving += usize::from(tracked.leaving.is_some());
                continue;
            };
            let counts = reader.of(&gone.record);
            tracked.before += counts.since(gone.before);
            if counts != gone.counted {
                late.push((gone.owner, counts.since(gone.counted)));
            }
        }
        // Whoever sums up holds what this waits for, and waits for the reader.
        drop(reader);
        late.into_iter().for_each(|(owner, counts)| limiter.count_late(owner, counts));
    }
}

impl Tracked {
    fn counts(&self, reader: &Reader<'_>) -> Counts {
        let mut counts = self.before;
        self.live.iter().for_each(|live| counts += reader.of(live).since(self.elsewhere));
        self.leaving.iter().for_each(|leaving| counts += reader.of(&leaving.record).since(leaving.before));
        counts
    }
}

impl Heat {
    /// Whether threads shall count for themselves from now on, or no longer; `None` if it stays as it is.
    fn turns(&mut self, offered: u64, live: &Handle) -> Option<bool> {
        let more = offered.saturating_sub(self.offered);
        if more == 0 && !live.is_hot() {
            return None;
        }
        self.offered = offered;
        self.cold = if more > HOT / 10 { 0 } else { self.cold.saturating_add(1) };
        match live.is_hot() {
            false => (more >= HOT).then_some(true),
            true => (self.cold >= COLD_AFTER).then_some(false),
        }
    }
}

impl Leaving {
    /// A little before the record may be used again.
    fn is_over(&self, now: Moment) -> bool {
        now.since(self.since) + Duration::from_secs(1) >= LINGERS
    }
}
