//! The record of one bucket: its numbers, as atomics that requests count up and the uplink writes in place.

use std::sync::Arc;
use std::sync::atomic::{
    AtomicI64, AtomicU32, AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release,
};

use arc_swap::ArcSwapOption;
use fastrand::Rng;
use headworks_core::agent::InForce;
use headworks_core::bucket::Counts;
use headworks_core::decision::{Draw, Threshold};
use headworks_core::units::{Headroom, Moment};

use super::allowance::Allowance;
use super::bell::Bell;
use super::cells::Cell;
use super::key::{FAR, Key, NEAR};
use super::local::Hands;
use super::tally::{Alone, Shared, Tally};

/// Its values are not tracked: requests count in the bucket that all such values share.
const AWAY: u32 = 1;
/// A request asked for it since the last look.
const WANTED: u32 = 2;
/// A prepared request holds on to it: it is not forgotten.
const PINNED: u32 = 4;
/// It is the bucket that all values share which are not tracked.
const REST: u32 = 8;

/// Bits that are flags; the others are the life of the record.
const FLAG_BITS: u32 = 8;
const ONE_LIFE: u32 = 1 << FLAG_BITS;

/// Bits of a word of the ruling that are the place; the others are the generation.
const RULE_BITS: u32 = 24;

/// Three cache lines: by what it is found and what decisions read; what they write unless the bucket is hot; and what few of them need.
/// With a hundred thousand buckets each line comes from afar. A record is used again for another bucket a while after its own was forgotten; a request that stood still for so long in between may be
/// counted in that one.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Record {
    /// Whose bucket it is, by the number of the limit's buckets; 0 if it is nobody's.
    owner: AtomicU32,
    threshold: AtomicU32,
    /// The number of its cells plus one, where threads count for themselves; 0 where they count here.
    hot: AtomicU32,
    /// The same until what the cells hold was brought here.
    cell: AtomicU32,
    /// What is said of it in single bits, and above them how often it was another bucket's before.
    flags: AtomicU32,
    /// Words of the key in use; 0 for a record that is not found by one.
    words: AtomicU32,
    near: [AtomicU64; NEAR],

    tally: Tally,
    draw: AtomicU64,
    headroom: AtomicU64,
    /// Reaches into the third line, with what is needed when tokens come.
    allowance: Allowance,

    /// By which override it goes, and since when: place and generation.
    ruling: AtomicU64,
    /// The values if they are too long for a key.
    long: ArcSwapOption<Vec<String>>,
    far: [AtomicU64; FAR],
}

const _: () = assert!(size_of::<Record>() == 192, "a million of them should take 192 MB");
const _: () =
    assert!(std::mem::offset_of!(Record, tally) == 64, "what is read and what is written lie apart");

impl Default for Record {
    fn default() -> Self {
        Self {
            owner: AtomicU32::default(),
            threshold: AtomicU32::default(),
            hot: AtomicU32::default(),
            cell: AtomicU32::default(),
            flags: AtomicU32::default(),
            words: AtomicU32::default(),
            near: Default::default(),
            tally: Tally::default(),
            draw: AtomicU64::default(),
            headroom: AtomicU64::default(),
            allowance: Allowance::default(),
            ruling: AtomicU64::default(),
            long: ArcSwapOption::empty(),
            far: Default::default(),
        }
    }
}

impl Record {
    /// It becomes the record of a bucket that nothing was counted in, of these values; of none if it is the one that values share
    /// which are not tracked. Nobody finds it yet.
    pub(super) fn begin(&self, owner: u32, values: Option<&[&str]>, headroom: Headroom) {
        self.tally.clear();
        self.allowance.clear();
        self.set_headroom(headroom);
        self.draw.store(Draw::new(fastrand::u32(..)).to_word(), Relaxed);
        self.ruling.store(0, Relaxed);
        let life = self.flags.load(Relaxed) & !(ONE_LIFE - 1);
        self.flags.store(life | if values.is_none() { REST } else { 0 }, Relaxed);
        let words = values.map_or(Some(0), |values| self.key().keep(values));
        self.words.store(words.unwrap_or(0), Relaxed);
        let long = values.filter(|_| words.is_none());
        self.long
            .store(long.map(|values| Arc::new(values.iter().map(|value| (*value).to_owned()).collect())));
        self.owner.store(owner, Release);
    }

    /// It is nobody's bucket any more: whoever looks for it finds nothing, and whoever holds on to it knows by its life.
    /// Whether a prepared request held on to it.
    pub(super) fn end(&self) -> bool {
        self.owner.store(0, Release);
        self.flags.fetch_add(ONE_LIFE, AcqRel) & PINNED != 0
    }

