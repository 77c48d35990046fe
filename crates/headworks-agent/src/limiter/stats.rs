//! What a limiter can tell of itself.

use std::sync::Arc;
use std::time::Duration;

use headworks_core::bucket::Counts;
use headworks_core::ladder::PlanState;
use headworks_core::limits::{Digest, Limit};
use headworks_core::units::DropRatio;

/// What a limiter has counted, and how it is connected.
#[derive(Clone, Debug)]
pub struct LimiterStats {
    /// By limit, in pipeline order; limits whose mode is `off` are left out.
    pub limits: Vec<LimitStats>,
    /// Whether the fleet's switch has turned all of them to shadow.
    pub shadow_all: bool,
    /// The link to the control plane.
    pub link: LinkStats,
}

/// One limit.
#[derive(Clone, Debug)]
pub struct LimitStats {
    /// The limit.
    pub limit: Arc<Limit>,
    /// Counted over all its buckets since the limit came into force here.
    pub counts: Counts,
    /// The highest drop ratio of its buckets.
    pub drop_ratio: DropRatio,
    /// Its buckets.
    pub buckets: usize,
    /// Cost units of values that find no place among its buckets, and share one; as counted in this process by ratio.
    pub untracked: u64,
}

impl LimitStats {
    /// Adds one bucket; `is_rest` if it is the one for values that find no place.
    pub(super) fn add(&mut self, counts: Counts, drop_ratio: DropRatio, is_rest: bool) {
        self.counts += counts;
        self.buckets += 1;
        if is_rest {
            self.untracked += counts.offered;
        }
        if drop_ratio > self.drop_ratio {
            self.drop_ratio = drop_ratio;
        }
    }
}

/// The link to the control plane.
#[derive(Clone, Debug, Default)]
pub struct LinkStats {
    /// What the plan in hand is worth.
    pub state: PlanState,
    /// Time since the controller computed it; `None` before the first.
    pub age: Option<Duration>,
    /// The aggregator that the agent is attached to.
    pub parent: Option<String>,
    /// Identifies the limits in force.
    pub digest: Option<Digest>,
    /// How many sets of limits their controller has had.
    pub generation: u64,
    /// Plan entries that made no sense or were for unknown buckets.
    pub refused_entries: u64,
    /// Times that the state could not be written to disk.
    pub state_write_errors: u64,
}

impl LinkStats {
    /// Of an agent with limits of its own: they never grow old.
    pub(crate) fn standalone(generation: u64, digest: Digest) -> Self {
        let age = Some(Duration::ZERO);
        Self { state: PlanState::Fresh, age, digest: Some(digest), generation, ..Self::default() }
    }
}
