//! The buckets of one limit, found by the values of a request.

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use equivalent::Equivalent;
use headworks_core::bucket::{BucketKey, Counts, Values};
use headworks_core::limits::Limit;
use headworks_core::units::Headroom;
use papaya::Guard as _;

use super::record::{Record, Ruling};
use crate::places::takes_another;

/// Records that came to be, for the uplink to take up.
#[derive(Debug, Default)]
pub(super) struct Opened(Mutex<Vec<Arc<Record>>>);

impl Opened {
    fn push(&self, record: Arc<Record>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(record);
    }

    pub(super) fn take(&self) -> Vec<Arc<Record>> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Owned(Box<[Box<str>]>);

struct Borrowed<'a>(&'a [&'a str]);

// Both hash alike, so that a request's values are looked up without copying them.
impl Hash for Owned {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.iter().for_each(|value| value.hash(state));
    }
}

impl Hash for Borrowed<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.iter().for_each(|value| value.hash(state));
    }
}

impl Equivalent<Owned> for Borrowed<'_> {
    fn equivalent(&self, owned: &Owned) -> bool {
        self.0.len() == owned.0.len() && self.0.iter().zip(&owned.0).all(|(a, b)| **a == **b)
    }
}

/// The buckets of one limit: one for all where it has no `per`, else one for each list of values up to its
/// `max_buckets`, and one that all others share.
#[derive(Debug, Default)]
pub(super) struct Buckets {
    whole: OnceLock<Arc<Record>>,
    by_values: papaya::HashMap<Owned, Arc<Record>>,
    /// Lists of values tracked; counted apart since the map's own length is an estimate.
    tracked: AtomicUsize,
    rest: OnceLock<Arc<Record>>,
    /// The parents track no more: what is new here is not tracked until they say otherwise. Else whoever makes up values
    /// would have the time until they answer for each of them.
    full: AtomicBool,
    /// Counted in buckets that were forgotten. Held while one is, so that whoever sums up finds each bucket in one place.
    forgotten: Mutex<Counts>,
}

impl Buckets {
    /// The bucket of these values, made on first sight by what `rule` says of it: nothing, if there is to be none.
    #[inline]
    pub(super) fn with<R>(
        &self,
        limit: &Limit,
        values: &[&str],
        opened: &Opened,
        rule: impl FnOnce() -> Option<Ruling>,
        use_it: impl FnOnce(&Record) -> R,
    ) -> Option<R> {
        if values.is_empty() {
            return Some(use_it(self.whole(limit, opened)));
        }
        let map = self.by_values.pin();
        if let Some(record) = map.get(&Borrowed(values)) {
            if record.sends_away() {
                return Some(self.with_rest(&limit.name, opened, use_it));
            }
            return Some(use_it(record));
        }
        let ruling = rule()?;
        if !takes_another(&self.tracked, limit, ruling.named) {
            return Some(self.with_rest(&limit.name, opened, use_it));
        }
        let owned = Owned(values.iter().map(|value| Box::from(*value)).collect());
        let made = Arc::new(Record::new(key(limit, values), at_first(&ruling.limit)));
        made.set_away(!ruling.named && self.full.load(Relaxed));
        match map.try_insert(owned, made.clone()) {
            Ok(_) => {
                opened.push(made.clone());
                if made.sends_away() {
                    return Some(self.with_rest(&limit.name, opened, use_it));
                }
                Some(use_it(&made))
            }
            Err(raced) => {
                self.tracked.fetch_sub(1, Relaxed);
                Some(use_it(raced.current))
            }
        }
    }

    /// The one bucket of a limit without `per`.
    pub(super) fn whole(&self, limit: &Limit, opened: &Opened) -> &Record {
        self.whole.get_or_init(|| {
            let made = Arc::new(Record::new(key(limit, &[]), at_first(limit)));
            opened.push(made.clone());
            made
        })
    }

    /// The bucket that values which are not tracked share.
    pub(super) fn with_rest<R>(
        &self,
        limit: &Arc<str>,
        opened: &Opened,
        use_it: impl FnOnce(&Record) -> R,
    ) -> R {
        use_it(self.rest.get_or_init(|| {
            let key = BucketKey { limit: limit.clone(), scope: Vec::new(), values: Values::Rest };
            let made = Arc::new(Record::new(key, Headroom::OPEN));
            opened.push(made.clone());
            made
        }))
    }

    /// Forgets the buckets of values that are not counted any more.
    pub(super) fn close(&self, is_off: impl Fn(&[Box<str>]) -> bool) {
        let mut forgotten = self.forgotten();
        self.by_values.pin().retain(|values, record| {
            let is_off = is_off(&values.0);
            if is_off {
                record.retire();
                self.tracked.fetch_sub(1, Relaxed);
                *forgotten += record.counts();
            }
            !is_off
        });
    }

    /// Forgets the bucket of this record, and gives its place to another; what it has counted by now. Requests that have found
    /// it already may count a little more, for which see [`Buckets::count_late`].
    pub(super) fn forget(&self, record: &Arc<Record>) -> Counts {
        let Values::Of(values) = &record.key.values else { return Counts::default() };
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        let mut forgotten = self.forgotten();
        let map = self.by_values.pin();
        let removed = map.remove_if(&Borrowed(&values), |_, there| Arc::ptr_eq(there, record));
        let counts = record.counts();
        if matches!(removed, Ok(Some(_))) {
            self.tracked.fetch_sub(1, Relaxed);
            *forgotten += counts;
        }
        counts
    }

    /// Whether the parents track no more buckets of this limit.
    pub(super) fn set_full(&self, limit: &Arc<str>, full: bool, opened: &Opened) {
        self.full.store(full, Relaxed);
        if full {
            self.with_rest(limit, opened, |_| ());
        }
    }

    /// What was counted for values that find no place.
    pub(super) fn counted_in_rest(&self) -> Counts {
        self.rest.get().map(|rest| rest.counts()).unwrap_or_default()
    }

    /// What was counted in a record after it was forgotten.
    pub(super) fn count_late(&self, counts: Counts) {
        *self.forgotten() += counts;
    }

    /// Lets go of removed records as soon as no request looks at them any more: a map does so in batches only.
    pub(super) fn flush(&self) {
        self.by_values.guard().flush();
    }

    /// What was counted in all buckets, those that were forgotten included.
    pub(super) fn counted(&self, mut look: impl FnMut(&Record)) -> Counts {
        let forgotten = self.forgotten();
        let mut counts = *forgotten;
        self.for_each(|record| {
            counts += record.counts();
            look(record);
        });
        counts
    }

    fn forgotten(&self) -> MutexGuard<'_, Counts> {
        self.forgotten.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at every record.
    pub(super) fn for_each(&self, mut look: impl FnMut(&Record)) {
        self.whole.get().into_iter().chain(self.rest.get()).for_each(|record| look(record));
        self.by_values.pin().values().for_each(|record| look(record));
    }
}

/// A ban holds from the first request on, before the uplink has seen the bucket.
fn at_first(limit: &Limit) -> Headroom {
    if limit.rate.is_ban() { Headroom::SHUT } else { Headroom::OPEN }
}

fn key(limit: &Limit, values: &[&str]) -> BucketKey {
    let values = values.iter().map(|value| (*value).to_owned()).collect();
    BucketKey { limit: limit.name.clone(), scope: Vec::new(), values: Values::Of(values) }
}
