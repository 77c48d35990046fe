//! What children said and heard so far.

use serde::{Deserialize, Serialize};

/// Sums over all children; every number only rises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::bench) struct Tally {
    /// Children whose parent has numbered all their buckets.
    pub(in crate::bench) ready: u64,
    pub(in crate::bench) reports: u64,
    /// Entries in them.
    pub(in crate::bench) entries: u64,
    /// Reports that plans account for.
    pub(in crate::bench) answered: u64,
    pub(in crate::bench) plans: u64,
    /// Headrooms in them.
    pub(in crate::bench) headrooms: u64,
    /// Buckets of children that have a headroom.
    pub(in crate::bench) steered: u64,
    /// Streams that ended, which none should.
    pub(in crate::bench) detached: u64,
}

impl Tally {
    /// What came since an earlier one.
    pub(in crate::bench) fn since(self, earlier: Self) -> Self {
        Self {
            ready: self.ready - earlier.ready,
            reports: self.reports - earlier.reports,
            entries: self.entries - earlier.entries,
            answered: self.answered - earlier.answered,
            plans: self.plans - earlier.plans,
            headrooms: self.headrooms - earlier.headrooms,
            steered: self.steered - earlier.steered,
            detached: self.detached - earlier.detached,
        }
    }
}
