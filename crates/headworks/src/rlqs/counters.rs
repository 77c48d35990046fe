//! What became of Envoys.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use headworks_core::quota::Refused;
use serde::{Deserialize, Serialize};
use tonic::{Code, Status};

/// Counted while streams come and go.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    streams: AtomicUsize,
    buckets: AtomicUsize,
    many: AtomicU64,
    long: AtomicU64,
    malformed: AtomicU64,
}

/// The same, as a status tells it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct RlqsView {
    /// Streams open.
    pub(crate) streams: usize,
    /// Buckets of all of them.
    pub(crate) buckets: usize,
    /// Buckets and streams that were refused, by cause.
    pub(crate) refused: BTreeMap<String, u64>,
}

impl Counters {
    /// A bucket was refused.
    pub(super) fn note(&self, refused: Refused) {
        let counter = match refused {
            Refused::Many => &self.many,
            Refused::Long => &self.long,
        };
        counter.fetch_add(1, Relaxed);
    }

    /// So many buckets made no sense.
    pub(super) fn note_unsound(&self, buckets: usize) {
        self.malformed.fetch_add(buckets as u64, Relaxed);
    }

    /// A stream ended with an error: for what its Envoy said, or since that broke off.
    pub(super) fn note_end(&self, status: &Status) {
        // The latter two are what the library says of messages that are too long, or that cannot be read.
        if matches!(status.code(), Code::InvalidArgument | Code::OutOfRange | Code::Internal) {
            self.malformed.fetch_add(1, Relaxed);
        }
    }

    /// What a status tells.
    pub(crate) fn view(&self) -> RlqsView {
        let refused = [("many", &self.many), ("long", &self.long), ("malformed", &self.malformed)];
        RlqsView {
            streams: self.streams.load(Relaxed),
            buckets: self.buckets.load(Relaxed),
            refused: refused.map(|(cause, count)| (cause.to_owned(), count.load(Relaxed))).into(),
        }
    }
}

/// One open stream, for as long as this is kept.
pub(super) struct Open {
    counters: Arc<Counters>,
    buckets: usize,
}

/// Most streams open at once; each may take a quarter of a megabyte for names.
const MOST_STREAMS: usize = 4096;

impl Open {
    /// Counts a stream, if there is room for one more.
    pub(super) fn new(counters: Arc<Counters>) -> Option<Self> {
        if counters.streams.fetch_add(1, Relaxed) >= MOST_STREAMS {
            counters.streams.fetch_sub(1, Relaxed);
            return None;
        }
        Some(Self { counters, buckets: 0 })
    }

    /// It has so many buckets now.
    pub(super) fn has(&mut self, buckets: usize) {
        // Wraps around, and back: the sum is right.
        self.counters.buckets.fetch_add(buckets.wrapping_sub(self.buckets), Relaxed);
        self.buckets = buckets;
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.has(0);
        self.counters.streams.fetch_sub(1, Relaxed);
    }
}
