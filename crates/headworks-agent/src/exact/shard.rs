//! A part of a limit's buckets under one lock, and what was counted there.

use std::sync::Arc;

use hashbrown::HashTable;
use headworks_core::bucket::Counts;
use headworks_core::exact::{Look, Ruling, State};
use headworks_core::units::Moment;

use super::key::Key;
use super::limit::ExactLimit;
use super::{Ask, Effect, Outcome, Remaining};

/// A bucket: what holds for it, and what it has counted.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    ruling: Arc<Ruling>,
    state: State,
}

impl Slot {
    pub(super) fn new(ruling: Arc<Ruling>) -> Self {
        Self { ruling, state: State::New }
    }

    /// Puts newer rules in force. A request that is decided by older ones goes by the newer too.
    #[inline(always)]
    pub(super) fn follow(&mut self, ask: &Ask<'_>, now: Moment) {
        if self.is_behind(ask.limit) {
            self.catch_up(ask, now);
        }
    }

    #[cold]
    fn catch_up(&mut self, ask: &Ask<'_>, now: Moment) {
        self.adopt(ask.limit.rules.rule_for(&ask.values()).0, now);
    }

    /// The same for the bucket that values without one of their own share.
    pub(super) fn follow_own(&mut self, limit: &ExactLimit, now: Moment) {
        if self.is_behind(limit) {
            self.adopt(limit.rules.own(), now);
        }
    }

    #[inline]
    fn is_behind(&self, limit: &ExactLimit) -> bool {
        self.ruling.generation < limit.rules.generation()
    }

    fn adopt(&mut self, ruling: &Arc<Ruling>, now: Moment) {
        ruling.rule.adopt(self.ruling.rule, &mut self.state, now);
        self.ruling = ruling.clone();
    }

    /// What holds.
    #[inline]
    pub(super) fn ruling(&self) -> &Ruling {
        &self.ruling
    }

    /// Looks, and charges the ask if it passes.
    #[inline(always)]
    pub(super) fn decide(&mut self, ask: &Ask<'_>, now: Moment) -> Look {
        self.ruling.rule.decide(&mut self.state, ask.cost, ask.charge, now)
    }

    fn look(&self, ask: &Ask<'_>, now: Moment) -> Look {
        self.ruling.rule.look(&self.state, ask.cost, now)
    }

    pub(super) fn outcome(&self, ask: &Ask<'_>, now: Moment) -> Outcome {
        let look = self.look(ask, now);
        let charged = if look.passes { ask.charge } else { 0 };
        Outcome { passes: look.passes, counted: true, told: Remaining::of(&look, &self.ruling, charged) }
    }

    pub(super) fn charge(&mut self, ask: &Ask<'_>, now: Moment) {
        self.ruling.rule.charge(&mut self.state, ask.charge, now);
    }

    pub(super) fn give_back(&mut self, ask: &Ask<'_>, now: Moment) -> u64 {
        self.ruling.rule.give_back(&mut self.state, ask.charge, now)
    }

    /// A bucket of its own for values that shared this one. It starts with what is owed here: its caller may have been
    /// served from here, and would else have a budget twice.
    pub(super) fn fork(&self, ruling: &Arc<Ruling>, now: Moment) -> Self {
        let mut own = Self::new(ruling.clone());
        if !self.is_as_new(now) {
            own.state = self.state.clone();
            ruling.rule.adopt(self.ruling.rule, &mut own.state, now);
        }
        own
    }

    fn is_as_new(&self, now: Moment) -> bool {
        self.ruling.rule.is_as_new(&self.state, now)
    }
}

/// One line of the processor's memory, where the values are short.
#[derive(Debug)]
#[repr(align(64))]
struct Bucket {
    hash: u64,
    key: Key,
    slot: Slot,
}

const _: () = assert!(size_of::<Bucket>() == 64);

#[derive(Debug, Default)]
pub(super) struct Shard {
    buckets: HashTable<Bucket>,
    counts: Counts,
}

impl Shard {
    /// The bucket whose key it is, and where it is counted. Its rules may be old (see [`Slot::follow`]).
    #[inline(always)]
    pub(super) fn find(
        &mut self,
        hash: u64,
        is_it: impl Fn(&Key) -> bool,
    ) -> Option<(&mut Slot, &mut Counts)> {
        let bucket = self.buckets.find_mut(hash, |bucket| is_it(&bucket.key))?;
        Some((&mut bucket.slot, &mut self.counts))
    }

    /// Makes the bucket of these values, which is not there.
    pub(super) fn open(&mut self, hash: u64, values: &[&str], slot: Slot) {
        self.buckets.insert_unique(hash, Bucket { hash, key: Key::of(values), slot }, |bucket| bucket.hash);
    }

    pub(super) fn count(&mut self, effect: Effect, cost: u64) {
        effect.count(&mut self.counts, cost);
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    /// Forgets what is as good as new; tells how many buckets that were.
    pub(super) fn sweep(&mut self, now: Moment) -> usize {
        let before = self.buckets.len();
        self.buckets.retain(|bucket| !bucket.slot.is_as_new(now));
        // Memory that a flood took is given back; what a steady crowd needs stays.
        if self.buckets.len() < self.buckets.capacity() / 8 {
            self.buckets.shrink_to(self.buckets.len() * 2, |bucket| bucket.hash);
        }
        before - self.buckets.len()
    }
}
