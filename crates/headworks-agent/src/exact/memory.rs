//! The store in this process: the buckets of each limit, in parts that each have a lock.
//!
//! A request takes the locks of all the parts that it needs, looks at all its buckets, and then charges all of them or none.
//! Locks are taken in one order (by limit, then a part, then the shared bucket), so no two requests wait for each other.
//!
//! Memory is bounded: a limit has at most `max_buckets` buckets, and one more for each that an override names. A bucket
//! that is in use is never pushed out, or its caller would have a fresh budget; when all places are taken, other
//! values share one bucket, until sweeping finds buckets that are as good as new.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use headworks_core::bucket::Counts;
use headworks_core::exact::Ruling;
use headworks_core::limits::Limit;
use headworks_core::units::{Moment, Rate};
use smallvec::SmallVec;

use super::key::{self, Key};
use super::shard::{Shard, Slot};
use super::{Ask, Effect, Outcome, Outcomes, Remaining, Settled, Values};
use crate::places::takes_another;

/// Parts of a limit's buckets, a power of two: so many that threads rarely meet, and a sweep of one part of a million buckets is short.
const SHARDS: usize = 64;

/// Each on lines of its own, so that threads on different parts do not slow each other down.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Part(Mutex<Shard>);

/// The buckets of one limit.
#[derive(Debug)]
pub(crate) struct Buckets {
    /// The place of its locks in the order in which they are taken.
    rank: u64,
    parts: Box<[Part]>,
    /// What values without a bucket of their own share.
    shared: Mutex<Slot>,
    tracked: AtomicUsize,
    /// The part that is swept next.
    next: AtomicUsize,
}

static RANKS: AtomicU64 = AtomicU64::new(0);

/// Settles a request that meets one limit, with one lock and one look for its bucket: whether it passes, and what is told.
/// Nothing if that takes more than a look, which is then left to [`settle`]: there is no bucket, or the request can never pass.
#[inline(never)]
pub(crate) fn settle_one(ask: &Ask<'_>, now: Moment) -> Option<(bool, Remaining)> {
    if ask.lacks_value {
        return None;
    }
    let values = ask.values();
    settle_found(ask, now, key::hash(&values), |key| key.is(&values))
}

/// The same, for limits with one `per` key, which are most.
#[inline(always)]
pub(crate) fn settle_one_value(ask: &Ask<'_>, now: Moment) -> Option<(bool, Remaining)> {
    if ask.lacks_value || ask.limit.limit.per.len() != 1 {
        return None;
    }
    let value = ask.first;
    settle_found(ask, now, key::hash_one(value), |key| key.is_one(value))
}

/// Inlined, as is what it calls: what is told would else be copied through memory, which takes as long as half of the rest.
#[inline(always)]
fn settle_found(
    ask: &Ask<'_>,
    now: Moment,
    hash: u64,
    is_it: impl Fn(&Key) -> bool,
) -> Option<(bool, Remaining)> {
    let mut shard = ask.limit.buckets.part(hash);
    let (slot, counts) = shard.find(hash, is_it)?;
    slot.follow(ask, now);
    let look = slot.decide(ask, now);
    let Ruling { rule, rate, .. } = slot.ruling();
    let limit = rule.most();
    // Word by word: a copy in one piece would be read back in others, for which the processor waits.
    let rate = match *rate {
        Rate::Per { amount, unit } => Rate::Per { amount, unit },
        Rate::Unlimited => Rate::Unlimited,
    };
    let effect = Effect::alone(ask, look.passes, limit)?;
    effect.count(counts, ask.charge);
    let charged = if look.passes { ask.charge } else { 0 };
    let remaining = look.remaining.map(|remaining| remaining.saturating_sub(charged));
    Some((look.passes, Remaining { rate, limit, remaining, retry_after: look.retry_after }))
}

