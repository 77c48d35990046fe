//! Exact limits: requests charged one by one, to all buckets that they meet or to none.
//!
//! A request becomes [`Ask`]s, one for each exact limit that it meets, in pipeline order; a store settles them at one stroke
//! and answers with as many [`Outcome`]s. What becomes of the request is then the same whatever the store
//! ([`Settled`]). [`memory`] keeps the buckets in this process.

mod key;
mod limit;
mod memory;
mod shard;
#[cfg(test)]
mod tests;

use headworks_core::attributes::Attributes;
use headworks_core::bucket::Counts;
use headworks_core::exact::{Look, Ruling};
use headworks_core::units::Rate;
use smallvec::SmallVec;

pub(crate) use limit::ExactLimit;
pub(crate) use memory::{give_back, settle, settle_one, settle_one_value};

/// What a request asks of one exact limit.
#[derive(Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) limit: &'a ExactLimit,
    /// What describes the request.
    pub(crate) attributes: Attributes<'a>,
    /// The first value of its bucket.
    pub(crate) first: &'a str,
    /// It is refused since it lacks a value, and no bucket counts it.
    pub(crate) lacks_value: bool,
    /// What the request must find room for, in cost units.
    pub(crate) cost: u64,
    /// What it takes when it passes: nothing, if it only looks.
    pub(crate) charge: u64,
    /// Whether a refusal refuses the request. In shadow the verdict is worked out, and only counted.
    pub(crate) enforced: bool,
    /// The request named its cost by itself, and cannot complain if it never passes.
    pub(crate) asked: bool,
}

/// The values of a bucket.
pub(crate) type Values<'a> = SmallVec<[&'a str; 4]>;

impl<'a> Ask<'a> {
    /// The values of its bucket.
    pub(crate) fn values(&self) -> Values<'a> {
        self.limit.limit.values(self.attributes).collect()
    }
}

/// What a request asks of all exact limits that it meets, in pipeline order. Few requests meet more than two.
pub(crate) type Asks<'a> = SmallVec<[Ask<'a>; 4]>;

/// What one exact limit says to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) passes: bool,
    /// It is no guess for want of an answer.
    pub(crate) counted: bool,
    /// What is left, this request charged if it passes.
    pub(crate) told: Remaining,
}

impl Outcome {
    /// Of a request that lacks a value, by the limit's own rule: no bucket counts it, no override concerns it, no wait helps.
    pub(crate) fn of_nothing(own: &Ruling) -> Self {
        let told =
            Remaining { rate: own.rate, limit: own.rule.most(), remaining: Some(0), retry_after: None };
        Self { passes: false, counted: true, told }
    }
}

/// What all of them say, as many as there were asks.
pub(crate) type Outcomes = SmallVec<[Outcome; 4]>;

/// The numbers of an exact limit that a client is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remaining {
    /// How much passes of this bucket.
    pub rate: Rate,
    /// Most that passes at one moment, in cost units; `None` if there is no limit.
    pub limit: Option<u64>,
    /// What is left of it, this request charged; `None` if there is no limit.
    pub remaining: Option<u64>,
    /// After how long the same request may pass; `None` if it did, or never will.
    pub retry_after: Option<std::time::Duration>,
}

/// What becomes of a request by its outcomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// It costs more than this limit ever passes at once: a mistake of whoever asks, and nothing is charged or counted.
    NeverPasses {
        /// The place of the ask.
        place: usize,
        /// Most that passes.
        most: u64,
    },
    /// This limit refuses it, and nothing is charged.
    Refused(usize),
    /// It passes, and is charged to each limit that it would have passed.
    Passes,
}

impl Settled {
    /// What becomes of a request. The first limit that refuses is the one to name.
    #[inline]
    pub(crate) fn of(asks: &[Ask<'_>], outcomes: &[Outcome]) -> Self {
        let enforced = || asks.iter().zip(outcomes).enumerate().filter(|(_, (ask, _))| ask.enforced);
        let dear = |(place, (ask, outcome)): (usize, (&Ask<'_>, &Outcome))| {
            let most = outcome.told.limit.filter(|most| (1..ask.cost).contains(most))?;
            (ask.asked && !ask.lacks_value).then_some(Self::NeverPasses { place, most })
        };
        if let Some(dear) = enforced().find_map(dear) {
            return dear;
        }
        let refused = enforced().find(|(_, (_, outcome))| !outcome.passes);
        refused.map_or(Self::Passes, |(place, _)| Self::Refused(place))
    }

    /// How the ask at this place is counted, and whether it is charged.
    #[inline]
    pub(crate) fn for_place(self, place: usize, ask: &Ask<'_>, outcome: &Outcome) -> Effect {
        match self {
            Self::NeverPasses { .. } => Effect::Nothing,
            Self::Refused(by) if place > by => Effect::Nothing,
            Self::Refused(by) if place == by => Effect::Drop,
            _ if !outcome.passes => {
                if ask.enforced {
                    Effect::Drop
                } else {
                    Effect::WouldDrop
                }
            }
            Self::Refused(_) => Effect::RefusedLater,
            Self::Passes => Effect::Charge,
        }
    }
}

/// What a settled request does to one of the limits that it met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It never came so far.
    Nothing,
    /// It passes, and takes its cost.
    Charge,
    /// It would have passed, and a later limit refused it.
    RefusedLater,
    /// It is refused here.
    Drop,
    /// It would be refused here, were the limit enforced; it takes nothing.
    WouldDrop,
}

impl Effect {
    /// The effect on the only limit that a request meets; none if it asks for more than ever passes (see
    /// [`Settled::NeverPasses`]).
    #[inline]
    fn alone(ask: &Ask<'_>, passes: bool, most: Option<u64>) -> Option<Self> {
        match most {
            _ if passes => Some(Self::Charge),
            _ if !ask.enforced => Some(Self::WouldDrop),
            Some(most) if ask.asked && (1..ask.cost).contains(&most) => None,
            _ => Some(Self::Drop),
        }
    }

    /// Counts a request of this cost.
    #[inline]
    fn count(self, counts: &mut Counts, cost: u64) {
        if self == Self::Nothing {
            return;
        }
        counts.offered = counts.offered.saturating_add(cost);
        let more = match self {
            Self::Nothing | Self::Charge => return,
            Self::RefusedLater => &mut counts.refused_later,
            Self::Drop => &mut counts.dropped,
            Self::WouldDrop => &mut counts.would_drop,
        };
        *more = more.saturating_add(cost);
    }
}

impl Remaining {
    /// What a client is told after `charged` units were taken.
    #[inline]
    pub(crate) fn of(look: &Look, ruling: &Ruling, charged: u64) -> Self {
        Self {
            rate: ruling.rate,
            limit: ruling.rule.most(),
            remaining: look.remaining.map(|remaining| remaining.saturating_sub(charged)),
            retry_after: look.retry_after,
        }
    }
}