    /// Which of its lives this is: another than when somebody held on to it, if it is another bucket's or nobody's by now.
    pub(super) fn life(&self) -> u32 {
        self.flags.load(Relaxed) >> FLAG_BITS
    }

    /// Whose bucket it is; 0 if nobody's.
    #[inline]
    pub(super) fn owner(&self) -> u32 {
        self.owner.load(Acquire)
    }

    /// Whether it is the bucket of these values. Compared in full, so that two identities never share a counter.
    #[inline(always)]
    pub(super) fn is<'v>(&self, owner: u32, values: impl Iterator<Item = &'v str> + Clone) -> bool {
        let words = self.words.load(Relaxed) as usize;
        if words == 0 {
            return self.owner() == owner && self.is_long(values);
        }
        self.owner() == owner && self.key().begins_with(values) == Some(words)
    }

    #[inline(always)]
    fn key(&self) -> Key<'_> {
        Key { near: &self.near, far: &self.far }
    }

    #[cold]
    fn is_long<'v>(&self, values: impl Iterator<Item = &'v str>) -> bool {
        self.long.load().as_ref().is_some_and(|long| long.iter().map(String::as_str).eq(values))
    }

    /// The values of its bucket; `None` for the one that values share which are not tracked.
    pub(super) fn values(&self) -> Option<Vec<String>> {
        if self.has(REST) {
            return None;
        }
        let long = self.long.load_full();
        Some(long.map_or_else(|| self.key().values(self.words.load(Relaxed)), |long| Vec::clone(&long)))
    }

    /// By which override it goes: its place, if it was looked up in this generation of the limit's rules.
    #[inline]
    pub(super) fn ruling(&self, generation: u64) -> Option<u32> {
        let word = self.ruling.load(Relaxed);
        #[allow(clippy::cast_possible_truncation, reason = "the lower bits")]
        let place = (word & ((1 << RULE_BITS) - 1)) as u32;
        (word >> RULE_BITS == generation).then_some(place)
    }

    /// Keeps what was looked up, unless newer rules are kept already.
    pub(super) fn rule(&self, generation: u64, place: u32) {
        let word = generation << RULE_BITS | u64::from(place);
        self.ruling.fetch_max(word, Relaxed);
    }

    /// Counts a request and decides it: whether it is over the limit. The verdict is the same whether it is enforced. The
    /// clock is read only when the allowance is spent, and the bell rung when that holds the request back.
    #[inline(always)]
    pub(super) fn decide(&self, cost: u32, enforced: bool, hands: &mut Hands, bell: &Bell) -> bool {
        // What was in a cell before it was this bucket's is gone for whoever sees that it is.
        match hands.stripe.of_hot(self.hot.load(Acquire)) {
            Some(cell) => self.decide_in(cell, cost, enforced, &mut hands.random, &hands.threads, bell),
            None => self.decide_together(cost, enforced, hands, bell),
        }
    }

    /// The same for who counts alone in a cell; `threads` is how many do.
    #[inline(always)]
    pub(super) fn decide_in(
        &self,
        cell: &Cell,
        cost: u32,
        enforced: bool,
        random: &mut Rng,
        threads: &AtomicI64,
        bell: &Bell,
    ) -> bool {
        let threshold = Threshold::from_word(self.threshold.load(Relaxed));
        cell.tally.offer::<Alone>(cost);
        let mut over = cell.draws(threshold, || random.u32(..));
        if !over && !self.allowance.take_in_hand(&cell.hand, threads, cost, || bell.now()) {
            over = true;
            bell.ring();
        }
        if over {
            cell.tally.drop::<Alone>(cost, enforced);
        }
        over
    }

    #[inline(never)]
    fn decide_together(&self, cost: u32, enforced: bool, hands: &mut Hands, bell: &Bell) -> bool {
        let threshold = Threshold::from_word(self.threshold.load(Relaxed));
        self.tally.offer::<Shared>(cost);
        let mut over = !threshold.is_never() && self.draw(threshold, hands);
        if !over && !self.allowance.take(cost, || bell.now()) {
            over = true;
            bell.ring();
        }
        if over {
            self.tally.drop::<Shared>(cost, enforced);
        }
        over
    }

    fn draw(&self, threshold: Threshold, hands: &mut Hands) -> bool {
        let mut word = self.draw.load(Relaxed);
        loop {
            let (next, dropped) = Draw::from_word(word).step(threshold, || hands.random.u32(..));
            match self.draw.compare_exchange_weak(word, next.to_word(), Relaxed, Relaxed) {
                Ok(_) => return dropped,
                Err(seen) => word = seen,
            }
        }
    }

    /// A request that passed here was dropped by a later limit: a budget does not pay for it.
    /// Counted here in any case: whoever waited for an exact limit may be on another thread by now.
    pub(super) fn refuse_later(&self, cost: u32) {
        self.tally.refuse_later::<Shared>(cost);
    }

    /// Counts a request that is dropped whatever the ratio.
    pub(super) fn drop_anyway(&self, cost: u32, enforced: bool) {
        self.tally.offer::<Shared>(cost);
        self.tally.drop::<Shared>(cost, enforced);
    }

    /// Writes the headroom that decisions go by from now on.
    fn set_headroom(&self, headroom: Headroom) {
        self.headroom.store(headroom.to_bits(), Relaxed);
        self.threshold.store(Threshold::of(headroom.drop_ratio()).to_word(), Relaxed);
    }

    /// Writes all that decisions go by from now on.
    pub(super) fn set(&self, in_force: InForce, now: Moment) {
        self.set_headroom(in_force.headroom);
        self.allowance.set(in_force.allowance, now);
    }

    /// The headroom that decisions go by.
    #[inline(always)]
    pub(super) fn headroom(&self) -> Headroom {
        Headroom::from_bits(self.headroom_bits())
    }

    /// Its bits, which decisions compare.
    #[inline(always)]
    pub(super) fn headroom_bits(&self) -> u64 {
        self.headroom.load(Relaxed)
    }

    /// What was counted here, by all threads together.
    pub(super) fn counts(&self) -> Counts {
        self.tally.counts()
    }

    /// What somebody counted in a cell is counted here, and the tokens that it had in hand go back.
    pub(super) fn bring_in(&self, cell: &Cell) {
        self.tally.add(cell.tally.counts());
        self.allowance.put_back(cell.hand.load(Relaxed));
    }

    /// The number of its cells, where some may still hold counts.
    pub(super) fn cell(&self) -> Option<u32> {
        self.cell.load(Relaxed).checked_sub(1)
    }

    /// Whether threads count for themselves.
    pub(super) fn is_hot(&self) -> bool {
        self.hot.load(Relaxed) != 0
    }

    /// From now on threads count for themselves, in cells of this number.
    pub(super) fn heat(&self, cell: u32) {
        self.cell.store(cell + 1, Relaxed);
        self.hot.store(cell + 1, Release);
    }

    /// From now on they count here; what is in the cells has to be brought in.
    pub(super) fn cool(&self) {
        self.hot.store(0, Relaxed);
    }

    /// What was in the cells was brought in.
    pub(super) fn leave_cell(&self) {
        self.cell.store(0, Relaxed);
    }

    /// Whether requests with its values count in the bucket that all share which are not tracked; notes that there was one.
    #[inline]
    pub(super) fn sends_away(&self) -> bool {
        let flags = self.flags.load(Relaxed);
        if flags & AWAY == 0 {
            return false;
        }
        if flags & WANTED == 0 {
            self.flags.fetch_or(WANTED, Relaxed);
        }
        true
    }

    fn has(&self, flag: u32) -> bool {
        self.flags.load(Relaxed) & flag != 0
    }

    /// Sets a flag or takes it away; which others there are.
    fn put(&self, flag: u32, on: bool) -> u32 {
        if on { self.flags.fetch_or(flag, AcqRel) } else { self.flags.fetch_and(!flag, AcqRel) }
    }

    /// Whether its values are not tracked.
    pub(super) fn is_away(&self) -> bool {
        self.has(AWAY)
    }

    /// From now on its values are tracked, or not; whether a prepared request holds on to it.
    pub(super) fn set_away(&self, away: bool) -> bool {
        self.put(AWAY, away) & PINNED != 0
    }

    /// Whether a request asked for it since the last call.
    pub(super) fn was_wanted(&self) -> bool {
        self.flags.fetch_and(!WANTED, Relaxed) & WANTED != 0
    }

    /// Whether a prepared request holds on to it.
    pub(super) fn is_pinned(&self) -> bool {
        self.has(PINNED)
    }

    /// A prepared request holds on to it, if it is still whose it was and its values are tracked; whether it does.
    pub(super) fn pin(&self, owner: u32) -> bool {
        // Whoever ends it either sees the pin, or has taken the owner away before.
        let is_away = self.put(PINNED, true) & AWAY != 0;
        self.owner() == owner && !is_away
    }

    /// No prepared request holds on to it any more.
    pub(super) fn unpin(&self) {
        self.put(PINNED, false);
    }

    /// Whether it is the bucket that all values share which are not tracked.
    pub(super) fn is_rest(&self) -> bool {
        self.has(REST)
    }
}