/// Settles a request: works out what each limit says, and charges it to all of them or to none.
pub(crate) fn settle(asks: &[Ask<'_>], now: Moment) -> (Settled, Outcomes) {
    let mut held = lock_all(asks);
    // In the order of ranks too: to look may take the lock of a shared bucket.
    let mut looked: SmallVec<[(usize, Outcome); 4]> =
        held.iter_mut().map(|held| (held.place, held.look(now))).collect();
    looked.sort_unstable_by_key(|(place, _)| *place);
    let outcomes: Outcomes = looked.into_iter().map(|(_, outcome)| outcome).collect();
    let settled = Settled::of(asks, &outcomes);
    for held in &mut held {
        let effect = settled.for_place(held.place, held.ask, &outcomes[held.place]);
        if effect == Effect::Charge {
            held.with(now, |slot, ask| slot.charge(ask, now));
        }
        held.shard.count(effect, held.ask.charge);
    }
    (settled, outcomes)
}

/// Gives back what an ask was charged, as far as it still counts, to the bucket of its own values: in one that others share, the charge
/// may be anybody's.
pub(crate) fn give_back(ask: &Ask<'_>, now: Moment) {
    let values = ask.values();
    let hash = key::hash(&values);
    let mut shard = ask.limit.buckets.part(hash);
    if let Some((slot, counts)) = shard.find(hash, |key| key.is(&values)) {
        slot.follow(ask, now);
        counts.refused_later = counts.refused_later.saturating_add(slot.give_back(ask, now));
    }
}

/// The locks of all parts that the asks need, taken and listed in the order of ranks.
fn lock_all<'a>(asks: &'a [Ask<'a>]) -> SmallVec<[Held<'a>; 4]> {
    let mut order: SmallVec<[usize; 8]> = (0..asks.len()).collect();
    order.sort_unstable_by_key(|place| asks[*place].limit.buckets.rank);
    order.into_iter().map(|place| Held::lock(place, &asks[place])).collect()
}

/// The lock that an ask needs.
struct Held<'a> {
    /// The place of the ask.
    place: usize,
    ask: &'a Ask<'a>,
    values: Values<'a>,
    hash: u64,
    shard: MutexGuard<'a, Shard>,
    /// Taken when there is no place left for a bucket of its own.
    shared: Option<MutexGuard<'a, Slot>>,
}

impl<'a> Held<'a> {
    fn lock(place: usize, ask: &'a Ask<'a>) -> Self {
        let values = ask.values();
        let hash = if ask.lacks_value { 0 } else { key::hash(&values) };
        Self { place, ask, values, hash, shard: ask.limit.buckets.part(hash), shared: None }
    }

    fn look(&mut self, now: Moment) -> Outcome {
        if self.ask.lacks_value {
            return Outcome::of_nothing(self.ask.limit.rules.own());
        }
        self.with(now, |slot, ask| slot.outcome(ask, now))
    }

    /// The bucket of the ask, made on first sight.
    fn with<R>(&mut self, now: Moment, use_it: impl FnOnce(&mut Slot, &Ask<'_>) -> R) -> R {
        if let Some(shared) = &mut self.shared {
            return use_it(shared, self.ask);
        }
        if let Some((slot, _)) = self.shard.find(self.hash, |key| key.is(&self.values)) {
            slot.follow(self.ask, now);
            return use_it(slot, self.ask);
        }
        self.open(now, use_it)
    }

    #[cold]
    fn open<R>(&mut self, now: Moment, use_it: impl FnOnce(&mut Slot, &Ask<'_>) -> R) -> R {
        let (limit, buckets) = (self.ask.limit, &*self.ask.limit.buckets);
        let (ruling, named) = limit.rules.rule_for(&self.values);
        let mut shared = lock(&buckets.shared);
        shared.follow_own(limit, now);
        if takes_another(&buckets.tracked, &limit.limit, named) {
            let mut slot = shared.fork(ruling, now);
            let used = use_it(&mut slot, self.ask);
            self.shard.open(self.hash, &self.values, slot);
            return used;
        }
        let used = use_it(&mut shared, self.ask);
        self.shared = Some(shared);
        used
    }
}

impl Buckets {
    /// None yet, of a limit of this rule of its own.
    pub(super) fn new(limit: &Limit, own: &Arc<Ruling>) -> Self {
        let parts = if limit.per.is_empty() { 1 } else { SHARDS };
        Self {
            rank: RANKS.fetch_add(1, Relaxed),
            parts: (0..parts).map(|_| Part::default()).collect(),
            shared: Mutex::new(Slot::new(own.clone())),
            tracked: AtomicUsize::new(0),
            next: AtomicUsize::new(0),
        }
    }

    /// By the upper bits: the lower ones say where in its part a bucket is.
    #[allow(clippy::cast_possible_truncation, reason = "the part that is kept is as good as any")]
    #[inline]
    fn part(&self, hash: u64) -> MutexGuard<'_, Shard> {
        lock(&self.parts[(hash >> 32) as usize & (self.parts.len() - 1)].0)
    }

    #[cfg(feature = "redis")]
    pub(super) fn count(&self, effect: Effect, cost: u64) {
        lock(&self.parts[0].0).count(effect, cost);
    }

    pub(super) fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        self.parts.iter().for_each(|part| sum += lock(&part.0).counts());
        sum
    }

    pub(super) fn tracked(&self) -> usize {
        self.tracked.load(Relaxed)
    }

    /// One part at a time: a request may have to wait for its end.
    pub(super) fn sweep(&self, now: Moment) {
        if self.tracked() == 0 {
            return;
        }
        let next = self.next.fetch_add(1, Relaxed) % self.parts.len();
        let swept = lock(&self.parts[next].0).sweep(now);
        self.tracked.fetch_sub(swept, Relaxed);
    }
}

/// What a thread that panicked left behind is whole: nothing here calls anything that panics between two changes.
#[inline]
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
