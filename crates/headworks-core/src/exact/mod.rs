//! Exact limits: requests counted one by one, in one place, by a token bucket or in windows.
//!
//! A decision has two halves, so that a request which meets several limits is checked against all of them before it is
//! charged to any: [`Rule::look`] says what would become of it, [`Rule::charge`] takes its cost. Both are integer
//! arithmetic on a [`State`] that starts empty; what remains of a division is never lost. Moments are nanoseconds
//! since 1970, so that windows begin at the same moment wherever they are counted; a clock that goes back stands still.

mod fixed;
mod overrides;
mod sliding;
mod tokens;

use std::time::Duration;

pub use overrides::{Overrides, Ruling};
pub use sliding::{Log, MOST_ENTRIES};

use crate::limits::Algorithm;
use crate::units::{Moment, Rate};
use fixed::Window;
use tokens::Tokens;

/// What holds for one bucket of an exact limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Everything passes.
    Unlimited,
    /// Nothing passes.
    Ban,
    /// A token bucket.
    TokenBucket(Tokens),
    /// At most an amount in any stretch of time as long as the unit.
    SlidingWindow(Window),
    /// At most an amount in each unit of time, counted from 1970 UTC.
    FixedWindow(Window),
}

/// What a bucket has counted. `default` is a bucket that nothing was charged to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Nothing yet.
    #[default]
    New,
    /// What a token bucket owes, in parts of a cost unit, and when that was so.
    Spent {
        /// Parts; the rule says how many a cost unit has.
        low: u64,
        /// What of them is above 2⁶⁴, in the order of little ends: all 0, but for huge bursts of odd rates.
        high: [u8; 7],
        /// When.
        at: Moment,
    },
    /// What was charged in the window that began then.
    Window {
        /// When the window began.
        start: Moment,
        /// Cost units.
        used: u64,
    },
    /// When cost units were charged.
    Log(Box<Log>),
}

/// The numbers of a rule, for who counts elsewhere. Times are in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// A token bucket.
    TokenBucket {
        /// Cost units that it holds.
        burst: u64,
        /// Parts of a cost unit that come back in a microsecond.
        back: u64,
        /// Parts of a cost unit.
        parts: u64,
    },
    /// A sliding window.
    SlidingWindow {
        /// Cost units that pass in it.
        amount: u64,
        /// Microseconds.
        length: u64,
    },
    /// A fixed window.
    FixedWindow {
        /// Cost units that pass in it.
        amount: u64,
        /// Microseconds.
        length: u64,
    },
}

/// What would become of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Whether it would pass.
    pub passes: bool,
    /// Cost units that are left before it is charged; `None` if there is no limit.
    pub remaining: Option<u64>,
    /// After how long the same request would pass if nothing else was charged; `None` if it passes, or never will.
    pub retry_after: Option<Duration>,
}

impl Look {
    const UNLIMITED: Look = Look { passes: true, remaining: None, retry_after: None };
    const BANNED: Look = Look { passes: false, remaining: Some(0), retry_after: None };

    #[inline]
    fn passes(remaining: u64) -> Self {
        Self { passes: true, remaining: Some(remaining), retry_after: None }
    }

    #[inline]
    fn refused(remaining: u64, retry_after: Option<Duration>) -> Self {
        Self { passes: false, remaining: Some(remaining), retry_after }
    }
}

impl Rule {
    /// The rule for a rate. `burst` is for token buckets only; without one they hold what the rate gives in its unit.
    pub fn new(algorithm: Algorithm, rate: Rate, burst: Option<u64>) -> Self {
        let Rate::Per { amount, unit } = rate else { return Self::Unlimited };
        match algorithm {
            _ if amount == 0 => Self::Ban,
            Algorithm::TokenBucket => Self::TokenBucket(Tokens::new(amount, unit, burst.unwrap_or(amount))),
            Algorithm::SlidingWindow => Self::SlidingWindow(Window::new(amount, unit)),
            Algorithm::FixedWindow => Self::FixedWindow(Window::new(amount, unit)),
        }
    }

    /// Most that can pass at one moment, in cost units; `None` if there is no limit. A dearer request never passes.
    #[inline]
    pub fn most(&self) -> Option<u64> {
        match self {
            Rule::Unlimited => None,
            Rule::Ban => Some(0),
            Rule::TokenBucket(tokens) => Some(tokens.burst()),
            Rule::SlidingWindow(window) | Rule::FixedWindow(window) => Some(window.amount()),
        }
    }

