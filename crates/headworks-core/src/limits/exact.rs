//! What an exact limit has beside every other one.

use super::Limit;

/// How a limit is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Enforcement {
    /// Each host drops the part of its requests that is over the limit of the fleet: right on average over many.
    #[default]
    DropRatio,
    /// Requests are counted one by one, in one place.
    Exact(Exact),
}

/// The settings of an exact limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Exact {
    /// How requests are counted.
    pub algorithm: Algorithm,
    /// What becomes of requests while the store that counts them does not answer.
    pub on_store_failure: StoreFailure,
}

/// How an exact limit counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Room for `burst` cost units, which comes back at the rate.
    #[default]
    TokenBucket,
    /// At most the amount in any stretch of time as long as the unit.
    SlidingWindow,
    /// At most the amount in each unit of time, counted from 1970 UTC.
    FixedWindow,
}

/// What becomes of requests while the store does not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StoreFailure {
    /// They pass.
    #[default]
    Open,
    /// They are refused.
    Closed,
}

impl Limit {
    /// The settings of an exact limit; `None` for one that drops by ratio.
    pub fn exact(&self) -> Option<Exact> {
        match self.enforcement {
            Enforcement::DropRatio => None,
            Enforcement::Exact(exact) => Some(exact),
        }
    }

    /// How an exact limit counts.
    pub fn algorithm(&self) -> Algorithm {
        self.exact().unwrap_or_default().algorithm
    }
}
