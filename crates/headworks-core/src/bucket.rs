//! Buckets: the things counted. A limit has one for each distinct list of values of its `per` keys.

use std::fmt;
use std::sync::Arc;

/// The identity of a bucket, the same on every tier.
///
/// A list, never a joined string: `a_b` + `c` is not `a` + `b_c`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BucketKey {
    /// The name of the limit.
    pub limit: Arc<str>,
    /// The instance of the limit's scope (a region, a zone); empty for a limit that holds globally.
    pub scope: Vec<String>,
    /// Which requests of the limit are counted here.
    pub values: Values,
}

impl BucketKey {
    /// The bucket of a limit without `per`.
    pub fn whole(limit: Arc<str>) -> Self {
        Self { limit, scope: Vec::new(), values: Values::Of(Vec::new()) }
    }

    /// Bytes that the key takes in a message, about.
    pub fn size(&self) -> usize {
        let values = match &self.values {
            Values::Of(values) => values.as_slice(),
            Values::Rest => &[],
        };
        let texts = self.scope.iter().chain(values).map(|text| text.len() + 4);
        self.limit.len() + 8 + texts.sum::<usize>()
    }

    /// Whether a child may let go of it, and ask for it again: what comes with every plan stays, and what all values share that find
    /// no place is one bucket for each limit.
    pub(crate) fn is_forgettable(&self) -> bool {
        matches!(&self.values, Values::Of(values) if !values.is_empty())
    }

    /// A limit without `per` has this one bucket, which every child may hear of.
    pub fn is_whole(&self) -> bool {
        self.values == Values::Of(Vec::new())
    }
}

impl fmt::Display for BucketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.limit, self.scope)?;
        match &self.values {
            Values::Of(values) => write!(f, "{values:?}"),
            Values::Rest => f.write_str("[rest]"),
        }
    }
}

/// Which requests of a limit a bucket counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Values {
    /// Those with these values, in the order of the limit's `per` keys.
    Of(Vec<String>),
    /// Those whose values are not tracked, since the limit has its `max_buckets` already.
    Rest,
}

/// Rates above this, in units a second, are no rates: one such term in a sum would wipe out all others.
pub const MOST_RATE: f64 = 1e12;

/// What a bucket has counted since its node started; every number only rises.
///
/// All are in cost units. `offered = admitted + dropped`; what a shadow limit would have dropped is admitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// What reached the limit, before it dropped anything.
    pub offered: u64,
    /// What the limit dropped.
    pub dropped: u64,
    /// What the limit would have dropped, had its mode been `enforce`.
    pub would_drop: u64,
    /// What passed this limit and was dropped by one behind it in the pipeline. Counted for budgets only, which pay
    /// for what passed them all.
    pub refused_later: u64,
}

impl Counts {
    /// Counts above this are no counts: at a billion a second they take a century.
    pub const MOST: u64 = 1 << 62;

    /// Whether one node can have counted this.
    pub fn are_sound(self) -> bool {
        self == self.made_sound()
    }

    /// The same where one node can have counted it. Sums need this: a child that counts wrongly, or is heard of between a
    /// request and its drop, must not make a sum of which the next parent refuses the whole bucket.
    #[must_use]
    pub fn made_sound(self) -> Self {
        let offered = self.offered.min(Self::MOST);
        Self {
            offered,
            dropped: self.dropped.min(offered),
            would_drop: self.would_drop.min(offered),
            refused_later: self.refused_later.min(offered),
        }
    }

    /// What the limit let pass.
    pub fn admitted(self) -> u64 {
        self.offered.saturating_sub(self.dropped)
    }

    /// What a budget pays for: what would pass the whole pipeline, were this limit enforced.
    pub fn charged(self) -> u64 {
        self.offered
            .saturating_sub(self.dropped)
            .saturating_sub(self.would_drop)
            .saturating_sub(self.refused_later)
    }

    /// What was counted since `earlier`; zero for a number that fell, which a sound counter never does.
    pub fn since(self, earlier: Counts) -> Counts {
        Counts {
            offered: self.offered.saturating_sub(earlier.offered),
            dropped: self.dropped.saturating_sub(earlier.dropped),
            would_drop: self.would_drop.saturating_sub(earlier.would_drop),
            refused_later: self.refused_later.saturating_sub(earlier.refused_later),
        }
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, more: Counts) {
        self.offered = self.offered.saturating_add(more.offered);
        self.dropped = self.dropped.saturating_add(more.dropped);
        self.would_drop = self.would_drop.saturating_add(more.would_drop);
        self.refused_later = self.refused_later.saturating_add(more.refused_later);
    }
}
