//! Places for buckets: how many of a limit are tracked here.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use headworks_core::limits::Limit;

/// Takes a place for one more bucket of a limit that tracks so many, if there is one; what an override names always has one,
/// and the file bounds them.
pub(crate) fn takes_another(tracked: &AtomicUsize, limit: &Limit, named: bool) -> bool {
    let room = if named { usize::MAX } else { usize::try_from(limit.max_buckets).unwrap_or(usize::MAX) };
    tracked.fetch_update(Relaxed, Relaxed, |tracked| (tracked < room).then_some(tracked + 1)).is_ok()
}
