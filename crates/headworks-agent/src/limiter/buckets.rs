//! The buckets of one limit, found by the values of a request.

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use equivalent::Equivalent;
use headworks_core::bucket::{BucketKey, Values};
use headworks_core::limits::Limit;
use headworks_core::units::Headroom;

use super::record::Record;

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
}

impl Buckets {
    /// The bucket of these values, made on first sight.
    #[inline]
    pub(super) fn with<R>(
        &self,
        limit: &Limit,
        values: &[&str],
        opened: &Opened,
        use_it: impl FnOnce(&Record) -> R,
    ) -> R {
        if values.is_empty() {
            return use_it(self.whole(limit, opened));
        }
        let map = self.by_values.pin();
        if let Some(record) = map.get(&Borrowed(values)) {
            return use_it(record);
        }
        if !self.takes_another(limit) {
            return self.with_rest(&limit.name, opened, use_it);
        }
        let owned = Owned(values.iter().map(|value| Box::from(*value)).collect());
        let made = Arc::new(Record::new(key(limit, values), at_first(limit)));
        match map.try_insert(owned, made.clone()) {
            Ok(_) => {
                opened.push(made.clone());
                use_it(&made)
            }
            Err(raced) => {
                self.tracked.fetch_sub(1, Relaxed);
                use_it(raced.current)
            }
        }
    }

    fn takes_another(&self, limit: &Limit) -> bool {
        let room = usize::try_from(limit.max_buckets).unwrap_or(usize::MAX);
        self.tracked.fetch_update(Relaxed, Relaxed, |tracked| (tracked < room).then_some(tracked + 1)).is_ok()
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
