//! What becomes of a request, in a few numbers that cost nothing to hand on.

use headworks_core::units::Headroom;

use crate::exact::Remaining;

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// Whether it passes.
    pub allowed: bool,
    /// The limit that refused it; for one that passes, the enforced limit with the least headroom of those it met.
    /// For one that met enforced exact limits, the one of these that has least left.
    pub decisive: Option<Decisive>,
    /// The request can have no verdict: it is not allowed, and nothing was charged to exact limits.
    pub unanswerable: Option<Unanswerable>,
}

/// The limit that a verdict rests on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decisive {
    /// The limit; of one that drops by ratio, as it holds for the bucket that the request met.
    pub limit: LimitRef,
    /// How its bucket stands that the request met.
    pub standing: Standing,
}

/// Which limit it was, for [`Limiter::limit`](crate::Limiter::limit) to tell: by its place in the limits that the request was
/// decided by. So a verdict is a copy of numbers, and no counter is touched that threads share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitRef {
    /// Which limits were in force.
    pub(super) generation: u64,
    pub(super) which: Which,
}

/// Which of the limits in force: its place, and which of its overrides holds. In one word, so that it is copied in one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Which(u64);

impl Which {
    /// Of the overrides of the limit at this place, this one; 0 is the limit itself.
    #[inline]
    pub(super) fn new(place: u32, rule: u32) -> Self {
        Self(u64::from(rule) << 32 | u64::from(place))
    }

    /// Place and override.
    #[allow(clippy::cast_possible_truncation, reason = "the halves of the word")]
    pub(super) fn parts(self) -> (usize, usize) {
        (self.0 as u32 as usize, (self.0 >> 32) as usize)
    }
}

/// How a bucket stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Standing {
    /// The headroom of the fleet: limit over offered.
    Headroom(Headroom),
    /// What an exact count has left.
    Exact(Remaining),
    /// The store that counts did not answer, and the limit says what that means: nothing remains that could be told.
    Uncounted(Remaining),
}

/// Why a request has no verdict: a mistake of whoever asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unanswerable {
    /// No wait would let it pass.
    #[error(
        "the cost of {cost} is above {most}, the most that the limit ever passes at once: ask for at most {most}"
    )]
    NeverPasses {
        /// The limit.
        limit: LimitRef,
        /// What the request costs.
        cost: u64,
        /// Most that passes at one moment.
        most: u64,
    },
    /// A cost of 0 looks at exact limits, and it meets none.
    #[error("a cost of 0 only looks at exact limits, and the request meets none: ask for 1 or more")]
    NothingToSee,
}

impl Unanswerable {
    /// The limit that it is about, if it is about one.
    fn limit(self) -> Option<LimitRef> {
        match self {
            Self::NeverPasses { limit, .. } => Some(limit),
            Self::NothingToSee => None,
        }
    }
}

impl Verdict {
    pub(super) const NOTHING_TO_SEE: Verdict =
        Verdict { allowed: false, decisive: None, unanswerable: Some(Unanswerable::NothingToSee) };

    /// The limit that it rests on, if it rests on one.
    pub fn limit(&self) -> Option<LimitRef> {
        let of_mistake = self.unanswerable.and_then(Unanswerable::limit);
        self.decisive.map(|decisive| decisive.limit).or(of_mistake)
    }

    #[inline]
    pub(super) fn of(allowed: bool, decisive: Option<Decisive>) -> Self {
        Self { allowed, decisive, unanswerable: None }
    }

    /// By what limits that drop by ratio say.
    #[inline]
    pub(super) fn by_ratio(generation: u64, ByRatio { allowed, named }: ByRatio) -> Self {
        let decisive = named.map(|Named { which, headroom }| {
            let limit = LimitRef { generation, which };
            Decisive { limit, standing: Standing::Headroom(headroom) }
        });
        Self::of(allowed, decisive)
    }
}

/// What the limits that drop by ratio make of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct ByRatio {
    /// Whether all of them let it pass.
    pub(super) allowed: bool,
    pub(super) named: Option<Named>,
}

/// The limit to be named.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    pub(super) which: Which,
    pub(super) headroom: Headroom,
}
