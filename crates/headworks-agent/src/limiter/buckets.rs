//! The buckets of one limit, found by the values of a request.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use headworks_core::bucket::Counts;
use headworks_core::limits::Limit;
use headworks_core::units::{Headroom, Moment};

use super::ledger::Ledger;
use super::local::Hands;
use super::record::Record;
use crate::places::takes_another;

/// The buckets of one limit: one for all where it has no `per`, else one for each list of values up to its
/// `max_buckets`, and one that all others share.
#[derive(Debug)]
pub(super) struct Buckets {
    /// By which the ledger knows whose its records are.
    pub(super) owner: u32,
    whole: OnceLock<u32>,
    /// Lists of values tracked.
    tracked: AtomicUsize,
    rest: OnceLock<u32>,
    /// The parents track no more: what is new here is not tracked until they say otherwise. Else whoever makes up values
    /// would have the time until they answer for each of them.
    full: AtomicBool,
    /// Counted in buckets that were forgotten. Held while one is, so that whoever sums up finds each bucket in one place.
    forgotten: Mutex<Counts>,
}

/// A record, and its number.
pub(super) type Found<'l> = (u32, &'l Record);

impl Buckets {
    /// No buckets yet.
    pub(super) fn new(limit: &Limit, ledger: &Ledger) -> Self {
        Self {
            owner: ledger.register(&limit.name),
            whole: OnceLock::new(),
            tracked: AtomicUsize::new(0),
            rest: OnceLock::new(),
            full: AtomicBool::new(false),
            forgotten: Mutex::default(),
        }
    }

    /// The bucket of these values, if there is one: what is not tracked is in the one that all such values share.
    #[inline]
    pub(super) fn find<'l, 'v>(
        &self,
        values: &(impl Iterator<Item = &'v str> + Clone),
        ledger: &'l Ledger,
        hands: &mut Hands,
    ) -> Option<Found<'l>> {
        if let Some(whole) = self.whole.get() {
            return Some((*whole, ledger.record(*whole)?));
        }
        let found = ledger.find(self.owner, values, hands)?;
        if found.1.sends_away() { self.rest(ledger) } else { Some(found) }
    }

    /// The bucket of these values, made now that they are seen first. `named` tells that an override names them.
    #[cold]
    pub(super) fn make<'l>(
        &self,
        limit: &Limit,
        named: bool,
        values: &[&str],
        ledger: &'l Ledger,
    ) -> Option<Found<'l>> {
        if values.is_empty() {
            return self.whole(limit, ledger);
        }
        if !takes_another(&self.tracked, limit, named) {
            return self.rest(ledger);
        }
        let Some((number, is_new)) = ledger.enter(self.owner, values, at_first(limit)) else {
            self.tracked.fetch_sub(1, Relaxed);
            return self.rest(ledger);
        };
        let record = ledger.record(number)?;
        if !is_new {
            self.tracked.fetch_sub(1, Relaxed);
        } else if !named && self.full.load(Relaxed) {
            // Some prepared request may have found it in between.
            if record.set_away(true) {
                ledger.begin_epoch();
            }
        }
        if record.sends_away() { self.rest(ledger) } else { Some((number, record)) }
    }

    /// The one bucket of a limit without `per`.
    pub(super) fn whole<'l>(&self, limit: &Limit, ledger: &'l Ledger) -> Option<Found<'l>> {
        let number = match self.whole.get() {
            Some(number) => *number,
            None => ledger.open_once(&self.whole, self.owner, Some(&[]), at_first(limit))?,
        };
        Some((number, ledger.record(number)?))
    }

    /// The bucket that values which are not tracked share.
    pub(super) fn rest<'l>(&self, ledger: &'l Ledger) -> Option<Found<'l>> {
        let number = match self.rest.get() {
            Some(number) => *number,
            None => ledger.open_once(&self.rest, self.owner, None, Headroom::OPEN)?,
        };
        Some((number, ledger.record(number)?))
    }

    /// Forgets the bucket of this record, and gives its place to another; what it has counted by now. Requests that have found
    /// it already may count a little more, for which see [`Buckets::count_late`].
    pub(super) fn forget(&self, ledger: &Ledger, number: u32, now: Moment) -> Counts {
        let mut forgotten = self.forgotten();
        let Some(record) = ledger.record(number) else { return Counts::default() };
        let is_ours = record.owner() == self.owner;
        let counts = ledger.reader().counts(number, record);
        if is_ours && ledger.remove(number, now) {
            self.tracked.fetch_sub(1, Relaxed);
            *forgotten += counts;
        }
        counts
    }

    /// Whether the parents track no more buckets of this limit.
    pub(super) fn set_full(&self, full: bool, ledger: &Ledger) {
        self.full.store(full, Relaxed);
        if full {
            self.rest(ledger);
        }
    }

    /// What was counted in a record after it was forgotten.
    pub(super) fn count_late(&self, counts: Counts) {
        *self.forgotten() += counts;
    }

    /// What was counted in buckets that are gone. None goes while this is held.
    pub(super) fn forgotten(&self) -> MutexGuard<'_, Counts> {
        self.forgotten.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A ban holds from the first request on, before the uplink has seen the bucket.
fn at_first(limit: &Limit) -> Headroom {
    if limit.rate.is_ban() { Headroom::SHUT } else { Headroom::OPEN }
}