    /// Its numbers; `None` where nothing is counted.
    pub fn numbers(&self) -> Option<Numbers> {
        match self {
            Rule::Unlimited | Rule::Ban => None,
            Rule::TokenBucket(tokens) => {
                let (back, parts) = tokens.by_the_microsecond();
                Some(Numbers::TokenBucket { burst: tokens.burst(), back, parts })
            }
            Rule::SlidingWindow(window) => {
                Some(Numbers::SlidingWindow { amount: window.amount(), length: window.micros() })
            }
            Rule::FixedWindow(window) => {
                Some(Numbers::FixedWindow { amount: window.amount(), length: window.micros() })
            }
        }
    }

    /// What would become of a request of this cost. Changes nothing.
    pub fn look(&self, state: &State, cost: u64, now: Moment) -> Look {
        match self {
            Rule::Unlimited => Look::UNLIMITED,
            Rule::Ban => Look::BANNED,
            Rule::TokenBucket(tokens) => tokens.look(state, cost, now),
            Rule::SlidingWindow(window) => sliding::look(*window, state, cost, now),
            Rule::FixedWindow(window) => window.look(state, cost, now),
        }
    }

    /// Takes the cost of a request that was seen to pass.
    pub fn charge(&self, state: &mut State, cost: u64, now: Moment) {
        match self {
            _ if cost == 0 => {}
            Rule::Unlimited | Rule::Ban => {}
            Rule::TokenBucket(tokens) => tokens.charge(state, cost, now),
            Rule::SlidingWindow(window) => sliding::charge(*window, state, cost, now),
            Rule::FixedWindow(window) => window.charge(state, cost, now),
        }
    }

    /// Gives back the cost of a request that was charged, as far as it still counts; how much that is.
    pub fn give_back(&self, state: &mut State, cost: u64, now: Moment) -> u64 {
        match self {
            Rule::Unlimited | Rule::Ban => 0,
            Rule::TokenBucket(tokens) => tokens.give_back(state, cost, now),
            Rule::SlidingWindow(window) => sliding::give_back(*window, state, cost, now),
            Rule::FixedWindow(window) => window.give_back(state, cost, now),
        }
    }

    /// Decides a request by itself: looks whether there is room for its cost, and takes what it is charged if there is.
    #[inline(always)]
    pub fn decide(&self, state: &mut State, cost: u64, charge: u64, now: Moment) -> Look {
        match self {
            Rule::TokenBucket(tokens) => tokens.decide(state, cost, charge, now),
            _ => self.decide_elsewhere(state, cost, charge, now),
        }
    }

    #[inline(never)]
    fn decide_elsewhere(&self, state: &mut State, cost: u64, charge: u64, now: Moment) -> Look {
        let look = self.look(state, cost, now);
        if look.passes {
            self.charge(state, charge, now);
        }
        look
    }

    /// Whether the bucket is as good as a new one, so that forgetting it changes nothing.
    pub fn is_as_new(self, state: &State, now: Moment) -> bool {
        match (self, state) {
            (Rule::Unlimited | Rule::Ban, _) | (_, State::New) => true,
            _ => self.used(state, now) == 0,
        }
    }

    /// Cost units that are taken at this moment, rounded up.
    fn used(self, state: &State, now: Moment) -> u64 {
        match self {
            Rule::Unlimited | Rule::Ban => 0,
            Rule::TokenBucket(tokens) => tokens.used(state, now),
            Rule::SlidingWindow(window) => sliding::used(window, state, now),
            Rule::FixedWindow(window) => window.used(state, now),
        }
    }

    /// The state of a bucket whose rule was `old` until now: what was used stays used, up to all that there is, so
    /// that a higher limit helps at once, a lower one owes nothing, and no reload gives anybody a fresh budget.
    pub fn adopt(self, old: Rule, state: &mut State, now: Moment) {
        match (old, self) {
            _ if old == self => {}
            (Rule::TokenBucket(old), Rule::TokenBucket(new)) => new.adopt(&old, state, now),
            (Rule::SlidingWindow(old), Rule::SlidingWindow(new)) if old.length() == new.length() => {}
            (Rule::FixedWindow(old), Rule::FixedWindow(new)) if old.length() == new.length() => {}
            _ => {
                let used = old.used(state, now).min(self.most().unwrap_or(0));
                *state = State::New;
                self.charge(state, used, now);
            }
        }
    }
}

#[cfg(test)]
mod tests;
