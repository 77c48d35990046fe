//! Decisions, wherever exact limits are counted.

use std::sync::Arc;

use headworks_agent::told::Told;
use headworks_agent::{Limiter, SharedLimiter, Unanswerable, Verdict};
use headworks_core::attributes::Attributes;
use headworks_core::limits::Limit;

/// An agent's limiter, and the store that counts its exact limits if they are in one.
#[derive(Clone)]
pub(crate) struct Decider {
    pub(super) limiter: Limiter,
    pub(super) shared: Option<SharedLimiter>,
}

/// What becomes of a request, and what is to be told of it.
#[derive(Clone, Debug)]
pub(super) struct Decided {
    pub(super) allowed: bool,
    /// There is nothing that the request could only look at.
    pub(super) saw_nothing: bool,
    /// The limit that decided, and its numbers.
    pub(super) by: Option<(Arc<Limit>, Told)>,
}

impl Decider {
    pub(crate) fn new(limiter: Limiter, shared: Option<SharedLimiter>) -> Self {
        Self { limiter, shared }
    }

    /// Decides a request of this cost; waits for nothing but a store.
    pub(super) async fn decide(&self, attributes: Attributes<'_>, asked: Option<u32>) -> Decided {
        let verdict = match &self.shared {
            // In a box, since what waits for a store is large, and would be moved with every request that does not.
            Some(shared) => Box::pin(shared.check(attributes, asked)).await,
            None => self.limiter.check(attributes, asked),
        };
        self.decided(&verdict, asked)
    }

    fn decided(&self, verdict: &Verdict, asked: Option<u32>) -> Decided {
        let limit = verdict.limit().and_then(|limit| self.limiter.limit(limit));
        let by = limit.and_then(|limit| Told::of(verdict, &limit, asked).map(|told| (limit, told)));
        let saw_nothing = verdict.unanswerable == Some(Unanswerable::NothingToSee);
        Decided { allowed: verdict.allowed, saw_nothing, by }
    }
}
